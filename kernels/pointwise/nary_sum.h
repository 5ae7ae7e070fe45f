// The sum of several tensors in one pass over memory. ReduceAdd uses it for the contributions of
// the replicas.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

inline constexpr int kMaxSummands = 16;

/// out[i] = the sum of in[0..leaves)[i], i < n; all dense, of one type. Order: with tree = false
/// from left to right. With tree = true a balanced binary tree over the leaf *positions* (as many
/// as the next power of two). A null leaf is replaced by its sibling's subtree, so the association
/// does not depend on which leaves are present. float and double add in their type; half and
/// bfloat16 add in float, rounded once; integers wrap; bool is "or". REQUIRES: 1 <= leaves <= 16,
/// one of them not null. `out` may be in[0] (or any one leaf), else it overlaps none.
struct NarySumArgs {
  const void* in[kMaxSummands];
  void* out;
  int64_t n;
  int32_t leaves;
  ScalarType dtype;
  bool tree;
};
RAMET_KERNEL(nary_sum, NarySumArgs);

}  // namespace kernels
}  // namespace ramet
