// Losses of class scores: LibTorch's functions of the same names. They behave as all losses
// (autograd/ops/loss/loss.h).
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

namespace Reduction {
/// How a loss reduces its elements, in functions that take a number for it. END is no reduction.
enum Reduction { None, Mean, Sum, END };
}  // namespace Reduction

#include "autograd/ops/loss/cross_entropy.inc"

}  // namespace ramet
