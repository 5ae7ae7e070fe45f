#include "autograd/ops/loss/margin_loss.h"

#include <cmath>

#include "autograd/ops/front/index_internal.h"
#include "autograd/ops/front/loss_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/index/mask.h"
#include "autograd/ops/index/scatter_reduce.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/distance.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/extremum.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/rows/label_margins.h"

namespace ramet {

using namespace autograd;

namespace {

// Checks that all are defined and on one device, and that the reduction is valid.
template <class... T>
void check_loss(const char* op, int64_t reduction, const Tensor& x, const T&... others) {
  (common_device(op, x, others), ...);
  check_reduction(op, reduction);
}
// Views samples and their classes as rows.
Tensor rows_of(const char* op, const Tensor& x) {
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only for floating-point dtypes: got ",
              describe(x));
  RAMET_CHECK(
      x.dim() <= 2 && (x.dim() == 0 || x.size(-1) > 0), op,
      "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", x.sizes());
  return x.dim() == 2 ? x : x.view({1, x.numel()});
}
void check_classes(const char* op, const Tensor& target) {
  RAMET_CHECK(target.scalar_type() == kLong, op, "expected scalar type int64: got ",
              describe(target));
}
// Reduces the losses of samples; the loss of one sample without a batch is a number.
Tensor of_samples(const Tensor& loss, bool batch, int64_t reduction) {
  if (reduction == Reduction::None && !batch) return loss.view(IntArrayRef());
  return reduced(loss, reduction);
}
// What each class of each sample adds to the loss. All have x's shape; labels and counts are dense.
Tensor label_margins(const Tensor& input, const Tensor& labels, const Tensor& counts) {
  const Tensor x = input.shallow().contiguous();
  const bool kept = recording(input);
  Tensor loss(TensorBase::empty(x.sizes(), x.scalar_type(), x.device()));
  const Tensor slope =
      kept ? Tensor(TensorBase::empty(x.sizes(), x.scalar_type(), x.device())) : Tensor();
  if (loss.numel() > 0)
    kernels::label_margins(
        x.stream(), {x.ptr(), counts.ptr(), static_cast<const int64_t*>(labels.ptr()), loss->data,
                     pointer(slope), x.size(0), x.size(1), x.scalar_type()});
  if (!kept) return loss;
  return record("MultilabelMarginLossBackward0", {input}, std::move(loss),
                [slope](const Node&, const Tensor& g) { return g.mul(slope); });
}

}  // namespace

static Tensor poisson_nll_loss_body(const Tensor& input, const Tensor& target, bool log_input,
                                    bool full, double eps, int64_t reduction) {
  check_loss("poisson_nll_loss", reduction, input, target);
  Tensor loss =
      log_input ? input.exp().sub(target.mul(input)) : input.sub(target.mul(input.add(eps).log()));
  if (full) {
    // y log y - y + log(2 pi y) / 2; the derivative is finite where the term does not count.
    const Tensor small = target.le(1), y = target.masked_fill(small, 1);
    const Tensor stirling = y.mul(y.log()).sub(y).add(y.mul(2 * M_PI).log().mul(0.5));
    loss = loss.add(stirling.masked_fill(small, 0));
  }
  return reduced(loss, reduction);
}

static Tensor hinge_embedding_loss_body(const Tensor& x, const Tensor& target, double margin,
                                        int64_t reduction) {
  check_loss("hinge_embedding_loss", reduction, x, target);
  const Tensor apart = x.neg().add(margin).clamp_min(0);
  return reduced(where(target.ne(1), apart, 0).add(where(target.ne(-1), x, 0)), reduction);
}

static Tensor soft_margin_loss_body(const Tensor& x, const Tensor& target, int64_t reduction) {
  check_loss("soft_margin_loss", reduction, x, target);
  return reduced(log_sigmoid(x.mul(target)).neg(), reduction);
}

static Tensor margin_ranking_loss_body(const Tensor& input1, const Tensor& input2,
                                       const Tensor& target, double margin, int64_t reduction) {
  check_loss("margin_ranking_loss", reduction, input1, input2, target);
  RAMET_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(), "margin_ranking_loss",
              "All input tensors should have same dimension but got sizes: input1: ",
              input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes());
  return reduced(target.neg().mul(input1.sub(input2)).add(margin).clamp_min(0), reduction);
}

