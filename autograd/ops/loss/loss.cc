// Losses of two tensors of one shape.
#include "autograd/ops/loss/loss.h"

#include <cmath>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/loss_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/reduce_internal.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/where.h"

namespace ramet {

using namespace autograd;

namespace {

void check_pair(const char* op, const Tensor& x, const Tensor& target, int64_t reduction) {
  common_device(op, x, target);
  check_reduction(op, reduction);
}
// Does t broadcast by repetition to `sizes`?
bool repeats_to(const Tensor& t, IntArrayRef sizes) {
  const int64_t more = static_cast<int64_t>(sizes.size()) - t.dim();
  if (more < 0) return false;
  for (int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) != 1 && t.size(d) != sizes[static_cast<size_t>(d + more)]) return false;
  return true;
}
// The target in the shape of x. As in LibTorch, dimensions of size 1 are dropped from both. So a
// column and a row are compared element by element, and a smaller target is repeated.
Tensor shaped_as(const char* op, const Tensor& x, const Tensor& target) {
  if (same_sizes(x, target)) return target;
  std::vector<int64_t> sizes;
  for (const int64_t n : x.sizes())
    if (n != 1) sizes.push_back(n);
  const Tensor t = target.squeeze();
  RAMET_CHECK(repeats_to(t, sizes), op, "target size ", target.sizes(),
              " must be the same as input size ", x.sizes(), ", or repeat to it");
  return t.expand(sizes).view(x.sizes());
}
Tensor times_weight(const char* op, const Tensor& loss, const std::optional<Tensor>& weight) {
  if (!weight || !weight->defined()) return loss;
  RAMET_CHECK(repeats_to(*weight, loss.sizes()), op, "weight: got ", describe(*weight),
              ", expected one that repeats to ", loss.sizes());
  return loss.mul(*weight);
}
// The promoted dtype; an Error unless it is a floating-point one.
ScalarType check_floating(const char* op, const Tensor& x, const Tensor& target) {
  const ScalarType dtype = result_type(x, target);
  RAMET_CHECK(is_floating(dtype), op, "not implemented for '", name_of(dtype), "': got ",
              describe(x), " and ", describe(target));
  return dtype;
}
// The same without history.
Tensor reduced_plain(const Tensor& loss, int64_t reduction) {
  if (reduction == Reduction::None) return loss;
  const auto kind =
      reduction == Reduction::Mean ? kernels::ReduceOp::kMean : kernels::ReduceOp::kSum;
  return run_reduce(kind, loss, reduced_dims("loss", loss, std::nullopt, false),
                    loss.scalar_type());
}
// The factor of each element in the gradient of a reduced loss.
double share(const Tensor& loss, int64_t reduction) {
  return reduction == Reduction::Mean ? 1 / static_cast<double>(loss.numel()) : 1;
}

// 2 g (x - t) scale, in one kernel. g: 0-dim, or of the loss's shape.
Tensor mse_backward(const Tensor& g, const Tensor& x, const Tensor& t, double scale) {
  const ScalarType dtype = result_type(x, t);
  Tensor out = pointwise_result("mse_loss", dtype, x, &t);
  pointwise_into(RAMET_POINTWISE(mse_backward), out, compute_type(dtype), g, x, t, 2 * scale);
  if (!recording(g, x, t)) return out;
  return record("MseLossBackwardBackward0", {g, x, t}, std::move(out),
                [scale, dtype, mg = Meta(g), mx = Meta(x), mt = Meta(t), sg = save(g), sx = save(x),
                 st = save(t)](const Node& self, const Tensor& v) {
                  std::array<Tensor, 3> r;
                  if (self.needs(0))
                    // Not x - t: there is no difference where one or both are bool.
                    r[0] = mg.reduce(
                        v.mul(sx.get(self).to(dtype).sub(st.get(self).to(dtype))).mul(2 * scale));
                  if (self.needs(1) || self.needs(2)) {
                    const Tensor d = v.mul(sg.get(self)).mul(2 * scale);
                    if (self.needs(1)) r[1] = mx.reduce(d);
                    if (self.needs(2)) r[2] = mt.reduce(d.neg());
                  }
                  return r;
                });
}

}  // namespace

