// Largest and smallest elements and their positions. They behave as all reductions
// (autograd/ops/reduce/reduce.h).
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/reduce/extremum.inc"

}  // namespace ramet
