#include "nn/utils/clip_grad.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/optim/call_batch_internal.h"
#include "runtime/capture/capture.h"

namespace ramet::nn::utils {
namespace {

TensorOptions norm_options() { return TensorOptions().dtype(kDouble); }

// The sums of squares of all tensors, one after the other, on the first one's device.
Tensor square_sums(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> sums, copies;
  auto batch = nn::detail::dense_batch<kernels::SumSquaresArgs>(
      [&](const Tensor& head, kernels::SumSquaresArgs& args) {
        int64_t blocks = 0;
        for (int32_t t = 0; t < args.count; ++t)
          blocks += kernels::sum_squares_partials(args.tensors[t].n);
        const TensorOptions options = norm_options().device(head.device());
        const Tensor partials = empty(blocks, options);
        sums.push_back(empty(args.count, options));
        args.partials = static_cast<double*>(partials.ptr());
        args.sums = static_cast<double*>(sums.back().ptr());
        kernels::sum_squares(head.stream(), args);
      });
  copies.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    copies.push_back(t.detach().contiguous());  // until the call was made
    batch.add(copies.back());
  }
  batch.flush();
  if (sums.empty()) return zeros(1, norm_options().device(tensors[0].device()));
  if (sums.size() == 1) return sums[0].to(tensors[0].device());
  for (Tensor& s : sums) s = s.to(tensors[0].device());
  return cat(sums);
}

// Of one tensor, 0-dim.
Tensor norm_of(const Tensor& t, double p) {
  const Tensor x = t.detach();
  if (!std::isinf(p)) return x.norm(p).to(kDouble);
  return t.numel() ? x.abs().max().to(kDouble) : zeros({}, norm_options().device(t.device()));
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type,
                      bool error_if_nonfinite) {
  const NoGradGuard off;
  if (tensors.empty()) return zeros({}, norm_options());
  for (const Tensor& t : tensors)
    RAMET_CHECK(t.defined() && is_floating(t.scalar_type()), "get_total_norm",
                "expected tensors of a floating dtype: got ", describe(t));
  const Device device = tensors[0].device();
  Tensor norm;
  if (norm_type == 0) {  // as LibTorch: their number
    norm = full({}, static_cast<double>(tensors.size()), norm_options().device(device));
  } else if (norm_type == 2) {
    const Tensor sums = square_sums(tensors);
    norm = empty({}, norm_options().device(device));
    kernels::total_norm(norm.stream(), {static_cast<const double*>(sums.ptr()),
                                        static_cast<double*>(norm.ptr()), sums.numel()});
  } else {
    for (const Tensor& t : tensors) {
      const Tensor one = norm_of(t, norm_type).to(device);
      if (std::isinf(norm_type)) norm = norm.defined() ? maximum(norm, one) : one;
      else norm = norm.defined() ? norm.add(one.pow(norm_type)) : one.pow(norm_type);
    }
    if (!std::isinf(norm_type)) norm = norm.pow(1 / norm_type);
  }
  if (error_if_nonfinite)
    RAMET_CHECK(std::isfinite(norm.item<double>()), "clip_grad_norm_", "The total norm of order ",
                norm_type,
                " for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                "disable this error and scale the "
                "gradients with the non-finite norm anyway, set `error_if_nonfinite=false`");
  return norm;
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                           const Tensor& total_norm) {
  RAMET_CHECK(total_norm.defined() && total_norm.numel() == 1, "clip_grads_with_norm_",
              "total_norm: got ", describe(total_norm), ", expected one element");
  const NoGradGuard off;
  Tensor norm = total_norm.detach().to(kDouble);  // on the device of the call that is made next
  auto batch = nn::detail::dense_batch<kernels::LimitNormArgs>(
      [&](const Tensor& head, kernels::LimitNormArgs& args) {
        norm = norm.to(head.device());
        args.norm = static_cast<const double*>(norm.ptr());
        args.max_norm = max_norm;
        kernels::limit_norm(head.stream(), args);
      });
  for (const Tensor& p : parameters) {
    if (!p.grad().defined() || p.grad().numel() == 0) continue;
    const Tensor& g = p.grad();
    if (!g.raw_contiguous()) {
      const Tensor factor = norm.to(g.device()).add(1e-6).reciprocal().mul(max_norm);
      g.mul_(where(factor.ge(1), ones_like(factor), factor).to(g.scalar_type()));
      continue;
    }
    batch.add(g);
    g.storage_impl()->wrote("clip_grad_norm_");
  }
  batch.flush();
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  capture::refuse("clip_grad_norm_",
                  "the host reads the norm; get_total_norm and clip_grads_with_norm_ leave it on "
                  "the device");
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) grads.push_back(p.grad());
  if (grads.empty()) return 0;
  const Tensor norm = get_total_norm(grads, norm_type, error_if_nonfinite);
  clip_grads_with_norm_(parameters, max_norm, norm);
  return norm.item<double>();  // what scales is queued
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  const NoGradGuard off;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) p.grad().clamp_(Scalar(-clip_value), Scalar(clip_value));
}

}  // namespace ramet::nn::utils
