// A leaf whose gradient is with somebody who reduces it.
#pragma once
#include <cstdint>

namespace ramet::autograd {

/// AccumulateGrad::mark while a gradient has been taken away, until it is brought back or given up.
/// Who asks for it meanwhile (Tensor::grad()) would see none: an Error.
inline constexpr uint8_t kUnderWay = 254;

}  // namespace ramet::autograd
