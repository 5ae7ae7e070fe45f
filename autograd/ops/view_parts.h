// Views of a part of a tensor, and lists of them: LibTorch's functions of the same names.
#pragma once
#include "autograd/tensor.h"

namespace ramet {

#include "autograd/forms/functions.inc"
#include "autograd/ops/view_parts.inc"

}  // namespace ramet
