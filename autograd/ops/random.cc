#include "autograd/ops/random.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/pointwise_front.h"
#include "kernels/random.h"

namespace ramet {

using namespace autograd;

namespace {

kernels::RandomKey key_for(const TensorBase& t, const Generator& generator) {
  const PhiloxKey k = reserve_random(t.device(), t.sizes(), generator);
  return {k.seed, k.offset, k.base};
}

// Runs draw(dense tensor, key) for x. Elements are numbered in row-major order whatever the memory
// looks like.
template <class Draw>
void draw_into(const Tensor& x, const Generator& generator, const Draw& draw) {
  const kernels::RandomKey key = key_for(x, generator);
  if (x.numel() == 0) return;
  if (x.raw_contiguous()) return draw(x, key);
  const TensorBase dense = TensorBase::empty(x.sizes(), x.scalar_type(), x.device());
  draw(dense, key);
  copy_values(x, dense);
}
void uniform_into(const Tensor& x, double a, double b, const Generator& generator = {}) {
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_uniform(t.stream(), {t.ptr(), t.numel(), key, a, b, t.scalar_type()});
  });
}
void normal_into(const Tensor& x, double mean, double std, const Generator& generator = {}) {
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_normal(t.stream(), {t.ptr(), t.numel(), key, mean, std, t.scalar_type()});
  });
}
void integers_into(const Tensor& x, int64_t low, int64_t high, const Generator& generator = {}) {
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_integers(
        t.stream(), {t.ptr(), t.numel(), key, low,
                     static_cast<uint64_t>(high) - static_cast<uint64_t>(low), t.scalar_type()});
  });
}
void bernoulli_into(const Tensor& x, double p, const Generator& generator = {}) {
  draw_into(x, generator, [&](const TensorBase& t, const kernels::RandomKey& key) {
    kernels::random_bernoulli(t.stream(),
                              {t.ptr(), nullptr, t.numel(), key, p, t.scalar_type(), kDouble});
  });
}
void bernoulli_into(const Tensor& x, const Tensor& p, const Generator& generator = {}) {
  {
    const NoGradGuard off;
    RAMET_CHECK(p.ge(0).logical_and(p.le(1)).all().item<bool>(), "bernoulli",
                "expects every p to be in [0, 1], but got values from ", p.min().item(), " to ",
                p.max().item());
  }
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

void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
}
void check_probability(const char* op, double p) {
  RAMET_CHECK(p >= 0 && p <= 1, op, "expects p to be in [0, 1], but got p=", p);
}
void check_std(const char* op, double std) {
  RAMET_CHECK(std >= 0, op, "expects std >= 0.0, but found std ", std);
}

// Largest whole number that every integer up to it has an exact value of this dtype.
int64_t largest(ScalarType t) {
  switch (t) {
    case kBool: return 1;
    case kByte: return 255;
    case kChar: return 127;
    case kShort: return 32767;
    case kInt: return INT32_MAX;
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
  const int64_t top = largest(t), bottom = t == kBool || t == kByte ? 0
                                           : t == kLong             ? INT64_MIN
                                           : is_floating(t)         ? -top
                                                                    : -top - 1;
  RAMET_CHECK(low >= bottom && high - 1 <= top, op, "got the range [", low, ", ", high,
              "), expected one inside [", bottom, ", ", top, "] for ", short_name_of(t));
}

// What every in-place fill does around its kernel.
template <class Fill>
Tensor& in_place(const char* op, const char* node, const Tensor& x, const Fill& fill) {
  check_inplace(op, x);
  fill();
  wrote(op, x);
  if (recording(x)) cut_history(node, x);
  return as_mutable(x);
}

Tensor with_grad(Tensor t, const TensorOptions& options) {
  if (options.requires_grad()) t.requires_grad_(true);
  return t;
}
TensorOptions plain(const TensorOptions& options, ScalarType otherwise) {
  return (options.has_dtype() ? options : options.dtype(otherwise)).requires_grad(std::nullopt);
}
Generator given(const std::optional<Generator>& g) { return g.value_or(Generator()); }

}  // namespace

// ---- factories ----------------------------------------------------------------------------------

