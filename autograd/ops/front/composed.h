// Derivatives of fused backward functions through compositions. Private to autograd/ops.
#pragma once
#include <functional>
#include <vector>

#include "autograd/ops/front/common.h"

namespace ramet {
namespace autograd {

/// The gradients of sum(f(inputs) . v) with respect to the inputs that `self` needs (others stay
/// undefined), where f is the same function as the fused operation that made `self`, written with
/// differentiable operations. While gradients of gradients are recorded, the results depend on the
/// inputs; so a fused operation is differentiable to any order, and only its first derivative needs
/// a kernel.
RAMET_API std::vector<Tensor> composed_gradients(
    const Node& self, const std::function<Tensor(const std::vector<Tensor>&)>& f,
    std::vector<Tensor> inputs, const Tensor& v);

}  // namespace autograd
}  // namespace ramet
