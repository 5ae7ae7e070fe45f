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

/// exp(x) - y x; with log_input = false, x - y log(x + eps). `full` adds Stirling's approximation
/// of log y! where y > 1.
RAMET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input,
                                  bool full, double eps, int64_t reduction);
/// x where y is 1, max(0, margin - x) where y is -1.
RAMET_API Tensor hinge_embedding_loss(const Tensor& self, const Tensor& target, double margin = 1.0,
                                      int64_t reduction = Reduction::Mean);
/// log(1 + exp(-y x)), without overflow.
RAMET_API Tensor soft_margin_loss(const Tensor& self, const Tensor& target,
                                  int64_t reduction = Reduction::Mean);
/// max(0, margin - y (x1 - x2)).
RAMET_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2,
                                     const Tensor& target, double margin = 0.0,
                                     int64_t reduction = Reduction::Mean);
/// 1 - cos(x1, x2) where y is 1, and max(0, cos(x1, x2) - margin) where y is -1. x1 and x2: [n, c]
/// with y [n], or [c] with a number y.
RAMET_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                       const Tensor& target, double margin = 0.0,
                                       int64_t reduction = Reduction::Mean);
/// max(0, d(a, p) - d(a, n) + margin), with d = pairwise_distance with p and eps. `swap`: the
/// smaller of d(a, n) and d(p, n) replaces d(a, n) (Balntas et al. 2016).
RAMET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative, double margin = 1.0, double p = 2,
                                     double eps = 1e-06, bool swap = false,
                                     int64_t reduction = Reduction::Mean);

namespace detail {
/// triplet_margin_loss for any distance function.
RAMET_API Tensor triplet_loss(const char* op, const Tensor& anchor, const Tensor& positive,
                              const Tensor& negative,
                              const std::function<Tensor(const Tensor&, const Tensor&)>& distance,
                              double margin, bool swap, int64_t reduction);
}  // namespace detail

}  // namespace ramet