static Tensor mse_loss_body(const Tensor& x, const Tensor& target, int64_t reduction) {
  check_pair("mse_loss", x, target, reduction);
  const ScalarType dtype = check_floating("mse_loss", x, target);
  Tensor squares = pointwise_result("mse_loss", dtype, x, &target);
  pointwise_into(RAMET_POINTWISE(squared_difference), squares, compute_type(dtype), x, target);
  Tensor out = reduced_plain(squares, reduction);
  if (!recording(x, target)) return out;
  return record("MseLossBackward0", {x, target}, std::move(out),
                [scale = share(squares, reduction), mx = Meta(x), mt = Meta(target), sx = save(x),
                 st = save(target)](const Node& self, const Tensor& g) {
                  const Tensor dx = mse_backward(g, sx.get(self), st.get(self), scale);
                  return std::array{self.needs(0) ? mx.reduce(dx) : Tensor(),
                                    self.needs(1) ? mt.reduce(dx.neg()) : Tensor()};
                });
}

static Tensor l1_loss_body(const Tensor& x, const Tensor& target, int64_t reduction) {
  check_pair("l1_loss", x, target, reduction);
  return reduced(x.sub(target).abs(), reduction);
}

namespace {

// The gradient of huber_of: its slope times g; the slope is curvature d or +-limit.
Tensor huber_gradient(const char* node, const Tensor& g, const Tensor& x, const Tensor& target,
                      double bend, double limit) {
  const ScalarType dtype = result_type(x, target);
  Tensor out = pointwise_result(node, dtype, x, &target);
  pointwise_into(RAMET_POINTWISE(huber_backward), out, compute_type(dtype), g, x, target, bend,
                 limit);
  if (!recording(g, x, target)) return out;
  return record_composed(
      node, std::move(out),
      [bend, limit, dtype](const std::vector<Tensor>& in) {
        const Tensor d = in[1].to(dtype).sub(in[2].to(dtype));  // of a bool, too
        const double curvature = bend == limit ? 1 : limit / bend;
        return in[0].mul(where(d.abs().ge(bend), d.sign().mul(limit), d.mul(curvature)));
      },
      g, x, target);
}

// A loss that is quadratic in d = x - target where |d| < bend, and linear with slopes +-limit
// elsewhere. Its slope has a formula here, because a composition would turn an infinite difference
// into NaN in the quadratic branch.
Tensor huber_of(const char* node, const char* second, const Tensor& x, const Tensor& target,
                double bend, double limit) {
  const ScalarType dtype = result_type(x, target);
  Tensor loss = pointwise_result(node, dtype, x, &target);
  pointwise_into(RAMET_POINTWISE(huber), loss, compute_type(dtype), x, target, {}, bend, limit);
  if (!recording(x, target)) return loss;
  return record(node, {x, target}, std::move(loss),
                [second, bend, limit, mx = Meta(x), mt = Meta(target), sx = save(x),
                 st = save(target)](const Node& self, const Tensor& g) {
                  const Tensor dx =
                      huber_gradient(second, g, sx.get(self), st.get(self), bend, limit);
                  return std::array{self.needs(0) ? mx.reduce(dx) : Tensor(),
                                    self.needs(1) ? mt.reduce(dx.neg()) : Tensor()};
                });
}

}  // namespace

static Tensor smooth_l1_loss_body(const Tensor& x, const Tensor& target, int64_t reduction,
                                  double beta) {
  check_pair("smooth_l1_loss", x, target, reduction);
  check_floating("smooth_l1_loss", x, target);
  RAMET_CHECK(beta >= 0, "smooth_l1_loss", "does not support negative values for beta: got ", beta);
  if (beta == 0) return l1_loss(x, target, reduction);
  return reduced(
      huber_of("SmoothL1LossBackward0", "SmoothL1LossBackwardBackward0", x, target, beta, 1),
      reduction);
}

