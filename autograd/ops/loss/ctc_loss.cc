#include "autograd/ops/loss/ctc_loss.h"

#include <algorithm>
#include <limits>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/index/index_put.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/moments.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/ctc_loss.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr const char* kOp = "ctc_loss";

// The checked operands except log_probs: int64, dense, on the device of log_probs. They are
// copies, not the caller's tensors, where there will be a backward.
struct Aligned {
  Tensor targets, input_lengths, target_lengths, offsets;  // offsets: of 1-D targets
  int64_t blank, padded;                                   // padded: columns of 2-D targets
  bool zero_infinity;
};

kernels::CtcSamples samples_of(const Aligned& a, const Tensor& x) {
  const auto numbers = [](const Tensor& t) { return static_cast<const int64_t*>(pointer(t)); };
  const int64_t *sizes = x->sizes(), *strides = x->strides();
  return {x.ptr(),
          numbers(a.targets),
          numbers(a.offsets),
          numbers(a.input_lengths),
          numbers(a.target_lengths),
          {strides[0], strides[1], strides[2]},
          sizes[0],
          sizes[1],
          sizes[2],
          a.blank,
          a.targets.numel(),
          a.padded,
          x.scalar_type()};
}
int64_t states_of(const Aligned& a, const Tensor& x) {
  return kernels::ctc_states(a.targets.numel(), x->sizes()[1]);
}
Tensor fresh(IntArrayRef sizes, ScalarType t, const Tensor& like) {
  return Tensor(TensorBase::empty(sizes, t, like.device()));
}

// ---- the loss as a composition, for derivatives of its gradient ---------------------------------

// Stands for the logarithm of 0; its differences and derivatives are finite.
constexpr double kNever = -1e30;

// The losses [batch] of x [steps, batch, classes], steps > 0. A large number where there is no
// alignment.
Tensor composed_losses(const Aligned& a, const Tensor& x) {
  const int64_t steps = x.size(0), batch = x.size(1),
                longest = a.offsets.defined() ? a.targets.numel() : a.padded,
                states = 2 * longest + 1;
  Tensor classes, skips, ends, here;
  {
    const NoGradGuard constants;
    const TensorOptions longs = a.targets.options();
    const Tensor place = arange(longest, longs).unsqueeze(0),
                 missing = place.ge(a.target_lengths.unsqueeze(1));
    const Tensor begin = a.offsets.defined() ? a.offsets.unsqueeze(1)
                                             : arange(batch, longs).mul(a.padded).unsqueeze(1);
    const Tensor labels =
        longest == 0 ? full({batch, 0}, 0, longs)
                     : a.targets.reshape(-1)
                           .index_select(0, begin.add(place).masked_fill(missing, 0).reshape(-1))
                           .reshape({batch, longest})
                           .masked_fill(missing, a.blank);
    const Tensor blanks = full({batch, longest + 1}, a.blank, longs);
    const auto between = [&](const Tensor& odd, const Tensor& even) {  // even, odd, ..., even
      return cat({stack({even.narrow(1, 0, longest), odd}, 2).reshape({batch, 2 * longest}),
                  even.narrow(1, longest, 1)},
                 1);
    };
    classes = between(labels, blanks);
    const Tensor before = cat({labels.narrow(1, 0, std::min<int64_t>(longest, 1)),
                               labels.narrow(1, 0, std::max<int64_t>(longest - 1, 0))},
                              1);
    skips = between(labels.ne(before), blanks.ne(a.blank));
    const Tensor end = a.target_lengths.mul(2).unsqueeze(1);
    ends = cat({end, end.sub(1)}, 1);
    here = arange(steps, longs).unsqueeze(1).lt(a.input_lengths.unsqueeze(0)).unsqueeze(2);
  }
  const Tensor chosen =
      x.gather(2, classes.unsqueeze(0).expand({steps, batch, states})).clamp_min(kNever);
  const Tensor first = arange(states, a.targets.options()).lt(2).unsqueeze(0);
  const Tensor beside = full({batch, 2}, kNever, x.options().requires_grad(false));
  Tensor alpha = chosen.select(0, 0).masked_fill(first.logical_not(), kNever);
  for (int64_t t = 1; t < steps; ++t) {
    const Tensor from = cat({beside, alpha}, 1);
    const Tensor next = stack({alpha, from.narrow(1, 1, states),
                               from.narrow(1, 0, states).masked_fill(skips.logical_not(), kNever)},
                              0)
                            .logsumexp({0})
                            .add(chosen.select(0, t));
    alpha = where(here.select(0, t), next, alpha);
  }
  const Tensor last = alpha.gather(1, ends.clamp_min(0)).masked_fill(ends.lt(0), kNever);
  return last.logsumexp({1}).neg().masked_fill(here.select(0, 0).squeeze(1).logical_not(), 0);
}

