// Convolutions as functions that are linear in two of (input, weight, result), and each other's
// derivatives: of images (Conv2dShape) and of volumes. Private to autograd/ops.
#pragma once
#include "autograd/ops/front/image_internal.h"
#include "kernels/image/conv2d.h"

namespace ramet {
namespace autograd {

using kernels::Conv2dShape;

/// A convolution of [n, ci, d, h, w] with [co, ci / groups, kd, kh, kw] to [n, co, od, oh, ow]: in
/// every plane what `plane` says, and along the depth the same with these numbers.
struct VolumeShape {
  Conv2dShape plane;
  int64_t d, od, kd, sd, pd, dd;
};

// Recorded; operands of one dtype: float, double or int64. Bias may be undefined.

/// The result.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s);
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s);
/// The gradient of the input for g, a gradient of the result, and a bias of the input's channels:
/// the transposed convolution of g.
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const Conv2dShape& s);
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const VolumeShape& s);

// Not recorded. `layout`: of what they make; volumes are always row-major.

/// As results of the convolution of x lie: where the register tile runs on floats channels-last.
ImageLayout result_layout(const Tensor& x);

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s,
                  ImageLayout layout);
Tensor raw_input(const Tensor& g, const Tensor& w, const Conv2dShape& s, ImageLayout layout);
Tensor raw_weight(const Tensor& g, const Tensor& x, const Conv2dShape& s);
/// Gradients of weight and bias by one pass over the images, as `self` needs them.
void raw_weight_and_bias(const Node& self, const Tensor& g, const Tensor& x, const Conv2dShape& s,
                         Tensor& dw, Tensor& db);

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s,
                  ImageLayout layout);
Tensor raw_input(const Tensor& g, const Tensor& w, const VolumeShape& s, ImageLayout layout);
Tensor raw_weight(const Tensor& g, const Tensor& x, const VolumeShape& s);

}  // namespace autograd
}  // namespace ramet
