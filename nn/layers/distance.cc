#include "nn/layers/distance.h"

#include <algorithm>
#include <ostream>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/promotion.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "autograd/ops/where.h"
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
  const char* op = "cosine_similarity";
  RAMET_CHECK(x1.defined() && x2.defined(), op, "undefined tensor");
  const ScalarType dtype = result_type(x1, x2);
  RAMET_CHECK(is_floating(dtype), op,
              "expected common dtype to be floating point, yet common dtype is ", name_of(dtype));
  const std::vector<int64_t> sizes = broadcast_sizes(op, x1.sizes(), x2.sizes());
  const auto unit = [&](const Tensor& x) {
    const Tensor y = x.to(dtype).expand(sizes);
    return y.div(y.norm(2, {o.dim()}, /*keepdim=*/true).clamp_min(o.eps()));
  };
  return unit(x1).mul(unit(x2)).sum(o.dim());
}

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, const PairwiseDistanceFuncOptions& o) {
  RAMET_CHECK(x1.defined() && x2.defined(), "pairwise_distance", "undefined tensor");
  return x1.sub(x2).add(o.eps()).norm(o.p(), {-1}, o.keepdim());
}

}  // namespace functional
}  // namespace ramet::nn
