#include "kernels/pointwise/pointwise_gpu.h"
#include "kernels/pointwise/rows/activation.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_ACTIVATION_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
