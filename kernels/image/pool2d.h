// Two-dimensional pooling: maximum, average, adaptive average, and their gradients.
#pragma once
#include "kernels/image/image.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Input [n, c, h, w], output [n, c, oh, ow]; all operands of one dtype: float, double or int64.
/// Maximum: the window of output (i, j) is the elements at (i*sh - ph + r*dh, j*sw - pw + q*dw), r
/// < kh, q < kw. Only elements in the input count. Average: as for the maximum with dilation 1,
/// over the divisor below. Adaptive: rows floor(i*h/oh) to ceil((i+1)*h/oh), columns likewise; the
/// other numbers are not used. REQUIRES: for the maximum and the average every window starts inside
/// the input or its left and upper padding. For the maximum it holds at least one element. The sum
/// of paddings and extents fits an int64, and so do dh (kh - 1) and dw (kw - 1) of a maximum.
struct Pool2dShape {
  int64_t n, c, h, w, oh, ow;
  int64_t kh, kw, sh, sw, ph, pw, dh, dw;
};

/// y = the first maximum of each window in row-major order. A NaN wins over everything; of several,
/// the last one. `index`, unless its data is null, gets int64 values y*w + x of the place in the
/// input.
struct MaxPool2dArgs {
  Pool2dShape shape;
  ImageView x, y, index;
  ScalarType dtype;
};
RAMET_KERNEL(max_pool2d_forward, MaxPool2dArgs);
/// x = 0, then x[index] += y for every y: the gradient. y and index have the same sizes.
RAMET_KERNEL(max_pool2d_backward, MaxPool2dArgs);
/// y = x[index]: the derivative of the gradient, and of the pooling in forward direction.
RAMET_KERNEL(max_pool2d_gather, MaxPool2dArgs);

/// y = the sum of each window over a divisor. That is divisor_override unless 0; else the number of
/// elements of the window. With count_include_pad it includes those in the padding (but at most
/// `ph`, `pw` outside the input). A window that is only padding gives 0.
struct AvgPool2dArgs {
  Pool2dShape shape;
  ImageView x, y;
  ScalarType dtype;
  bool adaptive, count_include_pad;
  int64_t divisor_override;
};
RAMET_KERNEL(avg_pool2d_forward, AvgPool2dArgs);
/// x = the gradient. Each y, divided by its divisor, is added to the elements of its window, in the
/// order of the outputs.
RAMET_KERNEL(avg_pool2d_backward, AvgPool2dArgs);

}  // namespace kernels
}  // namespace ramet
