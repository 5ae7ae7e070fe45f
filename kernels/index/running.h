// Running products, extrema and sums of exponentials along an axis. Running sums:
// cumulative_sum.h.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

enum class RunningOp : uint8_t {
  kProduct,  // floating point in double, integers wrap
  kMax,
  kMin,        // the last of equal elements; after the first NaN the last NaN
  kLogSumExp,  // log(sum of exp), of floating-point numbers; in double
};

/// out[o][k][i] is the result of `op` for in[o][0..k][i], for a dense outer x n x inner block. For
/// extrema positions[o][k][i] is the position of that element. `reverse`: for in[o][k..n-1][i]. One
/// thread computes a line.
struct RunningArgs {
  const void* in;
  void* out;
  int64_t* positions;  // only for extrema
  int64_t outer, n, inner;
  ScalarType in_dtype, out_dtype;  // REQUIRES: of one compute type
  RunningOp op;
  bool reverse;
};
RAMET_KERNEL(running, RunningArgs);

}  // namespace kernels
}  // namespace ramet
