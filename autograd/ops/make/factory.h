// Making tensors: LibTorch's functions of the same names, parameter lists and defaults.
//
// `options` gives dtype, device and requires_grad. The defaults are the default dtype (float32),
// the current cpu device, and false. Functions that end in _like take what `options` leaves open
// from `self`. autograd/ops/random/random.h has the random ones.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/make/factory.inc"

/// A tensor that is not initialised, with its dimensions in that order in memory.
RAMET_API Tensor empty(IntArrayRef size, const TensorOptions& options = {},
                       std::optional<MemoryFormat> memory_format = std::nullopt);
/// Resizes `out` to that size; its contents are undefined.
RAMET_API Tensor& empty_out(Tensor& out, IntArrayRef size,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
/// An uninitialised tensor with just enough memory for the geometry. Strides are in elements, not
/// negative.
RAMET_API Tensor empty_strided(IntArrayRef size, IntArrayRef stride,
                               const TensorOptions& options = {});
/// A tensor of zeros, or of ones:
RAMET_API Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
RAMET_API Tensor ones(IntArrayRef size, const TensorOptions& options = {});
/// A tensor filled with the value. Without a dtype: int64 for an integer `fill_value`, bool for a
/// bool, else the default dtype.
RAMET_API Tensor full(IntArrayRef size, const Scalar& fill_value,
                      const TensorOptions& options = {});
/// A 0-dim tensor.
RAMET_API Tensor scalar_tensor(const Scalar& s, const TensorOptions& options = {});

/// The function without _like, with self's sizes. Also with self's dtype, device and order of
/// dimensions in memory, unless the arguments say otherwise:
RAMET_API Tensor empty_like(const Tensor& self, const TensorOptions& options = {},
                            std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor zeros_like(const Tensor& self, const TensorOptions& options = {},
                            std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor ones_like(const Tensor& self, const TensorOptions& options = {},
                           std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor full_like(const Tensor& self, const Scalar& fill_value,
                           const TensorOptions& options = {},
                           std::optional<MemoryFormat> memory_format = std::nullopt);

/// start, start + step, ... below (above, for a negative step) end: ceil((end - start) / step)
/// elements. The dtype is int64 when all numbers are integers, else the default dtype. Each element
/// is computed from its index, in double (int64 for integers).
RAMET_API Tensor arange(const Scalar& end, const TensorOptions& options = {});
RAMET_API Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
RAMET_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
                        const TensorOptions& options = {});
/// `steps` evenly spaced numbers from start to end, both included.
RAMET_API Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                          const TensorOptions& options = {});
/// linspace() with ends as 0-dim tensors, which the host reads.
RAMET_API Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps,
                          const TensorOptions& options = {});
RAMET_API Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps,
                          const TensorOptions& options = {});
RAMET_API Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps,
                          const TensorOptions& options = {});
/// A matrix with ones on the diagonal and zeros elsewhere.
RAMET_API Tensor eye(int64_t n, const TensorOptions& options = {});
RAMET_API Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});

namespace detail {

/// The argument of tensor(): a number, a list, or lists of lists. All numbers have one type, and
/// all lists at the same depth have the same length.
class RAMET_API TensorData {
 public:
  TensorData() : sizes_{0}, type_(ScalarType::Undefined) {}
  template <class T, class = decltype(ScalarTypeOf<T>::value)>
  TensorData(T value) : type_(ScalarTypeOf<T>::value), values_{Scalar(value)} {}
  template <class T, std::enable_if_t<std::is_same<T, char>::value, int> = 0>
  TensorData(T value) : TensorData(static_cast<int>(value)) {}
  TensorData(std::initializer_list<TensorData> list);
  template <class T, class = decltype(ScalarTypeOf<T>::value)>
  TensorData(ArrayRef<T> list)
      : sizes_{static_cast<int64_t>(list.size())}, type_(ScalarTypeOf<T>::value) {
    for (const T& x : list) values_.push_back(Scalar(x));
  }
  template <class T, class = decltype(ScalarTypeOf<T>::value)>
  TensorData(const std::vector<T>& list)
      : sizes_{static_cast<int64_t>(list.size())}, type_(ScalarTypeOf<T>::value) {
    for (size_t i = 0; i < list.size(); ++i) values_.push_back(Scalar(static_cast<T>(list[i])));
  }
  /// A C array, of numbers or of arrays (LibTorch would convert its address to a bool).
  template <class T, size_t N, class = decltype(ScalarTypeOf<std::remove_all_extents_t<T>>::value)>
  TensorData(const T (&list)[N])
      : sizes_{static_cast<int64_t>(N)}, type_(ScalarTypeOf<std::remove_all_extents_t<T>>::value) {
    for (const T& x : list) {
      const TensorData item(x);
      if (&x == list) sizes_.insert(sizes_.end(), item.sizes_.begin(), item.sizes_.end());
      values_.insert(values_.end(), item.values_.begin(), item.values_.end());
    }
  }
  Tensor to_tensor(const TensorOptions& options) const;

 private:
  std::vector<int64_t> sizes_;
  ScalarType type_;
  std::vector<Scalar> values_;
};

}  // namespace detail

/// A tensor from numbers: tensor(1.5), tensor({1, 2, 3}), tensor({{1., 2.}, {3., 4.}}),
/// tensor(std::vector<float>{...}); 0-dim for a number. Without a dtype, integers give int64,
/// floating-point numbers the default dtype, bool bool.
inline Tensor tensor(const detail::TensorData& data, const TensorOptions& options = {}) {
  return data.to_tensor(options);
}

/// A tensor over foreign memory, which must outlive it. When the last tensor over the memory goes,
/// the library calls `deleter` with `data`. `storage_offset` in elements. `target_device`, where
/// given, replaces the device of `options`.
RAMET_API Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {});
RAMET_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                           const TensorOptions& options = {});
RAMET_API Tensor from_blob(void* data, IntArrayRef sizes, const std::function<void(void*)>& deleter,
                           const TensorOptions& options = {},
                           std::optional<Device> target_device = std::nullopt);
RAMET_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                           const std::function<void(void*)>& deleter,
                           const TensorOptions& options = {},
                           std::optional<Device> target_device = std::nullopt);
RAMET_API Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                           int64_t storage_offset, const std::function<void(void*)>& deleter,
                           const TensorOptions& options = {},
                           std::optional<Device> target_device = std::nullopt);

/// The first `size` elements of a file, mapped into memory of a CPU device. Unless `shared`, the
/// file must have that many elements, and writes stay in memory. With `shared`, writes go to the
/// file, and the call makes the file or extends it where needed. If another process truncates the
/// file, this process ends at the next access. Where size is 0, the call does not open the file.
RAMET_API Tensor from_file(std::string_view filename, std::optional<bool> shared = std::nullopt,
                           std::optional<int64_t> size = 0, const TensorOptions& options = {});

/// [..., num_classes] of int64: 1 at the class, else 0. `self` is int64 without negative values.
/// num_classes -1 stands for the largest value + 1.
RAMET_API Tensor one_hot(const Tensor& self, int64_t num_classes = -1);

}  // namespace ramet
