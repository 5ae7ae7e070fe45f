// Code shared by pools of two and three dimensions: windows along each dimension. Private to
// autograd/ops.
#pragma once
#include "autograd/ops/front/image_internal.h"

namespace ramet {
namespace autograd {

/// Lists of one or D numbers; an empty list of strides stands for the kernel's sizes.
struct PoolWindow {
  IntArrayRef kernel, stride, padding, dilation;
  bool ceil_mode;
};

struct PoolAxis {
  int64_t in, out, kernel, stride, pad, dilation;
};
/// Computes the output's extents. The axes have all other numbers, and are x's last dimensions.
/// Errors for invalid numbers, results without elements, and windows with nothing but padding.
void check_axes(const char* op, const Tensor& x, ArrayRef<PoolAxis> axes, bool ceil_mode,
                int64_t* out);

/// x: [n, c, ...] of D spatial dimensions.
template <size_t D>
std::array<PoolAxis, D> pool_axes(const char* op, const Tensor& x, const PoolWindow& w) {
  const auto k = numbers_of<D>(op, "kernel_size", w.kernel),
             p = numbers_of<D>(op, "padding", w.padding),
             d = numbers_of<D>(op, "dilation", w.dilation);
  const auto st = w.stride.empty() ? k : numbers_of<D>(op, "stride", w.stride);
  std::array<PoolAxis, D> axes;
  std::array<int64_t, D> out;
  for (size_t i = 0; i < D; ++i)
    axes[i] = {x.size(static_cast<int64_t>(i) + 2), 0, k[i], st[i], p[i], d[i]};
  check_axes(op, x, axes, w.ceil_mode, out.data());
  for (size_t i = 0; i < D; ++i) axes[i].out = out[i];
  return axes;
}

}  // namespace autograd
}  // namespace ramet
