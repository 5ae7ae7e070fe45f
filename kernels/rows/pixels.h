// Rows with distant elements, where neighbouring rows are adjacent (the classes of an image's
// pixels). Works on vectors of 16 rows, kBeside of them at a time, one element after the other.
#pragma once
#include "kernels/simd/lanes.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int kBeside = 4;
constexpr int64_t kPixels = 16 * kBeside;

// Vector u of n pixels.
template <class T> RAMET_INLINE Lanes<T> pixels(const T* x, int u, int64_t n) {
  return n - u * 16 >= 16 ? lload(x + u * 16) : lload_n(x + u * 16, n - u * 16, T(0));
}
template <class T> RAMET_INLINE void put_pixels(T* y, int u, int64_t n, const Lanes<T>& v) {
  n - u * 16 >= 16 ? lstore(y + u * 16, v) : lstore_n(y + u * 16, v, n - u * 16);
}

// to[u] += plus(c, u, 0) for all c < cols: plus(c, u, sum) adds to a sum. It adds blocks, and then
// their sums, so that the error grows only with the number of blocks.
template <class T, class Plus>
RAMET_INLINE void add_up(Lanes<T>* to, int parts, int64_t cols, const Plus& plus) {
  constexpr int64_t kBlock = 16;
  for (int64_t c0 = 0; c0 < cols; c0 += kBlock) {
    Lanes<T> part[kBeside];
    for (int u = 0; u < parts; ++u) part[u] = lset<T>(0);
    for (int64_t c = c0; c < imin(cols, c0 + kBlock); ++c)
      for (int u = 0; u < parts; ++u) part[u] = plus(c, u, part[u]);
    for (int u = 0; u < parts; ++u) to[u] = to[u] + part[u];
  }
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
