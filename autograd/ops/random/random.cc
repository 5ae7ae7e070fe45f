#include "autograd/ops/random/random.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/random_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr OutRule kDraws{OutType::kAny};  // for draws of zeros and ones

// Fills x with integers from low to `last`, both included.
void integers_into(const char* op, const Tensor& x, int64_t low, int64_t last,
                   const Generator& generator = {}) {
  const uint64_t count = static_cast<uint64_t>(last) - static_cast<uint64_t>(low) + 1;  // 0: 2^64
  if (draws_from_mersenne(x.device(), generator))
    return mersenne::integers(op, x, low, count, generator);
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_integers(t.stream(), {t.ptr(), t.numel(), key, low, count, t.scalar_type()});
  });
}
void bernoulli_into(const char* op, const Tensor& x, double p, const Generator& generator = {}) {
  if (draws_from_mersenne(x.device(), generator)) return mersenne::bernoulli(op, x, p, generator);
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_bernoulli(t.stream(),
                              {t.ptr(), nullptr, t.numel(), key, p, t.scalar_type(), kDouble});
  });
}
void bernoulli_into(const char* op, const Tensor& x, const Tensor& p,
                    const Generator& generator = {}) {
  {
    const NoGradGuard off;
    report_unless("bernoulli", p.ge(0).logical_and(p.le(1)), p, "expects every p to be in [0, 1]");
  }
  if (draws_from_mersenne(x.device(), generator)) return mersenne::bernoulli(op, x, p, generator);
  Tensor dense = p;
  if (p.sizes() != x.sizes() || !p.raw_contiguous()) {
    dense = Tensor(TensorBase::empty(x.sizes(), p.scalar_type(), p.device()));
    copy_values(dense, p);
  }
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_bernoulli(t.stream(), {t.ptr(), dense.ptr(), t.numel(), key, 0, t.scalar_type(),
                                           dense.scalar_type()});
  });
}

void check_probability(const char* op, double p) {
  RAMET_CHECK(p >= 0 && p <= 1, op, "expects p to be in [0, 1], but got p=", p);
}
void check_std(const char* op, double std) {
  RAMET_CHECK(std >= 0, op, "expects std >= 0.0, but found std ", std);
}

// The largest integer such that this dtype has it and all smaller ones exactly.
int64_t largest(ScalarType t) {
  switch (t) {
    case kBool: return 1;
    case kByte: return 255;
    case kChar: return 127;
    case kShort: return 32767;
    case kInt: return INT32_MAX;
    case kUInt16: return 65535;
    case kUInt32: return UINT32_MAX;
    case kHalf: return 1 << 11;
    case kBFloat16: return 1 << 8;
    case kFloat: return 1 << 24;
    case kDouble: return int64_t{1} << 53;
    default: return INT64_MAX;
  }
}
void check_range(const char* op, int64_t low, int64_t high, ScalarType t) {
  RAMET_CHECK(low < high, op, "expects 'from' to be less than 'to', but got from=", low,
              " >= to=", high);
  const int64_t top = largest(t), bottom = is_unsigned(t)   ? 0
                                           : t == kLong     ? INT64_MIN
                                           : is_floating(t) ? -top
                                                            : -top - 1;
  RAMET_CHECK(low >= bottom && high - 1 <= top, op, "got the range [", low, ", ", high,
              "), expected one inside [", bottom, ", ", top, "] for ", short_name_of(t));
}

// Checks that the dtype holds the bounds and their difference. A NaN does not pass.
void check_bounds(const char* op, double from, double to, ScalarType t) {
  const double most = largest_finite(t);
  for (const auto& [name, value] : {std::pair("from", from), std::pair("to", to)})
    RAMET_CHECK(value >= -most && value <= most, op, name, " is out of bounds for ",
                short_name_of(t), ": got ", value, ", expected a number in [", -most, ", ", most,
                "]");
  RAMET_CHECK(from <= to, op, "expects to return a [from, to) range, but found from=", from,
              " > to=", to);
  RAMET_CHECK(to - from <= most, op, "expects to - from to be at most ", most, " for ",
              short_name_of(t), ", but found from=", from, " and to=", to);
}

