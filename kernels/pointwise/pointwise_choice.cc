#include "kernels/pointwise/pointwise_loop.h"
#include "kernels/pointwise/rows/choice.h"

namespace ramet::kernels::RAMET_VARIANT {
RAMET_CHOICE_OPS(RAMET_DEFINE_POINTWISE)
}  // namespace ramet::kernels::RAMET_VARIANT
