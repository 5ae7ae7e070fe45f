// Making tensors: LibTorch's functions of the same names, parameter lists and defaults.
//
// `options` gives dtype, device and requires_grad; without a setting the default dtype (float32),
// the current cpu device, false. Functions that end in _like take what `options` leaves open from
// `self`. Random ones are in autograd/ops/random/random.h.
#pragma once
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/make/factory.inc"

/// A tensor that is not initialised, its dimensions in that order in memory.
RAMET_API Tensor empty(IntArrayRef size, const TensorOptions& options = {},
                       std::optional<MemoryFormat> memory_format = std::nullopt);
/// `out` of that size; what it holds is not defined.
RAMET_API Tensor& empty_out(Tensor& out, IntArrayRef size,
                            std::optional<MemoryFormat> memory_format = std::nullopt);
/// Memory just large enough for the geometry; strides in elements, not negative.
RAMET_API Tensor empty_strided(IntArrayRef size, IntArrayRef stride,
                               const TensorOptions& options = {});
/// Of zeros, and of ones:
RAMET_API Tensor zeros(IntArrayRef size, const TensorOptions& options = {});
RAMET_API Tensor ones(IntArrayRef size, const TensorOptions& options = {});
/// Without a dtype: int64 for an integer `fill_value`, bool for a bool, else the default dtype.
RAMET_API Tensor full(IntArrayRef size, const Scalar& fill_value,
                      const TensorOptions& options = {});
/// A 0-dim tensor.
RAMET_API Tensor scalar_tensor(const Scalar& s, const TensorOptions& options = {});

/// The function without _like, with self's sizes; dtype, device and the order of the dimensions in
/// memory too, where nothing else is said:
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
/// elements. int64 when all numbers are integers, else the default dtype; computed in double (int64
/// for integers) from the index.
RAMET_API Tensor arange(const Scalar& end, const TensorOptions& options = {});
RAMET_API Tensor arange(const Scalar& start, const Scalar& end, const TensorOptions& options = {});
RAMET_API Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
                        const TensorOptions& options = {});
/// `steps` evenly spaced numbers from start to end, both included.
RAMET_API Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                          const TensorOptions& options = {});
/// Ends given as 0-dim tensors are read.
RAMET_API Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps,
                          const TensorOptions& options = {});
RAMET_API Tensor linspace(const Tensor& start, const Scalar& end, int64_t steps,
                          const TensorOptions& options = {});
RAMET_API Tensor linspace(const Scalar& start, const Tensor& end, int64_t steps,
                          const TensorOptions& options = {});
/// Ones on the diagonal.
RAMET_API Tensor eye(int64_t n, const TensorOptions& options = {});
RAMET_API Tensor eye(int64_t n, int64_t m, const TensorOptions& options = {});

namespace detail {

/// A number, a list, or lists of lists: what tensor() takes. All numbers are of one type and all
/// lists at a depth of one length.
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
  /// A C array, of numbers or of arrays (LibTorch takes its address for a bool).
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

/// From numbers: tensor(1.5), tensor({1, 2, 3}), tensor({{1., 2.}, {3., 4.}}),
/// tensor(std::vector<float>{...}), 0-dim for a number. Without a dtype integers give int64,
/// floating-point numbers the default dtype, bool bool.
inline Tensor tensor(const detail::TensorData& data, const TensorOptions& options = {}) {
  return data.to_tensor(options);
}

/// A tensor over foreign memory, which must outlive it; `deleter` is called with `data` when the
/// last tensor over it goes. `storage_offset` in elements. `target_device` stands for that of
/// `options` where it is given.
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

/// The first `size` elements of a file, mapped into memory of a CPU device. Not `shared`, the file
/// must have them, and what is written stays in memory; shared, the file is made, or made longer,
/// where it must be, and gets what is written. Other processes that cut the file off end this one.
/// Without elements no file is looked at.
RAMET_API Tensor from_file(std::string_view filename, std::optional<bool> shared = std::nullopt,
                           std::optional<int64_t> size = 0, const TensorOptions& options = {});

/// [..., num_classes] of int64: 1 at the class, else 0. `self` is int64 without negative values;
/// num_classes -1 is largest + 1.
RAMET_API Tensor one_hot(const Tensor& self, int64_t num_classes = -1);

}  // namespace ramet
