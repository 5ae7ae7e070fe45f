// CTCLoss: sequences of labels that are not aligned with their input. Module and function.
#pragma once
#include "nn/layers/loss/loss.h"

namespace ramet::nn {

struct RAMET_API CTCLossOptions {
  using reduction_t = detail::reduction_t;
  /// The class of "no label".
  RAMET_ARG(int64_t, blank) = 0;
  RAMET_ARG(reduction_t, reduction) = kMean;
  /// 0 for the loss and the gradients of a target that no alignment gives, instead of inf and NaN.
  RAMET_ARG(bool, zero_infinity) = false;
};

/// ctc_loss (autograd/ops/loss/ctc_loss.h) of log-probabilities [steps, batch, classes], as of
/// log_softmax.
RAMET_LAYER(CTCLoss, CTCLossOptions,
            Tensor forward(const Tensor& log_probs, const Tensor& targets,
                           const Tensor& input_lengths, const Tensor& target_lengths);)

namespace functional {

using CTCLossFuncOptions = CTCLossOptions;

namespace detail {
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                          CTCLossFuncOptions::reduction_t reduction, bool zero_infinity);
}  // namespace detail
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          const CTCLossFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
