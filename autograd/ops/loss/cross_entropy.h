// Losses of class scores: LibTorch's functions of the same names. As all losses
// (autograd/ops/loss/loss.h).
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

namespace Reduction {
/// What a loss makes of its elements, in functions that take a number for it; END is none.
enum Reduction { None, Mean, Sum, END };
}  // namespace Reduction

#include "autograd/forms/functions.inc"
#include "autograd/ops/loss/cross_entropy.inc"

/// Log-softmax and negative log-likelihood in one pass over the logits [n, classes, d1, ...] (or
/// [classes]). target: class indices [n, d1, ...] (int64), or probabilities of input's shape. Mean
/// divides by the sum of the weights of the targets that count (indices; NaN where none does) or by
/// n d1 ... (probabilities). Formula: kernels/rows/cross_entropy.h. An index outside [0, classes)
/// other than ignore_index is an IndexError naming position, value and number of classes. weight
/// [classes] is a constant: asking for its gradient is a NotImplementedError.
RAMET_API Tensor cross_entropy_loss(const Tensor& self, const Tensor& target,
                                    const std::optional<Tensor>& weight = {},
                                    int64_t reduction = Reduction::Mean,
                                    int64_t ignore_index = -100, double label_smoothing = 0.0);
/// The same value in one pass that also writes the gradient, into the memory of the logits: of a
/// step's largest tensor there is one copy, not two, and it is read and written once. For logits
/// that nobody reads afterwards: when this returns they hold other numbers, and whoever saved them
/// for a backward gets a version error. self: [n, classes], contiguous, no leaf and no view of one,
/// where it requires a gradient; without one nothing is overwritten. target: class indices;
/// reduction Mean or Sum. The backward hands the logits' memory on as their gradient, so it runs
/// once, and there is no second derivative: a NotImplementedError. Not in LibTorch.
RAMET_API Tensor cross_entropy_loss_consuming(const Tensor& self, const Tensor& target,
                                              const std::optional<Tensor>& weight = {},
                                              int64_t reduction = Reduction::Mean,
                                              int64_t ignore_index = -100,
                                              double label_smoothing = 0.0);
/// Any number of dimensions.
RAMET_API Tensor nll_loss_nd(const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight = {},
                             int64_t reduction = Reduction::Mean, int64_t ignore_index = -100);

}  // namespace ramet
