#include "kernels/pointwise/pointwise_gpu.h"
#include "kernels/pointwise/rows/compare.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_COMPARISON_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
