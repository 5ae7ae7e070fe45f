#include "kernels/pointwise/pointwise_gpu.h"
#include "kernels/pointwise/rows/pair.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_PAIR_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
