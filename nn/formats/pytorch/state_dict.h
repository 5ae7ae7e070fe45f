// State dicts: the tensors of a file by name, and how they become a module's parameters and
// buffers.
//
//   auto weights = formats::state_dict("resnet.pth");
//   formats::LoadReport report = formats::load_state_dict(*net, weights,
//       formats::NameMap().rename_prefix("module.", "").transpose("fc\\d+\\.weight"));
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ivalue.h"
#include "autograd/tensor.h"
#include "nn/module/module.h"
#include "nn/module/ordered_dict.h"

namespace ramet {
namespace formats {
namespace detail {
struct NamedTensor;
}

/// The tensors of a tree (load_pt()), with the keys on their path as names: {"model": {"fc.weight":
/// t}} has "model.fc.weight", [t] has "0". Numbers, texts and None are left out. `below` ("model",
/// "model.encoder") takes only the tensors under that name, named by the rest of their path. An
/// Error where there are none. Also an Error where two tensors have one name, and where there are
/// opaque values and no tensors.
RAMET_API OrderedDict<std::string, Tensor> tensors_of(const IValue& tree,
                                                      const std::string& below = "");

/// The opaque values of a tree, each with its name (as in tensors_of()) and its description:
/// {"args", "argparse.Namespace"}, {"spectrum", "torch.complex64[2, 3]"}.
RAMET_API std::vector<std::pair<std::string, std::string>> unread_of(const IValue& tree);

/// The tensors of a file, by name. The file may be PyTorch's, LibTorch's or NumPy's, safetensors or
/// an index of safetensors files. Safetensors that stay on cpu:0 are mapped, and their checksums
/// compared. `below` has the meaning it has in tensors_of(). A warning names opaque values that are
/// left out.
RAMET_API OrderedDict<std::string, Tensor> state_dict(const std::string& path,
                                                      const std::string& below = "",
                                                      std::optional<Device> device = std::nullopt);

/// A module's parameters and buffers that are defined, detached, by name.
RAMET_API OrderedDict<std::string, Tensor> state_dict(const nn::Module& module);

/// Rules that turn a file's names and tensors into a module's. Each rule applies to every entry of
/// the file, in the order in which the rules were added. It gets the results of the rules before
/// it.
class RAMET_API NameMap {
 public:
  NameMap();
  NameMap(const NameMap&);
  NameMap(NameMap&&) noexcept;
  NameMap& operator=(const NameMap&);
  NameMap& operator=(NameMap&&) noexcept;
  ~NameMap();

  /// Renames the file's `from` to the module's `to`. Of a prefix only the prefix is replaced:
  NameMap& rename(const std::string& from, const std::string& to);
  NameMap& rename_prefix(const std::string& from, const std::string& to);
  /// Replaces each match (ECMAScript) anywhere in a name; `to` may use $1, $2, ... An invalid
  /// pattern is an Error.
  NameMap& rename_regex(const std::string& pattern, const std::string& to);
  /// Transposes the entries that match with their whole name (TensorFlow's Linear). The report
  /// names entries of other ranks than 2, and those that permute() does not fit.
  NameMap& transpose(const std::string& pattern);
  /// The same for any rank, as Tensor::permute (a convolution of TensorFlow: {3, 2, 0, 1}).
  NameMap& permute(const std::string& pattern, std::vector<int64_t> dims);
  /// Skips the entries that match with their whole name; the report lists them as ignored.
  NameMap& ignore(const std::string& pattern);
  /// Joins several entries into one. The entries that match the patterns with their whole names
  /// follow each other along `dim`, in the order of the patterns. `to` may use $1, $2, ...; entries
  /// with the same result belong together. join({"(.*)q\\.(.*)", "(.*)k\\.(.*)", "(.*)v\\.(.*)"},
  /// "$1in_proj_$2") makes MultiheadAttention's weights and biases of three Linears. Where an entry
  /// is missing or has other sizes, the entries stay, and the report says why.
  NameMap& join(const std::vector<std::string>& patterns, const std::string& to, int64_t dim = 0);
  /// The reverse: splits an entry that matches with its whole name into equal parts along `dim`,
  /// one for each name. Where `dim` cannot be divided so, the entry stays, and the report says so.
  NameMap& split(const std::string& pattern, std::vector<std::string> to, int64_t dim = 0);

 private:
  friend class StateLoader;
  struct Rule;
  void apply(std::vector<detail::NamedTensor>& entries) const;
  std::vector<Rule> rules_;
};

/// The result of load_state_dict(). It has a row for each name of either side that did not simply
/// fit, or was renamed, moved or converted.
struct RAMET_API LoadReport {
  /// What became of a name.
  enum class Kind {
    kLoaded,      // as it was, or renamed, permuted, converted.
    kIgnored,     // by a rule
    kMissing,     // the module has it, the file has not.
    kUnexpected,  // the file has it, the module has not
    kMisshaped,   // other sizes
    kTwice,       // two of the file for one of the module
  };
  /// What became of one name.
  struct Row {
    Kind kind;             // what
    std::string name;      // the module's, where it has one
    std::string from;      // the file's
    std::string got;       // "float32[3, 4]", of the file after the rules
    std::string expected;  // of the module
    std::string note;      // "permuted [1, 0], converted"
  };
  std::vector<Row> rows;  // in the order of the module, then of the file
  size_t loaded = 0;      // how many of the module have got values

  /// The names (Row::name) of that kind, in the order of the rows.
  std::vector<std::string> names(Kind kind) const;
  /// Nothing missing, unexpected, mis-shaped or twice.
  bool ok() const;
  /// One table of all rows but those that were loaded as they are.
  std::string table() const;
  friend RAMET_API std::ostream& operator<<(std::ostream& out, const LoadReport& report);
};

/// Gives a module's parameters and buffers the values of the tensors with their names: in place,
/// each converted to its dtype and device. First it compares everything. On an Error nothing is
/// changed; the Error ends in the report's table. Strict: an Error on anything missing, unexpected,
/// mis-shaped or twice. Not strict: an Error on mis-shaped and twice; what is missing stays as it
/// is.
RAMET_API LoadReport load_state_dict(nn::Module& module,
                                     const OrderedDict<std::string, Tensor>& tensors,
                                     const NameMap& names = NameMap(), bool strict = true);

}  // namespace formats
}  // namespace ramet