static Tensor huber_loss_body(const Tensor& x, const Tensor& target, int64_t reduction,
                              double delta) {
  check_pair("huber_loss", x, target, reduction);
  check_floating("huber_loss", x, target);
  RAMET_CHECK(delta > 0, "huber_loss", "does not support non-positive values for delta: got ",
              delta);
  return reduced(
      huber_of("HuberLossBackward0", "HuberLossBackwardBackward0", x, target, delta, delta),
      reduction);
}

static Tensor binary_cross_entropy_body(const Tensor& x, const Tensor& given,
                                        const std::optional<Tensor>& weight, int64_t reduction) {
  const char* op = "binary_cross_entropy";
  check_pair(op, x, given, reduction);
  check_floating(op, x, given);
  const Tensor target = shaped_as(op, x, given);
  {
    const NoGradGuard off;
    report_unless(op, x.ge(0).logical_and(x.le(1)), x,
                  "all elements of input should be between 0 and 1");
  }
  // Where no clamp is active, the clamped logarithms have the gradients of LibTorch's kernel, (x -
  // t) / max((1 - x) x, 1e-12). At x = 0 and x = 1 they would be infinite; LibTorch's are -+1e12
  // there. So the gradient has a formula here.
  Tensor loss;
  {
    const NoGradGuard off;
    const Tensor low = x.log().clamp_min(-100), high = x.neg().log1p().clamp_min(-100);
    loss = target.sub(1).mul(high).sub(target.mul(low));
  }
  if (recording(x, target)) {
    loss = record("BinaryCrossEntropyBackward0", {x, target}, std::move(loss),
                  [sx = save(x), st = save(target)](const Node& self, const Tensor& g) {
                    const Tensor &x = sx.get(self), &t = st.get(self);
                    std::array<Tensor, 2> r;
                    if (self.needs(0))
                      r[0] = g.mul(x.sub(t)).div(x.neg().add(1).mul(x).clamp_min(1e-12));
                    if (self.needs(1))
                      r[1] = g.mul(x.neg().log1p().clamp_min(-100).sub(x.log().clamp_min(-100)));
                    return r;
                  });
  }
  return reduced(times_weight(op, loss, weight), reduction);
}

namespace {

// g (sigmoid(x) - t); all have one shape and dtype.
Tensor bce_logits_backward(const Tensor& g, const Tensor& x, const Tensor& t) {
  const char* node = "BinaryCrossEntropyWithLogitsBackwardBackward0";
  Tensor out = pointwise_result(node, x.scalar_type(), x, &t);
  pointwise_into(RAMET_POINTWISE(bce_logits_backward), out, compute_type(x.scalar_type()), g, x, t);
  if (!recording(g, x, t)) return out;
  return record_composed(
      node, std::move(out),
      [](const std::vector<Tensor>& in) { return in[0].mul(in[1].sigmoid().sub(in[2])); }, g, x, t);
}

// log1p(exp(-|x|)) + max(-x, 0)
Tensor negative_log_sigmoid(const Tensor& x) {
  Tensor y;
  {
    const NoGradGuard off;
    y = x.abs().neg().exp().log1p().add(x.neg().clamp_min(0));
  }
  if (!recording(x)) return y;
  // Stated, because the two parts have a kink at 0 that their sum has not.
  return record("LogSigmoidBackward0", {x}, std::move(y),
                [sx = save(x)](const Node& self, const Tensor& g) {
                  return g.mul(sx.get(self).sigmoid().sub(1));
                });
}

// The losses of all elements: (1 - t) x - l log sigmoid(x), l = 1 + (p - 1) t. p: undefined, or
// pos_weight. `plain`: one dtype and no p, which is the usual case and has its own kernels.
Tensor bce_logits(const char* op, const Tensor& x, const Tensor& t, const Tensor& p, bool plain) {
  if (plain) {
    Tensor loss = pointwise_result(op, x.scalar_type(), x, &t);
    pointwise_into(RAMET_POINTWISE(bce_logits), loss, compute_type(x.scalar_type()), x, t);
    return loss;
  }
  const NoGradGuard off;
  Tensor log_terms = negative_log_sigmoid(x);
  if (p.defined()) log_terms = log_terms.mul(p.sub(1).mul(t).add(1));
  return t.neg().add(1).mul(x).add(log_terms);  // at infinity x - t x would be NaN
}

// g (1 - t - l (1 - sigmoid(x)))
Tensor bce_logits_gradient(const Tensor& g, const Tensor& x, const Tensor& t, const Tensor& p,
                           bool plain) {
  if (plain) return bce_logits_backward(g, x, t);
  if (!p.defined()) return g.mul(x.sigmoid().sub(t));
  const Tensor pt = p.mul(t);
  return g.mul(pt.add(1).sub(t).mul(x.sigmoid()).sub(pt));
}

}  // namespace