// The fused backward, written with operations.
Tensor composed_backward(const Aligned& a, const Tensor& grad, const Tensor& x,
                         const Tensor& negative) {
  if (x.numel() == 0) return x.mul(0);
  const Tensor dx = composed_gradients(
      {true},
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{composed_losses(a, in[0])}; },
      {x}, {grad}, GradMode::is_enabled())[0];
  Tensor factor;  // 1, or the factor that gives a sample's gradient the kernel's fill value
  {
    const NoGradGuard constants;
    const double none = std::numeric_limits<double>::quiet_NaN();
    factor = ones_like(negative)
                 .masked_fill(negative.isfinite().logical_not(), none)
                 .masked_fill(negative.eq(std::numeric_limits<double>::infinity()),
                              a.zero_infinity ? 0 : none)
                 .to(x.scalar_type())
                 .unsqueeze(1);
  }
  return dx.mul(factor);
}

// ---- kernels ------------------------------------------------------------------------------------

Tensor backward(const Aligned& a, const Tensor& grad, const Tensor& x, const Tensor& negative,
                const Tensor& alpha, const Tensor& shifts) {
  Tensor dx = fresh(x.sizes(), x.scalar_type(), x);
  if (dx.numel() > 0) {
    const Tensor g = grad.shallow().contiguous();
    const auto item = static_cast<int64_t>(item_size(x.scalar_type()));
    const Tensor workspace =
        scratch(kernels::ctc_loss_backward_workspace(states_of(a, x), a.targets.numel(), x.size(0),
                                                     item, x.is_cpu()),
                x.device());
    kernels::ctc_loss_backward(
        x.stream(),
        {samples_of(a, x), g.ptr(), static_cast<const double*>(negative.ptr()), alpha.ptr(),
         static_cast<const double*>(shifts.ptr()), dx->data, pointer(workspace), a.zero_infinity});
  }
  if (!recording(grad, x)) return dx;
  return record("CtcLossBackwardBackward0", {grad, x}, std::move(dx),
                [a, negative, sg = save(grad), sx = save(x)](const Node& self, const Tensor& v) {
                  std::vector<Tensor> t = composed_gradients(
                      self,
                      [&](const std::vector<Tensor>& in) {
                        return composed_backward(a, in[0], in[1], negative);
                      },
                      {sg.get(self), sx.get(self)}, v);
                  return std::array{t[0], t[1]};
                });
}

// The losses [batch] of x [steps, batch, classes], float or double.
Tensor losses(const Aligned& a, const Tensor& x) {
  const int64_t steps = x.size(0), batch = x.size(1), states = states_of(a, x);
  const bool kept = recording(x);
  const int64_t rows = kept ? steps : std::min<int64_t>(steps, 2);
  const ScalarType t = x.scalar_type();
  Tensor loss = fresh({batch}, t, x);
  const Tensor negative = fresh({batch}, kDouble, x), alpha = fresh({rows, states}, t, x),
               shifts = kept ? fresh({batch, steps}, kDouble, x) : Tensor();
  const auto item = static_cast<int64_t>(item_size(t));
  const Tensor workspace =
      scratch(x.is_cpu() ? kernels::ctc_loss_workspace(states, item) : 0, x.device());
  kernels::ctc_loss_forward(
      x.stream(),
      {samples_of(a, x), loss->data, static_cast<double*>(negative->data), alpha->data,
       static_cast<double*>(pointer(shifts)), pointer(workspace), rows, a.zero_infinity});
  if (!kept) return loss;
  return record("CtcLossBackward0", {x}, std::move(loss),
                [a, negative, alpha, shifts, sx = save(x)](const Node& self, const Tensor& g) {
                  return backward(a, g, sx.get(self), negative, alpha, shifts);
                });
}

// ---- checks -------------------------------------------------------------------------------------

Tensor as_lengths(const char* name, const Tensor& lengths, int64_t batch) {
  RAMET_CHECK(is_integral(lengths.scalar_type()) && lengths.scalar_type() != kBool, kOp, name,
              " must be integral: got ", describe(lengths));
  RAMET_CHECK(lengths.numel() == batch, kOp, name, " must be of size batch_size: got ",
              describe(lengths), ", expected ", batch, " numbers");
  return lengths.to(kLong).reshape({-1}).contiguous();
}

