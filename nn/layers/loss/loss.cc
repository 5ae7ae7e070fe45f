#include "nn/layers/loss/loss.h"

#include <ostream>

#include "nn/functional/functional.h"
#include "nn/module/class_name.h"

namespace ramet::nn {
namespace {

// A clone's reset() must register a tensor of its own; its values are copied from the original
// afterwards.
Tensor own(const Tensor& t) { return t.defined() ? t.detach().clone() : Tensor(); }

}  // namespace

L1LossImpl::L1LossImpl(L1LossOptions options_) : options(std::move(options_)) {}
void L1LossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::L1Loss()");
}
Tensor L1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::l1_loss(input, target, options);
}

MSELossImpl::MSELossImpl(MSELossOptions options_) : options(std::move(options_)) {}
void MSELossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::MSELoss()");
}
Tensor MSELossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::mse_loss(input, target, options);
}

SmoothL1LossImpl::SmoothL1LossImpl(SmoothL1LossOptions o) : options(std::move(o)) {}
SmoothL1LossImpl::SmoothL1LossImpl(SmoothL1LossOptions o, double beta)
    : options(std::move(o.beta(beta))) {}
void SmoothL1LossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::SmoothL1Loss");
}
Tensor SmoothL1LossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::smooth_l1_loss(input, target, options);
}

BCELossImpl::BCELossImpl(BCELossOptions options_) : options(std::move(options_)) {}
void BCELossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::BCELoss()");
}
Tensor BCELossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::binary_cross_entropy(input, target, options);
}

BCEWithLogitsLossImpl::BCEWithLogitsLossImpl(BCEWithLogitsLossOptions options_)
    : options(std::move(options_)) {
  BCEWithLogitsLossImpl::reset();
}
void BCEWithLogitsLossImpl::reset() {
  weight = register_buffer("weight", own(options.weight()));
  pos_weight = register_buffer("pos_weight", own(options.pos_weight()));
}
void BCEWithLogitsLossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::BCEWithLogitsLoss()");
}
Tensor BCEWithLogitsLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::binary_cross_entropy_with_logits(input, target, weight,
                                                              options.reduction(), pos_weight);
}

NLLLossImpl::NLLLossImpl(NLLLossOptions options_) : options(std::move(options_)) {
  NLLLossImpl::reset();
}
void NLLLossImpl::reset() { weight = register_buffer("weight", own(options.weight())); }
void NLLLossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::NLLLoss()");
}
Tensor NLLLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::nll_loss(input, target, weight, options.ignore_index(),
                                      options.reduction());
}

CrossEntropyLossImpl::CrossEntropyLossImpl(CrossEntropyLossOptions options_)
    : options(std::move(options_)) {
  CrossEntropyLossImpl::reset();
}
void CrossEntropyLossImpl::reset() { weight = register_buffer("weight", own(options.weight())); }
void CrossEntropyLossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::CrossEntropyLoss()");
}
Tensor CrossEntropyLossImpl::forward(const Tensor& input, const Tensor& target) {
  return functional::detail::cross_entropy(input, target, weight, options.ignore_index(),
                                           options.reduction(), options.label_smoothing());
}

template class Cloneable<L1LossImpl>;
template class Cloneable<MSELossImpl>;
template class Cloneable<SmoothL1LossImpl>;
template class Cloneable<BCELossImpl>;
template class Cloneable<BCEWithLogitsLossImpl>;
template class Cloneable<NLLLossImpl>;
template class Cloneable<CrossEntropyLossImpl>;

}  // namespace ramet::nn
