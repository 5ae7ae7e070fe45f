#include "autograd/ops/front/pool_internal.h"

#include <string>

namespace ramet {
namespace autograd {

namespace {

// For sums and products of numbers that users chose freely.
using Int128 = __int128;

int64_t extent_of(int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation,
                  bool ceil_mode) {
  const Int128 room = in + Int128{pad} * 2 - Int128{dilation} * (k - 1) - 1;
  const Int128 up = room + (ceil_mode ? stride - 1 : 0);
  if (up < 0) return 0;
  Int128 out = 1 + (up <= INT64_MAX ? static_cast<int64_t>(up) / stride : up / stride);
  // no window starts in the padding on the right
  if (ceil_mode && (out - 1) * stride >= Int128{in} + pad) --out;
  return static_cast<int64_t>(out);  // at most in + 1, as the padding is at most half of the kernel
}

// Does each window that begins in the left padding contain an element? Those further right begin
// inside. Where the distance of taps is at most the input's size, each window does: at most half of
// a window is padding.
bool reach_inside(int64_t in, int64_t out, int64_t stride, int64_t pad, int64_t dilation) {
  if (dilation <= in) return true;
  for (Int128 o = 0; o < out && o * stride < pad;) {
    // The first tap after the left padding.
    const Int128 tap = (dilation - (pad - o * stride) % dilation) % dilation;
    if (tap >= in) return false;
    o += (in - tap - 1) / stride + 1;  // to the output where the tap is beyond the input
  }
  return true;
}

// "c x in x in": the channels, and the extent of each axis that `of` picks.
template <class F> std::string extents(const Tensor& x, ArrayRef<PoolAxis> axes, const F& of) {
  std::string text = std::to_string(x.size(1));
  for (const PoolAxis& a : axes) text += "x" + std::to_string(of(a));
  return text;
}

}  // namespace

void check_axes(const char* op, const Tensor& x, ArrayRef<PoolAxis> axes, bool ceil_mode,
                int64_t* out) {
  for (const PoolAxis& a : axes) {
    RAMET_CHECK(a.kernel > 0, op, "kernel_size: got ", a.kernel, ", expected a positive number");
    RAMET_CHECK(a.stride > 0, op, "stride: got ", a.stride, ", expected a positive number");
    RAMET_CHECK(a.dilation > 0, op, "dilation: got ", a.dilation, ", expected a positive number");
    RAMET_CHECK(a.pad >= 0 && a.pad <= (Int128{a.dilation} * (a.kernel - 1) + 1) / 2, op,
                "pad should be at most half of effective kernel size: got padding ", a.pad,
                ", kernel_size ", a.kernel, " and dilation ", a.dilation);
  }
  bool some = x.size(1) > 0, larger = true, reach = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    const PoolAxis& a = axes[i];
    // Kernels compute with positions in the padded image.
    RAMET_CHECK(a.pad <= INT64_MAX - a.in, op, "padding: got ", a.pad, " around ", describe(x),
                ", expected places that an int64 holds");
    out[i] = extent_of(a.in, a.kernel, a.stride, a.pad, a.dilation, ceil_mode);
    some = some && a.in > 0;
    larger = larger && out[i] > 0;
  }
  RAMET_CHECK(some, op, "got ", describe(x), ", expected extents above 0 (but for the batch)");
  const auto size = [&](const PoolAxis& a) { return out[&a - axes.data()]; };
  RAMET_CHECK(larger, op, "Given input size: (",
              extents(x, axes, [](const PoolAxis& a) { return a.in; }),
              "). Calculated output size: (", extents(x, axes, size),
              "). Output size is too small: got ", describe(x));
  for (size_t i = 0; i < axes.size(); ++i) {
    const PoolAxis& a = axes[i];
    reach = reach && reach_inside(a.in, out[i], a.stride, a.pad, a.dilation);
  }
  std::string kernel, padding, dilation;
  if (RAMET_LIKELY(reach)) return;
  for (const PoolAxis& a : axes) {
    const char* between = kernel.empty() ? "" : " x ";
    kernel += between + std::to_string(a.kernel);
    padding += between + std::to_string(a.pad);
    dilation += between + std::to_string(a.dilation);
  }
  fail(op, "a window of padding alone: got ", describe(x), ", kernel_size ", kernel, ", padding ",
       padding, " and dilation ", dilation);
}

}  // namespace autograd
}  // namespace ramet
