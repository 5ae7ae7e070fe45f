#include "autograd/ops/pointwise/aliases.h"

#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/pair.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/aliases.inc"

}  // namespace ramet
