// Losses: LibTorch's functions of the same names. `reduction` is Reduction::None (the losses
// themselves), Mean or Sum. Differentiable to any order in input, and in target where it is a
// floating-point tensor.
#pragma once
#include <optional>

#include "autograd/ops/cross_entropy.h"
#include "autograd/tensor.h"

namespace ramet {

/// (input - target)^2
RAMET_API Tensor mse_loss(const Tensor& self, const Tensor& target,
                          int64_t reduction = Reduction::Mean);
/// |input - target|
RAMET_API Tensor l1_loss(const Tensor& self, const Tensor& target,
                         int64_t reduction = Reduction::Mean);
/// d^2 / (2 beta) where d = |input - target| < beta, else d - beta / 2 (Girshick 2015).
RAMET_API Tensor smooth_l1_loss(const Tensor& self, const Tensor& target,
                                int64_t reduction = Reduction::Mean, double beta = 1.0);
/// d^2 / 2 where d < delta, else delta (d - delta / 2).
RAMET_API Tensor huber_loss(const Tensor& self, const Tensor& target,
                            int64_t reduction = Reduction::Mean, double delta = 1.0);
/// -weight (t log x + (1 - t) log(1 - x)), logarithms not below -100; x in [0, 1]. The loss has the
/// input's shape. As LibTorch's function, but not its module, this takes a target that repeats to
/// it, and dimensions of size 1 of both count for nothing: [n] fits [n, 1].
RAMET_API Tensor binary_cross_entropy(const Tensor& self, const Tensor& target,
                                      const std::optional<Tensor>& weight = {},
                                      int64_t reduction = Reduction::Mean);
/// The same of sigmoid(x), without overflow; pos_weight multiplies the term of t. The loss has the
/// target's shape; an input that repeats to it is taken.
RAMET_API Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                                  const std::optional<Tensor>& weight = {},
                                                  const std::optional<Tensor>& pos_weight = {},
                                                  int64_t reduction = Reduction::Mean);
/// t (log t - x), or exp(t) (t - x) with log_target; x are log-probabilities.
RAMET_API Tensor kl_div(const Tensor& self, const Tensor& target,
                        int64_t reduction = Reduction::Mean, bool log_target = false);

}  // namespace ramet
