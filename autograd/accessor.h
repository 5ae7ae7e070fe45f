// TensorAccessor: `a[i][j]` on raw memory, unchecked as LibTorch's. GenericPackedTensorAccessor:
// the same, with its own sizes and strides, so that a kernel can take it by value.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "runtime/base/array_ref.h"

#if defined(__CUDACC__)
#define RAMET_BOTH_SIDES __host__ __device__
#else
#define RAMET_BOTH_SIDES
#endif

namespace ramet {

/// PtrType: the plain pointer type that an accessor uses for its elements.
template <class T> struct DefaultPtrTraits { using PtrType = T*; };  // how it points
/// PtrType: a __restrict__ pointer. Only this accessor may reach the memory.
template <class T> struct RestrictPtrTraits { using PtrType = T* __restrict__; };  // how it points

namespace detail {
/// Returns list[d]. On the host an Error where d >= N.
template <size_t N, class index_t> RAMET_BOTH_SIDES index_t nth(const index_t* list, size_t d) {
#if !defined(__CUDA_ARCH__)
  RAMET_CHECK(d < N, "accessor", "dimension: got ", d, ", expected less than ", N);
#endif
  return list[d];
}
}  // namespace detail

/// Borrowed view of a tensor's memory, sizes and strides (in elements). Valid while the tensor
/// lives.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
class TensorAccessor {
 public:
  /// The type of the pointer to the elements, as the traits define it.
  using PtrType = typename PtrTraits<T>::PtrType;
  RAMET_BOTH_SIDES TensorAccessor(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  /// An element where N is 1, otherwise an accessor of one dimension less.
  RAMET_BOTH_SIDES decltype(auto) operator[](index_t i) const {
    if constexpr (N == 1) {
      T& element = data_[i * strides_[0]];
      return (element);
    } else {
      return TensorAccessor<T, N - 1, PtrTraits, index_t>(data_ + i * strides_[0], sizes_ + 1,
                                                          strides_ + 1);
    }
  }
  /// A pointer to the first element.
  RAMET_BOTH_SIDES PtrType data() const { return data_; }
  /// The size of dimension d. An Error where d >= N.
  RAMET_BOTH_SIDES index_t size(size_t d) const { return detail::nth<N>(sizes_, d); }
  /// The stride of dimension d, in elements. An Error where d >= N.
  RAMET_BOTH_SIDES index_t stride(size_t d) const { return detail::nth<N>(strides_, d); }
  /// All N sizes, or strides:
  ArrayRef<index_t> sizes() const { return {sizes_, N}; }
  ArrayRef<index_t> strides() const { return {strides_, N}; }

 private:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

/// The same, but trivially copyable: it borrows the memory and holds sizes and strides itself. With
/// a 32-bit index_t, kernels compute less.
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
class GenericPackedTensorAccessor {
 public:
  /// The type of the pointer to the elements, as the traits define it.
  using PtrType = typename PtrTraits<T>::PtrType;
  template <class From>
  GenericPackedTensorAccessor(PtrType data, const From* sizes, const From* strides) : data_(data) {
    for (size_t d = 0; d < N; ++d) {
      sizes_[d] = static_cast<index_t>(sizes[d]);
      strides_[d] = static_cast<index_t>(strides[d]);
    }
  }
  RAMET_BOTH_SIDES decltype(auto) operator[](index_t i) const {
    return TensorAccessor<T, N, PtrTraits, index_t>(data_, sizes_, strides_)[i];
  }
  /// A pointer to the first element; size and stride (in elements) of dimension d, an Error where d
  /// >= N:
  RAMET_BOTH_SIDES PtrType data() const { return data_; }
  RAMET_BOTH_SIDES index_t size(size_t d) const { return detail::nth<N>(sizes_, d); }
  RAMET_BOTH_SIDES index_t stride(size_t d) const { return detail::nth<N>(strides_, d); }
  /// A copy with the two dimensions exchanged. An Error where one is >= N.
  GenericPackedTensorAccessor transpose(index_t dim1, index_t dim2) const {
    const auto a = static_cast<size_t>(dim1), b = static_cast<size_t>(dim2);
    const index_t sizes[] = {size(a), size(b)};  // checks both
    GenericPackedTensorAccessor result(*this);
    result.sizes_[a] = sizes[1], result.sizes_[b] = sizes[0];
    result.strides_[a] = strides_[b], result.strides_[b] = strides_[a];
    return result;
  }

 private:
  PtrType data_;
  index_t sizes_[N], strides_[N];
};
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits,
          class index_t = int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, int32_t>;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, int64_t>;

}  // namespace ramet
#undef RAMET_BOTH_SIDES
