#include "autograd/ops/layers/batch_norm.h"

#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/image_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/image/batch_norm.h"
#include "kernels/image/batch_norm_relu_pool.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "batch_norm";

struct Extents {
  int64_t n, c, l;
};
Extents extents(const Tensor& x) {  // x is not empty
  return {x.size(0), x.size(1), x.numel() / (x.size(0) * x.size(1))};
}

// The view of [n, c, ...] that the kernel takes: planes, or channels innermost. `t` is row-major or
// channels-last.
kernels::ChannelView channels(const Tensor& t, const Extents& e) {
  if (t.raw_contiguous()) return {t.ptr(), e.c * e.l, e.l, 1};
  return {t.ptr(), e.c * e.l, 1, e.c};
}
Tensor readable(const Tensor& t) {
  const Tensor look = t.shallow();
  return look.raw_contiguous() || is_channels_last(look) ? look : look.contiguous();
}

Tensor workspace(const Extents& e, Device device) {
  return Tensor(TensorBase::empty(kernels::batch_norm_workspace(e.n, e.c, e.l), kByte, device));
}

// [c] reshaped to [1, c, 1, ...].
Tensor per_channel(const Tensor& t, const Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[1] = t.numel();
  return t.reshape(sizes);
}
std::vector<int64_t> all_but_channels(const Tensor& x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) dims.push_back(d);
  return dims;
}

// The fused gradients, written with operations, for derivatives of them. Fixed statistics (not
// training) are constants.
struct Statistics {
  Tensor mean, invstd;
  bool training;
  double eps;
};
struct Normal {
  Tensor d, invstd;  // distance from the mean; 1 / sqrt(var + eps)
  Normal(const Tensor& x, const Statistics& s) {
    if (!s.training) {
      d = x - per_channel(s.mean, x), invstd = per_channel(s.invstd, x);
      return;
    }
    const std::vector<int64_t> dims = all_but_channels(x);
    d = x - x.mean(dims, true);
    invstd = d.square().mean(dims, true).add(s.eps).rsqrt();
  }
};
Tensor composed_dx(const Tensor& g, const Tensor& x, const Tensor& w, const Statistics& s) {
  const Normal n(x, s);
  const Tensor scale = w.defined() ? n.invstd * per_channel(w, x) : n.invstd;
  if (!s.training) return g * scale;
  const std::vector<int64_t> dims = all_but_channels(x);
  const Tensor h = n.d * n.invstd;
  return scale * (g - g.mean(dims, true) - h * (g * h).mean(dims, true));
}
Tensor composed_dw(const Tensor& g, const Tensor& x, const Statistics& s) {
  const Normal n(x, s);
  return (g * n.d * n.invstd).sum(all_but_channels(x));
}

// A value of an operation in the compute type: that of the other operands, where x is bfloat16.
Tensor in_compute(const Tensor& x) {
  const ScalarType t = compute_type(x.scalar_type());
  return x.scalar_type() == t ? x : x.to(t);
}

// Computes all three gradients in one pass; each is a recorded operation of its own.
std::array<Tensor, 3> backward(const Node& self, const Tensor& g, const Tensor& x, const Tensor& w,
                               const Statistics& s) {
  const Extents e = extents(x);
  const ScalarType t = compute_type(x.scalar_type());
  const Tensor xd = readable(x), gd = in_layout_of(xd, g);
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = empty_like_layout(xd, x.scalar_type());
  for (int i : {1, 2})
    if (self.needs(i)) r[static_cast<size_t>(i)] = self.output_for(i, e.c, t, x.device());
  kernels::ChannelView dx{nullptr, 0, 0, 0};
  if (r[0].defined()) dx = channels(r[0], e);
  const Tensor work = workspace(e, x.device());
  kernels::batch_norm_backward(
      x.stream(),
      {e.n, e.c, e.l, channels(xd, e), channels(gd, e), dx, pointer(w), s.mean.ptr(),
       s.invstd.ptr(), pointer(r[1]), pointer(r[2]), s.training, t, work.ptr(), x.scalar_type()});
  if (!recording(g, x, w)) return r;
  if (r[0].defined())
    r[0] = record_composed(
        "NativeBatchNormBackwardDataBackward0", std::move(r[0]),
        [s](const std::vector<Tensor>& in) {
          return composed_dx(in_compute(in[0]), in_compute(in[1]), in[2], s)
              .to(in[1].scalar_type());
        },
        g, x, w);
  if (r[1].defined() && recording(g, x))
    r[1] = record_composed(
        "NativeBatchNormBackwardWeightBackward0", std::move(r[1]),
        [s](const std::vector<Tensor>& in) {
          return composed_dw(in_compute(in[0]), in_compute(in[1]), s);
        },
        g, x);
  if (r[2].defined() && recording(g))
    r[2] = record("SumBackward1", {g}, std::move(r[2]),
                  saves_nothing([like = Meta(x)](const Node&, const Tensor& v) {
                    std::vector<int64_t> sizes(like.shape().size(), 1);
                    sizes[1] = v.numel();
                    return v.reshape(sizes).expand(like.shape()).to(like.dtype);
                  }));
  return r;
}

