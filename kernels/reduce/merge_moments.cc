#include "kernels/reduce/merge_moments.h"

#include "kernels/reduce/merge_moments_formula.h"

namespace ramet::kernels::RAMET_VARIANT {

void merge_moments(const MergeMomentsArgs& a) {
  for (int64_t i = 0; i < a.n; ++i) merge_moments_of(a, i);
}

}  // namespace ramet::kernels::RAMET_VARIANT