Tensor with_grad(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_(true);
  return t;
}
TensorOptions plain(const TensorOptions& options, ScalarType otherwise) {
  return (options.has_dtype() ? options : options.dtype(otherwise)).requires_grad(std::nullopt);
}

}  // namespace

// ---- factories ----------------------------------------------------------------------------------

Tensor rand(IntArrayRef size, std::optional<Generator> generator, const TensorOptions& options) {
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("rand", t);
  uniform_into("rand", t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor rand_like(const Tensor& self, std::optional<Generator> generator,
                 const TensorOptions& options, std::optional<MemoryFormat> format) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt), format);
  check_floating("rand_like", t);
  uniform_into("rand_like", t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randn(IntArrayRef size, std::optional<Generator> generator, const TensorOptions& options) {
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("randn", t);
  normal_into("randn", t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randn_like(const Tensor& self, std::optional<Generator> generator,
                  const TensorOptions& options, std::optional<MemoryFormat> format) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt), format);
  check_floating("randn_like", t);
  normal_into("randn_like", t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randint(int64_t high, IntArrayRef size, std::optional<Generator> generator,
               const TensorOptions& options) {
  return randint(0, high, size, std::move(generator), options);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, std::optional<Generator> generator,
               const TensorOptions& options) {
  const TensorOptions o = plain(options, kLong);
  check_range("randint", low, high, o.dtype());
  Tensor t = empty(size, o);
  integers_into("randint", t, low, high - 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randint_like(const Tensor& self, int64_t high, std::optional<Generator> generator,
                    const TensorOptions& options, std::optional<MemoryFormat> format) {
  return randint_like(self, 0, high, std::move(generator), options, format);
}
Tensor randint_like(const Tensor& self, const Tensor& high, std::optional<Generator> generator,
                    const TensorOptions& options, std::optional<MemoryFormat> format) {
  check_defined("randint_like", high);
  RAMET_CHECK(high.numel() == 1, "randint_like", "high: got ", describe(high),
              ", expected one element");
  capture::refuse("randint_like", "the host reads the bound; give a number");
  return randint_like(self, 0, high.item<int64_t>(), std::move(generator), options, format);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high,
                    std::optional<Generator> generator, const TensorOptions& options,
                    std::optional<MemoryFormat> format) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt), format);
  check_range("randint_like", low, high, t.scalar_type());
  integers_into("randint_like", t, low, high - 1, given(generator));
  return with_grad(std::move(t), options);
}

Tensor randperm(int64_t n, std::optional<Generator> generator, const TensorOptions& options) {
  RAMET_CHECK(n >= 0, "randperm", "n must be non-negative, got ", n);
  const TensorOptions o = plain(options, kLong);
  const Device device = resolve(o.device());
  RAMET_CHECK(o.dtype() != kBool, "randperm", "not implemented for bool");
  RAMET_CHECK(n - 1 <= largest(o.dtype()), "randperm", "n = ", n, " is too large for ",
              short_name_of(o.dtype()));
  if (draws_from_mersenne(device, given(generator))) {
    Tensor order(TensorBase::empty({n}, kLong, device));
    mersenne::permutation("randperm", order, given(generator));
    if (o.dtype() != kLong) order = order.to(o.dtype());
    return with_grad(std::move(order), options);
  }
  // The order of n random numbers. Unlike a shuffle, many threads can compute it.
  const Tensor draws(TensorBase::empty({1, n}, kLong, device));
  const PhiloxKey key = reserve_random(device, {n}, given(generator));
  if (n)
    kernels::random_integers(draws.stream(),
                             {draws.ptr(), n, {key.seed, key.offset, key.base}, 0, 0, kLong});
  Tensor t = sorted_positions(draws).select(0, 0).detach();
  if (o.dtype() != kLong) t = t.to(o.dtype());
  return with_grad(std::move(t), options);
}

Tensor normal(double mean, double std, IntArrayRef size, std::optional<Generator> generator,
              const TensorOptions& options) {
  check_std("normal", std);
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("normal", t);
  normal_into("normal", t, mean, std, given(generator));
  return with_grad(std::move(t), options);
}

namespace {

Tensor drawn(const Tensor& mean, const Tensor& std, const std::optional<Generator>& generator) {
  check_floating("normal", mean);
  check_floating("normal", std);
  NoGradGuard no_grad;
  report_unless("normal", std.ge(0), std, "expects all elements of std >= 0.0");
  Tensor t = pointwise_result("normal", result_type(mean, std), mean, &std);
  normal_into("normal", t, 0, 1, given(generator));
  t.mul_(std).add_(mean);
  return t;
}

}  // namespace

Tensor normal(const Tensor& mean, double std, std::optional<Generator> generator) {
  check_floating("normal", mean);
  check_std("normal", std);
  if (draws_from_mersenne(mean.device(), given(generator))) {
    const NoGradGuard no_grad;
    Tensor t(TensorBase::empty(mean.sizes(), mean.scalar_type(), mean.device()));
    mersenne::normal("normal", t, 0, std, given(generator));
    return drawn_from("NormalBackward1", {mean}, t.add_(mean));
  }
  return drawn_from(
      "NormalBackward1", {mean},
      drawn(mean, full({}, std, TensorOptions(mean.scalar_type()).device(mean.device())),
            generator));
}
Tensor normal(double mean, const Tensor& std, std::optional<Generator> generator) {
  check_floating("normal", std);
  return drawn_from(
      "NormalBackward2", {std},
      drawn(full({}, mean, TensorOptions(std.scalar_type()).device(std.device())), std, generator));
}
Tensor normal(const Tensor& mean, const Tensor& std, std::optional<Generator> generator) {
  return drawn_from("NormalBackward3", {mean, std}, drawn(mean, std, generator));
}

Tensor bernoulli(const Tensor& self, std::optional<Generator> generator) {
  check_floating("bernoulli", self);
  Tensor t = empty_like(self, {}, MemoryFormat::Contiguous);
  bernoulli_into("bernoulli", t, self, given(generator));
  return drawn_from("BernoulliBackward0", {self}, std::move(t));
}
Tensor bernoulli(const Tensor& self, double p, std::optional<Generator> generator) {
  check_defined("bernoulli", self);
  check_probability("bernoulli", p);
  Tensor t = empty_like(self, {}, MemoryFormat::Contiguous);
  bernoulli_into("bernoulli", t, p, given(generator));
  return without_derivative("bernoulli", {self}, std::move(t));
}

Tensor& bernoulli_out(Tensor& out, const Tensor& self, double p,
                      std::optional<Generator> generator) {
  return out_form(
      kDraws, "bernoulli_out", out, [&] { return bernoulli(self, p, generator); }, self);
}

Tensor bernoulli(const Tensor& self, const Tensor& p, std::optional<Generator> generator) {
  check_defined("bernoulli", self);
  return empty_like(self, {}, MemoryFormat::Contiguous).bernoulli_(p, std::move(generator));
}

// ---- drawing indices with given probabilities ---------------------------------------------------

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
  report_unless("multinomial", p.ge(0).logical_and(p.isfinite()), p,
                "probability tensor contains either `inf`, `nan` or element < 0");
  const Tensor sums = p.cumsum(1);
  constexpr const char* kNoSum = "invalid multinomial distribution (sum of probabilities <= 0)";
  RAMET_CHECK(n > 0 || rows == 0, "multinomial", kNoSum);
  if (n > 0) {
    const Tensor sum = sums.select(1, n - 1);
    report_unless("multinomial", sum.gt(0), sum, kNoSum);
  }
  if (!replacement)
    report_where(
        "multinomial", p.gt(0).sum(1).lt(samples),
        "invalid multinomial distribution (with replacement=False, not enough non-negative "
        "category to sample)");
  if (draws_from_mersenne(self.device(), given(generator))) {
    // LibTorch's way: where no index can come twice, the largest p / e with e exponential win.
    Tensor picked;
    if (replacement && samples > 1) {
      picked = Tensor(TensorBase::empty({rows, samples}, kLong, self.device()));
      if (picked.numel())
        mersenne::categories("multinomial", picked, self.detach().reshape({rows, n}),
                             given(generator));
    } else {
      const Tensor e = empty_like(self.detach());
      mersenne::exponential("multinomial", e, 1, given(generator));
      const Tensor ranks = self.detach().div(e).reshape({rows, n});
      if (rows == 0) picked = Tensor(TensorBase::empty({rows, samples}, kLong, self.device()));
      else if (samples == 1) picked = ranks.argmax(-1, /*keepdim=*/true);
      else picked = std::get<1>(ranks.topk(samples));
    }
    return self.dim() == 2 ? picked : picked.reshape({samples});
  }
  // Draws one uniform number for each sample; without replacement one for each category. Then the
  // largest u^(1/p) win (Efraimidis and Spirakis 2006).
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
    // Sort by -log(1 - u) / p >= 0; such numbers have the order of their bits. Where p is 0 it is
    // NaN. A NaN's bits come after those of infinity, which a small p may give.
    const Tensor wait = u.neg().log1p().neg().div(p).masked_fill(p.le(0), NAN);
    chosen = sorted_positions(wait.view(kLong)).narrow(1, 0, samples).contiguous();
  }
  return self.dim() == 2 ? chosen : chosen.reshape({samples});
}

