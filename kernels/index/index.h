// Reads and writes at positions given by index tensors. One loop implements gather, scatter,
// index_select, index_add, embedding and advanced indexing.
#pragma once
#include "kernels/compute_bytes.h"
#include "kernels/copy/view.h"
#include "kernels/index/sort.h"
#include "kernels/kernel.h"
#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

/// *first_bad = the smallest i with index[i * stride] outside [low, high), -1 if there is none.
/// With `ignores` the value `ignored` is never bad; a flag is needed because every number can be an
/// index. On a GPU it goes to `fault` instead (runtime/devices/gpu.h).
struct CheckIndexArgs {
  const int64_t* index;
  int64_t n, stride, low, high, ignored;
  bool ignores;
  int64_t* first_bad;
  void* fault_word;
  uint32_t fault_check;
};
RAMET_KERNEL(check_index, CheckIndexArgs);

inline constexpr int kMaxIndexTensors = 8;

enum class IndexMode : uint8_t {
  kGet,   // y = x[...]
  kPut,   // x[...] = y: of several values for one element the last one remains
  kMove,  // x[...] = y: all tuples name different elements
  kAdd,   // x[...] += y: in the order of the loop, in the compute type, rounded once. On a GPU
          // sums of more than kIndexPiece sorted tuples are sums of pieces.
  kMul,   // x[...] *= y: likewise, rounded each time where it has sixteen bits
  kMax,   // x[...] = the larger of both, a NaN wins
  kMin,   // the smaller, likewise
};
/// Does the result depend on the old value of x as well as on y?
constexpr bool joins(IndexMode mode) { return mode >= IndexMode::kAdd; }

/// A loop over `rank` dimensions, row-major. At tuple i the element of y is y[i . y_strides], and
/// the element of x is
///   x[i . x_strides + sum_k wrap(index[k][i . index_strides[k]], index_size[k]) * index_step[k]],
/// where wrap adds the size to a negative value. A dimension in which an index tensor replaces x's
/// own position has x_stride 0. REQUIRES: every index is in [-size, size). (check_index; a GPU
/// skips tuples with another index, and they read 0.) x and y do not overlap. Tuples with different
/// coordinates in a dimension with x_stride != 0 name different elements of x. kAdd skips tuples
/// where index[0] is `skipped`. If `skipped` is index_size[0], which is no index, none is skipped.
struct IndexArgs {
  void* x;
  void* y;  // only read unless kGet
  ScalarType dtype;
  ScalarType y_dtype;  // dtype, except that 16-bit numbers may be added to float ones
  IndexMode mode;
  int32_t rank, indices;
  int64_t skipped;
  int64_t sizes[kMaxKernelRank], x_strides[kMaxKernelRank], y_strides[kMaxKernelRank];
  const int64_t* index[kMaxIndexTensors];
  int64_t index_strides[kMaxIndexTensors][kMaxKernelRank];
  int64_t index_size[kMaxIndexTensors], index_step[kMaxIndexTensors];
  void* workspace;  // index_workspace() bytes
};
RAMET_KERNEL(index_elements, IndexArgs);

/// The dimensions of a loop, by the effect of a step. Tuples meet in elements of x, or they stay
/// apart. In the second case the index tensors move (rows) or do not move (columns).
struct IndexDimensions {
  int32_t meeting[kMaxKernelRank], row[kMaxKernelRank], column[kMaxKernelRank];
  int32_t meeting_rank = 0, row_rank = 0, column_rank = 0;
  int64_t meetings = 1, rows = 1, columns = 1;

  RAMET_INLINE explicit IndexDimensions(const IndexArgs& a) {
    for (int32_t d = 0; d < a.rank; ++d) {
      bool moves = false;
      for (int32_t k = 0; k < a.indices; ++k) moves = moves || a.index_strides[k][d] != 0;
      if (a.x_strides[d] == 0) meeting[meeting_rank++] = d, meetings *= a.sizes[d];
      else if (moves) row[row_rank++] = d, rows *= a.sizes[d];
      else column[column_rank++] = d, columns *= a.sizes[d];
    }
  }
};

/// The offsets of a tuple: in y, in x without the index tensors, and in each index tensor.
struct IndexTuple {
  /// No place: an index is out of range, or to be skipped.
  static constexpr int64_t kNowhere = -1;
  int64_t y = 0, x = 0, index[kMaxIndexTensors] = {};

