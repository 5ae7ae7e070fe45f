#include "nn/utils/clip_grad.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "kernels/optimizer_step.h"
#include "kernels/pointwise.h"
#include "nn/flat_store.h"

namespace ramet::nn::utils {
namespace {

double square_sum(const Tensor& t) {
  if (t.numel() == 0) return 0;
  const Tensor x = t.contiguous();
  if (!x.is_cpu()) {  // its sum, then its partial sums
    const Tensor sums(
        TensorBase::empty({1 + kernels::sum_squares_partials(x.numel())}, kDouble, x.device()));
    auto* sum = static_cast<double*>(sums.ptr());
    kernels::sum_squares(x.stream(), {x.ptr(), sum + 1, sum, x.numel(), x.scalar_type()});
    return sums[0].item<double>();
  }
  std::vector<double> partials(static_cast<size_t>(kernels::sum_squares_partials(x.numel())));
  double sum = 0;
  kernels::sum_squares(x.stream(), {x.ptr(), partials.data(), &sum, x.numel(), x.scalar_type()});
  return sum;
}

// The norm of all as one vector.
double total_norm(const std::vector<Tensor>& grads, double p) {
  if (p == 0) return static_cast<double>(grads.size());  // as LibTorch: their number
  double total = 0;
  for (const Tensor& g : grads) {
    if (p == 2) {
      total += square_sum(g);
    } else if (std::isinf(p)) {
      const double largest = g.numel() ? g.abs().max().item<double>() : 0;
      if (largest > total || std::isnan(largest)) total = largest;
    } else {
      total += std::pow(g.norm(p).item<double>(), p);
    }
  }
  if (p == 2) return std::sqrt(total);
  return std::isinf(p) ? total : std::pow(total, 1 / p);
}

// Neighbours in a flat store by one kernel call, gaps included. The norm above is formed one tensor
// at a time: its bits must not depend on where gradients lie.
void scale(const std::vector<Tensor>& grads, double factor) {
  FlatRun run;
  const Tensor* head = nullptr;
  const auto flush = [&] {
    if (run.empty()) return;
    const ScalarType t = head->scalar_type();
    kernels::Number one, by;
    one.d = 1;
    by.d = factor;
    kernels::mul(head->stream(), {run.at(0), nullptr, nullptr, run.at(0),
                                  run.bytes() / static_cast<int64_t>(head->element_size()), one, by,
                                  t, t, t, t, t});
    run.clear();
  };
  for (const Tensor& g : grads) {
    const ScalarType t = g.scalar_type();
    if (!g.raw_contiguous() || g.numel() == 0 || (t != kFloat && t != kDouble)) {
      g.mul_(factor);
      continue;
    }
    const TensorBase* operand[1] = {&g};
    if (run.take(operand, 1, !head || (*head)->key() == g->key(), flush)) head = &g;
    g.storage_impl()->wrote("clip_grad_norm_");
  }
  flush();
}

}  // namespace

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const NoGradGuard off;
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) grads.push_back(p.grad());
  if (grads.empty()) return 0.0;
  const double norm = total_norm(grads, norm_type);
  if (error_if_nonfinite)
    RAMET_CHECK(std::isfinite(norm), "clip_grad_norm_", "The total norm of order ", norm_type,
                " for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                "disable this error and scale the "
                "gradients with the non-finite norm anyway, set `error_if_nonfinite=false`");
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1 || std::isnan(factor)) scale(grads, factor);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard off;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) p.grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
}

}  // namespace ramet::nn::utils