static Tensor binary_cross_entropy_with_logits_body(const Tensor& given, const Tensor& target,
                                                    const std::optional<Tensor>& weight,
                                                    const std::optional<Tensor>& pos_weight,
                                                    int64_t reduction) {
  const char* op = "binary_cross_entropy_with_logits";
  check_pair(op, given, target, reduction);
  check_floating(op, given, target);
  // As LibTorch: whole numbers are mostly class numbers, which this loss does not take.
  RAMET_CHECK(is_floating(target.scalar_type()), op, "target: got ", describe(target),
              ", expected probabilities of a floating-point dtype; class numbers are "
              "cross_entropy's");
  RAMET_CHECK(repeats_to(given, target.sizes()), op, "target size ", target.sizes(),
              " must be the same as input size ", given.sizes(), ", or what that repeats to");
  const Tensor x = same_sizes(given, target) ? given : given.expand(target.sizes());
  const bool weighted = pos_weight && pos_weight->defined();
  const Tensor p = weighted ? *pos_weight : Tensor();
  const bool plain = !weighted && x.scalar_type() == target.scalar_type();
  Tensor loss = bce_logits(op, x, target, p, plain);
  if (recording(x, target, p)) {
    loss = record(
        "BinaryCrossEntropyWithLogitsBackward0", {x, target, p}, std::move(loss),
        [plain, sx = save(x), st = save(target), sp = save_if(weighted, p),
         m = weighted ? Meta(p) : Meta(x)](const Node& self, const Tensor& g) {
          const Tensor &x = sx.get(self), &t = st.get(self), p = sp.get(self);
          std::array<Tensor, 3> r;
          if (self.needs(0)) r[0] = bce_logits_gradient(g, x, t, p, plain);
          if (self.needs(1))
            // -p log sigmoid(x) + log(1 - sigmoid(x)), where one of them is infinite at
            // infinite x
            r[1] = g.mul(p.defined()
                             ? p.mul(negative_log_sigmoid(x)).sub(negative_log_sigmoid(x.neg()))
                             : x.neg());
          if (self.needs(2)) r[2] = m.reduce(g.mul(t).mul(negative_log_sigmoid(x)));
          return r;
        });
  }
  return reduced(times_weight(op, loss, weight), reduction);
}

static Tensor kl_div_body(const Tensor& x, const Tensor& target, int64_t reduction,
                          bool log_target) {
  check_pair("kl_div", x, target, reduction);
  check_floating("kl_div", x, target);
  // exp(t) (t - x), and 0 where t is -inf. Or t log t - t x, which for t = 0 is 0 with gradient 0,
  // and for a negative target NaN. A term that is 0 is 0 for infinite x too; a NaN stays.
  const Tensor none = target.eq(log_target ? -INFINITY : 0),
               own = x.masked_fill(none.logical_and(isinf(x)), 0);
  if (log_target) return reduced(target.exp().mul(target.masked_fill(none, 0).sub(own)), reduction);
  return reduced(target.masked_fill(none, 1).log().mul(target).sub(target.mul(own)), reduction);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/loss/loss.inc"

}  // namespace ramet
