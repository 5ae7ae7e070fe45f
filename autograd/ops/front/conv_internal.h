// Note [Taps that meet the image]
// Dilation and padding are numbers that users choose freely: a tap of the filter may lie so far
// away that no output finds a pixel under it, and an output may find none under any tap. Kernels
// keep a border of zeros around the image (Note [Convolution without im2col]), so their memory,
// their time and the range of their offsets go with how far the taps reach. A convolution that
// reaches far is therefore taken apart, each of its two dimensions by itself, into small ones of
// some taps, some outputs and some inputs. What lies in none of them is the bias, or a gradient of
// 0. A filter whose taps lie further apart than the image is large (DeepLab's on a small map) comes
// apart into single taps: no two of them meet the same output. Outputs that far apart (a stride)
// come apart likewise: no two of them meet the same tap. So the parts of a result, and of the
// gradient of the weight, never overlap; those of the gradient of the input do and are added.
#pragma once
#include <vector>

#include "autograd/ops/shape/view.h"
#include "kernels/image/conv2d.h"

namespace ramet {
namespace autograd {

/// One dimension of a convolution: through tap r output i sees input i * stride - pad + r *
/// dilation, if there is one. All but `pad` are above 0.
struct ConvAxis {
  int64_t in, out, taps, stride, pad, dilation;
};

/// A piece of an axis, and where in it its inputs, outputs and taps begin.
struct ConvPart {
  ConvAxis axis;
  int64_t input, output, tap;
};

// What is as near as this counts as near also where the image is smaller.
inline constexpr int64_t kConvNear = 16;

/// No tap at either end is without a pixel, nothing reaches far, and no product of the numbers
/// overflows: one part, the axis itself. Nearly all convolutions are so.
inline bool is_near(const ConvAxis& a) {
  constexpr int64_t kSmall = int64_t{1} << 31;
  const int64_t far = a.in > kConvNear ? a.in : kConvNear;
  if (a.pad > kSmall || a.taps > kSmall || a.stride > kSmall || a.stride > far) return false;
  if (a.taps > 1 && (a.dilation > kSmall || a.dilation > far)) return false;
  const int64_t last_tap = (a.taps - 1) * a.dilation, last_output = (a.out - 1) * a.stride;
  return last_output >= a.pad && last_tap - a.pad < a.in &&  // the first tap and the last one
         a.pad - last_tap <= kConvNear && last_output - a.pad < a.in + kConvNear;
}

inline bool is_near(const kernels::Conv2dShape& s) {
  return is_near(ConvAxis{s.h, s.oh, s.kh, s.sh, s.ph, s.dh}) &&
         is_near(ConvAxis{s.w, s.ow, s.kw, s.sw, s.pw, s.dw});
}

/// A part of both dimensions: its convolution, and what of the operands it is about.
struct ConvParts {
  ConvPart row, column;
  kernels::Conv2dShape shape(const kernels::Conv2dShape& whole) const;
  Tensor of_input(const Tensor& t) const;
  Tensor of_output(const Tensor& t) const;
  Tensor of_weight(const Tensor& t) const;
};
/// The parts that see a pixel, however large the numbers are.
std::vector<ConvParts> conv_parts(const kernels::Conv2dShape& s);

}  // namespace autograd
}  // namespace ramet
