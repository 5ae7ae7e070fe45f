#include "nn/layers/loss/margin_loss.h"

#include "autograd/ops/front/loss_internal.h"
#include "autograd/ops/loss/loss.h"
#include "autograd/ops/loss/margin_loss.h"
#include "autograd/ops/matrix/distance.h"
#include "autograd/ops/pointwise/activation_composed.h"
#include "nn/layers/loss/own_buffer_internal.h"
#include "nn/module/listed_module_internal.h"
#include "runtime/base/logging.h"

namespace ramet::nn {

// ---- modules ------------------------------------------------------------------------------------

Tensor HuberLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::huber_loss(x, y, options);
}
Tensor KLDivLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::kl_div(x, y, options);
}
Tensor PoissonNLLLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::poisson_nll_loss(x, y, options);
}
Tensor HingeEmbeddingLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::hinge_embedding_loss(x, y, options);
}
Tensor SoftMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::soft_margin_loss(x, y, options);
}
Tensor MultiLabelMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::multilabel_margin_loss(x, y, options);
}
Tensor CosineEmbeddingLossImpl::forward(const Tensor& x, const Tensor& y, const Tensor& z) {
  return functional::cosine_embedding_loss(x, y, z, options);
}
Tensor MarginRankingLossImpl::forward(const Tensor& x, const Tensor& y, const Tensor& z) {
  return functional::margin_ranking_loss(x, y, z, options);
}
Tensor TripletMarginLossImpl::forward(const Tensor& x, const Tensor& y, const Tensor& z) {
  return functional::triplet_margin_loss(x, y, z, options);
}
Tensor TripletMarginWithDistanceLossImpl::forward(const Tensor& x, const Tensor& y,
                                                  const Tensor& z) {
  return functional::triplet_margin_with_distance_loss(x, y, z, options);
}

MultiMarginLossImpl::MultiMarginLossImpl(const MultiMarginLossOptions& options_)
    : ListedModule(options_) {
  MultiMarginLossImpl::reset();
}
void MultiMarginLossImpl::reset() {
  RAMET_CHECK(options.p() == 1 || options.p() == 2, "MultiMarginLoss",
              "only p == 1 and p == 2 supported: got ", options.p());
  RAMET_CHECK(!options.weight().defined() || options.weight().dim() == 1, "MultiMarginLoss",
              "weight must be one-dimensional: got ", describe(options.weight()));
  weight = register_buffer("weight", own_buffer(options.weight()));
}
Tensor MultiMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::multi_margin_loss(x, y, MultiMarginLossOptions(options).weight(weight));
}
MultiLabelSoftMarginLossImpl::MultiLabelSoftMarginLossImpl(
    const MultiLabelSoftMarginLossOptions& options_)
    : ListedModule(options_) {
  MultiLabelSoftMarginLossImpl::reset();
}
void MultiLabelSoftMarginLossImpl::reset() {
  weight = register_buffer("weight", own_buffer(options.weight()));
}
Tensor MultiLabelSoftMarginLossImpl::forward(const Tensor& x, const Tensor& y) {
  return functional::multilabel_soft_margin_loss(
      x, y, MultiLabelSoftMarginLossOptions(options).weight(weight));
}

RAMET_FIELDS(HuberLoss, {"delta", &o.delta(), kNameAlone})
RAMET_FIELDS(KLDivLoss)
RAMET_FIELDS(PoissonNLLLoss)
RAMET_FIELDS(SoftMarginLoss)
RAMET_FIELDS(MultiLabelMarginLoss)
RAMET_FIELDS(MarginRankingLoss)
RAMET_FIELDS(MultiMarginLoss, {"p", &o.p()}, {"margin", &o.margin()}, {"weight", &o.weight()},
             {"reduction", &o.reduction()})
RAMET_FIELDS(MultiLabelSoftMarginLoss)
RAMET_FIELDS(HingeEmbeddingLoss, {"margin", &o.margin()})
RAMET_FIELDS(CosineEmbeddingLoss, {"margin", &o.margin()})
RAMET_FIELDS(TripletMarginLoss, {"margin", &o.margin()}, {"p", &o.p()}, {"eps", &o.eps()},
             {"swap", &o.swap()})
