// Losses: LibTorch's functions of the same names. `reduction` is Reduction::None (one loss for each
// element), Mean or Sum. Differentiable to any order in input, and in target where it is a
// floating-point tensor.
#pragma once
#include <optional>

#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/loss/loss.inc"

/// |input - target|
RAMET_API Tensor l1_loss(const Tensor& self, const Tensor& target,
                         int64_t reduction = Reduction::Mean);
/// binary_cross_entropy of sigmoid(x), without overflow; pos_weight multiplies the term of t. The
/// loss has the target's shape, and the input may repeat to it. A target of whole numbers is an
/// Error.
RAMET_API Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                                  const std::optional<Tensor>& weight = {},
                                                  const std::optional<Tensor>& pos_weight = {},
                                                  int64_t reduction = Reduction::Mean);
/// t (log t - x), or exp(t) (t - x) with log_target, where x are log-probabilities. A target of
/// probability 0 adds 0 for infinite x too.
RAMET_API Tensor kl_div(const Tensor& self, const Tensor& target,
                        int64_t reduction = Reduction::Mean, bool log_target = false);

}  // namespace ramet
