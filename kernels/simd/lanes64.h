// Sums of floats over 64 logical lanes: the same bits for every width of a register.
#pragma once
#include "kernels/simd/vec.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Registers that hold the lanes.
inline constexpr int kLaneVectors = 64 / VL;

/// Their sum, as a tree.
RAMET_INLINE float fold(const vf (&acc)[kLaneVectors]) {
  alignas(64) float lanes[64];
#pragma GCC unroll 16
  for (int v = 0; v < kLaneVectors; ++v) store(lanes + v * VL, acc[v]);
  for (int width = 32; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

/// f(v, values of x, values of y) for every 64 elements; the tail is filled up with pad_x, pad_y. y
/// may be null.
template <class F>
RAMET_INLINE void lanes64(const float* x, const float* y, int64_t n, float pad_x, const F& f) {
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
#pragma GCC unroll 16
    for (int v = 0; v < kLaneVectors; ++v)
      f(v, load(x + i + v * VL), y ? load(y + i + v * VL) : vf{});
  if (i == n) return;
  alignas(64) float tx[64], ty[64];
  for (int j = 0; j < 64; ++j)
    tx[j] = i + j < n ? x[i + j] : pad_x, ty[j] = y && i + j < n ? y[i + j] : 0.0f;
#pragma GCC unroll 16
  for (int v = 0; v < kLaneVectors; ++v) f(v, load(tx + v * VL), load(ty + v * VL));
}

}  // namespace ramet::kernels::RAMET_VARIANT
