#include "kernels/pointwise/pointwise_loop.h"
#include "kernels/pointwise/rows/unary.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_UNARY_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