void check_channels(const char* name, const Tensor& t, const Tensor& x) {
  if (!t.defined()) return;
  RAMET_CHECK(t.numel() == x.size(1) && t.dim() == 1, kOp, name, ": got ", describe(t),
              ", expected ", x.size(1), " elements, as many as channels of input ", describe(x));
  check_same_device(kOp, x, t, name);
  RAMET_CHECK(is_floating(t.scalar_type()), kOp, name, ": got ", describe(t),
              ", expected a floating-point type");
}

Tensor as_type(const Tensor& t, ScalarType type) {
  return t.defined() && t.scalar_type() != type ? t.to(type) : t;
}
Tensor dense(const Tensor& t) { return t.defined() && !t.raw_contiguous() ? t.contiguous() : t; }

// Computes the mean and 1 / sqrt(var + eps) of x; updates the running statistics when training.
Statistics statistics_of(const Tensor& xd, Tensor running_mean, Tensor running_var, bool training,
                         double momentum, double eps) {
  // The forward pass has updated them.
  if (training && is_recomputing()) running_mean = running_var = Tensor();
  const ScalarType t = compute_type(xd.scalar_type());
  const Extents e = extents(xd);
  const Statistics s{Tensor(TensorBase::empty(e.c, t, xd.device())),
                     Tensor(TensorBase::empty(e.c, t, xd.device())), training, eps};
  // Work on copies of running statistics that have another type or gaps.
  const Tensor mean =
                   dense(as_type(running_mean.defined() ? running_mean.detach() : running_mean, t)),
               var = dense(as_type(running_var.defined() ? running_var.detach() : running_var, t));
  const Tensor work = workspace(e, xd.device());
  kernels::batch_norm_statistics(xd.stream(), {e.n,
                                               e.c,
                                               e.l,
                                               channels(xd, e),
                                               {},
                                               nullptr,
                                               nullptr,
                                               s.mean.ptr(),
                                               s.invstd.ptr(),
                                               pointer(mean),
                                               pointer(var),
                                               momentum,
                                               eps,
                                               training,
                                               t,
                                               work.ptr(),
                                               xd.scalar_type()});
  if (!training) return s;
  for (const auto& [given, worked] :
       {std::pair(&running_mean, &mean), std::pair(&running_var, &var)}) {
    if (!given->defined()) continue;
    if (given->ptr() != worked->ptr()) copy_values(*given, *worked);
    wrote(kOp, *given);
  }
  return s;
}

// w and b have the compute type and are dense. x has it, too; or it is bfloat16, on a CPU.
Tensor normalise(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean,
                 const Tensor& running_var, bool training, double momentum, double eps) {
  const ScalarType t = compute_type(x.scalar_type());
  const Extents e = extents(x);
  const Tensor xd = readable(x);
  Tensor y = empty_like_layout(xd, x.scalar_type());
  const Statistics s = statistics_of(xd, running_mean, running_var, training, momentum, eps);
  const Tensor work = workspace(e, x.device());
  kernels::batch_norm_forward(
      x.stream(),
      {e.n, e.c, e.l, channels(xd, e), channels(y, e), pointer(w), pointer(b), s.mean.ptr(),
       s.invstd.ptr(), nullptr, nullptr, momentum, eps, training, t, work.ptr(), xd.scalar_type()});
  if (!recording(x, w, b)) return y;
  return record(
      "NativeBatchNormBackward0", {x, w, b}, std::move(y),
      [s, sx = save(x), sw = save_if(w.defined(), w)](const Node& self, const Tensor& g) {
        return backward(self, g, sx.get(self), sw.get(self), s);
      },
      [&](Arguments& to) {
        to("running_mean", running_mean), to("running_var", running_var);
        to("training", training), to("eps", eps);
      });
}

