#include "nn/layers/margin_loss.h"

#include <cmath>
#include <ostream>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/mask.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/view.h"
#include "autograd/ops/where.h"
#include "nn/layers/activation.h"
#include "nn/layers/distance.h"
#include "nn/module/class_name.h"
#include "runtime/logging.h"

namespace ramet::nn {

// ---- modules ------------------------------------------------------------------------------------

namespace {

// As in loss.cc: a clone's reset() must register a tensor of its own.
Tensor own(const Tensor& t) { return t.defined() ? t.detach().clone() : Tensor(); }

}  // namespace

// Name, function, its operands (with and without their types), and what is printed.
#define RAMET_LOSS(Name, function, params, args, printed)                         \
  Name##Impl::Name##Impl(Name##Options options_) : options(std::move(options_)) { \
    Name##Impl::reset();                                                          \
  }                                                                               \
  void Name##Impl::pretty_print(std::ostream& stream) const {                     \
    stream << detail::qualified("nn::" #Name) printed;                            \
  }                                                                               \
  Tensor Name##Impl::forward params { return functional::function args; }         \
  template class Cloneable<Name##Impl>;
#define RAMET_PLAIN_LOSS(Name, function, printed)                                          \
  RAMET_LOSS(Name, function, (const Tensor& x, const Tensor& y), (x, y, options), printed) \
  void Name##Impl::reset() {}
#define RAMET_TRIPLE_LOSS(Name, function, printed)                                \
  RAMET_LOSS(Name, function, (const Tensor& x, const Tensor& y, const Tensor& z), \
             (x, y, z, options), printed)                                         \
  void Name##Impl::reset() {}
RAMET_PLAIN_LOSS(HuberLoss, huber_loss, )
RAMET_PLAIN_LOSS(KLDivLoss, kl_div, << "()")
RAMET_PLAIN_LOSS(PoissonNLLLoss, poisson_nll_loss, << "()")
RAMET_PLAIN_LOSS(HingeEmbeddingLoss, hinge_embedding_loss, << "(margin=" << options.margin() << ")")
RAMET_PLAIN_LOSS(SoftMarginLoss, soft_margin_loss, << "()")
RAMET_PLAIN_LOSS(MultiLabelMarginLoss, multilabel_margin_loss, << "()")
RAMET_TRIPLE_LOSS(CosineEmbeddingLoss, cosine_embedding_loss,
                  << "(margin=" << options.margin() << ")")
RAMET_TRIPLE_LOSS(MarginRankingLoss, margin_ranking_loss, << "()")
RAMET_TRIPLE_LOSS(TripletMarginLoss, triplet_margin_loss,
                  << std::boolalpha << "(margin=" << options.margin() << ", p=" << options.p()
                  << ", eps=" << options.eps() << ", swap=" << options.swap() << ")")
RAMET_TRIPLE_LOSS(TripletMarginWithDistanceLoss, triplet_margin_with_distance_loss,
                  << std::boolalpha << "(margin=" << options.margin() << ", swap=" << options.swap()
                  << ")")

RAMET_LOSS(MultiMarginLoss, multi_margin_loss, (const Tensor& x, const Tensor& y),
           (x, y, MultiMarginLossOptions(options).weight(weight)),
           << "(p=" << options.p() << ", margin=" << options.margin()
           << ", weight=" << options.weight()
           << ", reduction=" << enumtype::get_enum_name(options.reduction()) << ")")
void MultiMarginLossImpl::reset() {
  RAMET_CHECK(options.p() == 1 || options.p() == 2, "MultiMarginLoss",
              "only p == 1 and p == 2 supported: got ", options.p());
  RAMET_CHECK(!options.weight().defined() || options.weight().dim() == 1, "MultiMarginLoss",
              "weight must be one-dimensional: got ", describe(options.weight()));
  weight = register_buffer("weight", own(options.weight()));
}
RAMET_LOSS(MultiLabelSoftMarginLoss, multilabel_soft_margin_loss,
           (const Tensor& x, const Tensor& y),
           (x, y, MultiLabelSoftMarginLossOptions(options).weight(weight)), << "()")
void MultiLabelSoftMarginLossImpl::reset() {
  weight = register_buffer("weight", own(options.weight()));
}

