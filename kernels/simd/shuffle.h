// Lanes of two vectors in any order. Lane i of `b` has the number n + i, where a vector has n.
#pragma once
#if __has_builtin(__builtin_shufflevector)
#define RAMET_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
// GCC 11 shuffles only into as many lanes as the arguments have.
#define RAMET_SHUFFLE(a, b, ...) ::ramet::kernels::shuffle<__VA_ARGS__>(a, b)

#include <cstdint>
#include <type_traits>

#include "kernels/simd/inline.h"

namespace ramet::kernels {

template <int... Lanes, class V> RAMET_INLINE auto shuffle(V a, V b) {
  using T = std::remove_cv_t<std::remove_reference_t<decltype(a[0])> >;
  constexpr int n = static_cast<int>(sizeof(V) / sizeof(T));
  if constexpr (sizeof...(Lanes) == n) {
    using Index = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
    typedef Index Order __attribute__((vector_size(sizeof(V))));
    return __builtin_shuffle(a, b, Order{Lanes...});
  } else {
    typedef T Result __attribute__((vector_size(sizeof...(Lanes) * sizeof(T))));
    return Result{(Lanes < n ? a[Lanes % n] : b[Lanes % n])...};
  }
}

}  // namespace ramet::kernels
#endif
