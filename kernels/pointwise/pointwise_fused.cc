#include "kernels/pointwise/pointwise_loop.h"
#include "kernels/pointwise/rows/fused.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_FUSED_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
