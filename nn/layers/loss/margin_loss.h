// Losses with margins, and Huber, KLDiv and PoissonNLL: modules and functions. `reduction` is kMean
// (default), kSum or kNone, which gives the losses themselves: one an element, or one a sample
// where a loss is of samples. Differentiable to any order in all floating-point operands.
#pragma once
#include <functional>
#include <optional>

#include "nn/layers/loss/loss.h"

namespace ramet::nn {

// Options that are a reduction and what `members` adds.
#define RAMET_LOSS_OPTIONS(Options, members)           \
  struct RAMET_API Options {                           \
    using reduction_t = detail::reduction_t;           \
    members RAMET_ARG(reduction_t, reduction) = kMean; \
  };
// The same, made from a reduction, too: `SoftMarginLoss(kSum)`.
#define RAMET_REDUCTION_OPTIONS(Options, members)                              \
  RAMET_LOSS_OPTIONS(                                                          \
      Options, members Options() = default; Options(enumtype::kNone reduction) \
      : reduction_(reduction) {} Options(enumtype::kMean reduction)            \
      : reduction_(reduction) {} Options(enumtype::kSum reduction)             \
      : reduction_(reduction){})

RAMET_LOSS_OPTIONS(HingeEmbeddingLossOptions, RAMET_ARG(double, margin) = 1.0;)
RAMET_LOSS_OPTIONS(CosineEmbeddingLossOptions, RAMET_ARG(double, margin) = 0.0;)
RAMET_LOSS_OPTIONS(MarginRankingLossOptions, RAMET_ARG(double, margin) = 0;)
/// p: 1 or 2. weight: per class.
RAMET_LOSS_OPTIONS(MultiMarginLossOptions, RAMET_ARG(int64_t, p) = 1;
                   RAMET_ARG(double, margin) = 1.0; RAMET_ARG(Tensor, weight);)
/// weight: per class.
RAMET_LOSS_OPTIONS(MultiLabelSoftMarginLossOptions, RAMET_ARG(Tensor, weight);)
/// margin and swap as functional::triplet_margin_loss has them; p: of the distances' norm; eps:
/// added to each difference.
RAMET_LOSS_OPTIONS(TripletMarginLossOptions, RAMET_ARG(double, margin) = 1.0;
                   RAMET_ARG(double, p) = 2.0; RAMET_ARG(double, eps) = 1e-6;
                   RAMET_ARG(bool, swap) = false;)
/// distance_function, a distance_function_t: of two tensors, one number a row, by default the
/// pairwise distance; margin and swap as TripletMarginLoss's.
RAMET_LOSS_OPTIONS(TripletMarginWithDistanceLossOptions,
                   using distance_function_t = std::function<Tensor(const Tensor&, const Tensor&)>;
                   RAMET_ARG(std::optional<distance_function_t>, distance_function) = std::nullopt;
                   RAMET_ARG(double, margin) = 1.0; RAMET_ARG(bool, swap) = false;)
/// log_input: whether the input is the logarithm of the rate; full: with Stirling's term; eps:
/// added to the input's logarithm where it is not.
RAMET_LOSS_OPTIONS(PoissonNLLLossOptions, RAMET_ARG(bool, log_input) = true;
                   RAMET_ARG(bool, full) = false; RAMET_ARG(double, eps) = 1e-8;)
RAMET_REDUCTION_OPTIONS(SoftMarginLossOptions, )
/// A reduction.
RAMET_REDUCTION_OPTIONS(MultiLabelMarginLossOptions, )
RAMET_REDUCTION_OPTIONS(HuberLossOptions, RAMET_ARG(double, delta) = 1.0; public:)
#undef RAMET_LOSS_OPTIONS
#undef RAMET_REDUCTION_OPTIONS
/// A reduction, and whether the target is logarithms (log_target).
struct RAMET_API KLDivLossOptions {
  using reduction_t = OneOf<enumtype::kNone, enumtype::kBatchMean, enumtype::kSum, enumtype::kMean>;
  KLDivLossOptions() = default;
  KLDivLossOptions(enumtype::kNone reduction) : reduction_(reduction) {}
  KLDivLossOptions(enumtype::kBatchMean reduction) : reduction_(reduction) {}
  KLDivLossOptions(enumtype::kSum reduction) : reduction_(reduction) {}
  KLDivLossOptions(enumtype::kMean reduction) : reduction_(reduction) {}
  /// kBatchMean: the sum divided by the first dimension's size.
  RAMET_ARG(reduction_t, reduction) = kMean;
  RAMET_ARG(bool, log_target) = false;
};

// The function of a module's name below is its forward.

RAMET_LAYER(HuberLoss, HuberLossOptions, Tensor forward(const Tensor& input, const Tensor& target);)
/// functional::kl_div as a module.
RAMET_LAYER(KLDivLoss, KLDivLossOptions, Tensor forward(const Tensor& input, const Tensor& target);)
/// functional::poisson_nll_loss as a module.
RAMET_LAYER(PoissonNLLLoss, PoissonNLLLossOptions,
            Tensor forward(const Tensor& log_input, const Tensor& targets);)
RAMET_LAYER(HingeEmbeddingLoss, HingeEmbeddingLossOptions,
            Tensor forward(const Tensor& input, const Tensor& target);)
RAMET_LAYER(SoftMarginLoss, SoftMarginLossOptions,
            Tensor forward(const Tensor& input, const Tensor& target);)
/// functional::multilabel_margin_loss as a module.
RAMET_LAYER(MultiLabelMarginLoss, MultiLabelMarginLossOptions,
            Tensor forward(const Tensor& input, const Tensor& target);)
RAMET_LAYER(CosineEmbeddingLoss, CosineEmbeddingLossOptions,
            Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);)
