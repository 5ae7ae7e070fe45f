#include "autograd/ops/layers/instance_norm.h"

#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/layers/batch_norm.h"
#include "autograd/ops/layers/group_norm.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;

namespace {

void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  if (!is_floating(x.scalar_type()))
    throw NotImplementedError(detail::join("[", op, "] not implemented for '",
                                           name_of(x.scalar_type()), "': got ", describe(x)));
}

// Each channel of each sample becomes a channel of a batch norm. It gets a copy of its running
// statistics; afterwards the copies are averaged over the samples.
Tensor with_running(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& mean,
                    const Tensor& var, double momentum, double eps) {
  const int64_t n = x.size(0), c = x.size(1);
  const ScalarType wide = compute_type(x.scalar_type());  // so that gradients are summed in it
  const auto repeated = [&](const Tensor& t) { return t.defined() ? t.to(wide).repeat(n) : t; };
  Tensor each_mean, each_var;
  {
    const NoGradGuard off;
    each_mean = repeated(mean), each_var = repeated(var);
  }
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes[0] = 1;
  sizes[1] = n * c;
  Tensor y = batch_norm(x.reshape(sizes), repeated(w), repeated(b), each_mean, each_var,
                        /*training=*/true, momentum, eps, true)
                 .reshape(x.sizes());
  if (is_recomputing()) return y;  // the forward pass has updated them
  const NoGradGuard off;
  mean.detach().copy_(each_mean.view({n, c}).mean(0));
  var.detach().copy_(each_var.view({n, c}).mean(0));
  return y;
}

}  // namespace

Tensor instance_norm(const Tensor& x, const std::optional<Tensor>& weight,
                     const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                     const std::optional<Tensor>& running_var, bool use_input_stats,
                     double momentum, double eps, bool) {
  constexpr const char* kOp = "instance_norm";
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor()),
               mean = running_mean.value_or(Tensor()), var = running_var.value_or(Tensor());
  check_floating(kOp, x);
  RAMET_CHECK(x.dim() >= 2, kOp, "input: got ", describe(x),
              ", expected at least 2 dimensions [n, c, ...]");
  RAMET_CHECK(mean.defined() == var.defined(), kOp,
              "running_mean and running_var must either both be None or neither be None");
  RAMET_CHECK(use_input_stats || mean.defined(), kOp,
              "Expected running_mean and running_var to be defined when use_input_stats is false");
  const std::pair<const char*, const Tensor*> numbers[] = {
      {"weight", &w}, {"bias", &b}, {"running_mean", &mean}, {"running_var", &var}};
  for (const auto& [name, t] : numbers) {
    if (!t->defined()) continue;
    RAMET_CHECK(t->dim() == 1 && t->size(0) == x.size(1), kOp, name, ": got ", describe(*t),
                ", expected ", x.size(1), " elements, as many as channels of input ", describe(x));
    check_same_device(kOp, x, *t, name);
    RAMET_CHECK(is_floating(t->scalar_type()), kOp, name, ": got ", describe(*t),
                ", expected a floating-point type");
  }
  check_constant(kOp, "running_mean", mean);
  check_constant(kOp, "running_var", var);
  // Inputs without values go to batch norm, too: they update no statistics.
  if (!use_input_stats || x.numel() == 0)
    return batch_norm(x, w, b, mean, var, use_input_stats, momentum, eps, true);
  if (mean.defined()) return with_running(x, w, b, mean, var, momentum, eps);
  return group_norm(x, x.size(1), w, b, eps);
}

static Tensor rms_norm_body(const Tensor& x, IntArrayRef normalized_shape,
                            const std::optional<Tensor>& weight, std::optional<double> eps) {
  constexpr const char* kOp = "rms_norm";
  check_floating(kOp, x);
  const auto dims = static_cast<int64_t>(normalized_shape.size());
  RAMET_CHECK(dims >= 1, kOp,
              "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
              "one element, but got normalized_shape = ",
              normalized_shape);
  RAMET_CHECK(
      x.dim() >= dims && x.sizes().slice(static_cast<size_t>(x.dim() - dims)) == normalized_shape,
      kOp, "Given normalized_shape=", normalized_shape,
      ", expected input whose last dimensions are these, but got input ", describe(x));
  if (weight && weight->defined()) {
    RAMET_CHECK(weight->sizes() == normalized_shape, kOp,
                "Expected weight to be of same shape as normalized_shape, but got weight of shape ",
                weight->sizes(), " and normalized_shape = ", normalized_shape);
    check_same_device(kOp, x, *weight, "weight");
    RAMET_CHECK(is_floating(weight->scalar_type()), kOp, "weight: got ", describe(*weight),
                ", expected a floating-point type");
  }
  const ScalarType t = compute_type(x.scalar_type());
  const double least = eps            ? *eps
                       : t == kDouble ? std::numeric_limits<double>::epsilon()
                                      : static_cast<double>(std::numeric_limits<float>::epsilon());
  std::vector<int64_t> last;
  for (int64_t d = -dims; d < 0; ++d) last.push_back(d);
  const Tensor wide = x.to(t);
  Tensor y = wide * wide.square().mean(last, true).add(least).rsqrt();
  if (weight && weight->defined()) y = y * weight->to(t);
  return y.to(x.scalar_type());
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/instance_norm.inc"

}  // namespace ramet
