// max_pool2d(relu(batch_norm(x)), 2) in one pass over x in each direction. It keeps only x and the
// channels' statistics. The backward pass computes the affine step again and finds the maximum of
// each window, which is cheaper than to read stored indices.
#pragma once
#include "kernels/gpu/gpu_cuts.h"
#include "kernels/kernel.h"
#include "kernels/matrix/gemm_plan.h"

namespace ramet {
namespace kernels {

/// Float, channels innermost, dense: x [n, h, w, c], y [n, h/2, w/2, c]. A last odd row or column
/// is in no window; h and w are at least 2. mean and invstd come from batch_norm_statistics. weight
/// and bias may be null.
///   y = max(0, max over the window of x * scale + shift), scale = weight * invstd, shift = bias -
///       mean * scale;
/// a NaN wins. The same bits as the three operations one after the other.
struct BatchNormReluPoolArgs {
  int64_t n, h, w, c;
  const float *x, *weight, *bias, *mean, *invstd;
  float* y;
  void* workspace;  // batch_norm_relu_pool_workspace bytes, aligned to 64
};
RAMET_KERNEL(batch_norm_relu_pool_forward, BatchNormReluPoolArgs);

/// Gradients of x, weight and bias from dy, the gradient of y. Null ones are not computed. dy goes
/// to the first of a window's elements with its maximum, if that is above 0. Then
/// batch_norm_backward (kernels/image/batch_norm.h) follows.
struct BatchNormReluPoolBackwardArgs {
  int64_t n, h, w, c;
  const float *x, *weight, *bias, *mean, *invstd, *dy;
  float *dx, *dweight, *dbias;
  bool training;
  void* workspace;
};
RAMET_KERNEL(batch_norm_relu_pool_backward, BatchNormReluPoolBackwardArgs);

// Rows of windows that make one partial sum.
RAMET_PLAN int64_t batch_norm_relu_pool_rows(int64_t h) { return h / 2 < 16 ? h / 2 : 16; }
RAMET_PLAN int64_t batch_norm_relu_pool_parts_of(int64_t n, int64_t h, int64_t rows) {
  return rows > 0 ? n * ((h / 2 + rows - 1) / rows) : 0;
}
RAMET_PLAN int64_t batch_norm_relu_pool_parts(int64_t n, int64_t h) {
  return batch_norm_relu_pool_parts_of(n, h, batch_norm_relu_pool_rows(h));
}
/// The same on a GPU, where a block has the sums of 32 channels. It uses fewer rows if there would
/// be too few blocks (gpu_cuts.h).
RAMET_PLAN int64_t batch_norm_relu_pool_gpu_rows(int64_t n, int64_t h, int64_t c) {
  const int64_t rows = batch_norm_relu_pool_rows(h), of_rows = n * ((c + 31) / 32),
                wanted = kNominalBlocks / (of_rows > 0 ? of_rows : 1);
  if (wanted < 2) return rows;
  const int64_t each = (h / 2 + wanted - 1) / wanted;
  return each < rows ? each : rows;
}
RAMET_PLAN int64_t batch_norm_relu_pool_workspace(int64_t n, int64_t h, int64_t c,
                                                  bool gpu = false) {
  const int64_t parts =
      gpu ? batch_norm_relu_pool_parts_of(n, h, batch_norm_relu_pool_gpu_rows(n, h, c))
          : batch_norm_relu_pool_parts(n, h);
  return 4 * (5 * (c + 16) + parts * 2 * c + 16);
}

}  // namespace kernels
}  // namespace ramet
