// Places among sorted numbers.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// out[i] = the number of the `n` ascending boundaries that are below values[i] (not above it with
/// `right`), by bisection. With a NaN among them, or boundaries out of order, it is what bisection
/// gives. Value i belongs to line i / per_line of the boundaries. If per_line is 0, there is one
/// line. With `sorter` a line's boundaries are line[sorter[0]], line[sorter[1]], ... REQUIRES:
/// dense; dtype is Float, Double or Long; sorter's elements are in [0, n) (a GPU takes others as
/// 0).
struct SearchArgs {
  const void* boundaries;
  const int64_t* sorter;  // null: boundaries are in order
  const void* values;
  void* out;  // int32 or int64
  int64_t count, per_line, n;
  ScalarType dtype;
  bool narrow, right;  // narrow: int32
};
RAMET_KERNEL(search_sorted, SearchArgs);

}  // namespace kernels
}  // namespace ramet
