// Running products, extrema and sums of exponentials along an axis. Running sums:
// cumulative_sum.h.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

enum class RunningOp : uint8_t {
  kProduct,  // floating point in double, integers wrap
  kMax,
  kMin,        // the last of equal elements; from the first NaN on the last NaN
  kLogSumExp,  // log(sum of exp), of floating-point numbers; in double
};

/// out[o][k][i] is what `op` makes of in[o][0..k][i], of a dense outer x n x inner block, and
/// positions[o][k][i] which of these elements it is (extrema). `reverse`: of in[o][k..n-1][i].
/// A line is one thread's.
struct RunningArgs {
  const void* in;
  void* out;
  int64_t* positions;  // of extrema alone
  int64_t outer, n, inner;
  ScalarType in_dtype, out_dtype;  // REQUIRES: of one compute type
  RunningOp op;
  bool reverse;
};
RAMET_KERNEL(running, RunningArgs);

}  // namespace kernels
}  // namespace ramet
