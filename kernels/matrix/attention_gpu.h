// Shared parts of the attention kernels on a GPU. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/matrix/attention.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// The start of row 0 of a matrix, in elements.
RAMET_INLINE int64_t start_of(const AttentionMatrix& m, int64_t matrix, int64_t heads) {
  return matrix / heads * m.batch + matrix % heads * m.head;
}

/// A block of a backward kernel has rows of q (and sums dq over the keys). With `kOfKeys` it has
/// rows of k (and sums dk and dv over the queries). In both cases it holds two matrices of its own
/// rows and iterates over two others. It needs the scores of its own rows by the others.
///   of queries: q, grad by k, v;  dq += slopes k
///   of keys:    k, v by q, grad;  dk += slopes' q,  dv += probabilities' grad
struct AttentionSides {
  AttentionMatrix mine1, mine2, other1, other2, sum1, sum2;
  int64_t mine, others;  // rows
};
inline AttentionSides sides_of(const AttentionBackwardArgs& a, bool of_keys) {
  if (of_keys) return {a.k, a.v, a.q, a.grad, a.dk, a.dv, a.k_rows, a.q_rows};
  return {a.q, a.grad, a.k, a.v, a.dq, {}, a.q_rows, a.k_rows};
}

/// The number to subtract from scores of which `largest` is the largest; 0 if there are none.
template <class T> RAMET_INLINE T attention_shift(T largest) {
  return largest == static_cast<T>(-INFINITY) ? T(0) : largest;
}

}  // namespace ramet::kernels::RAMET_VARIANT
