// A thread for each channel.
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first decides what the others mean
#include "kernels/reduce/merge_moments_formula.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {
__global__ void merge_kernel(MergeMomentsArgs a) {
  for (int64_t i = first_item(); i < a.n; i += item_step()) merge_moments_of(a, i);
}
}  // namespace

void merge_moments(const MergeMomentsArgs& a, Stream where) {
  start_for("merge_moments", where, a.n, merge_kernel, a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
