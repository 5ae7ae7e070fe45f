// The double and int64 part of conv2d.h.
#pragma once
#include "kernels/image/conv2d.h"

namespace ramet::kernels::RAMET_VARIANT {

void conv2d_wide_forward(const Conv2dArgs& a);
void conv2d_wide_backward_input(const Conv2dArgs& a);
void conv2d_wide_backward_weight(const Conv2dArgs& a);

}  // namespace ramet::kernels::RAMET_VARIANT