// ---- functions ----------------------------------------------------------------------------------

namespace functional {

namespace {

template <class V> Tensor reduced(const Tensor& loss, const V& reduction) {
  const std::string name = enumtype::get_enum_name(reduction);
  return name == "kMean" ? loss.mean() : name == "kSum" ? loss.sum() : loss;
}
// All there, on one device.
template <class... T> void check_operands(const char* op, const Tensor& x, const T&... others) {
  RAMET_CHECK(x.defined() && (others.defined() && ...), op, "undefined tensor");
  const auto check = [&](const Tensor& y) {
    RAMET_CHECK(y.device() == x.device() || y.dim() == 0, op, "operands on two devices: got ",
                x.device(), " and ", y.device());
  };
  (check(others), ...);
}
// Samples as rows, and their classes.
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

}  // namespace

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  check_operands("huber_loss", input, target);
  if (input.sizes() != target.sizes())
    RAMET_WARN("[huber_loss] Using a target size (", target.sizes(),
               ") that is different to the input size (", input.sizes(),
               "). This will likely lead to incorrect results due to broadcasting. Please ensure "
               "they have the same size.");
  return ramet::huber_loss(input, target, enumtype::reduction_get_enum(o.reduction()), o.delta());
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  const bool batch = std::holds_alternative<enumtype::kBatchMean>(o.reduction());
  if (std::holds_alternative<enumtype::kMean>(o.reduction()))
    RAMET_WARN(
        "[kl_div] reduction: 'mean' divides the total loss by both the batch size and the "
        "support size. 'batchmean' divides only by the batch size, and aligns with the KL "
        "div math definition.");
  const int64_t reduction =
      batch ? int64_t{Reduction::Sum} : enumtype::reduction_get_enum(o.reduction());
  const Tensor loss = ramet::kl_div(input, target, reduction, o.log_target());
  return batch && input.dim() != 0 ? loss.div(input.size(0)) : loss;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& o) {
  check_operands("poisson_nll_loss", input, target);
  Tensor loss = o.log_input() ? input.exp().sub(target.mul(input))
                              : input.sub(target.mul(input.add(o.eps()).log()));
  if (o.full()) {
    // y log y - y + log(2 pi y) / 2; where it does not count its derivative is finite.
    const Tensor small = target.le(1), y = target.masked_fill(small, 1);
    const Tensor stirling = y.mul(y.log()).sub(y).add(y.mul(2 * M_PI).log().mul(0.5));
    loss = loss.add(stirling.masked_fill(small, 0));
  }
  return reduced(loss, o.reduction());
}

Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& o) {
  check_operands("hinge_embedding_loss", input, target);
  const Tensor apart = input.neg().add(o.margin()).clamp_min(0);
  const Tensor loss = where(target.ne(1), apart, 0).add(where(target.ne(-1), input, 0));
  return reduced(loss, o.reduction());
}

Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& o) {
  check_operands("soft_margin_loss", input, target);
  return reduced(logsigmoid(input.mul(target)).neg(), o.reduction());
}

Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  check_operands("margin_ranking_loss", input1, input2, target);
  RAMET_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(), "margin_ranking_loss",
              "All input tensors should have same dimension but got sizes: input1: ",
              input1.sizes(), ", input2: ", input2.sizes(), ", target: ", target.sizes());
  const Tensor loss = target.neg().mul(input1.sub(input2)).add(o.margin()).clamp_min(0);
  return reduced(loss, o.reduction());
}

Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  const char* op = "cosine_embedding_loss";
  check_operands(op, input1, input2, target);
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
                          .add(where(target.eq(-1), cosine.sub(o.margin()).clamp_min(0), 0));
  return reduced(loss, o.reduction());
}

