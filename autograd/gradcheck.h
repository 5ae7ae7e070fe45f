// Numeric checks of derivatives, for users' own functions and for this library's tests.
#pragma once
#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// What is checked: tensors to tensors.
using CheckedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// How exactly gradcheck() looks.
struct GradcheckOptions {
  double eps = 1e-6;                ///< step of the central difference
  double atol = 1e-5, rtol = 1e-3;  ///< what may differ: atol + rtol |numeric|
  bool raise_exception = true;      ///< false: return false instead of throwing
  bool check_repeat = true;         ///< two backwards must give the same bits
};

/// Compares the Jacobian that backward gives with central differences (f(x + eps) - f(x - eps)) /
/// (2 eps), element by element. `inputs` that require grad are float64 and contiguous; others are
/// passed on. Throws an Error naming output, input, element and both values at the first
/// disagreement beyond atol + rtol |numeric|. Outputs that do not require grad are not looked at.
/// The inputs are put back, also where `f` throws.
RAMET_API bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                         const GradcheckOptions& options = {});
/// gradcheck of the function (inputs, grad_outputs) -> gradients of f. `grad_outputs` default to
/// fixed pseudo-random values. A gradient of f that does not require grad must not change with any
/// input or grad_output: an Error else, since a backward that detaches it has lost its derivative.
RAMET_API bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                             std::vector<Tensor> grad_outputs = {},
                             const GradcheckOptions& options = {});

}  // namespace autograd
}  // namespace ramet