// ---- in-place fills -----------------------------------------------------------------------------

Tensor& Tensor::uniform_(double from, double to, std::optional<Generator> generator) const {
  check_floating("uniform_", *this);
  check_bounds("uniform_", from, to, scalar_type());
  return in_place("uniform_", "UniformBackward0", *this,
                  [&] { uniform_into("uniform_", *this, from, to, given(generator)); });
}
Tensor& Tensor::normal_(double mean, double std, std::optional<Generator> generator) const {
  check_floating("normal_", *this);
  check_std("normal_", std);
  return in_place("normal_", "NormalBackward0", *this,
                  [&] { normal_into("normal_", *this, mean, std, given(generator)); });
}
Tensor& Tensor::bernoulli_(double p, std::optional<Generator> generator) const {
  check_defined("bernoulli_", *this);
  check_probability("bernoulli_", p);
  return in_place("bernoulli_", "BernoulliBackward2", *this,
                  [&] { bernoulli_into("bernoulli_", *this, p, given(generator)); });
}
Tensor& Tensor::bernoulli_(const Tensor& p, std::optional<Generator> generator) const {
  check_defined("bernoulli_", *this);
  check_floating("bernoulli_", p);
  common_device("bernoulli_", *this, p);
  RAMET_CHECK(broadcast_sizes("bernoulli_", sizes(), p.sizes()) == sizes(), "bernoulli_",
              "shapes: got probabilities ", describe(p), " for ", describe(*this));
  return in_place("bernoulli_", "BernoulliBackward1", *this,
                  [&] { bernoulli_into("bernoulli_", *this, p, given(generator)); });
}
Tensor& Tensor::random_(int64_t from, std::optional<int64_t> to,
                        std::optional<Generator> generator) const {
  check_defined("random_", *this);
  if (to) check_range("random_", from, *to, scalar_type());
  const int64_t last = to ? *to - 1 : largest(scalar_type());
  if (!to && from != last) check_range("random_", from, last, scalar_type());
  return in_place("random_", "RandomBackward0", *this,
                  [&] { integers_into("random_", *this, from, last, given(generator)); });
}
Tensor& Tensor::random_(int64_t to, std::optional<Generator> generator) const {
  return random_(0, to, std::move(generator));
}
Tensor& Tensor::random_(std::optional<Generator> generator) const {
  if (defined() && draws_from_mersenne(device(), given(generator)))
    return in_place("random_", "RandomBackward0", *this,
                    [&] { mersenne::integers("random_", *this, given(generator)); });
  return random_(0, std::nullopt, std::move(generator));
}

namespace {
// The rule for a number and a tensor.
struct DeviationsRule : OutRule {
  void check(const char* op, const Tensor&, double, const Tensor& std,
             const std::optional<Generator>&) const {
    check_defined(op, std);
  }
};
constexpr DeviationsRule kOfDeviations{{OutType::kCastable}};
}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/random/random.inc"

}  // namespace ramet