namespace {

// What both triplet losses are of their distances.
template <class Distance>
Tensor of_triplets(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                   double margin, bool swap, const Distance& distance) {
  const Tensor near = distance(anchor, positive);
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return near.sub(far).add(margin).clamp_min(0);
}

}  // namespace

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  check_operands("triplet_margin_loss", anchor, positive, negative);
  RAMET_CHECK(anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
              "triplet_margin_loss",
              "The anchor, positive, and negative tensors are expected to have the same number of ",
              "dimensions, but got: anchor ", anchor.dim(), "D, positive ", positive.dim(),
              "D, and negative ", negative.dim(), "D inputs");
  const auto distance = PairwiseDistanceFuncOptions().p(o.p()).eps(o.eps());
  return reduced(of_triplets(anchor, positive, negative, o.margin(), o.swap(),
                             [&](const Tensor& a, const Tensor& b) {
                               return functional::pairwise_distance(a, b, distance);
                             }),
                 o.reduction());
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  check_operands("triplet_margin_with_distance_loss", anchor, positive, negative);
  return reduced(of_triplets(anchor, positive, negative, o.margin(), o.swap(),
                             [&](const Tensor& a, const Tensor& b) {
                               return o.distance_function() ? (*o.distance_function())(a, b)
                                                            : functional::pairwise_distance(a, b);
                             }),
                 o.reduction());
}

Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& o) {
  const char* op = "multi_margin_loss";
  check_operands(op, input, target);
  RAMET_CHECK(o.p() == 1 || o.p() == 2, op, "only p == 1 and p == 2 supported: got ", o.p());
  const Tensor x = rows_of(op, input);
  check_classes(op, target);
  RAMET_CHECK(target.dim() <= 1 && target.numel() == x.size(0), op,
              "target tensor should be 1-D with size equal to the number of input samples (batch ",
              "size). Expected target size [", x.size(0), "], but got ", target.sizes(),
              ". Input has shape ", input.sizes(), ".");
  if (o.weight().defined()) {
    RAMET_CHECK(o.weight().dim() == 1, op, "weight must be one-dimensional: got ",
                describe(o.weight()));
    RAMET_CHECK(o.weight().numel() == x.size(1), op, "inconsistent weight size, expected ",
                x.size(1), " but got ", o.weight().sizes());
  }
  const Tensor classes = target.reshape({x.size(0), 1});
  Tensor loss = x.sub(x.gather(1, classes)).add(o.margin()).clamp_min(0);
  if (o.p() == 2) loss = loss.square();
  if (o.weight().defined())
    loss = loss.mul(o.weight().index_select(0, classes.view({x.size(0)})).unsqueeze(1));
  loss = loss.scatter(1, classes, 0).sum(1).div(x.size(1));
  if (std::holds_alternative<enumtype::kNone>(o.reduction()) && input.dim() < 2)
    return loss.view(IntArrayRef());
  return reduced(loss, o.reduction());
}

Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& o) {
  const char* op = "multilabel_margin_loss";
  check_operands(op, input, target);
  const Tensor x = rows_of(op, input);
  check_classes(op, target);
  RAMET_CHECK(target.sizes() == input.sizes(), op, "inconsistent target size: ", target.sizes(),
              " for input of size: ", input.sizes());
  const Tensor y = target.reshape(x.sizes());
  // Those before the first -1. What they name is looked up for all, so that others are refused.
  const Tensor counts = y.lt(0).cumsum(1).eq(0), classes = y.add(y.eq(-1).to(kLong));
  const Tensor own = x.gather(1, classes).unsqueeze(2);
  const Tensor is_class =
      zeros_like(y).scatter_add(1, classes, counts.to(kLong)).gt(0).unsqueeze(1);
  const Tensor none = is_class.logical_or(counts.logical_not().unsqueeze(2));
  Tensor loss = x.unsqueeze(1).sub(own).add(1).clamp_min(0).masked_fill(none, 0);
  loss = loss.sum(IntArrayRef({1, 2})).div(x.size(1));
  if (std::holds_alternative<enumtype::kNone>(o.reduction()) && input.dim() < 2)
    return loss.view(IntArrayRef());
  return reduced(loss, o.reduction());
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  check_operands("multilabel_soft_margin_loss", input, target);
  RAMET_CHECK(input.dim() > 0, "multilabel_soft_margin_loss",
              "Dimension specified as -1 but tensor has no dimensions: got ", describe(input));
  Tensor loss =
      target.mul(logsigmoid(input)).add(target.neg().add(1).mul(logsigmoid(input.neg()))).neg();
  if (o.weight().defined()) loss = loss.mul(o.weight());
  return reduced(loss.sum(input.dim() - 1).div(input.size(-1)), o.reduction());
}

}  // namespace functional
}  // namespace ramet::nn
