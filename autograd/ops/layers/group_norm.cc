#include "autograd/ops/layers/group_norm.h"

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/image_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/group_norm.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "group_norm";

struct Shape {
  int64_t n, c, l, groups;
  double eps;
  int64_t channels() const { return c / groups; }
  /// The number of samples that have values, and so statistics.
  int64_t samples() const { return c * l > 0 ? n : 0; }
};

// A layout that the kernel reads: row-major or, on a CPU, channels innermost.
Tensor readable(const Tensor& t) {
  const Tensor look = t.shallow();
  return look.raw_contiguous() || (look.is_cpu() && is_channels_last(look)) ? look
                                                                            : look.contiguous();
}
kernels::GroupNormShape kernel_shape(const Shape& s, const Tensor& readable) {
  const bool inside = !readable.raw_contiguous() || (s.l == 1 && readable.is_cpu());
  return {s.samples(), s.c, s.l, s.groups, inside};
}
// The parameter, dense, in the compute type of x.
Tensor parameter(const Tensor& p, ScalarType t) {
  if (!p.defined()) return p;
  const Tensor r = p.scalar_type() == t ? p : p.to(t);
  return r.raw_contiguous() ? r : r.contiguous();
}

// The fused gradients, written with operations, for derivatives of them: [n, groups, channels, l]
// in the compute type of x.
struct Normal {
  Tensor d, rstd;  // distance from the mean; 1 / sqrt(var + eps)
  Normal(const Tensor& x, const Shape& s) {
    const Tensor v = groups_of(x, s);
    d = v - v.mean({2, 3}, true);
    rstd = d.square().mean({2, 3}, true).add(s.eps).rsqrt();
  }
  static Tensor groups_of(const Tensor& x, const Shape& s) {
    return x.to(compute_type(x.scalar_type())).reshape({s.n, s.groups, s.channels(), s.l});
  }
};
// rstd (g w - mean(g w) - h mean(g w h))
Tensor composed_dx(const Tensor& g, const Tensor& x, const Tensor& w, const Shape& s) {
  const Normal n(x, s);
  const Tensor h = n.d * n.rstd, gs = Normal::groups_of(g, s),
               gw = w.defined() ? gs * w.reshape({1, s.groups, s.channels(), 1}) : gs;
  return (n.rstd * (gw - gw.mean({2, 3}, true) - h * (gw * h).mean({2, 3}, true)))
      .to(x.scalar_type())
      .reshape(x.sizes());
}
Tensor composed_dw(const Tensor& g, const Tensor& x, const Shape& s) {
  const Normal n(x, s);
  return (Normal::groups_of(g, s) * n.d * n.rstd).sum({0, 3}).reshape({s.c});
}

// Computes all three gradients in one pass; each is a recorded operation of its own.
std::array<Tensor, 3> backward(const Node& self, const Tensor& g, const Tensor& x, const Tensor& w,
                               const Tensor& mean, const Tensor& rstd, const Shape& s) {
  const Tensor xd = readable(x), gd = in_layout_of(xd, g);
  std::array<Tensor, 3> r;
  if (self.needs(0)) r[0] = empty_like_layout(xd, x.scalar_type());
  for (int i : {1, 2})
    if (self.needs(i))
      r[static_cast<size_t>(i)] = self.output_for(i, s.c, mean.scalar_type(), x.device());
  const kernels::GroupNormShape shape = kernel_shape(s, xd);
  const Tensor work = scratch(kernels::group_norm_backward_workspace(shape), x.device());
  kernels::group_norm_backward(
      x.stream(), {shape, xd.ptr(), pointer(w), gd.ptr(), mean.ptr(), rstd.ptr(), pointer(r[0]),
                   pointer(r[1]), pointer(r[2]), pointer(work), x.scalar_type()});
  if (!recording(g, x, w)) return r;
  if (r[0].defined())
    r[0] = record_composed(
        "NativeGroupNormBackwardDataBackward0", std::move(r[0]),
        [s](const std::vector<Tensor>& in) { return composed_dx(in[0], in[1], in[2], s); }, g, x,
        w);
  if (r[1].defined() && recording(g, x))
    r[1] = record_composed(
        "NativeGroupNormBackwardWeightBackward0", std::move(r[1]),
        [s](const std::vector<Tensor>& in) { return composed_dw(in[0], in[1], s); }, g, x);
  if (r[2].defined() && recording(g))
    r[2] = record("NativeGroupNormBackwardBiasBackward0", {g}, std::move(r[2]),
                  saves_nothing([like = Meta(x)](const Node&, const Tensor& v) {
                    std::vector<int64_t> sizes(like.shape().size(), 1);
                    sizes[1] = v.numel();
                    return v.reshape(sizes).expand(like.shape()).to(like.dtype);
                  }));
  return r;
}

