// A thread draws one element.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/random/counts.h"
#include "kernels/random/counts_draw.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <bool kTrials> __global__ void counts_kernel(RandomCountsArgs args) {
  for (int64_t i = first_item(); i < args.n; i += item_step()) {
    ElementDraws draws{args.key, static_cast<uint64_t>(args.key.base + i)};
    const double a = load_element<double>(args.a, args.dtype, i);
    store_element(args.out, args.dtype, i,
                  kTrials ? binomial(a, load_element<double>(args.b, args.dtype, i), draws)
                          : poisson(a, draws));
  }
}

}  // namespace

void random_poisson(const RandomCountsArgs& args, Stream where) {
  start_for("random_poisson", where, args.n, counts_kernel<false>, args);
}
void random_binomial(const RandomCountsArgs& args, Stream where) {
  start_for("random_binomial", where, args.n, counts_kernel<true>, args);
}

}  // namespace ramet::kernels::RAMET_VARIANT
