#include "nn/layers/loss/loss.h"

#include "nn/functional/functional.h"
#include "nn/layers/loss/own_buffer_internal.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {
Tensor L1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::l1_loss(input, target, options);
}

Tensor MSELossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::mse_loss(input, target, options);
}

SmoothL1LossImpl::SmoothL1LossImpl(SmoothL1LossOptions o, double beta)
    : ListedModule(o.beta(beta)) {}
Tensor SmoothL1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::smooth_l1_loss(input, target, options);
}

Tensor BCELossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::binary_cross_entropy(input, target, options);
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(const BCEWithLogitsLossOptions& options_)
    : ListedModule(options_) {
  BCEWithLogitsLossImpl::reset();
}
void BCEWithLogitsLossImpl::reset() {
  weight = register_buffer("weight", own_buffer(options.weight()));
  pos_weight = register_buffer("pos_weight", own_buffer(options.pos_weight()));
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::binary_cross_entropy_with_logits(input, target, weight,
                                                              options.reduction(), pos_weight);
}

NLLLossImpl::NLLLossImpl(const NLLLossOptions& options_) : ListedModule(options_) {
  NLLLossImpl::reset();
}
void NLLLossImpl::reset() { weight = register_buffer("weight", own_buffer(options.weight())); }
Tensor NLLLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::nll_loss(input, target, weight, options.ignore_index(),
                                      options.reduction());
}

CrossEntropyLossImpl::CrossEntropyLossImpl(const CrossEntropyLossOptions& options_)
    : ListedModule(options_) {
  CrossEntropyLossImpl::reset();
}
void CrossEntropyLossImpl::reset() {
  weight = register_buffer("weight", own_buffer(options.weight()));
}
Tensor CrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::cross_entropy(input, target, weight, options.ignore_index(),
                                           options.reduction(), options.label_smoothing());
}

RAMET_FIELDS(L1Loss)
RAMET_FIELDS(MSELoss)
RAMET_FIELDS(SmoothL1Loss, {"beta", &o.beta(), kNameAlone})
RAMET_FIELDS(BCELoss)
RAMET_FIELDS(BCEWithLogitsLoss)
RAMET_FIELDS(NLLLoss, {"ignore_index", &o.ignore_index(), kNotPrinted})
RAMET_FIELDS(CrossEntropyLoss, {"ignore_index", &o.ignore_index(), kNotPrinted})

}  // namespace ramet::nn
