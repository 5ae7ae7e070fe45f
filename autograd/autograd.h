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
/// A leaf that shares `data`'s memory and has its own version counter. LibTorch's older data().
inline Variable make_variable(const Tensor& data, bool requires_grad = false) {
  if (!data.defined()) return {};
  Variable leaf = data.data();
  if (requires_grad) leaf.requires_grad_();
  return leaf;
}

/// Adds d(sum of tensors . grad_tensors)/d(leaf) into the grad() of every leaf. With `inputs`, only
/// those tensors receive their gradients. An input that is no leaf keeps its gradient from then on
/// (retain_grad). A tensor of one element needs no grad_tensor.
RAMET_API void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                        std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                        const variable_list& inputs = {});

/// The gradients of `outputs` with respect to `inputs`. No leaf's grad() changes. But a tensor
/// between them that retains its gradient (retain_grad) gets it into its grad(), as in any
/// backward. An input that the outputs do not depend on is an Error; with `allow_unused` its
/// gradient is undefined.
RAMET_API variable_list grad(const variable_list& outputs, const variable_list& inputs,
                             const variable_list& grad_outputs = {},
                             std::optional<bool> retain_graph = std::nullopt,
                             bool create_graph = false, bool allow_unused = false);

}  // namespace autograd
}  // namespace ramet
