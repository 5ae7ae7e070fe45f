// The loss of sequences of labels that are not aligned with their input (connectionist temporal
// classification).
#pragma once
#include "autograd/ops/loss/cross_entropy.h"  // Reduction
#include "autograd/tensor.h"

namespace ramet {

/// -log p(targets | log_probs) of each sample, p summed over all alignments (Graves et al. 2006):
/// ways to give each step a class such that what remains without repetitions, and then without
/// blanks, is the target.
///
/// log_probs: [steps, batch, classes], or [steps, classes] of one sample, log-probabilities, as of
/// log_softmax. targets: whole numbers in [0, classes), [batch, longest], of which a sample's first
/// target_lengths count, or all samples' behind each other in one dimension. A label that is
/// `blank` counts as a label beside the others. Lengths, one for each sample: of the input in
/// [0, steps], of the target; integral tensors on any device, or lists. Targets of any dtype, cast
/// to int64, on any device.
///
/// The losses have the dtype of log_probs, and 16-bit ones are computed in float. Reduction::None:
/// [batch], 0-dim of one sample; Sum; Mean: each divided by its target's length, or 1 if that is 0,
/// then their mean. A target that no alignment gives (it is longer, with a blank between two equal
/// labels, than its input) has the loss inf, and all its steps' gradients are NaN; with
/// zero_infinity both are 0.
///
/// The gradient is that with respect to log_probs as they are, -p(class at a step | target), where
/// LibTorch's is exp(log_probs) more, which is right only behind log_softmax: there both lead to
/// the same gradient. Differentiable to any order; beyond the first, step by step.
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, IntArrayRef input_lengths,
                          IntArrayRef target_lengths, int64_t blank = 0,
                          int64_t reduction = Reduction::Mean, bool zero_infinity = false);
RAMET_API Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets,
                          const Tensor& input_lengths, const Tensor& target_lengths,
                          int64_t blank = 0, int64_t reduction = Reduction::Mean,
                          bool zero_infinity = false);

}  // namespace ramet
