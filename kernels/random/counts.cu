// A thread draws one element.
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/random/counts.h"
#include "kernels/random/counts_draw.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

enum class Law { kPoisson, kBinomial, kLogGamma };

template <Law kLaw> __global__ void counts_kernel(RandomCountsArgs args) {
  for (int64_t i = first_item(); i < args.n; i += item_step()) {
    ElementDraws draws{args.key, static_cast<uint64_t>(args.key.base + i)};
    const double a = load_element<double>(args.a, args.dtype, i);
    double y;
    if constexpr (kLaw == Law::kPoisson) y = poisson(a, draws);
    else if constexpr (kLaw == Law::kLogGamma) y = log_gamma(a, draws);
    else y = binomial(a, load_element<double>(args.b, args.dtype, i), draws);
    store_element(args.out, args.dtype, i, y);
  }
}

}  // namespace

void random_poisson(const RandomCountsArgs& args, Stream where) {
  start_for("random_poisson", where, args.n, counts_kernel<Law::kPoisson>, args);
}
void random_binomial(const RandomCountsArgs& args, Stream where) {
  start_for("random_binomial", where, args.n, counts_kernel<Law::kBinomial>, args);
}
void random_log_gamma(const RandomCountsArgs& args, Stream where) {
  start_for("random_log_gamma", where, args.n, counts_kernel<Law::kLogGamma>, args);
}

}  // namespace ramet::kernels::RAMET_VARIANT
