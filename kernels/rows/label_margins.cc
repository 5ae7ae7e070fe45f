#include "kernels/rows/label_margins.h"

#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// One pass over the classes for each label. The rows do not overlap, so the loop becomes vectors.
template <class T>
RAMET_INLINE void sample(const T* __restrict__ x, const T* __restrict__ counts,
                         const int64_t* labels, T* __restrict__ loss, T* __restrict__ slope,
                         int64_t classes) {
  for (int64_t c = 0; c < classes; ++c) loss[c] = T(0);
  for (int64_t c = 0; slope && c < classes; ++c) slope[c] = T(0);
  for (int64_t j = 0; j < classes && labels[j] >= 0; ++j) {
    if (labels[j] >= classes) continue;
    const T base = T(1) - x[labels[j]];
    if (!slope) {
      for (int64_t c = 0; c < classes; ++c) {
        const T term = base + x[c];
        loss[c] += term <= T(0) || counts[c] != T(0) ? T(0) : term;
      }
      continue;
    }
    int64_t above = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const T term = base + x[c];
      const bool counts_here = !(term <= T(0) || counts[c] != T(0));
      loss[c] += counts_here ? term : T(0);
      slope[c] += counts_here ? T(1) : T(0);
      above += counts_here;
    }
    slope[labels[j]] -= static_cast<T>(above);
  }
}

}  // namespace

void label_margins(const LabelMarginsArgs& a) {
  by_floating_type(a.dtype, [&](auto t) {
    using T = decltype(t);
    run_tasks(a.samples, a.samples * a.classes * 64, [&](int64_t n, int) {
      const int64_t at = n * a.classes;
      sample<T>(static_cast<const T*>(a.x) + at, static_cast<const T*>(a.counts) + at,
                a.labels + at, static_cast<T*>(a.loss) + at,
                a.slope ? static_cast<T*>(a.slope) + at : nullptr, a.classes);
    });
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
