// Tensors of a pickle over the storages it names.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "nn/formats/pickle_internal.h"

namespace ramet {
namespace formats {
namespace detail {

/// Memory of a pickle's storages, and the tensors over it.
class Storages {
 public:
  /// `swapped`: the bytes of each element are the other way around in the file.
  Storages(Pickle& pickle, bool swapped, std::optional<Device> device);
  /// Gives a storage its bytes: `read` fills memory. Errors call the place `where`.
  void fill(size_t number, const std::string& where, const std::function<void(void*)>& read);
  bool filled(size_t number) const { return memory_[number].defined(); }
  /// A tensor over them, all of which have been filled.
  Tensor tensor(const TensorNote& note) const;

 private:
  Pickle& pickle_;
  bool swapped_;
  std::optional<Device> device_;
  std::vector<Tensor> memory_;  // bytes
};

}  // namespace detail
}  // namespace formats
}  // namespace ramet