static Tensor cosine_embedding_loss_body(const Tensor& input1, const Tensor& input2,
                                         const Tensor& target, double margin, int64_t reduction) {
  const char* op = "cosine_embedding_loss";
  check_loss(op, reduction, input1, input2, target);
  RAMET_CHECK(target.dim() <= 1, op,
              "0D or 1D target tensor expected, multi-target not supported: got ",
              describe(target));
  const int64_t rank = target.dim() + 1;
  RAMET_CHECK(input1.dim() == rank && input2.dim() == rank, op, target.dim(),
              "D target tensor expects ", rank, "D input tensors, but found inputs with sizes ",
              input1.sizes(), " and ", input2.sizes(), ".");
  constexpr double kTiny = 1e-12;
  const Tensor squares = input1.square().sum(-1).add(kTiny).mul(input2.square().sum(-1).add(kTiny));
  const Tensor cosine = input1.mul(input2).sum(-1).div(squares.sqrt());
  const Tensor loss = where(target.eq(1), cosine.neg().add(1), 0)
                          .add(where(target.eq(-1), cosine.sub(margin).clamp_min(0), 0));
  return reduced(loss, reduction);
}

Tensor detail::triplet_loss(const char* op, const Tensor& anchor, const Tensor& positive,
                            const Tensor& negative,
                            const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                            double margin, bool swap, int64_t reduction) {
  check_loss(op, reduction, anchor, positive, negative);
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return reduced(near.sub(far).add(margin).clamp_min(0), reduction);
}

static Tensor triplet_margin_loss_body(const Tensor& anchor, const Tensor& positive,
                                       const Tensor& negative, double margin, double p, double eps,
                                       bool swap, int64_t reduction) {
  const char* op = "triplet_margin_loss";
  check_loss(op, reduction, anchor, positive, negative);
  RAMET_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(), op,
              "The anchor, positive, and negative tensors are expected to have the same number of ",
              "dimensions, but got: anchor ", anchor.dim(), "D, positive ", positive.dim(),
              "D, and negative ", negative.dim(), "D inputs");
  return detail::triplet_loss(
      op, anchor, positive, negative,
      [=](const Tensor& a, const Tensor& b) { return pairwise_distance(a, b, p, eps); }, margin,
      swap, reduction);
}

static Tensor multi_margin_loss_body(const Tensor& input, const Tensor& target, const Scalar& p,
                                     const Scalar& margin, const std::optional<Tensor>& weight,
                                     int64_t reduction) {
  const char* op = "multi_margin_loss";
  check_loss(op, reduction, input, target);
  const double power = p.toDouble();
  RAMET_CHECK(power == 1 || power == 2, op, "only p == 1 and p == 2 supported: got ", p);
  const Tensor x = rows_of(op, input);
  check_classes(op, target);
  RAMET_CHECK(target.dim() <= 1 && target.numel() == x.size(0), op,
              "target tensor should be 1-D with size equal to the number of input samples (batch ",
              "size). Expected target size [", x.size(0), "], but got ", target.sizes(),
              ". Input has shape ", input.sizes(), ".");
  const bool weighted = weight && weight->defined();
  if (weighted) {
    RAMET_CHECK(weight->dim() == 1, op, "weight must be one-dimensional: got ", describe(*weight));
    RAMET_CHECK(weight->numel() == x.size(1), op, "inconsistent weight size, expected ", x.size(1),
                " but got ", weight->sizes());
  }
  const Tensor classes = target.reshape({x.size(0), 1});
  Tensor loss = x.sub(x.gather(1, classes)).add(margin).clamp_min(0);
  if (power == 2) loss = loss.square();
  if (weighted) loss = loss.mul(weight->index_select(0, classes.view({x.size(0)})).unsqueeze(1));
  return of_samples(loss.scatter(1, classes, 0).sum(1).div(x.size(1)), target.dim() > 0, reduction);
}

static Tensor multilabel_margin_loss_body(const Tensor& input, const Tensor& target,
                                          int64_t reduction) {
  const char* op = "multilabel_margin_loss";
  check_loss(op, reduction, input, target);
  const Tensor x = rows_of(op, input);
  check_classes(op, target);
  RAMET_CHECK(target.sizes() == input.sizes(), op, "inconsistent target size: ", target.sizes(),
              " for input of size: ", input.sizes());
  Tensor labels, counts;
  {
    const NoGradGuard constants;
    labels = target.reshape(x.sizes()).contiguous();
    // Numbers after the first -1 are no classes of the sample, but must be in range.
    const Tensor listed = labels.lt(0).cumsum(1).eq(0),
                 classes = labels.add(labels.eq(-1).to(kLong));
    check_indices(op, classes, 0, x.size(1), "target");
    counts = zeros_like(labels, compute_type(x.scalar_type()))
                 .scatter_add(1, classes, listed.to(compute_type(x.scalar_type())));
  }
  const Tensor loss = label_margins(x.to(counts.scalar_type()), labels, counts);
  return of_samples(loss.sum(1).div(x.size(1)), input.dim() == 2, reduction).to(x.scalar_type());
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/loss/margin_loss.inc"

}  // namespace ramet