RAMET_FIELDS(TripletMarginWithDistanceLoss, {"margin", &o.margin()}, {"swap", &o.swap()})

// ---- functions ----------------------------------------------------------------------------------

namespace functional {

namespace {

template <class Options> int64_t reduction_of(const Options& o) {
  return enumtype::reduction_get_enum(o.reduction());
}

}  // namespace

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberLossFuncOptions& o) {
  if (input.defined() && target.defined() && input.sizes() != target.sizes())
    RAMET_WARN_MISTAKE("[huber_loss] Using a target size (", target.sizes(),
                       ") that is different to the input size (", input.sizes(),
                       "). This will likely lead to incorrect results due to broadcasting. Please "
                       "ensure they have the same size.");
  return ramet::huber_loss(input, target, reduction_of(o), o.delta());
}

Tensor kl_div(const Tensor& input, const Tensor& target, const KLDivFuncOptions& o) {
  const bool batch = holds_alternative<enumtype::kBatchMean>(o.reduction());
  if (holds_alternative<enumtype::kMean>(o.reduction()))
    RAMET_WARN(
        "[kl_div] reduction: 'mean' divides the total loss by both the batch size and the "
        "support size. 'batchmean' divides only by the batch size, and aligns with the KL "
        "div math definition.");
  const int64_t reduction = batch ? int64_t{Reduction::Sum} : reduction_of(o);
  const Tensor loss = ramet::kl_div(input, target, reduction, o.log_target());
  return batch && input.dim() != 0 ? loss.div(input.size(0)) : loss;
}

Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                        const PoissonNLLLossFuncOptions& o) {
  return ramet::poisson_nll_loss(input, target, o.log_input(), o.full(), o.eps(), reduction_of(o));
}
Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                            const HingeEmbeddingLossFuncOptions& o) {
  return ramet::hinge_embedding_loss(input, target, o.margin(), reduction_of(o));
}
Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                        const SoftMarginLossFuncOptions& o) {
  return ramet::soft_margin_loss(input, target, reduction_of(o));
}
Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                           const MarginRankingLossFuncOptions& o) {
  return ramet::margin_ranking_loss(input1, input2, target, o.margin(), reduction_of(o));
}
Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                             const CosineEmbeddingLossFuncOptions& o) {
  return ramet::cosine_embedding_loss(input1, input2, target, o.margin(), reduction_of(o));
}
Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginLossFuncOptions& o) {
  return ramet::triplet_margin_loss(anchor, positive, negative, o.margin(), o.p(), o.eps(),
                                    o.swap(), reduction_of(o));
}
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginWithDistanceLossFuncOptions& o) {
  const auto distance = [&o](const Tensor& a, const Tensor& b) {
    return o.distance_function() ? (*o.distance_function())(a, b) : ramet::pairwise_distance(a, b);
  };
  return ramet::detail::triplet_loss("triplet_margin_with_distance_loss", anchor, positive,
                                     negative, distance, o.margin(), o.swap(), reduction_of(o));
}
Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                         const MultiMarginLossFuncOptions& o) {
  return ramet::multi_margin_loss(input, target, o.p(), o.margin(), o.weight(), reduction_of(o));
}
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                              const MultilabelMarginLossFuncOptions& o) {
  return ramet::multilabel_margin_loss(input, target, reduction_of(o));
}

Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultilabelSoftMarginLossFuncOptions& o) {
  autograd::common_device("multilabel_soft_margin_loss", input, target);
  RAMET_CHECK(input.dim() > 0, "multilabel_soft_margin_loss",
              "Dimension specified as -1 but tensor has no dimensions: got ", describe(input));
  Tensor loss =
      target.mul(log_sigmoid(input)).add(target.neg().add(1).mul(log_sigmoid(input.neg()))).neg();
  if (o.weight().defined()) loss = loss.mul(o.weight());
  return autograd::reduced(loss.sum(input.dim() - 1).div(input.size(-1)), reduction_of(o));
}

}  // namespace functional
}  // namespace ramet::nn