void check_all(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& mean,
               const Tensor& var, bool training) {
  check_defined(kOp, x);
  RAMET_CHECK(x.dim() >= 2, kOp, "input: got ", describe(x),
              ", expected at least 2 dimensions [n, c, ...]");
  if (!is_floating(x.scalar_type()))
    throw NotImplementedError(detail::join("[", kOp, "] not implemented for '",
                                           name_of(x.scalar_type()), "': got ", describe(x)));
  check_channels("weight", w, x);
  check_channels("bias", b, x);
  check_channels("running_mean", mean, x);
  check_channels("running_var", var, x);
  check_constant(kOp, "running_mean", mean);
  check_constant(kOp, "running_var", var);
  RAMET_CHECK(training || x.numel() == 0 || (mean.defined() && var.defined()), kOp,
              "running_mean and running_var must be defined in evaluation mode: got ",
              mean.defined() ? "no running_var" : "no running_mean");
}

// ---- with ReLU and max pooling ------------------------------------------------------------------

int64_t stage_workspace(const Tensor& x) {
  return kernels::batch_norm_relu_pool_workspace(x.size(0), x.size(2), x.size(1), !x.is_cpu());
}
const float* floats(const Tensor& t) { return static_cast<const float*>(pointer(t)); }

// Turns the gradient g of the pooled result into a gradient of the normalised values. It is linear
// in g, and piecewise constant in the other arguments.
Tensor routed(const Tensor& g, const Tensor& x, const Tensor& w, const Tensor& b,
              const Statistics& s) {
  Tensor z, index;
  {
    const NoGradGuard off;
    const Normal n(x, {s.mean, s.invstd, false, s.eps});
    z = n.d * n.invstd;
    if (w.defined()) z = z * per_channel(w, x);
    if (b.defined()) z = z + per_channel(b, x);
    index = std::get<1>(max_pool2d_with_indices(z, 2)).flatten(2);
  }
  const Tensor spread =
      scatter_zeros({x.size(0), x.size(1), x.size(2) * x.size(3)}, 2, index, g.flatten(2))
          .reshape(x.sizes());
  return threshold_backward(spread, z, 0);
}

std::array<Tensor, 3> stage_backward(const Node& self, const Tensor& g, const Tensor& x,
                                     const Tensor& w, const Tensor& b, const Statistics& s) {
  const Tensor xd = channels_innermost(x), gd = channels_innermost(g);
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = empty_like_layout(xd, kFloat);
  for (int i : {1, 2})
    if (self.needs(i))
      r[static_cast<size_t>(i)] = self.output_for(i, x.size(1), kFloat, x.device());
  const Tensor work(TensorBase::empty(stage_workspace(x), kByte, x.device()));
  kernels::batch_norm_relu_pool_backward(
      x.stream(), {x.size(0), x.size(2), x.size(3), x.size(1), floats(xd), floats(w), floats(b),
                   floats(s.mean), floats(s.invstd), floats(gd), static_cast<float*>(pointer(r[0])),
                   static_cast<float*>(pointer(r[1])), static_cast<float*>(pointer(r[2])),
                   s.training, work.ptr()});
  if (!recording(g, x, w)) return r;
  const Tensor fixed_b = b.defined() ? b.detach() : b, fixed_w = w.defined() ? w.detach() : w,
               fixed_x = x.detach();
  const auto to_norm = [fixed_b, fixed_w, fixed_x, s](const Tensor& grad) {
    return routed(grad, fixed_x, fixed_w, fixed_b, s);
  };
  if (r[0].defined())
    r[0] = record_composed(
        "BatchNormReluMaxPool2DBackwardDataBackward0", std::move(r[0]),
        [s, to_norm](const std::vector<Tensor>& in) {
          return composed_dx(to_norm(in[0]), in[1], in[2], s);
        },
        g, x, w);
  if (r[1].defined() && recording(g, x))
    r[1] = record_composed(
        "BatchNormReluMaxPool2DBackwardWeightBackward0", std::move(r[1]),
        [s, to_norm](const std::vector<Tensor>& in) {
          return composed_dw(to_norm(in[0]), in[1], s);
        },
        g, x);
  if (r[2].defined() && recording(g))
    r[2] = record_composed(
        "BatchNormReluMaxPool2DBackwardBiasBackward0", std::move(r[2]),
        [to_norm](const std::vector<Tensor>& in) {
          return to_norm(in[0]).sum({0, 2, 3});
        },
        g);
  return r;
}

