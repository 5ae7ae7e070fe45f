// Drawing indices with given probabilities.
#include <algorithm>
#include <cmath>

#include "autograd/ops/common.h"
#include "autograd/ops/random.h"
#include "kernels/random.h"

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
  const Tensor host = self.detach().to(TensorOptions(kDouble).device(Device(kCPU, 0))).contiguous();
  const auto* p = static_cast<const double*>(host.ptr());
  for (int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    int64_t possible = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double x = p[r * n + i];
      RAMET_CHECK(x >= 0 && std::isfinite(x), "multinomial",
                  "probability tensor contains either `inf`, `nan` or element < 0: got ", x);
      sum += x;
      possible += x > 0;
    }
    RAMET_CHECK(sum > 0, "multinomial",
                "invalid multinomial distribution (sum of probabilities <= 0)");
    RAMET_CHECK(replacement || possible >= samples, "multinomial",
                "invalid multinomial distribution (with replacement=False, not enough non-negative "
                "category to sample)");
  }
  std::vector<int64_t> size =
      self.dim() == 2 ? std::vector<int64_t>{rows, samples} : std::vector<int64_t>{samples};
  const Tensor chosen(TensorBase::empty(size, kLong, Device(kCPU, 0)));
  auto* out = static_cast<int64_t*>(chosen.ptr());
  // One uniform number a sample; without replacement one a category: the largest u^(1/p) win
  // (Efraimidis and Spirakis 2006).
  const Tensor u(TensorBase::empty({rows, replacement ? samples : n}, kDouble, Device(kCPU, 0)));
  const PhiloxKey key = reserve_random(self.device(), u.sizes(), generator.value_or(Generator()));
  if (u.numel())
    kernels::random_uniform(u.stream(),
                            {u.ptr(), u.numel(), {key.seed, key.offset, key.base}, 0, 1, kDouble});
  const auto* draw = static_cast<const double*>(u.ptr());
  std::vector<double> weight(static_cast<size_t>(n));
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = p + r * n;
    if (replacement) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) weight[static_cast<size_t>(i)] = sum += row[i];
      for (int64_t s = 0; s < samples; ++s) {
        const double at = draw[r * samples + s] * sum;
        int64_t i = std::upper_bound(weight.begin(), weight.end(), at) - weight.begin();
        if (i >= n) i = n - 1;
        // the product may round up to the sum, where categories of probability 0 follow
        while (row[i] <= 0) --i;
        out[r * samples + s] = i;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        weight[static_cast<size_t>(i)] =
            row[i] > 0 ? std::log1p(-draw[r * n + i]) / row[i] : -INFINITY;
        order[static_cast<size_t>(i)] = i;
      }
      std::partial_sort(
          order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
            const double x = weight[static_cast<size_t>(a)], y = weight[static_cast<size_t>(b)];
            return x != y ? x > y : a < b;
          });
      std::copy_n(order.begin(), samples, out + r * samples);
    }
  }
  return self.device() == chosen.device() ? chosen : chosen.to(self.device());
}

}  // namespace ramet
