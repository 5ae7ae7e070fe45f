// A thread has a class of a sample, and adds in the order of the labels, as a CPU does.
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first decides what the others mean
#include "kernels/gpu/divisor.h"
#include "kernels/rows/label_margins.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T>
__global__ void label_margins_kernel(LabelMarginsArgs a, Divisor<int64_t> by_classes) {
  for (int64_t i = first_item(); i < a.samples * a.classes; i += item_step()) {
    const int64_t row = by_classes(i) * a.classes;
    const T* const x = static_cast<const T*>(a.x) + row;
    const T* const counts = static_cast<const T*>(a.counts) + row;
    const int64_t* const labels = a.labels + row;
    const T own = static_cast<const T*>(a.x)[i], count = static_cast<const T*>(a.counts)[i];
    T loss = T(0);
    int64_t above = 0;
    if (count == T(0)) {
      for (int64_t j = 0; j < a.classes && labels[j] >= 0; ++j) {
        if (labels[j] >= a.classes) continue;
        const T term = T(1) - x[labels[j]] + own;
        if (term <= T(0)) continue;
        loss += term;
        ++above;
      }
    } else if (a.slope) {
      for (int64_t c = 0; c < a.classes; ++c)
        above += !(T(1) - own + x[c] <= T(0) || counts[c] != T(0));
    }
    static_cast<T*>(a.loss)[i] = loss;
    if (a.slope)
      static_cast<T*>(a.slope)[i] =
          count == T(0) ? static_cast<T>(above) : -count * static_cast<T>(above);
  }
}

}  // namespace

void label_margins(const LabelMarginsArgs& a, Stream where) {
  by_dtype<float, double>(a.dtype, [&](auto t) {
    start_for("label_margins", where, a.samples * a.classes, label_margins_kernel<decltype(t)>, a,
              Divisor<int64_t>(a.classes));
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
