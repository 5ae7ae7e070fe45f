// A TorchScript archive: what torch.jit.save() writes.
//
// Note [TorchScript archives]
// An archive is a zip file with one folder. `code/` has the text of each class, `data.pkl` the
// module as a pickle of objects, `data/N` their tensors' memory. `constants.pkl` and `constants/N`
// are the tensors that the code calls CONSTANTS.cN. Nothing in it runs while it is read, but for
// __setstate__ methods, which are programs of the known operations. Sizes are compared with the
// file's bytes before memory is allocated. A storage goes from the file into its tensor's memory
// at once, so loading needs the memory of the model and of the texts. The texts are kept as they
// are: a saved module has the same code, with the tensors and attributes that it has by then.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "nn/script/unit_internal.h"

namespace ramet::script {

/// What all modules of one loaded file share. Immutable but for the lock.
struct ArchiveTexts {
  std::string file;     // for errors
  std::string version;  // of the format, as the file writes it
  /// code/..., in the file's order: their names below the folder, and their bytes.
  std::vector<std::pair<std::string, std::string>> code;
  std::unordered_map<std::string, size_t> by_name;
  std::mutex compiling;

  /// The text of code/NAME, or null.
  const std::string* find(const std::string& name) const;
};

/// An object of a file, and the file's texts.
struct LoadedModule {
  std::shared_ptr<Object> object;
  std::shared_ptr<ArchiveTexts> texts;
};

/// Texts may be packed to a hundredth. A small file that asks for more than this many bytes, for
/// its code or for a pickle, holds no program.
inline uint64_t most_text(const formats::detail::ZipReader& zip) {
  return (uint64_t{1} << 24) + 64 * zip.bytes();
}

/// How a pickle's values are read.
struct ObjectOptions {
  bool big = false;  // the bytes of an element are the other way around
  std::optional<Device> device;
  Limits limits;
};
/// The value of `name`.pkl. The memory of its tensors is in the folder `name`/ ("net/data").
/// Without a unit, which constants do not need, objects are an Error.
IValue read_objects(formats::detail::ZipReader& zip, const std::string& name,
                    const ObjectOptions& options, const std::shared_ptr<CompilationUnit>& unit);

/// Reads a whole archive. Fills the values of `extra`'s keys that the archive has.
LoadedModule read_archive(formats::detail::ZipReader& zip, const LoadOptions& options,
                          jit::ExtraFilesMap* extra);

/// The entries of a file for a module, to be written by write_zip(). This owns their memory.
class ArchiveWriter {
 public:
  ArchiveWriter(const char* op, std::string root) : op_(op), root_(std::move(root)) {}
  std::vector<formats::detail::ZipPart> parts(const LoadedModule& module,
                                              const jit::ExtraFilesMap& extra);

 private:
  const char* op_;
  std::string root_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<Tensor> tensors_;
};

/// Compiles a method once, and reports all that it lacks in one Error.
void compile(const LoadedModule& module, ScriptFunction& function);
/// Compiles all methods of the module's class.
void compile_all(const LoadedModule& module);

/// An address that is the same for all handles of one tensor, object, tuple, list or dictionary.
/// Null for other values, which handles do not share.
const void* identity(const IValue& value);

/// A copy with its own tensors, lists and objects; what shares one of them shares its copy. Tensors
/// that show one memory show one memory in the copy, too.
class DeepCopy {
 public:
  explicit DeepCopy(std::optional<Device> device) : device_(device) {}
  std::shared_ptr<Object> of(const std::shared_ptr<Object>& object);
  IValue of(const IValue& value);

 private:
  /// Of a storage: what tensors show of it, in bytes, how many they are, and the copy of that part.
  struct Part {
    int64_t first = 0, end = 0;
    int64_t tensors = 0;
    Tensor copy = {};
  };
  void find_parts(const IValue& value, int depth);
  void find_parts(const Object& object, int depth);
  IValue copied(const IValue& value, int depth);
  Tensor copied(const Tensor& tensor);
  std::shared_ptr<Object> copied(const std::shared_ptr<Object>& object, int depth);

  std::optional<Device> device_;
  std::unordered_map<const void*, IValue> made_;
  std::unordered_set<const void*> seen_;
  std::unordered_map<const StorageImpl*, Part> parts_;
};

}  // namespace ramet::script
