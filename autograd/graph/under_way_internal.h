// The mark of a leaf while a reducer has taken its gradient.
#pragma once
#include <cstdint>

namespace ramet::autograd {

/// AccumulateGrad::mark while a reducer has taken the gradient, until it returns or drops it. A
/// read before that (Tensor::grad()) would find no gradient, so it is an Error.
inline constexpr uint8_t kUnderWay = 254;

}  // namespace ramet::autograd
