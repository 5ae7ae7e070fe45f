#include "autograd/ops/loss/cross_entropy.h"

#include <cstring>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/layers/softmax.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/cross_entropy.h"
#include "runtime/base/thread_pool.h"

namespace ramet {

using namespace autograd;
using kernels::LossReduction;

namespace {

struct Setting {
  int64_t rows, cols, ignore_index;
  double smoothing;
  LossReduction reduction;
  bool log_probs;
  int64_t inner = 1;  // pixels of an image: x is [n, cols, inner] where that is more than one
};

// Views [n, cols, inner] as rows, and back.
Tensor as_rows(const Tensor& x, const Setting& s) {
  if (s.inner == 1) return x;
  return x.reshape({s.rows / s.inner, s.cols, s.inner}).transpose(1, 2).reshape({s.rows, s.cols});
}
Tensor as_images(const Tensor& x, const Setting& s) {
  if (s.inner == 1) return x;
  return x.reshape({s.rows / s.inner, s.inner, s.cols}).transpose(1, 2);
}

void check_reduction(const char* op, int64_t reduction) {
  RAMET_CHECK(reduction >= Reduction::None && reduction < Reduction::END, op, "reduction: got ",
              reduction, ", expected Reduction::None, Mean or Sum");
}
Tensor fresh(IntArrayRef sizes, ScalarType t, Device device) {
  return Tensor(TensorBase::empty(sizes, t, device));
}
Tensor workspace_of(const Tensor& x, const Setting& s) {
  return scratch(
      kernels::cross_entropy_workspace(x.scalar_type(), s.rows, s.cols, max_parallel_slots()),
      x.device());
}

// The fused backward, written with operations: grad (A softmax(x) - a), or -grad a.
Tensor composed_backward(const Tensor& grad, const Tensor& given, const Tensor& target,
                         const Tensor& weight, const Tensor& total, const Setting& s) {
  const Tensor x = as_rows(given, s);
  Tensor a;
  {
    const NoGradGuard constants;
    const Tensor ignored = target.eq(s.ignore_index).unsqueeze(1),
                 t = target.unsqueeze(1).masked_fill(ignored, 0);
    Tensor w = weight;
    if (!w.defined()) {
      w = fresh({s.cols}, x.scalar_type(), x.device());
      fill_values(w, 1);
    }
    a = w.mul(s.smoothing / static_cast<double>(s.cols)).unsqueeze(0).repeat({s.rows, 1});
    a = a.scatter_add(1, t, w.index_select(0, t.reshape(-1)).unsqueeze(1).mul(1 - s.smoothing))
            .masked_fill(ignored, 0);
  }
  Tensor g = s.reduction == LossReduction::kNone ? grad.reshape({s.rows, 1}) : grad.reshape({1, 1});
  if (s.reduction == LossReduction::kMean) g = g.div(total);
  if (s.log_probs) return as_images(g.mul(a).neg(), s).reshape(given.sizes());
  return as_images(g.mul(a.sum(1, true).mul(softmax(x, 1)).sub(a)), s).reshape(given.sizes());
}

Tensor backward(const Tensor& grad, const Tensor& x, const Tensor& target, const Tensor& weight,
                const Tensor& statistics, const Tensor& total, const Setting& s) {
  Tensor dx = fresh(x.sizes(), x.scalar_type(), x.device());
  const Tensor gd = grad.shallow().contiguous();
  if (dx.numel()) {
    const Tensor workspace = workspace_of(x, s);
    kernels::cross_entropy_backward(
        x.stream(), {x.ptr(), static_cast<const int64_t*>(target.ptr()), pointer(weight), gd.ptr(),
                     pointer(statistics), static_cast<const double*>(total.ptr()), dx->data,
                     pointer(workspace), s.rows, s.cols, s.ignore_index, s.smoothing,
                     x.scalar_type(), s.reduction, s.log_probs, s.inner});
  }
  if (!recording(grad, x)) return dx;
  return record(s.log_probs ? "NllLossBackwardBackward0" : "CrossEntropyLossBackwardBackward0",
                {grad, x}, std::move(dx),
                [s, weight, total, sg = save(grad), sx = save(x), st = save(target)](
                    const Node& node, const Tensor& v) {
                  const Tensor& target = st.get(node);
                  std::vector<Tensor> t = composed_gradients(
                      node,
                      [&](const std::vector<Tensor>& in) {
                        return composed_backward(in[0], in[1], target, weight, total, s);
                      },
                      {sg.get(node), sx.get(node)}, v);
                  return std::array{t[0], t[1]};
                });
}

// x: contiguous [rows, cols], or images of them (inner). The result is [rows] or 0-dim.
Tensor fused(const char* node, const Tensor& x, const Tensor& target, const Tensor& weight,
             const Setting& s) {
  const ScalarType t = x.scalar_type(), stat = t == kDouble ? kDouble : kFloat;
  const Device device = x.device();
  const bool each = s.reduction == LossReduction::kNone;
  Tensor loss = each ? fresh({s.rows}, t, device) : fresh({}, t, device);
  const Tensor statistics = s.log_probs ? Tensor() : fresh({s.rows, 2}, stat, device),
               total = fresh({}, kDouble, device);
  const Tensor workspace = workspace_of(x, s);
  kernels::cross_entropy_forward(
      x.stream(),
      {x.ptr(), static_cast<const int64_t*>(target.ptr()), pointer(weight), loss->data,
       pointer(statistics), static_cast<double*>(total->data), pointer(workspace), s.rows, s.cols,
       s.ignore_index, s.smoothing, t, s.reduction, s.log_probs, s.inner});
  if (!recording(x)) return loss;
  return record(node, {x}, std::move(loss),
                [s, statistics, total, sx = save(x), st = save(target),
                 sw = save_if(weight.defined(), weight)](const Node& self, const Tensor& g) {
                  return backward(g, sx.get(self), st.get(self), sw.get(self), statistics, total,
                                  s);
                });
}

// Returns the loss of x, and writes its gradient into x's memory.
Tensor consumed(const Tensor& x, const Tensor& target, const Tensor& weight, const Setting& s) {
  const char* op = "cross_entropy_loss_consuming";
  const Device device = x.device();
  Tensor loss = fresh({}, x.scalar_type(), device);
  const Tensor total = fresh({}, kDouble, device),
               workspace = scratch(kernels::cross_entropy_consume_workspace(
                                       x.scalar_type(), s.rows, s.cols, max_parallel_slots()),
                                   device);
  Tensor gradient = x.shallow();
  kernels::cross_entropy_consume(
      x.stream(), {x.ptr(), static_cast<const int64_t*>(target.ptr()), pointer(weight), loss->data,
                   static_cast<double*>(total->data), pointer(workspace), s.rows, s.cols,
                   s.ignore_index, s.smoothing, x.scalar_type(), s.reduction});
  x.storage_impl()->wrote(op);
  return record(
      "CrossEntropyLossConsumingBackward0", {x}, std::move(loss),
      [op, gradient = std::move(gradient)](const Node& self, const Tensor& g) mutable {
        RAMET_CHECK(gradient.defined(), op,
                    "the gradient of these logits, which is in their memory, was handed "
                    "on already: got a second backward through ",
                    self.name(), ", expected one");
        if (recording(g))
          throw NotImplementedError(
              detail::join("[", op,
                           "] the derivative of the gradient is not implemented: the logits "
                           "are gone"));
        const Tensor factor = g.contiguous();
        kernels::scale_by(gradient.stream(), {gradient.ptr(), factor.ptr(), gradient.numel(),
                                              gradient.scalar_type(), factor.scalar_type()});
        return std::move(gradient);
      });
}

// Checks and shapes for all of these losses: views x as rows of classes.
Tensor by_index(const char* op, const char* node, const Tensor& self, const Tensor& target,
                const std::optional<Tensor>& weight_, int64_t reduction, int64_t ignore_index,
                double smoothing, bool log_probs, bool consuming = false) {
  check_defined(op, self);
  check_defined(op, target);
  check_reduction(op, reduction);
  RAMET_CHECK(is_floating(self.scalar_type()), op, "not implemented for '",
              name_of(self.scalar_type()), "': got input ", describe(self));
  RAMET_CHECK(self.dim() >= 1, op, "input: got ", describe(self),
              ", expected [n, classes, ...] or [classes]");
  // LibTorch takes uint8 for [n, classes] and [classes] only.
  RAMET_CHECK(target.scalar_type() == kLong || (target.scalar_type() == kByte && self.dim() <= 2),
              op, "expected scalar type Long but found ", name_of(target.scalar_type()),
              ": got target ", describe(target));
  check_same_device(op, self, target, "target");
  const bool one = self.dim() == 1;
  const int64_t cols = self->sizes()[one ? 0 : 1];
  bool fits = target.dim() == self.dim() - 1;
  for (int64_t d = 0; fits && d < target.dim(); ++d)
    fits = target->sizes()[d] == self->sizes()[d == 0 ? 0 : d + 1];
  RAMET_CHECK(fits, op, "Expected target of input's shape without the class dimension: got input ",
              self.sizes(), " and target ", target.sizes());
  const Tensor weight = weight_.value_or(Tensor());
  if (weight.defined()) {
    RAMET_CHECK(weight.dim() == 1 && weight.numel() == cols, op,
                "weight tensor should be defined either for all ", cols,
                " classes or no classes but got weight tensor of shape: ", weight.sizes());
    RAMET_CHECK(weight.scalar_type() == self.scalar_type() && weight->device == self->device, op,
                "weight: got ", describe(weight), ", expected the dtype and device of input ",
                describe(self));
    check_constant(op, "weight", weight);
  }
  const Tensor t = target.to(kLong).contiguous();
  check_indices(op, t, 0, cols, "number of classes", ignore_index);
  RAMET_CHECK(cols > 0 || t.numel() == 0, op, "input: got ", describe(self),
              ", expected at least one class");
  Setting s{t.numel(), cols, ignore_index, smoothing, static_cast<LossReduction>(reduction),
            log_probs};
  Tensor x = self;
  if (self.dim() > 2) {
    const int64_t pixels = t.numel() ? t.numel() / t.size(0) : 0;
    // Vectors of pixels are as fast as rows of classes, and need no copy.
    if (pixels >= 16 && self.is_cpu() && !is_narrow(self.scalar_type()) &&
        self.shallow().raw_contiguous())
      s.inner = pixels;
    else x = movedim(self, 1, -1);
  }
  if (self.dim() != 2 && s.inner == 1) x = x.reshape({s.rows, s.cols});
  if (consuming)
    return consumed(x, t.reshape(-1), weight.defined() ? weight.detach().contiguous() : weight, s);
  const Tensor loss = fused(node, x.contiguous(), t.reshape(-1),
                            weight.defined() ? weight.detach().contiguous() : weight, s);
  return s.reduction == LossReduction::kNone && self.dim() != 2 ? loss.reshape(target.sizes())
                                                                : loss;
}

Tensor by_probability(const Tensor& self, const Tensor& target,
                      const std::optional<Tensor>& weight_, int64_t reduction, double smoothing) {
  const char* op = "cross_entropy_loss";
  RAMET_CHECK(is_floating(target.scalar_type()), op,
              "Expected floating point type for target with class probabilities, got ",
              name_of(target.scalar_type()));
  const int64_t axis = self.dim() == 1 ? 0 : 1, classes = self.size(axis);
  Tensor t = target;
  if (smoothing > 0) t = t.mul(1 - smoothing).add(smoothing / static_cast<double>(classes));
  Tensor terms = log_softmax(self, axis).mul(t);
  if (weight_ && weight_->defined()) {
    RAMET_CHECK(weight_->dim() == 1 && weight_->numel() == classes, op,
                "cross_entropy: weight tensor should be defined either for all ", classes,
                " classes or no classes but got weight tensor of shape: ", weight_->sizes());
    std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
    shape[static_cast<size_t>(axis)] = classes;
    terms = terms.mul(weight_->reshape(shape));
  }
  if (reduction == Reduction::None) return terms.sum(axis).neg();
  const Tensor sum = terms.sum().neg();
  return reduction == Reduction::Sum
             ? sum
             : sum.div(static_cast<double>(self.numel()) / static_cast<double>(classes));
}

}  // namespace

static Tensor cross_entropy_loss_body(const Tensor& self, const Tensor& target,
                                      const std::optional<Tensor>& weight, int64_t reduction,
                                      int64_t ignore_index, double label_smoothing) {
  check_defined("cross_entropy_loss", self);
  check_defined("cross_entropy_loss", target);
  check_reduction("cross_entropy_loss", reduction);
  RAMET_CHECK(label_smoothing >= 0 && label_smoothing <= 1, "cross_entropy_loss",
              "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  if (self.dim() > 0 && self.sizes() == target.sizes() && !is_integral(target.scalar_type())) {
    RAMET_CHECK(ignore_index < 0, "cross_entropy_loss",
                "ignore_index is not supported for floating point target: got ", ignore_index);
    return by_probability(self, target, weight, reduction, label_smoothing);
  }
  return by_index("cross_entropy_loss", "CrossEntropyLossBackward0", self, target, weight,
                  reduction, ignore_index, label_smoothing, false);
}

static Tensor cross_entropy_loss_consuming_body(const Tensor& self, const Tensor& target,
                                                const std::optional<Tensor>& weight,
                                                int64_t reduction, int64_t ignore_index,
                                                double label_smoothing) {
  const char* op = "cross_entropy_loss_consuming";
  check_defined(op, self);
  check_reduction(op, reduction);
  RAMET_CHECK(label_smoothing >= 0 && label_smoothing <= 1, op,
              "label_smoothing must be between 0.0 and 1.0. Got: ", label_smoothing);
  RAMET_CHECK(reduction != Reduction::None, op,
              "reduction: got Reduction::None, expected Mean or Sum");
  RAMET_CHECK(self.dim() == 2, op, "input: got ", describe(self), ", expected [n, classes]");
  const bool consuming = recording(self);
  if (consuming) {
    RAMET_CHECK(self.is_contiguous(), op, "input: got ", describe(self),
                ", expected a contiguous tensor");
    bool leaf = false;
    for (TensorImpl* t = self.impl(); t; t = t->base) {
      add_ref(t->refs);
      const Tensor one(t);
      leaf = leaf || one.is_leaf();
    }
    RAMET_CHECK(!leaf && !self.is_inference(), op,
                "input: got a leaf, a view of one or an inference tensor ", describe(self),
                ", expected a result that nobody needs any more");
  }
  return by_index(op, "CrossEntropyLossBackward0", self, target, weight, reduction, ignore_index,
                  label_smoothing, false, consuming);
}

static Tensor nll_loss_nd_body(const Tensor& self, const Tensor& target,
                               const std::optional<Tensor>& weight, int64_t reduction,
                               int64_t ignore_index) {
  return by_index("nll_loss_nd", "NllLossBackward0", self, target, weight, reduction, ignore_index,
                  0, true);
}
static Tensor nll_loss_body(const Tensor& self, const Tensor& target,
                            const std::optional<Tensor>& weight, int64_t reduction,
                            int64_t ignore_index) {
  check_defined("nll_loss", self);
  RAMET_CHECK(self.dim() == 1 || self.dim() == 2, "nll_loss",
              "input tensor should be 1D or 2D: got ", describe(self));
  return by_index("nll_loss", "NllLossBackward0", self, target, weight, reduction, ignore_index, 0,
                  true);
}
static Tensor nll_loss2d_body(const Tensor& self, const Tensor& target,
                              const std::optional<Tensor>& weight, int64_t reduction,
                              int64_t ignore_index) {
  check_defined("nll_loss2d", self);
  RAMET_CHECK(self.dim() == 4, "nll_loss2d",
              "only batches of spatial inputs are supported (4D tensors), but got input of size: ",
              self.sizes());
  return by_index("nll_loss2d", "NllLoss2DBackward0", self, target, weight, reduction, ignore_index,
                  0, true);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/loss/cross_entropy.inc"

}  // namespace ramet
