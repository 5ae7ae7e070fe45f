#include "kernels/pointwise/pointwise_gpu.h"
#include "kernels/pointwise/rows/arithmetic.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_ARITHMETIC_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
