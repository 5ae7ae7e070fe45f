// Draws from further distributions. random.inc has the rows of their methods.
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/front/pointwise_internal.h"
#include "autograd/ops/front/random_internal.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/random/random.h"
#include "autograd/ops/shape/view.h"
#include "kernels/random/counts.h"

namespace ramet {

using namespace autograd;

// ---- counts -------------------------------------------------------------------------------------

Tensor poisson(const Tensor& self, std::optional<Generator> generator) {
  check_floating("poisson", self);
  report_unless("poisson", self.detach().ge(0), self.detach(),
                "expected every rate to be non-negative");
  const Tensor mean = self.detach().contiguous();
  Tensor t(TensorBase::empty(self.sizes(), self.scalar_type(), self.device()));
  if (draws_from_mersenne(self.device(), given(generator))) {
    mersenne::poisson("poisson", t, mean, given(generator));
    return drawn_from("PoissonBackward0", {self}, std::move(t));
  }
  draw_into(t, given(generator), [&](const TensorBase& out, const kernels::RandomKey& key) {
    kernels::random_poisson(out.stream(),
                            {out.ptr(), mean.ptr(), nullptr, out.numel(), key, out.scalar_type()});
  });
  return drawn_from("PoissonBackward0", {self}, std::move(t));
}

Tensor binomial(const Tensor& count, const Tensor& prob, std::optional<Generator> generator) {
  check_floating("binomial", count);
  check_floating("binomial", prob);
  check_same_device("binomial", count, prob);
  RAMET_CHECK(count.scalar_type() == prob.scalar_type(), "binomial", "got ", describe(count),
              " and ", describe(prob), ", expected one dtype");
  const std::vector<int64_t> sizes = broadcast_sizes("binomial", count.sizes(), prob.sizes());
  const Tensor trials = count.detach().expand(sizes).contiguous(),
               p = prob.detach().expand(sizes).contiguous();
  Tensor t(TensorBase::empty(sizes, count.scalar_type(), count.device()));
  if (draws_from_mersenne(count.device(), given(generator))) {
    mersenne::binomial("binomial", t, trials, p, given(generator));
    return without_derivative("binomial", {count, prob}, std::move(t));
  }
  draw_into(t, given(generator), [&](const TensorBase& out, const kernels::RandomKey& key) {
    kernels::random_binomial(
        out.stream(), {out.ptr(), trials.ptr(), p.ptr(), out.numel(), key, out.scalar_type()});
  });
  return without_derivative("binomial", {count, prob}, std::move(t));
}

// ---- shares -------------------------------------------------------------------------------------

namespace {
double smallest_normal(ScalarType dtype) {
  return dtype == kHalf ? 0x1p-14 : dtype == kDouble ? 0x1p-1022 : 0x1p-126;
}
double largest_below_one(ScalarType dtype) {
  return 1 - (dtype == kDouble     ? 0x1p-53
              : dtype == kFloat    ? 0x1p-24
              : dtype == kBFloat16 ? 0x1p-8
                                   : 0x1p-11);
}
}  // namespace

Tensor _sample_dirichlet(const Tensor& self, std::optional<Generator> generator) {
  const char* op = "_sample_dirichlet";
  check_floating(op, self);
  const Tensor given_alpha = self.detach();
  report_unless(op, given_alpha.gt(0).logical_and(given_alpha.lt(HUGE_VAL)), given_alpha,
                "expected every concentration to be above 0 and finite");
  const Tensor alpha = given_alpha.to(kDouble).contiguous();
  if (draws_from_mersenne(self.device(), given(generator))) {
    const NoGradGuard off;
    const Tensor g(TensorBase::empty(self.sizes(), kDouble, self.device()));
    mersenne::gamma(op, g, alpha, given(generator));
    const Tensor shares = g.div(g.sum(-1, /*keepdim=*/true))
                              .clamp(smallest_normal(self.scalar_type()),
                                     largest_below_one(self.scalar_type()));
    return without_derivative(op, {self}, shares.to(self.scalar_type()));
  }
  Tensor logs(TensorBase::empty(self.sizes(), kDouble, self.device()));
  draw_into(logs, given(generator), [&](const TensorBase& out, const kernels::RandomKey& key) {
    kernels::random_log_gamma(out.stream(),
                              {out.ptr(), alpha.ptr(), nullptr, out.numel(), key, kDouble});
  });
  // Gamma numbers divided by their sum.
  return without_derivative(op, {self}, softmax(logs, -1).to(self.scalar_type()));
}

// ---- in-place fills -----------------------------------------------------------------------------

namespace {
// Half of the distance between neighbouring uniform numbers.
double half_step(ScalarType compute) { return compute == kDouble ? 0x1p-54 : 0x1p-25; }
}  // namespace

Tensor& Tensor::exponential_(double lambda, std::optional<Generator> generator) const {
  check_floating("exponential_", *this);
  RAMET_CHECK(lambda > 0, "exponential_", "expects lambda > 0.0, but found lambda=", lambda);
  if (draws_from_mersenne(device(), given(generator)))
    return in_place("exponential_", "ExponentialBackward0", *this, [&] {
      mersenne::exponential("exponential_", *this, lambda, given(generator));
    });
  return in_place("exponential_", "ExponentialBackward0", *this, [&] {  // -log(1 - u) / lambda
    // The 8 bits of a bfloat16 would cut the tail off, so 16-bit types are drawn in float.
    const ScalarType compute = compute_type(scalar_type());
    const Tensor u =
        compute == scalar_type() ? *this : Tensor(TensorBase::empty(sizes(), compute, device()));
    uniform_into("exponential_", u, 0, 1, given(generator));
    // An exponential number is above 0, as LibTorch's: u = 0 stands for all numbers below half a
    // step.
    const double half = half_step(compute), least = smallest_above_zero(scalar_type());
    pointwise_into(RAMET_POINTWISE(maximum), u, compute, u, Scalar(half));
    pointwise_into(RAMET_POINTWISE(neg), u, compute, u);
    pointwise_into(RAMET_POINTWISE(log1p), u, compute, u);
    pointwise_into(RAMET_POINTWISE(mul), *this, compute, u, Scalar(-1 / lambda));
    if (half / lambda < least && !std::isinf(lambda))
      pointwise_into(RAMET_POINTWISE(maximum), *this, compute, *this, Scalar(least));
  });
}

namespace {
// Fills x with f(t), where `draw` has filled the tensor t of the dtype `compute`.
template <class Draw, class F>
Tensor& filled_by(const char* op, const char* node, const Tensor& x, ScalarType compute,
                  const Draw& draw, const F& f) {
  return in_place(op, node, x, [&] {
    const NoGradGuard off;
    const Tensor u(TensorBase::empty(x.sizes(), compute, x.device()));
    draw(u);
    f(u);
    copy_values(x, u);
  });
}
}  // namespace
Tensor& Tensor::log_normal_(double mean, double std, std::optional<Generator> generator) const {
  check_floating("log_normal_", *this);
  RAMET_CHECK(std > 0, "log_normal_", "expects std > 0.0, but found std=", std);
  if (draws_from_mersenne(device(), given(generator)))
    return in_place("log_normal_", "LogNormalBackward0", *this, [&] {
      mersenne::log_normal("log_normal_", *this, mean, std, given(generator));
    });
  return filled_by(
      "log_normal_", "LogNormalBackward0", *this, compute_type(scalar_type()),
      [&](const Tensor& u) { normal_into("log_normal_", u, mean, std, given(generator)); },
      [](const Tensor& u) { u.exp_(); });
}
Tensor& Tensor::cauchy_(double median, double sigma, std::optional<Generator> generator) const {
  check_floating("cauchy_", *this);
  RAMET_CHECK(sigma > 0, "cauchy_", "expects sigma > 0.0, but found sigma=", sigma);
  if (draws_from_mersenne(device(), given(generator)))
    return in_place("cauchy_", "CauchyBackward0", *this,
                    [&] { mersenne::cauchy("cauchy_", *this, median, sigma, given(generator)); });
  const ScalarType compute = compute_type(scalar_type());
  const double half = half_step(compute);  // so that both tails are equally long
  return filled_by(
      "cauchy_", "CauchyBackward0", *this, compute,
      [&](const Tensor& u) { uniform_into("cauchy_", u, 0, 1, given(generator)); },
      [&](const Tensor& u) { u.sub_(0.5).add_(half).mul_(M_PI).tan_().mul_(sigma).add_(median); });
}
Tensor& Tensor::geometric_(double p, std::optional<Generator> generator) const {
  check_defined("geometric_", *this);
  RAMET_CHECK(scalar_type() != kBool, "geometric_", "not implemented for bool: got ",
              describe(*this));
  RAMET_CHECK(p > 0 && p < 1, "geometric_", "expects p to be in (0, 1), but got p=", p);
  if (draws_from_mersenne(device(), given(generator)))
    return in_place("geometric_", "GeometricBackward0", *this,
                    [&] { mersenne::geometric("geometric_", *this, p, given(generator)); });
  return filled_by(
      "geometric_", "GeometricBackward0", *this, kDouble,
      [&](const Tensor& u) { uniform_into("geometric_", u, 0, 1, given(generator)); },
      [&](const Tensor& u) { u.neg_().log1p_().div_(std::log1p(-p)).ceil_().clamp_min_(1); });
}

}  // namespace ramet
