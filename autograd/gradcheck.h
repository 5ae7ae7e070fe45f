// Numeric checks of derivatives, for users' own functions and for this library's tests.
#pragma once
#include <functional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// The function under test: it maps tensors to tensors.
using CheckedFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// How exactly gradcheck() compares.
struct GradcheckOptions {
  double eps = 1e-6;                ///< step of the central difference
  double atol = 1e-5, rtol = 1e-3;  ///< what may differ: atol + rtol |numeric|
  bool raise_exception = true;      ///< false: return false instead of throwing
  bool check_repeat = true;         ///< two backwards must give the same bits
};

/// Compares the Jacobian that backward computes with central differences (f(x + eps) - f(x - eps))
/// / (2 eps), element by element. `inputs` that require grad must be float64 and contiguous; others
/// are passed on. A difference above atol + rtol |numeric| throws an Error, which names output,
/// input, element and both values. Outputs that do not require grad are ignored. The inputs are
/// restored, also where `f` throws.
RAMET_API bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                         const GradcheckOptions& options = {});
/// gradcheck() of the function (inputs, grad_outputs) -> gradients of f. `grad_outputs` default to
/// fixed pseudo-random values. A gradient of f that does not require grad must not change with any
/// input or grad_output. Otherwise it is an Error: a backward that detaches it has lost its
/// derivative.
RAMET_API bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                             std::vector<Tensor> grad_outputs = {},
                             const GradcheckOptions& options = {});

}  // namespace autograd
}  // namespace ramet