// x in any form; w and b as parameter() makes them.
Tensor normalise(const Tensor& x, const Tensor& w, const Tensor& b, const Shape& s) {
  const ScalarType t = x.scalar_type(), stat = compute_type(t);
  const Tensor xd = readable(x);
  Tensor y = empty_like_layout(xd, t),
         mean(TensorBase::empty(s.samples() * s.groups, stat, x.device())),
         rstd(TensorBase::empty(s.samples() * s.groups, stat, x.device()));
  kernels::group_norm_forward(x.stream(), {kernel_shape(s, xd), xd.ptr(), pointer(w), pointer(b),
                                           y.ptr(), mean.ptr(), rstd.ptr(), s.eps, t});
  if (!recording(x, w, b)) return y;
  return record("NativeGroupNormBackward0", {x, w, b}, std::move(y),
                [s, sx = save(x), sw = save_if(w.defined(), w), mean, rstd](const Node& self,
                                                                            const Tensor& g) {
                  return backward(self, g, sx.get(self), sw.get(self), mean, rstd, s);
                },
                [&](Arguments& to) { to("num_groups", s.groups), to("eps", s.eps); });
}

void check_parameter(const char* name, const Tensor& p, const Tensor& x) {
  if (!p.defined()) return;
  RAMET_CHECK(p.dim() == 1 && p.size(0) == x.size(1), kOp, "Expected ", name,
              " to be a vector of size equal to the number of channels in input, but got ", name,
              " of shape ", p.sizes(), " and input of shape ", x.sizes());
  check_same_device(kOp, x, p, name);
  RAMET_CHECK(is_floating(p.scalar_type()), kOp, name, ": got ", describe(p),
              ", expected a floating-point type");
}

}  // namespace

static Tensor group_norm_body(const Tensor& x, int64_t num_groups,
                              const std::optional<Tensor>& weight,
                              const std::optional<Tensor>& bias, double eps, bool) {
  const Tensor w = weight.value_or(Tensor()), b = bias.value_or(Tensor());
  check_defined(kOp, x);
  RAMET_CHECK(x.dim() >= 2, kOp, "Expected at least 2 dimensions for input tensor but received ",
              x.dim(), ": got ", describe(x));
  RAMET_CHECK(num_groups > 0, kOp, "Expected num groups to be greater than 0, got ", num_groups);
  RAMET_CHECK(x.size(1) % num_groups == 0, kOp,
              "Expected number of channels in input to be divisible by num_groups, but got input "
              "of shape ",
              x.sizes(), " and num_groups=", num_groups);
  if (!is_floating(x.scalar_type()))
    throw NotImplementedError(detail::join("[", kOp, "] not implemented for '",
                                           name_of(x.scalar_type()), "': got ", describe(x)));
  check_parameter("weight", w, x);
  check_parameter("bias", b, x);
  // Without channels, num_groups may be any number.
  Shape s{x.size(0), x.size(1), 1, x.size(1) > 0 ? num_groups : 1, eps};
  for (int64_t d = 2; d < x.dim(); ++d) s.l *= x.size(d);
  const ScalarType t = compute_type(x.scalar_type());
  return normalise(x, parameter(w, t), parameter(b, t), s);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/group_norm.inc"

}  // namespace ramet
