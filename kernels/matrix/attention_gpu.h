// What the bodies of attention on a GPU share. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/matrix/attention.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// Where row 0 of a matrix begins, in elements.
RAMET_INLINE int64_t start_of(const AttentionMatrix& m, int64_t matrix, int64_t heads) {
  return matrix / heads * m.batch + matrix % heads * m.head;
}

/// A backward kernel's block has rows of q (and sums up dq over the keys) or rows of k (dk and dv
/// over the queries); `kOfKeys` says which. Either way it holds two matrices of its own rows, goes
/// through two of others, and needs the scores of own by others:
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

/// Scores no larger than this take part; what is taken off them is 0 where there are none.
template <class T> RAMET_INLINE T attention_shift(T largest) {
  return largest == static_cast<T>(-INFINITY) ? T(0) : largest;
}

}  // namespace ramet::kernels::RAMET_VARIANT
