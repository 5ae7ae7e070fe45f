// The loss of sequences of labels that are not aligned with their input (connectionist temporal
// classification).
#pragma once
#include "autograd/ops/loss/cross_entropy.h"  // Reduction
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/loss/ctc_loss.inc"

}  // namespace ramet