// Checks that depend on values. For values on a GPU they report later.
void check_numbers(const Aligned& a, int64_t steps, int64_t classes) {
  const NoGradGuard off;
  const Tensor &targets = a.targets, &lengths = a.target_lengths;
  const int64_t longest = targets.dim() == 2 ? a.padded : targets.numel();
  check_indices(kOp, a.input_lengths, 0, checked_add(kOp, "steps", steps, 1),
                "input_lengths of at most log_probs' steps");
  check_indices(kOp, lengths, 0, checked_add(kOp, "labels", longest, 1),
                "target_lengths of at most the labels there are");
  if (targets.dim() == 1) {
    report_where(kOp, lengths.sum().ne(longest),
                 "targets of one dimension: expected as many labels as target_lengths add up to");
    return check_indices(kOp, targets, 0, classes, "labels");
  }
  if (targets.numel() == 0) return;
  const Tensor unused = arange(longest, targets.options()).unsqueeze(0).ge(lengths.unsqueeze(1));
  check_indices(kOp, targets.masked_fill(unused, 0), 0, classes, "labels");
}

Aligned aligned(const Tensor& x, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, bool zero_infinity) {
  const bool kept = recording(x);
  const NoGradGuard off;
  const int64_t batch = x.size(1), classes = x.size(2);
  RAMET_CHECK(blank >= 0 && blank < classes, kOp, "blank must be in label range: got ", blank,
              ", expected [0, ", classes, ")");
  RAMET_CHECK(targets.dim() == 1 || targets.dim() == 2, kOp, "Expected targets of 1 to 2 ",
              "dimensions: got ", describe(targets));
  RAMET_CHECK(targets.dim() == 1 || targets.size(0) == batch, kOp, "targets: got ",
              describe(targets), ", expected ", batch, " rows");
  Aligned a{targets.to(kLong).contiguous(),
            as_lengths("input_lengths", input_lengths, batch),
            as_lengths("target_lengths", target_lengths, batch),
            {},
            blank,
            targets.dim() == 2 ? targets.size(1) : 0,
            zero_infinity};
  // Check on the host where all of them are there, so that an Error comes at once.
  const auto move_to = [&](Device device) {
    for (Tensor* t : {&a.targets, &a.input_lengths, &a.target_lengths}) *t = t->to(device);
  };
  if (!(a.targets.is_cpu() && a.input_lengths.is_cpu() && a.target_lengths.is_cpu()))
    move_to(x.device());
  else move_to(Device(kCPU, x.is_cpu() ? x.device().index() : 0));
  check_numbers(a, x.size(0), classes);
  move_to(x.device());
  if (kept) {
    if (a.targets.may_overlap(targets)) a.targets = a.targets.clone();
    if (a.input_lengths.may_overlap(input_lengths)) a.input_lengths = a.input_lengths.clone();
    if (a.target_lengths.may_overlap(target_lengths)) a.target_lengths = a.target_lengths.clone();
  }
  if (targets.dim() == 1) {
    // Samples do not overlap, whatever the values are.
    const Tensor counted = a.target_lengths.clamp(0, a.targets.numel());
    a.offsets = counted.cumsum(0).sub(counted);
  }
  return a;
}

}  // namespace

static Tensor ctc_loss_body(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths,
                            int64_t blank, int64_t reduction, bool zero_infinity) {
  for (const Tensor* t : {&log_probs, &targets, &input_lengths, &target_lengths})
    check_defined(kOp, *t);
  RAMET_CHECK(reduction >= Reduction::None && reduction < Reduction::END, kOp, "reduction: got ",
              reduction, ", expected Reduction::None, Mean or Sum");
  const ScalarType dtype = log_probs.scalar_type(), wide = compute_type(dtype);
  if (!is_floating(dtype))
    throw NotImplementedError(detail::join("[", kOp, "] not implemented for '", name_of(dtype),
                                           "': got log_probs ", describe(log_probs)));
  const bool one = log_probs.dim() == 2;
  RAMET_CHECK(one || log_probs.dim() == 3, kOp, "log_probs: got ", describe(log_probs),
              ", expected [steps, batch, classes] or [steps, classes]");
  const Tensor batched = one ? log_probs.unsqueeze(1) : log_probs;
  const Aligned a = aligned(batched, targets, input_lengths, target_lengths, blank, zero_infinity);
  const Tensor loss = losses(a, settled(kOp, batched.to(wide)));
  if (reduction == Reduction::Sum) return loss.sum().to(dtype);
  if (reduction == Reduction::Mean)
    return loss.div(a.target_lengths.clamp_min(1).to(wide)).mean().to(dtype);
  return (one ? loss.squeeze(0) : loss).to(dtype);
}

static Tensor ctc_loss_body(const Tensor& log_probs, const Tensor& targets,
                            IntArrayRef input_lengths, IntArrayRef target_lengths, int64_t blank,
                            int64_t reduction, bool zero_infinity) {
  return ctc_loss(log_probs, targets, tensor(input_lengths.vec()), tensor(target_lengths.vec()),
                  blank, reduction, zero_infinity);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/loss/ctc_loss.inc"

}  // namespace ramet
