// Losses with margins, and Poisson's: LibTorch's functions of the same names, composed of other
// functions. `reduction` is Reduction::None, Mean or Sum. None gives the losses themselves: one for
// each element, or one for each sample. Differentiable to any order in all floating-point operands.
#pragma once
#include <functional>
#include <optional>

#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/loss/margin_loss.inc"

namespace detail {
/// triplet_margin_loss for any distance function.
RAMET_API Tensor triplet_loss(const char* op, const Tensor& anchor, const Tensor& positive,
                              const Tensor& negative,
                              const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                              double margin, bool swap, int64_t reduction);
}  // namespace detail

}  // namespace ramet
