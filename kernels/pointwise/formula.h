// Runs a row (row.h) in a kernel. The rows that are included after this header are compiled for
// this variant's functions: simd/smath.h, or gpu/gpu_math.h on a GPU.
#pragma once
#if !defined(RAMET_GPU_MATH)
#include "kernels/simd/smath.h"
#endif
#include "kernels/pointwise/row.h"
#include "kernels/simd/gamma.h"
#include "kernels/simd/library.h"
#include "kernels/simd/special.h"

#define RAMET_ROWS ramet::kernels::RAMET_VARIANT

namespace ramet::kernels::RAMET_VARIANT {

/// The row's value for operands x, with as many of the numbers s and t as it takes.
template <class Row, class V, class... Operands>
RAMET_INLINE auto with_numbers(V s, V t, Operands... x) {
  if constexpr (requires { Row::value(x..., s, t); }) return Row::value(x..., s, t);
  else if constexpr (requires { Row::value(x..., s); }) return Row::value(x..., s);
  else return Row::value(x...);
}
template <class Row, class V> RAMET_INLINE auto formula(V a, V b, V c, V s, V t) {
  if constexpr (Row::kOperands == 1) return with_numbers<Row>(s, t, a);
  else if constexpr (Row::kOperands == 2) return with_numbers<Row>(s, t, a, b);
  else return with_numbers<Row>(s, t, a, b, c);
}

}  // namespace ramet::kernels::RAMET_VARIANT