RAMET_LAYER(MarginRankingLoss, MarginRankingLossOptions,
            Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target);)
RAMET_LAYER(TripletMarginLoss, TripletMarginLossOptions,
            Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);)
RAMET_LAYER(TripletMarginWithDistanceLoss, TripletMarginWithDistanceLossOptions,
            Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative);)
// `weight` becomes a buffer.
RAMET_LAYER(MultiMarginLoss, MultiMarginLossOptions,
            explicit MultiMarginLossImpl(const MultiMarginLossOptions& options_ = {});
            void reset() override; Tensor forward(const Tensor& input, const Tensor& target);
            Tensor weight;)
/// functional::multilabel_soft_margin_loss as a module; `weight` is a buffer.
RAMET_LAYER(
    MultiLabelSoftMarginLoss, MultiLabelSoftMarginLossOptions,
    explicit MultiLabelSoftMarginLossImpl(const MultiLabelSoftMarginLossOptions& options_ = {});
    void reset() override; Tensor forward(const Tensor& input, const Tensor& target);
    Tensor weight;)

namespace functional {

using HuberLossFuncOptions = HuberLossOptions;
using KLDivFuncOptions = KLDivLossOptions;
using PoissonNLLLossFuncOptions = PoissonNLLLossOptions;
using HingeEmbeddingLossFuncOptions = HingeEmbeddingLossOptions;
using SoftMarginLossFuncOptions = SoftMarginLossOptions;
using MultilabelMarginLossFuncOptions = MultiLabelMarginLossOptions;
using CosineEmbeddingLossFuncOptions = CosineEmbeddingLossOptions;
using MarginRankingLossFuncOptions = MarginRankingLossOptions;
using TripletMarginLossFuncOptions = TripletMarginLossOptions;
using TripletMarginWithDistanceLossFuncOptions = TripletMarginWithDistanceLossOptions;
using MultiMarginLossFuncOptions = MultiMarginLossOptions;
using MultilabelSoftMarginLossFuncOptions = MultiLabelSoftMarginLossOptions;

/// d^2 / 2 where d = |x - y| < delta, else delta (d - delta / 2)
RAMET_API Tensor huber_loss(const Tensor& input, const Tensor& target,
                            const HuberLossFuncOptions& options = {});
/// y (log y - x), or exp(y) (y - x) with log_target; x are log-probabilities
RAMET_API Tensor kl_div(const Tensor& input, const Tensor& target,
                        const KLDivFuncOptions& options = {});
/// exp(x) - y x, or with log_input = false x - y log(x + eps); `full` adds Stirling's approximation
/// of log y! where y > 1
RAMET_API Tensor poisson_nll_loss(const Tensor& input, const Tensor& target,
                                  const PoissonNLLLossFuncOptions& options = {});
/// x where y is 1, max(0, margin - x) where y is -1
RAMET_API Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target,
                                      const HingeEmbeddingLossFuncOptions& options = {});
/// log(1 + exp(-y x)), without overflow
RAMET_API Tensor soft_margin_loss(const Tensor& input, const Tensor& target,
                                  const SoftMarginLossFuncOptions& options = {});
/// Takes samples x [n, c] or [c] and their classes y (int64, as x, up to the first -1). The loss is
/// sum max(0, 1 - x[y[j]] + x[i]) / c. The sum goes over those j and all i that are no class of the
/// sample.
RAMET_API Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                        const MultilabelMarginLossFuncOptions& options = {});
/// Takes [n, c] and y [n], or [c] and a number. The loss is 1 - cos(x1, x2) where y is 1, max(0,
/// cos(x1, x2) - margin) where y is -1.
RAMET_API Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                       const Tensor& target,
                                       const CosineEmbeddingLossFuncOptions& options = {});
/// max(0, margin - y (x1 - x2))
RAMET_API Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2,
                                     const Tensor& target,
                                     const MarginRankingLossFuncOptions& options = {});
/// max(0, d(a, p) - d(a, n) + margin) by pairwise_distance; `swap`: the less of d(a, n) and d(p, n)
/// (Balntas et al. 2016)
RAMET_API Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                     const Tensor& negative,
                                     const TripletMarginLossFuncOptions& options = {});
/// The same by any distance, pairwise_distance where none is given.
RAMET_API Tensor triplet_margin_with_distance_loss(
    const Tensor& anchor, const Tensor& positive, const Tensor& negative,
    const TripletMarginWithDistanceLossFuncOptions& options = {});
/// Takes samples x [n, c] and their class y [n] (int64), or [c] and a number. The loss is sum
/// weight[y] max(0, margin - x[y] + x[i])^p / c over i != y.
RAMET_API Tensor multi_margin_loss(const Tensor& input, const Tensor& target,
                                   const MultiMarginLossFuncOptions& options = {});
/// Of samples x [*, c] and y in [0, 1]: the mean over classes of
/// -weight (y log sigmoid(x) + (1 - y) log sigmoid(-x))
RAMET_API Tensor
multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                            const MultilabelSoftMarginLossFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
