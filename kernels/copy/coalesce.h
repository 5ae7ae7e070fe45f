// Fewer, longer dimensions for a loop over strided operands. Used by fronts before they fill an
// argument block.
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {

/// The most dimensions of a tensor, so of the operands of a front.
inline constexpr int kMaxTensorRank = 64;

/// Rewrites a loop over `rank` dimensions of some operands (strides[operand][dimension], in
/// elements). The new loop visits the same element tuples in the same order with fewer dimensions.
/// Dimensions of size 1 are removed. Neighbours are merged if they are contiguous in every operand.
/// Returns the new rank, 0 for a single tuple. REQUIRES: no size is 0.
inline int merge_neighbours(int operands, int rank, int64_t* sizes,
                            int64_t (*strides)[kMaxTensorRank]) {
  int r = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    bool merges = r > 0;
    for (int o = 0; o < operands && merges; ++o)
      merges = strides[o][r - 1] == strides[o][d] * sizes[d];
    const int64_t size = merges ? sizes[--r] * sizes[d] : sizes[d];
    sizes[r] = size;
    for (int o = 0; o < operands; ++o) strides[o][r] = strides[o][d];
    ++r;
  }
  return r;
}

/// The same for N operands (strides 0 where one is broadcast; operand 0 is the output) with the
/// fewest dimensions, in another order. Before neighbours are merged, dimensions are sorted so that
/// the output's strides do not increase (the output is written in memory order).
template <int N> int coalesce(int rank, int64_t* sizes, int64_t (*strides)[kMaxTensorRank]) {
  int r = 0;
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] == 1) continue;
    const int64_t size = sizes[d];
    int64_t s[N];
    for (int o = 0; o < N; ++o) s[o] = strides[o][d];
    int at = r++;
    auto before = [&](int e) {  // does the new dimension belong outside dimension e?
      for (int o = 0; o < N; ++o)
        if (s[o] != strides[o][e]) return s[o] > strides[o][e];
      return false;
    };
    for (; at > 0 && before(at - 1); --at) {
      sizes[at] = sizes[at - 1];
      for (int o = 0; o < N; ++o) strides[o][at] = strides[o][at - 1];
    }
    sizes[at] = size;
    for (int o = 0; o < N; ++o) strides[o][at] = s[o];
  }
  return merge_neighbours(N, r, sizes, strides);
}

/// Calls run(offset) for every tuple of the first `outer` dimensions, in order, with each operand's
/// offset. A kernel then runs over the other dimensions. Once for outer = 0.
template <int N, class Run>
void over_outer(int outer, const int64_t* sizes, const int64_t (*strides)[kMaxTensorRank],
                const Run& run) {
  int64_t index[kMaxTensorRank] = {}, offset[N] = {};
  for (;;) {
    run(offset);
    int d = outer - 1;
    for (; d >= 0; --d) {
      for (int o = 0; o < N; ++o) offset[o] += strides[o][d];
      if (++index[d] < sizes[d]) break;
      for (int o = 0; o < N; ++o) offset[o] -= strides[o][d] * sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace kernels
}  // namespace ramet
