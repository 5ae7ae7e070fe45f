// Softmax and log-softmax. The axis is the last one of a dense rows x cols block; fronts move it
// there. Or it is the middle one of [rows / inner, cols, inner].
#pragma once
#include "kernels/kernel.h"
#include "kernels/rows/row_tasks.h"

namespace ramet {
namespace kernels {

/// y[r] = exp(x[r] - m) / s, or x[r] - m - log s. m is the maximum of row r, and s = sum exp(x[r] -
/// m). A row with a NaN, with +inf, or with nothing but -inf gives NaN. x and y may be the same
/// block. With inner > 0 element c of row r is at (r / inner cols + c) inner + r % inner. REQUIRES:
/// float, double, half or bfloat16; workspace of softmax_workspace bytes. On a GPU and for 16-bit
/// floats inner = 0.
struct SoftmaxArgs {
  const void* x;
  void* y;
  void* workspace;
  int64_t rows, cols;
  ScalarType dtype;
  bool log;
  int64_t inner = 0;
};
RAMET_KERNEL(softmax_forward, SoftmaxArgs);

/// From the result y and its gradient dy: dx = y (dy - sum y dy), or dy - exp(y) sum dy for
/// log-softmax. inner: as in the forward pass.
struct SoftmaxBackwardArgs {
  const void *y, *dy;
  void* dx;  // may be dy
  void* workspace;
  int64_t rows, cols;
  ScalarType dtype;
  bool log;
  int64_t inner = 0;
};
RAMET_KERNEL(softmax_backward, SoftmaxBackwardArgs);

/// Bytes for either; `slots` is max_parallel_slots().
constexpr int64_t softmax_workspace(ScalarType t, int64_t cols, int slots) {
  return row_workspace(t, cols, 3, slots);
}

}  // namespace kernels
}  // namespace ramet
