// Tensors of a pickle over the storages it names.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "nn/formats/pytorch/pickle_internal.h"

namespace ramet {
namespace formats {
namespace detail {

/// Memory of a pickle's storages, each from its first tensor on, and the tensors over it.
class Storages {
 public:
  /// Gives memory the bytes of a storage, by its number.
  using Read = std::function<void(size_t number, void* to)>;
  /// `swapped`: the bytes of each element are the other way around in the file.
  Storages(Pickle& pickle, bool swapped, std::optional<Device> device, Read read);
  /// From here on, and without a device: each storage goes to the device that the file names. An
  /// Error where this machine does not have it.
  void use_locations() { located_ = true; }
  /// A tensor over one of them.
  Tensor tensor(const TensorNote& note);

 private:
  void fill(size_t number);

  Pickle& pickle_;
  bool swapped_, located_ = false;
  std::optional<Device> device_;
  Read read_;
  std::vector<Tensor> memory_;  // bytes
};

}  // namespace detail
}  // namespace formats
}  // namespace ramet
