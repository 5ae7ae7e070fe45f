// Drawing indices with given probabilities.
#include <cmath>

#include "autograd/ops/front/common.h"
#include "autograd/ops/front/index_front.h"
#include "autograd/ops/front/sort_front.h"
#include "autograd/ops/random.h"
#include "kernels/random/random.h"

namespace ramet {

using namespace autograd;

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement,
                   std::optional<Generator> generator) {
  check_defined("multinomial", self);
  RAMET_CHECK(is_floating(self.scalar_type()), "multinomial",
              "only for floating-point dtypes: got ", describe(self));
  RAMET_CHECK(self.dim() == 1 || self.dim() == 2, "multinomial",
              "prob_dist must be 1 or 2 dim: got ", describe(self));
  const int64_t n = self.size(-1), rows = self.dim() == 2 ? self.size(0) : 1;
  RAMET_CHECK(samples > 0, "multinomial", "cannot sample n_sample <= 0 samples: got ", samples);
  RAMET_CHECK(replacement || samples <= n, "multinomial",
              "cannot sample n_sample > prob_dist.size(-1) samples without replacement: got ",
              samples, " and ", n);
  const NoGradGuard constants;
  const Tensor p = self.to(kDouble).reshape({rows, n}).contiguous();
  report_where("multinomial", p.ge(0).logical_and(p.isfinite()).logical_not(),
               "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor sums = p.cumsum(1);
  constexpr const char* kNoSum = "invalid multinomial distribution (sum of probabilities <= 0)";
  RAMET_CHECK(n > 0 || rows == 0, "multinomial", kNoSum);
  if (n > 0) report_where("multinomial", sums.select(1, n - 1).le(0), kNoSum);
  if (!replacement)
    report_where(
        "multinomial", p.gt(0).sum(1).lt(samples),
        "invalid multinomial distribution (with replacement=False, not enough non-negative "
        "category to sample)");
  // One uniform number a sample; without replacement one a category: the largest u^(1/p) win
  // (Efraimidis and Spirakis 2006).
  const Tensor u(TensorBase::empty({rows, replacement ? samples : n}, kDouble, self.device()));
  const PhiloxKey key = reserve_random(self.device(), u.sizes(), generator.value_or(Generator()));
  if (u.numel())
    kernels::random_uniform(u.stream(),
                            {u.ptr(), u.numel(), {key.seed, key.offset, key.base}, 0, 1, kDouble});
  Tensor chosen;
  if (replacement) {
    chosen = Tensor(TensorBase::empty({rows, samples}, kLong, self.device()));
    if (chosen.numel())
      kernels::random_pick(
          u.stream(), {static_cast<const double*>(sums.ptr()), static_cast<const double*>(p.ptr()),
                       static_cast<const double*>(u.ptr()), static_cast<int64_t*>(chosen.ptr()),
                       rows, n, samples});
  } else {
    // -log(1 - u) / p >= 0, whose order is that of its bits. Where p is 0 it is NaN, whose bits are
    // behind those of infinity, which a small p may have.
    const Tensor wait = u.neg().log1p().neg().div(p).masked_fill(p.le(0), NAN);
    chosen = sorted_positions(wait.view(kLong)).narrow(1, 0, samples).contiguous();
  }
  return self.dim() == 2 ? chosen : chosen.reshape({samples});
}

}  // namespace ramet
