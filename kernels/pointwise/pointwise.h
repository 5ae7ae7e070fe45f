// Pointwise kernels. Each operation has two: `name` for dense operands and `name_strided` for any.
//
// The operations are listed in lists.h, and their formulas are rows (row.h). Each family is
// compiled in its own file (pointwise_<family>.cc and .cu).
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"
#include "kernels/pointwise/lists.h"

namespace ramet {
namespace kernels {

/// A scalar of the compute type: `d` for float and double, `i` for int64.
union Number {
  double d;
  int64_t i;
};

/// out[i] = f(a[i], b[i], c[i]; s, t) for i < n. All operands are dense, in the same memory order.
/// One of the operands may be null: then it is the number `t` for every i. So a binary operation
/// takes a scalar on either side. Operands that the operation does not take are ignored. REQUIRES:
/// the operation exists for `compute` (Float, Double or Long); out overlaps an operand entirely or
/// not at all. Operands of other types are converted to the compute type, and the result to the
/// type of `out`, a chunk at a time.
struct PointwiseArgs {
  const void *a, *b, *c;
  void* out;
  int64_t n;
  Number s, t;
  ScalarType a_type, b_type, c_type, out_type, compute;
};

/// The same over `rank` dimensions with strides in elements (0 where an operand is broadcast);
/// order: out, a, b, c. Fastest after coalesce(). REQUIRES: out's elements are distinct.
struct PointwiseStridedArgs {
  void* data[4];
  ScalarType type[4];
  ScalarType compute;
  int32_t rank;
  Number s, t;
  int64_t sizes[kMaxKernelRank];
  int64_t strides[4][kMaxKernelRank];
};

#define RAMET_X(name, Row)           \
  RAMET_KERNEL(name, PointwiseArgs); \
  RAMET_KERNEL(name##_strided, PointwiseStridedArgs);
RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X

}  // namespace kernels
}  // namespace ramet
