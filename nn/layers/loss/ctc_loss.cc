#include "nn/layers/loss/ctc_loss.h"

#include "autograd/ops/loss/ctc_loss.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

Tensor CTCLossImpl::forward(const Tensor& log_probs, const Tensor& targets,
                            const Tensor& input_lengths, const Tensor& target_lengths) {
  return functional::ctc_loss(log_probs, targets, input_lengths, target_lengths, options);
}

RAMET_FIELDS(CTCLoss)

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
