#include "nn/layers/loss/distance.h"

#include "autograd/ops/matrix/distance.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

Tensor CosineSimilarityImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::cosine_similarity(input1, input2, options);
}
Tensor PairwiseDistanceImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::pairwise_distance(input1, input2, options);
}

RAMET_FIELDS(CosineSimilarity, {"dim", &o.dim(), kBoolalpha}, {"eps", &o.eps()})
RAMET_FIELDS(PairwiseDistance, {"p", &o.p()}, {"eps", &o.eps()}, {"keepdim", &o.keepdim()})

namespace functional {

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, const CosineSimilarityFuncOptions& o) {
  return ramet::cosine_similarity(x1, x2, o.dim(), o.eps());
}
Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  return ramet::pairwise_distance(x1, x2, o.p(), o.eps(), o.keepdim());
}
Tensor pdist(const Tensor& input, double p) { return ramet::pdist(input, p); }

}  // namespace functional
}  // namespace ramet::nn
