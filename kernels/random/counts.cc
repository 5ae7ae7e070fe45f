#include "kernels/random/counts.h"

#include "kernels/copy/chunk.h"
#include "kernels/random/counts_draw.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 2048, kPart = 64;

// out[i] = draw(a[i], b[i], the numbers of element i).
template <class Draw> void draw_all(const RandomCountsArgs& args, const Draw& draw) {
  parallel_tasks(ceil_div(args.n, kTaskElements), [&](int64_t t, int) {
    const int64_t end = imin(args.n, (t + 1) * kTaskElements);
    for (int64_t i = t * kTaskElements; i < end; i += kPart) {
      const int64_t count = imin(kPart, end - i);
      double a[kPart], b[kPart] = {};
      load_chunk(at(args.a, args.dtype, i), args.dtype, 1, count, a);
      if (args.b) load_chunk(at(args.b, args.dtype, i), args.dtype, 1, count, b);
      for (int64_t j = 0; j < count; ++j) {
        ElementDraws draws{args.key, static_cast<uint64_t>(args.key.base + i + j)};
        a[j] = draw(a[j], b[j], draws);
      }
      store_chunk(at(args.out, args.dtype, i), args.dtype, 1, count, a);
    }
  });
}

}  // namespace

void random_poisson(const RandomCountsArgs& args) {
  draw_all(args, [](double mean, double, ElementDraws& draws) { return poisson(mean, draws); });
}
void random_binomial(const RandomCountsArgs& args) {
  draw_all(args, [](double n, double p, ElementDraws& draws) { return binomial(n, p, draws); });
}
void random_log_gamma(const RandomCountsArgs& args) {
  draw_all(args, [](double shape, double, ElementDraws& draws) { return log_gamma(shape, draws); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
