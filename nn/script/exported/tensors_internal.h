// Reading the tensors of a .pt2 archive.
#pragma once
#include <tuple>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {

/// "\"net.pt2\", entry \"net/models/model.json\"", for errors.
std::string place(const formats::detail::ZipReader& zip, const std::string& entry);
/// An entry's JSON, at most `depth` levels deep.
Json read_json(formats::detail::ZipReader& zip, const formats::detail::ZipReader::Entry& entry,
               int64_t depth);

class ExportedTensors {
 public:
  ExportedTensors(formats::detail::ZipReader& zip, const LoadOptions& options,
                  std::optional<Device> device, bool big)
      : zip_(zip), options_(options), device_(device), big_(big) {}

  /// Since PyTorch 2.8: `entry` is JSON that says where each tensor is in `folder`.
  void read_config(const std::string& entry, const std::string& folder);
  /// Before: a pickle of torch.save().
  void read_pickle(const std::string& entry);

  /// A tensor by name. `trained`: it requires gradients. Names that the file gives to one tensor
  /// give one handle.
  Tensor take(const Field& at, const std::string& name, bool parameter, bool trained);
  /// Names that have not been taken.
  std::vector<std::string> others() const;
  bool is_parameter(const std::string& name) const { return parameters_.count(name) != 0; }
  bool is_trained(const std::string& name) const { return trained_.count(name) != 0; }

 private:
  using Key = std::tuple<StorageImpl*, ScalarType, int64_t, std::vector<int64_t>,
                         std::vector<int64_t>, bool>;
  Tensor raw(const formats::detail::ZipReader::Entry& entry, const Field& meta);
  void add(const Field& at, const std::string& name, const Tensor& tensor);

  formats::detail::ZipReader& zip_;
  const LoadOptions& options_;
  std::optional<Device> device_;
  bool big_;
  std::map<std::string, Tensor> memory_, by_name_;
  std::map<std::string, size_t> items_;  // bytes of elements, of entries
  std::map<Key, Tensor> taken_;
  std::set<std::string> used_, parameters_, trained_;
};

}  // namespace ramet::script