Tensor stage(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& running_mean,
             const Tensor& running_var, bool training, double momentum, double eps) {
  const Tensor xd = channels_innermost(x);
  const Statistics s = statistics_of(xd, running_mean, running_var, training, momentum, eps);
  Tensor y = empty_image(layout_of(xd), x.size(0), x.size(1), x.size(2) / 2, x.size(3) / 2, kFloat,
                         x.device());
  const Tensor work(TensorBase::empty(stage_workspace(x), kByte, x.device()));
  kernels::batch_norm_relu_pool_forward(
      x.stream(), {x.size(0), x.size(2), x.size(3), x.size(1), floats(xd), floats(w), floats(b),
                   floats(s.mean), floats(s.invstd), static_cast<float*>(y.ptr()), work.ptr()});
  if (!recording(x, w, b)) return y;
  return record("BatchNormReluMaxPool2DBackward0", {x, w, b}, std::move(y),
                [s, sx = save(x), sw = save_if(w.defined(), w), sb = save_if(b.defined(), b)](
                    const Node& self, const Tensor& g) {
                  return stage_backward(self, g, sx.get(self), sw.get(self), sb.get(self), s);
                });
}

}  // namespace

Tensor batch_norm(const Tensor& x, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                  const std::optional<Tensor>& running_var, bool training, double momentum,
                  double eps, bool) {
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor()),
               mean = running_mean.value_or(Tensor()), var = running_var.value_or(Tensor());
  check_all(x, w, b, mean, var, training);
  if (x.numel() == 0) {  // LibTorch's result: no update of statistics, the right dtype and history
    Tensor y = x.clone();
    if (w.defined() && w.numel()) y = y * w.select(0, 0);
    if (b.defined() && b.numel()) y = y + b.select(0, 0);
    return as_type(y, x.scalar_type());
  }
  const ScalarType t = compute_type(x.scalar_type());
  const bool as_it_is = x.scalar_type() == kBFloat16 && x.is_cpu();
  const Tensor y = normalise(as_it_is ? x : as_type(x, t), dense(as_type(w, t)),
                             dense(as_type(b, t)), mean, var, training, momentum, eps);
  return as_type(y, x.scalar_type());
}

Tensor batch_norm_relu_max_pool2d(const Tensor& x, const std::optional<Tensor>& weight,
                                  const std::optional<Tensor>& bias,
                                  const std::optional<Tensor>& running_mean,
                                  const std::optional<Tensor>& running_var, bool training,
                                  double momentum, double eps) {
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor()),
               mean = running_mean.value_or(Tensor()), var = running_var.value_or(Tensor());
  check_all(x, w, b, mean, var, training);
  const bool floats_only = x.scalar_type() == kFloat &&
                           (!w.defined() || w.scalar_type() == kFloat) &&
                           (!b.defined() || b.scalar_type() == kFloat);
  if (floats_only && x.dim() == 4 && layout_of(x) != ImageLayout::kRows && x.numel() > 0 &&
      x.size(2) >= 2 && x.size(3) >= 2)
    return stage(x, dense(w), dense(b), mean, var, training, momentum, eps);
  return max_pool2d(relu(batch_norm(x, w, b, mean, var, training, momentum, eps, false)), 2);
}

}  // namespace ramet
