// backward() and grad(): the public entry points of the engine.
#pragma once
#include <optional>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

using Variable = Tensor;  // LibTorch's older name
/// LibTorch's name for a list of tensors.
using variable_list = std::vector<Tensor>;
/// A leaf over `data`'s memory, with versions of its own: LibTorch's older data().
inline Variable make_variable(const Tensor& data, bool requires_grad = false) {
  if (!data.defined()) return {};
  Variable leaf = data.data();
  if (requires_grad) leaf.requires_grad_();
  return leaf;
}

/// Adds d(sum of tensors . grad_tensors)/d(leaf) into the grad() of every leaf, or of `inputs`
/// only, which keep their gradients from then on if they are no leaves (retain_grad). A tensor of
/// one element may do without its grad_tensor.
RAMET_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                        std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                        const variable_list& inputs = {});

/// The gradients of `outputs` with respect to `inputs`. No leaf's grad() is touched, but a tensor
/// on the way that retains its gradient (retain_grad) gets it into its grad(), as in any backward.
/// With `allow_unused` an input that takes no part gives an undefined tensor, otherwise an Error.
RAMET_API variable_list grad(const variable_list& outputs, const variable_list& inputs,
                             const variable_list& grad_outputs = {},
                             std::optional<bool> retain_graph = std::nullopt,
                             bool create_graph = false, bool allow_unused = false);

}  // namespace autograd
}  // namespace ramet
