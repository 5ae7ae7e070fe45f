// Convolutions of images (Conv2dShape) and of volumes, as functions that are linear in two of
// (input, weight, result). They are each other's derivatives. Private to autograd/ops.
#pragma once
#include "autograd/ops/front/image_internal.h"
#include "kernels/image/conv2d.h"

namespace ramet {
namespace autograd {

using kernels::Conv2dShape;

/// A convolution of [n, ci, d, h, w] with [co, ci / groups, kd, kh, kw] to [n, co, od, oh, ow].
/// `plane` describes it in every plane; the other numbers describe it along the depth.
struct VolumeShape {
  Conv2dShape plane;
  int64_t d, od, kd, sd, pd, dd;
};

// These record history. Operands have one dtype: float, double or int64; images that need no
// parts (is_near) on a CPU also bfloat16. Bias may be undefined.

/// The convolution of x with w, plus the bias.
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s);
Tensor convolve(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s);
/// The transposed convolution of g, plus a bias of the input's channels. It is the gradient of the
/// input where g is a gradient of the result.
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const Conv2dShape& s);
Tensor convolve_transposed(const Tensor& g, const Tensor& w, const Tensor& bias,
                           const VolumeShape& s);

// These record no history. `layout`: that of their results; volumes are always row-major.

/// The layout of the results of a convolution of x: channels-last where the register tile runs on
/// floats or pairs.
ImageLayout result_layout(const Tensor& x);

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const Conv2dShape& s,
                  ImageLayout layout);
/// In bfloat16 a bias may be added, before the one rounding.
Tensor raw_input(const Tensor& g, const Tensor& w, const Conv2dShape& s, ImageLayout layout,
                 const Tensor& bias = Tensor());
Tensor raw_weight(const Tensor& g, const Tensor& x, const Conv2dShape& s);
/// Computes the gradients of weight and bias in one pass over the images, those that `self` needs.
void raw_weight_and_bias(const Node& self, const Tensor& g, const Tensor& x, const Conv2dShape& s,
                         Tensor& dw, Tensor& db);

Tensor raw_result(const Tensor& x, const Tensor& w, const Tensor& bias, const VolumeShape& s,
                  ImageLayout layout);
Tensor raw_input(const Tensor& g, const Tensor& w, const VolumeShape& s, ImageLayout layout);
Tensor raw_weight(const Tensor& g, const Tensor& x, const VolumeShape& s);

}  // namespace autograd
}  // namespace ramet
