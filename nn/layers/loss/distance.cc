#include "nn/layers/loss/distance.h"

#include <ostream>

#include "autograd/ops/matrix/distance.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

void CosineSimilarityImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::CosineSimilarity(dim=") << options.dim()
         << ", eps=" << options.eps() << ")";
}
Tensor CosineSimilarityImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::cosine_similarity(input1, input2, options);
}
void PairwiseDistanceImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::PairwiseDistance(p=") << options.p()
         << ", eps=" << options.eps() << ", keepdim=" << options.keepdim() << ")";
}
Tensor PairwiseDistanceImpl::forward(const Tensor& input1, const Tensor& input2) {
  return functional::pairwise_distance(input1, input2, options);
}

template class Cloneable<CosineSimilarityImpl>;
template class Cloneable<PairwiseDistanceImpl>;

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
