// Layer norm over the last axis of a dense rows x cols block (Ba, Kiros, Hinton 2016).
#pragma once
#include "kernels/kernel.h"
#include "kernels/rows/row_tasks.h"

namespace ramet {
namespace kernels {

/// y[r][c] = (x[r][c] - mean[r]) rstd[r] weight[c] + bias[c], rstd = 1 / sqrt(var + eps), var
/// without correction. With a residual, x is replaced by sum = x + residual, rounded to dtype.
/// REQUIRES: a floating dtype. weight and bias (each may be null) have the same dtype; mean and
/// rstd have its compute type.
struct LayerNormArgs {
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  void* workspace;  // layer_norm_workspace bytes
  int64_t rows, cols;
  double eps;
  ScalarType dtype;
  const void* residual = nullptr;
  void* sum = nullptr;
};
RAMET_KERNEL(layer_norm_forward, LayerNormArgs);

/// With h = (x - mean) rstd and g = dy weight:
///   dx = rstd (g - mean_c(g) - h mean_c(g h)),   dweight = sum_r dy h,   dbias = sum_r dy.
/// dx += dsum if that is not null: the sum x also has this gradient. Any of dx, dweight, dbias may
/// be null. dweight and dbias are sums over groups of rows (kLayerNormGroup on a CPU), in an order
/// that follows from the shape. The groups are added in double.
struct LayerNormBackwardArgs {
  const void *x, *weight, *dy;
  const void *mean, *rstd;
  void *dx, *dweight, *dbias;
  void* workspace;  // layer_norm_backward_workspace bytes
  int64_t rows, cols;
  ScalarType dtype;
  const void* dsum = nullptr;
};
RAMET_KERNEL(layer_norm_backward, LayerNormBackwardArgs);

inline constexpr int64_t kLayerNormGroup = 64;
/// On a GPU few rows make up to kLayerNormParts groups, for as many blocks. Rows of more than
/// kLayerNormPartColumns are cut as on a CPU.
inline constexpr int64_t kLayerNormParts = 256, kLayerNormPartColumns = 8192;

/// Groups for which the workspace has space.
constexpr int64_t layer_norm_groups(int64_t rows, int64_t cols) {
  const int64_t groups = (rows + kLayerNormGroup - 1) / kLayerNormGroup,
                parts = rows < kLayerNormParts ? rows : kLayerNormParts;
  return cols > kLayerNormPartColumns || groups > parts ? groups : parts;
}

/// `slots` is max_parallel_slots().
constexpr int64_t layer_norm_workspace(ScalarType t, int64_t cols, int slots) {
  return row_workspace(t, cols, 4, slots) + (is_converted(t) ? 2 * row_stride(cols) * 4 : 0);
}
constexpr int64_t layer_norm_backward_workspace(ScalarType t, int64_t rows, int64_t cols,
                                                int slots) {
  return layer_norm_groups(rows, cols) * 2 * row_stride(cols) * compute_bytes(t) +
         row_workspace(t, cols, 4, slots) + (is_converted(t) ? row_stride(cols) * 4 : 0);
}

}  // namespace kernels
}  // namespace ramet
