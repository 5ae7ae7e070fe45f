// Losses of class scores: LibTorch's functions of the same names. They behave as all losses
// (autograd/ops/loss/loss.h).
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

namespace Reduction {
/// How a loss reduces its elements, in functions that take a number for it. END is no reduction.
enum Reduction { None, Mean, Sum, END };
}  // namespace Reduction

#include "autograd/ops/loss/cross_entropy.inc"

/// Log-softmax and negative log-likelihood in one pass over the logits [n, classes, d1, ...] (or
/// [classes]). Formula: kernels/rows/cross_entropy.h. target: class indices [n, d1, ...] (int64),
/// or probabilities of input's shape. For indices, Mean divides by the sum of the weights of the
/// targets that count (NaN where none does); for probabilities, by n d1 ... . An index outside [0,
/// classes) other than ignore_index is an IndexError that names position, value and number of
/// classes. weight [classes] is a constant: asking for its gradient is a NotImplementedError.
RAMET_API Tensor cross_entropy_loss(const Tensor& self, const Tensor& target,
                                    const std::optional<Tensor>& weight = {},
                                    int64_t reduction = Reduction::Mean,
                                    int64_t ignore_index = -100, double label_smoothing = 0.0);
/// The same value, but the pass also writes the gradient into the memory of the logits. So a step
/// has one copy of its largest tensor, not two, and reads and writes it once. Use it for logits
/// that are not read afterwards: when this returns they hold other numbers. If another node has
/// saved them, its backward gets a version error.
///
/// self: [n, classes], contiguous; where it requires a gradient, no leaf and no view of one.
/// Without requires_grad nothing is overwritten. target: class indices; reduction Mean or Sum. The
/// backward passes the logits' memory on as their gradient, so it runs once. There is no second
/// derivative: a NotImplementedError. Not in LibTorch.
RAMET_API Tensor cross_entropy_loss_consuming(const Tensor& self, const Tensor& target,
                                              const std::optional<Tensor>& weight = {},
                                              int64_t reduction = Reduction::Mean,
                                              int64_t ignore_index = -100,
                                              double label_smoothing = 0.0);
/// nll_loss() for any number of dimensions.
RAMET_API Tensor nll_loss_nd(const Tensor& self, const Tensor& target,
                             const std::optional<Tensor>& weight = {},
                             int64_t reduction = Reduction::Mean, int64_t ignore_index = -100);

}  // namespace ramet
