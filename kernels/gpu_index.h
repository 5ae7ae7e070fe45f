// Positions in a GPU's memory: of 32 bits where all of an operation's fit them, which halves what
// is computed for each, else of 64. For .cu files only.
#pragma once
#include <initializer_list>
#include <utility>

#include "kernels/gpu_math.h"
// clang-format off: the first decides what the others mean
#include "kernels/divisor.h"
#include "kernels/image.h"
#include "kernels/util.h"
#include "runtime/cuda/indices.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// Below 2^31 by more than a step of any grid (kMostBlocks blocks of 256 threads) and of a tile, so
/// that nothing wraps that is looked at only to see that it is too far.
constexpr double kNarrowMost = 0x1p31 - 0x1p25;
/// Do 32 bits do where nothing is larger than `most`? (A double, because products of extents and
/// strides are to be asked about before anybody knows that they fit 64.)
inline bool is_narrow(double most) {
  return most <= kNarrowMost && ::ramet::cuda::narrow_indices();
}
/// f(I{}) with the type of positions.
template <class F> void by_index(double most, const F& f) {
  is_narrow(most) ? f(int32_t{}) : f(int64_t{});
}

/// How far into memory an element lies at most, of positions {most, stride}.
inline double farthest(std::initializer_list<std::pair<int64_t, int64_t>> positions) {
  double sum = 0;
  for (const auto& [most, stride] : positions)
    sum += ::fabs(static_cast<double>(most) * static_cast<double>(stride));
  return sum;
}

/// Images in elements of type T; strides as I.
template <class T, class I> struct Images {
  T* data;
  I n, c, h, w;
  explicit Images(const ImageView& v)
      : data(static_cast<T*>(v.data)),
        n(static_cast<I>(v.n)),
        c(static_cast<I>(v.c)),
        h(static_cast<I>(v.h)),
        w(static_cast<I>(v.w)) {}
};

}  // namespace ramet::kernels::RAMET_VARIANT
