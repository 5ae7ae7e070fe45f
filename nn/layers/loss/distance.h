// CosineSimilarity, PairwiseDistance: modules and functions.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API CosineSimilarityOptions {
  RAMET_ARG(int64_t, dim) = 1;
  /// No norm is taken to be less.
  RAMET_ARG(double, eps) = 1e-8;
};
struct RAMET_API PairwiseDistanceOptions {
  RAMET_ARG(double, p) = 2.0;
  RAMET_ARG(double, eps) = 1e-6;
  RAMET_ARG(bool, keepdim) = false;
};

RAMET_LAYER(CosineSimilarity, CosineSimilarityOptions,
            Tensor forward(const Tensor& input1, const Tensor& input2);)

RAMET_LAYER(PairwiseDistance, PairwiseDistanceOptions,
            Tensor forward(const Tensor& input1, const Tensor& input2);)

namespace functional {

using CosineSimilarityFuncOptions = CosineSimilarityOptions;
using PairwiseDistanceFuncOptions = PairwiseDistanceOptions;

/// x1 . x2 / (max(|x1|, eps) max(|x2|, eps)) along dim, of shapes that broadcast; floating point.
/// Differentiable to any order.
RAMET_API Tensor cosine_similarity(const Tensor& x1, const Tensor& x2,
                                   const CosineSimilarityFuncOptions& options = {});
/// The p-norm of x1 - x2 + eps along the last dimension.
RAMET_API Tensor pairwise_distance(const Tensor& x1, const Tensor& x2,
                                   const PairwiseDistanceFuncOptions& options = {});
/// The p-norms of the differences of every two rows of [n, m]: [n (n - 1) / 2].
RAMET_API Tensor pdist(const Tensor& input, double p = 2.0);

}  // namespace functional
}  // namespace ramet::nn
