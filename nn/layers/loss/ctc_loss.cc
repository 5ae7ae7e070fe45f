#include "nn/layers/loss/ctc_loss.h"

#include <ostream>

#include "autograd/ops/loss/ctc_loss.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

CTCLossImpl::CTCLossImpl(CTCLossOptions options_) : options(std::move(options_)) {}
void CTCLossImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::CTCLoss()");
}
Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths) {
  return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}

template class Cloneable<CTCLossImpl>;

namespace functional {

Tensor detail::ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths, int64_t blank,
                        CTCLossFuncOptions::reduction_t reduction, bool zero_infinity) {
  return ramet::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank,
                         enumtype::reduction_get_enum(reduction), zero_infinity);
}
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, const CTCLossFuncOptions& o) {
  return detail::ctc_loss(log_probs, targets, input_lengths, target_lengths, o.blank(),
                          o.reduction(), o.zero_infinity());
}

}  // namespace functional
}  // namespace ramet::nn
