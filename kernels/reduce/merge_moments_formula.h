// The formula of merge_moments.h for one channel. Written once for CPUs and GPUs, so results have
// the same bits.
#pragma once
#include "kernels/reduce/merge_moments.h"
#include "kernels/simd/inline.h"

namespace ramet::kernels::RAMET_VARIANT {

RAMET_INLINE void merge_moments_of(const MergeMomentsArgs& a, int64_t i) {
  double count = a.count, mean = count > 0 ? a.mean[i] : 0, m2 = count > 0 ? a.m2[i] : 0;
  for (int32_t p = 0; p < a.parts; ++p) {
    const MomentsPart& part = a.part[p];
    const double n = part.count, total = count + n, delta = part.mean[i] - mean,
                 squares = part.var[i] * (n - 1);
    if (count == 0) {  // the first part is copied: the square of its mean may be infinite
      mean = part.mean[i], m2 = squares;
    } else {
      mean += delta * n / total;
      m2 += squares + delta * delta * count * n / total;
    }
    count = total;
  }
  a.mean[i] = mean;
  a.m2[i] = m2;
}

}  // namespace ramet::kernels::RAMET_VARIANT
