// Positions in a GPU's memory have 32 bits if all positions of an operation fit them, which halves
// the computation for each. Otherwise they have 64. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_math.h"
// clang-format off: the first decides what the others mean
#include "kernels/gpu/divisor.h"
#include "kernels/gpu/gpu_reach.h"
#include "kernels/util.h"
#include "runtime/cuda/indices.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// Are 32 bits enough if nothing is larger than `most` (gpu_reach.h)?
inline bool is_narrow(double most) {
  return most <= kNarrowMost && ::ramet::cuda::narrow_indices();
}
/// f(I{}) with the type of positions.
template <class F> void by_index(double most, const F& f) {
  is_narrow(most) ? f(int32_t{}) : f(int64_t{});
}

/// f(T{}, I{}) with the compute type of elements of type t, and the type of positions. Integers are
/// rare: always 64 bits.
template <class F> void by_types(ScalarType t, double most, const F& f) {
  by_compute_type(t, [&](auto c) {
    if constexpr (ComputeTag<decltype(c)>::value == ScalarType::Long) f(c, int64_t{});
    else by_index(most, [&](auto i) { f(c, i); });
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
