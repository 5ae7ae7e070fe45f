// Code shared by the fronts of losses. Private to autograd/ops and the losses of nn.
#pragma once
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/loss/cross_entropy.h"
#include "autograd/ops/reduce/reduce.h"

namespace ramet {
namespace autograd {

inline void check_reduction(const char* op, int64_t reduction) {
  RAMET_CHECK(reduction >= Reduction::None && reduction < Reduction::END, op, "reduction: got ",
              reduction, ", expected Reduction::None, Mean or Sum");
}
inline Tensor reduced(const Tensor& loss, int64_t reduction) {
  return reduction == Reduction::Mean  ? loss.mean()
         : reduction == Reduction::Sum ? loss.sum()
                                       : loss;
}

}  // namespace autograd
}  // namespace ramet
