// The loss of sequences of labels that are not aligned with their input (connectionist temporal
// classification).
#pragma once
#include "autograd/ops/loss/cross_entropy.h"  // Reduction
#include "autograd/tensor.h"

namespace ramet {

/// -log p(targets | log_probs) of each sample, where p is the sum over all alignments (Graves et
/// al. 2006). An alignment gives each step a class, such that the target remains when first
/// repetitions and then blanks are removed.
///
/// log_probs: [steps, batch, classes], or [steps, classes] for one sample: log-probabilities, as
/// from log_softmax. targets: whole numbers in [0, classes) of any dtype (cast to int64), on any
/// device. They are [batch, longest], where a sample's first target_lengths count, or one dimension
/// with the targets of all samples one after the other. A label that is `blank` counts as one more
/// label. Lengths, one for each sample: of the input in [0, steps], of the target; integral tensors
/// on any device, or lists.
///
/// The losses have the dtype of log_probs; 16-bit ones are computed in float. Reduction::None:
/// [batch], 0-dim for one sample. Sum. Mean: each loss divided by its target's length, or 1 if that
/// is 0, then their mean. A target may have no alignment, because it is longer than its input (with
/// a blank between two equal labels). Then the loss is inf, and all its steps' gradients are NaN;
/// with zero_infinity both are 0.
///
/// The gradient is that with respect to log_probs as they are, -p(class at a step | target).
/// LibTorch's is larger by exp(log_probs), which is right only after log_softmax: there both lead
/// to the same gradient. Differentiable to any order; beyond the first, step by step.
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, int64_t blank = 0,
                          int64_t reduction = Reduction::Mean, bool zero_infinity = false);
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          int64_t blank = 0, int64_t reduction = Reduction::Mean,
                          bool zero_infinity = false);

}  // namespace ramet