Tensor rand(IntArrayRef size, const TensorOptions& options) {
  return rand(size, std::nullopt, options);
}
Tensor rand(IntArrayRef size, std::optional<Generator> generator, const TensorOptions& options) {
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("rand", t);
  uniform_into(t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor rand_like(const Tensor& self, const TensorOptions& options,
                 std::optional<MemoryFormat> format) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt), format);
  check_floating("rand_like", t);
  uniform_into(t, 0, 1);
  return with_grad(std::move(t), options);
}
Tensor randn(IntArrayRef size, const TensorOptions& options) {
  return randn(size, std::nullopt, options);
}
Tensor randn(IntArrayRef size, std::optional<Generator> generator, const TensorOptions& options) {
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("randn", t);
  normal_into(t, 0, 1, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randn_like(const Tensor& self, const TensorOptions& options,
                  std::optional<MemoryFormat> format) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt), format);
  check_floating("randn_like", t);
  normal_into(t, 0, 1);
  return with_grad(std::move(t), options);
}
Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& options) {
  return randint(0, high, size, std::nullopt, options);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, const TensorOptions& options) {
  return randint(low, high, size, std::nullopt, options);
}
Tensor randint(int64_t low, int64_t high, IntArrayRef size, std::optional<Generator> generator,
               const TensorOptions& options) {
  const TensorOptions o = plain(options, kLong);
  check_range("randint", low, high, o.dtype());
  Tensor t = empty(size, o);
  integers_into(t, low, high, given(generator));
  return with_grad(std::move(t), options);
}
Tensor randint_like(const Tensor& self, int64_t high, const TensorOptions& options) {
  return randint_like(self, 0, high, options);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const TensorOptions& options) {
  Tensor t = empty_like(self, options.requires_grad(std::nullopt));
  check_range("randint_like", low, high, t.scalar_type());
  integers_into(t, low, high);
  return with_grad(std::move(t), options);
}

