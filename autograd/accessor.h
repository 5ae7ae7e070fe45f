// TensorAccessor: `a[i][j]` on raw memory, unchecked as LibTorch's.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/array_ref.h"

namespace ramet {

/// Borrowed view of a tensor's memory, sizes and strides (in elements). Valid while the tensor
/// lives.
template <class T, size_t N> class TensorAccessor {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  TensorAccessor<T, N - 1> operator[](int64_t i) const {
    return {data_ + i * strides_[0], sizes_ + 1, strides_ + 1};
  }
  T* data() const { return data_; }
  /// An Error from N on.
  int64_t size(size_t d) const { return sizes().at(d); }
  int64_t stride(size_t d) const { return strides().at(d); }
  IntArrayRef sizes() const { return {sizes_, N}; }
  IntArrayRef strides() const { return {strides_, N}; }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

template <class T> class TensorAccessor<T, 1> {
 public:
  TensorAccessor(T* data, const int64_t* sizes, const int64_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  T& operator[](int64_t i) const { return data_[i * strides_[0]]; }
  T* data() const { return data_; }
  int64_t size(size_t d) const { return sizes().at(d); }
  int64_t stride(size_t d) const { return strides().at(d); }
  IntArrayRef sizes() const { return {sizes_, 1}; }
  IntArrayRef strides() const { return {strides_, 1}; }

 private:
  T* data_;
  const int64_t *sizes_, *strides_;
};

}  // namespace ramet