  /// Goes `at` steps along dimension d.
  RAMET_INLINE void go(const IndexArgs& a, int32_t d, int64_t at) {
    y += at * a.y_strides[d];
    x += at * a.x_strides[d];
    for (int32_t k = 0; k < a.indices; ++k) index[k] += at * a.index_strides[k][d];
  }
  RAMET_INLINE void add(const IndexArgs& a, const int32_t* dims, int32_t rank, int64_t linear) {
    for (int32_t i = rank - 1; i >= 0; --i) {
      const int64_t size = a.sizes[dims[i]];
      go(a, dims[i], linear % size);
      linear /= size;
    }
  }
  /// The weighted sum of the index tensors with these steps. With a.index_step it is the place in
  /// x. Steps are not negative, so neither is the sum.
  RAMET_INLINE int64_t sum(const IndexArgs& a, const int64_t* steps) const {
    int64_t at = 0;
    for (int32_t k = 0; k < a.indices; ++k) {
      const int64_t v = a.index[k][index[k]], size = a.index_size[k], i = v < 0 ? v + size : v;
      if (i < 0 || i >= size) return kNowhere;
      at += i * steps[k];
    }
    return at;
  }
  RAMET_INLINE int64_t place(const IndexArgs& a) const { return sum(a, a.index_step); }
  RAMET_INLINE bool skipped(const IndexArgs& a) const {
    return a.mode == IndexMode::kAdd && a.indices > 0 && a.index[0][index[0]] == a.skipped;
  }
  RAMET_INLINE int64_t place_unless_skipped(const IndexArgs& a) const {
    return skipped(a) ? kNowhere : place(a);
  }
};

/// The sort keys of tuples: numbers that are equal if places are equal. A place includes the steps
/// of the index tensors, such as the length of a row of an embedding. A key only counts the
/// possible places, so it has fewer bits to sort by.
struct IndexKeys {
  int64_t steps[kMaxIndexTensors];
  uint64_t none = 1;  // more than every key: for tuples without a place
  int32_t bits = 1;   // of `none`

  RAMET_INLINE explicit IndexKeys(const IndexArgs& a) {
    // From the smallest step on. If each step exceeds the largest sum of those before it, different
    // indices name different places. Otherwise (a tensor that overlaps itself) keys are places.
    uint64_t farthest = 0, places = 1;
    bool apart = true, taken[kMaxIndexTensors] = {};
    for (int32_t n = 0; n < a.indices; ++n) {
      int32_t k = -1;
      for (int32_t j = 0; j < a.indices; ++j)
        if (!taken[j] && (k < 0 || a.index_step[j] < a.index_step[k])) k = j;
      taken[k] = true;
      steps[k] = 0;
      if (a.index_size[k] <= 1) continue;
      const uint64_t step = static_cast<uint64_t>(a.index_step[k]),
                     size = static_cast<uint64_t>(a.index_size[k]);
      apart = apart && step > farthest;
      farthest += (size - 1) * step;
      steps[k] = static_cast<int64_t>(places);
      places *= size;
    }
    if (!apart)
      for (int32_t k = 0; k < a.indices; ++k) steps[k] = a.index_step[k];
    none = apart ? places : farthest + 1;
    while (bits < 64 && none >> bits) ++bits;
  }
  RAMET_INLINE uint64_t of(const IndexArgs& a, const IndexTuple& t) const {
    const int64_t key = t.skipped(a) ? IndexTuple::kNowhere : t.sum(a, steps);
    return key == IndexTuple::kNowhere ? none : static_cast<uint64_t>(key);
  }
};

/// A GPU sorts tuples that meet if there are more than so many. A CPU sorts them if their sums are
/// rounded. Called on the host.
inline constexpr int64_t kFewMeetings = 64;
[[gnu::always_inline]] inline bool sorts_meetings(const IndexArgs& a, bool cpu) {
  const bool adds = a.mode == IndexMode::kAdd, rounds = is_converted(a.dtype);
  const bool apart = a.mode == IndexMode::kGet || a.mode == IndexMode::kMove;
  if (cpu ? !adds || !rounds : apart) return false;
  return IndexDimensions(a).meetings > (cpu ? 1 : kFewMeetings);
}
/// A GPU adds so many sorted tuples of one element in a row, and then such sums
/// (index_segments_gpu.h). index_slots() sums are kept for so many tuples.
inline constexpr int64_t kIndexPiece = 64;
constexpr int64_t index_slots(int64_t meetings) {
  return 2 * ((meetings + kIndexPiece - 1) / kIndexPiece);
}
/// Bytes of workspace of a loop: keys and numbers of tuples, and the workspace of the sort. On a
/// GPU then come the sums of pieces.
inline int64_t index_workspace(const IndexArgs& a, bool cpu) {
  if (!sorts_meetings(a, cpu)) return 0;
  const IndexDimensions d(a);
  const int64_t bytes = is_converted(a.dtype) || a.dtype == ScalarType::Float ? 4 : 8,
                sums = cpu || a.mode != IndexMode::kAdd
                           ? 0
                           : d.rows * index_slots(d.meetings) * d.columns * bytes;
  return 16 * d.rows * d.meetings + sort_workspace(d.rows, d.meetings) + sums;
}

}  // namespace kernels
}  // namespace ramet