Tensor randperm(int64_t n, const TensorOptions& options) {
  return randperm(n, std::nullopt, options);
}
Tensor randperm(int64_t n, std::optional<Generator> generator, const TensorOptions& options) {
  RAMET_CHECK(n >= 0, "randperm", "n must be non-negative, got ", n);
  const TensorOptions o = plain(options, kLong);
  const Device device = resolve(o.device());
  RAMET_CHECK(o.dtype() != kBool, "randperm", "not implemented for bool");
  RAMET_CHECK(n - 1 <= largest(o.dtype()), "randperm", "n = ", n, " is too large for ",
              short_name_of(o.dtype()));
  // Numbers on the host: the shuffle is one dependent chain.
  const TensorBase draws = TensorBase::empty({n}, kLong, Device(kCPU, 0)),
                   order = TensorBase::empty({n}, kLong, Device(kCPU, 0));
  const PhiloxKey key = reserve_random(device, {n}, given(generator));
  if (n)
    kernels::random_integers(draws.stream(),
                             {draws.ptr(), n, {key.seed, key.offset, key.base}, 0, 0, kLong});
  const auto* r = static_cast<const uint64_t*>(draws.ptr());
  auto* p = static_cast<int64_t*>(order.ptr());
  for (int64_t i = 0; i < n; ++i) p[i] = i;
  for (int64_t i = n - 1; i > 0; --i) {
    const auto j = static_cast<int64_t>(
        (static_cast<unsigned __int128>(r[i]) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(p[i], p[j]);
  }
  Tensor t(order);
  if (o.dtype() != kLong || device != t.device()) t = t.to(device, o.dtype());
  return with_grad(std::move(t), options);
}

Tensor normal(double mean, double std, IntArrayRef size, std::optional<Generator> generator,
              const TensorOptions& options) {
  check_std("normal", std);
  Tensor t = empty(size, plain(options, get_default_dtype()));
  check_floating("normal", t);
  normal_into(t, mean, std, given(generator));
  return with_grad(std::move(t), options);
}
Tensor normal(const Tensor& mean, double std, std::optional<Generator> generator) {
  check_floating("normal", mean);
  return normal(mean, full({}, std, TensorOptions(mean.scalar_type()).device(mean.device())),
                std::move(generator));
}
Tensor normal(double mean, const Tensor& std, std::optional<Generator> generator) {
  check_floating("normal", std);
  return normal(full({}, mean, TensorOptions(std.scalar_type()).device(std.device())), std,
                std::move(generator));
}
Tensor normal(const Tensor& mean, const Tensor& std, std::optional<Generator> generator) {
  check_floating("normal", mean);
  check_floating("normal", std);
  NoGradGuard no_grad;
  Tensor t = pointwise_result("normal", result_type(mean, std), mean, &std);
  normal_into(t, 0, 1, given(generator));
  return t.mul_(std).add_(mean);
}

Tensor bernoulli(const Tensor& self, std::optional<Generator> generator) {
  check_floating("bernoulli", self);
  Tensor t = empty_like(self, {}, MemoryFormat::Contiguous);
  bernoulli_into(t, self, given(generator));
  return t;
}
Tensor bernoulli(const Tensor& self, double p, std::optional<Generator> generator) {
  check_defined("bernoulli", self);
  check_probability("bernoulli", p);
  Tensor t = empty_like(self, {}, MemoryFormat::Contiguous);
  bernoulli_into(t, p, given(generator));
  return t;
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement,
                   std::optional<Generator> generator) {
  check_floating("multinomial", self);
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
  const PhiloxKey key = reserve_random(self.device(), u.sizes(), given(generator));
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

// ---- in-place fills -----------------------------------------------------------------------------

Tensor& Tensor::uniform_(double from, double to) const {
  check_floating("uniform_", *this);
  RAMET_CHECK(from <= to, "uniform_", "expects to return a [from, to) range, but found from=", from,
              " > to=", to);
  return in_place("uniform_", "UniformBackward0", *this, [&] { uniform_into(*this, from, to); });
}
Tensor& Tensor::normal_(double mean, double std) const {
  check_floating("normal_", *this);
  check_std("normal_", std);
  return in_place("normal_", "NormalBackward0", *this, [&] { normal_into(*this, mean, std); });
}
Tensor& Tensor::bernoulli_(double p) const {
  check_defined("bernoulli_", *this);
  check_probability("bernoulli_", p);
  return in_place("bernoulli_", "BernoulliBackward0", *this, [&] { bernoulli_into(*this, p); });
}
Tensor& Tensor::bernoulli_(const Tensor& p) const {
  check_defined("bernoulli_", *this);
  check_floating("bernoulli_", p);
  common_device("bernoulli_", *this, p);
  RAMET_CHECK(broadcast_sizes("bernoulli_", sizes(), p.sizes()) == sizes(), "bernoulli_",
              "shapes: got probabilities ", describe(p), " for ", describe(*this));
  return in_place("bernoulli_", "BernoulliBackward1", *this, [&] { bernoulli_into(*this, p); });
}
Tensor& Tensor::random_(int64_t from, int64_t to) const {
  check_defined("random_", *this);
  check_range("random_", from, to, scalar_type());
  return in_place("random_", "RandomBackward0", *this, [&] { integers_into(*this, from, to); });
}
Tensor& Tensor::random_(int64_t to) const { return random_(0, to); }
Tensor& Tensor::exponential_(double lambda) const {
  check_floating("exponential_", *this);
  RAMET_CHECK(lambda > 0, "exponential_", "expects lambda > 0.0, but found lambda=", lambda);
  return in_place("exponential_", "ExponentialBackward0", *this, [&] {  // -log(1 - u) / lambda
    // The 8 bits of a bfloat16 would cut the tail off: 16-bit types are drawn in float.
    const ScalarType compute = compute_type(scalar_type());
    const Tensor u =
        compute == scalar_type() ? *this : Tensor(TensorBase::empty(sizes(), compute, device()));
    uniform_into(u, 0, 1);
    pointwise_into(RAMET_POINTWISE(neg), u, compute, u);
    pointwise_into(RAMET_POINTWISE(log1p), u, compute, u);
    pointwise_into(RAMET_POINTWISE(mul), *this, compute, u, Scalar(-1 / lambda));
  });
}
Tensor Tensor::bernoulli() const { return ramet::bernoulli(*this); }
Tensor Tensor::multinomial(int64_t samples, bool replacement) const {
  return ramet::multinomial(*this, samples, replacement);
}

}  // namespace ramet
