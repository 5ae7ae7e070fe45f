// Note [Taps that meet the image]
// Users choose dilation and padding freely. A tap of the filter may lie so far out that it meets no
// pixel for any output. And an output may meet no pixel through any tap. Kernels keep a border of
// zeros around the image (Note [Convolution without im2col]). So their memory, their time and the
// range of their offsets grow with the reach of the taps.
//
// A convolution that reaches far is therefore split, each of its two dimensions separately, into
// small ones of some taps, some outputs and some inputs. An element that lies in none of them is
// the bias, or a gradient of 0. The taps of a filter may lie further from each other than the image
// is large (DeepLab's on a small map). Such a filter is split into single taps: no two of them meet
// the same output. Outputs that lie so far from each other (a stride) are split likewise: no two of
// them meet the same tap. So the parts of a result, and of the gradient of the weight, never
// overlap. Those of the gradient of the input do, and are added.
#pragma once
#include <vector>

#include "autograd/ops/shape/view.h"
#include "kernels/image/conv2d.h"

namespace ramet {
namespace autograd {

/// One dimension of a convolution. Through tap r, output i reads input i * stride - pad + r *
/// dilation, if that exists. All numbers but `pad` are above 0.
struct ConvAxis {
  int64_t in, out, taps, stride, pad, dilation;
};

/// A piece of an axis, and the positions in the axis where its inputs, outputs and taps begin.
struct ConvPart {
  ConvAxis axis;
  int64_t input, output, tap;
};

// A distance up to this counts as near, also where the image is smaller.
inline constexpr int64_t kConvNear = 16;

/// Is the axis one part, as in nearly all convolutions? Then the first and the last tap each meet a
/// pixel, nothing reaches far, and no product of the numbers overflows.
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

/// A part of both dimensions: its convolution, and its ranges of the operands.
struct ConvParts {
  ConvPart row, column;
  kernels::Conv2dShape shape(const kernels::Conv2dShape& whole) const;
  Tensor of_input(const Tensor& t) const;
  Tensor of_output(const Tensor& t) const;
  Tensor of_weight(const Tensor& t) const;
};
/// The parts that meet a pixel, however large the numbers are.
std::vector<ConvParts> conv_parts(const kernels::Conv2dShape& s);

}  // namespace autograd
}  // namespace ramet
