// Archives: what save() writes and load() reads. A tree of keys; leaves are tensors and small
// values.
//
// Archives are stored as safetensors (nn/serialize/safetensors.h). The tensor under key "b" of the
// nested archive "a" is the entry "a.b". Values that are no tensors are one JSON text in the
// metadata, under "ramet". So any program that reads safetensors can read the weights, and this
// library can read another program's safetensors file as an archive.
#pragma once
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ivalue.h"
#include "autograd/tensor.h"

namespace ramet {
namespace serialize {

struct Safetensors;

namespace detail {
struct ArchiveContent;  // everything a file holds, by full key
}

/// Collects entries in memory; save_to writes them. Tensors are kept by reference until then.
class RAMET_API OutputArchive final {
 public:
  OutputArchive();
  OutputArchive(OutputArchive&&) noexcept;
  OutputArchive& operator=(OutputArchive&&) noexcept;
  OutputArchive(const OutputArchive&) = delete;
  OutputArchive& operator=(const OutputArchive&) = delete;
  ~OutputArchive();

  /// An undefined tensor is remembered as undefined. `is_buffer` is accepted for source
  /// compatibility. Writing a key again replaces the entry.
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  /// A number, bool, string, tensor, none, or list of numbers or tensors.
  void write(const std::string& key, const IValue& value);
  /// The entries of `nested`, which keeps them too, under `key`.
  void write(const std::string& key, OutputArchive& nested);

  /// Whole or not at all: a crash leaves an older file of that name as it was.
  void save_to(const std::string& filename);
  void save_to(std::ostream& stream);
  void save_to(const std::function<size_t(const void* data, size_t bytes)>& write);

  /// What save_to writes, tensors by reference.
  Safetensors to_safetensors() const;

  template <class... Ts> void operator()(Ts&&... ts) { write(std::forward<Ts>(ts)...); }

 private:
  std::unique_ptr<detail::ArchiveContent> content_;
};

/// Reads entries by key. Nested archives share the loaded content with the archive they came from.
class RAMET_API InputArchive final {
 public:
  InputArchive();
  InputArchive(InputArchive&&) noexcept;
  InputArchive& operator=(InputArchive&&) noexcept;
  InputArchive(const InputArchive&) = delete;
  InputArchive& operator=(const InputArchive&) = delete;
  ~InputArchive();

  /// An Error naming the key where there is no such entry, or it is of another kind. try_read
  /// returns false instead.
  ///
  /// A defined `tensor` of the entry's sizes receives the values in place, converted to its device.
  /// It keeps its memory, its identity and its autograd role. A tensor of other sizes takes over
  /// the loaded memory, as LibTorch's. An undefined one becomes the loaded tensor. The dtypes must
  /// agree.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  /// read() that returns false where there is no such entry.
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, IValue& value);
  bool try_read(const std::string& key, IValue& value);
  void read(const std::string& key, InputArchive& archive);
  bool try_read(const std::string& key, InputArchive& archive);
  /// As read() into a tensor, but other sizes are an Error naming the full key: what modules and
  /// optimizers use.
  void read_values(const std::string& key, const Tensor& tensor);

  /// Tensors are put on `device`; on cpu:0 by default.
  void load_from(const std::string& filename, std::optional<Device> device = std::nullopt);
  void load_from(std::istream& stream, std::optional<Device> device = std::nullopt);
  void load_from(const char* data, size_t size, std::optional<Device> device = std::nullopt);
  void load_from(const std::function<size_t(uint64_t pos, void* buffer, size_t bytes)>& read,
                 const std::function<size_t()>& size, std::optional<Device> device = std::nullopt);

  /// What OutputArchive::to_safetensors gave; `name` stands for a file in error texts.
  void load_from(Safetensors content, const std::string& name);

  /// Keys of this level: entries and nested archives, sorted.
  std::vector<std::string> keys();

  template <class... Ts> void operator()(Ts&&... ts) { read(std::forward<Ts>(ts)...); }

 private:
  std::shared_ptr<const detail::ArchiveContent> content_;
  std::string prefix_;  // "", or the full key of this archive and a dot
};

}  // namespace serialize

inline serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                            const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
inline serialize::InputArchive& operator>>(serialize::InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

}  // namespace ramet
