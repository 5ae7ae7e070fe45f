// Reading and writing at positions that index tensors name: gather, scatter, index_select,
// index_add, embedding and advanced indexing are one loop.
#pragma once
#include "kernels/compute_bytes.h"
#include "kernels/copy/view.h"
#include "kernels/index/sort.h"
#include "kernels/kernel.h"
#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

/// *first_bad = the smallest i with index[i * stride] outside [low, high), -1 where there is none.
/// `ignored` is never bad where `ignores`: every number can be an index, so none says "nothing". On
/// a GPU it goes to `fault` instead (runtime/devices/gpu.h).
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
  kPut,   // x[...] = y: of several values for one element the last one stays
  kMove,  // x[...] = y: no two tuples name one element
  kAdd,   // x[...] += y: in the order of the loop, in the compute type, rounded once
  kMul,   // x[...] *= y: likewise, rounded each time where it has sixteen bits
  kMax,   // x[...] = the larger of both, a NaN wins
  kMin,   // the smaller, likewise
};
/// Does x keep what it was, beside y?
constexpr bool joins(IndexMode mode) { return mode >= IndexMode::kAdd; }

/// A loop over `rank` dimensions, row-major. At tuple i the element of y is y[i . y_strides], the
/// element of x is x[i . x_strides + sum_k wrap(index[k][i . index_strides[k]], index_size[k]) *
/// index_step[k]], where wrap adds the size to a negative value. A dimension in which an index
/// tensor takes the place of x's own has x_stride 0. REQUIRES: every index in [-size, size)
/// (check_index; on a GPU tuples with another index are left out and read 0); x and y not
/// overlapping; different tuples with different coordinates in a dimension with x_stride != 0 name
/// different elements of x. Tuples where index[0] is `skipped` are left out (kAdd); index_size[0],
/// which is no index, skips none.
struct IndexArgs {
  void* x;
  void* y;  // only read unless kGet
  ScalarType dtype;
  ScalarType y_dtype;  // dtype, but that sixteen-bit numbers may be added to float ones
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

/// The dimensions of a loop by what tuples do along them: meet in elements of x; or keep apart,
/// with index tensors that move (rows) or do not (columns).
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

/// What a tuple adds up to: in y, in x without the index tensors, and in each of these.
struct IndexTuple {
  /// No place: an index is out of range, or to be left out.
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
  /// What the index tensors add up to with these steps. With a.index_step it is the place in x:
  /// steps are not negative, so neither is the sum.
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

/// What tuples are sorted by: numbers that are equal where places are. A place carries the steps of
/// the index tensors, the length of a row of an embedding; a key counts the places that there can
/// be, and so has fewer bits to sort by.
struct IndexKeys {
  int64_t steps[kMaxIndexTensors];
  uint64_t none = 1;  // more than every key: of tuples that go nowhere
  int32_t bits = 1;   // of `none`

  RAMET_INLINE explicit IndexKeys(const IndexArgs& a) {
    // From the least step on. As long as each goes beyond all that those before it add up to,
    // different indices name different places; else (a tensor that overlaps itself) keys are
    // places.
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

/// Tuples that meet are put into order on a GPU, where there are more than so many; on a CPU where
/// their sums are rounded. Asked on the host.
inline constexpr int64_t kFewMeetings = 64;
[[gnu::always_inline]] inline bool sorts_meetings(const IndexArgs& a, bool cpu) {
  const bool adds = a.mode == IndexMode::kAdd, rounds = is_converted(a.dtype);
  const bool apart = a.mode == IndexMode::kGet || a.mode == IndexMode::kMove;
  if (cpu ? !adds || !rounds : apart) return false;
  return IndexDimensions(a).meetings > (cpu ? 1 : kFewMeetings);
}
/// Bytes of workspace of a loop: keys and numbers of tuples, and what sorts them.
inline int64_t index_workspace(const IndexArgs& a, bool cpu) {
  if (!sorts_meetings(a, cpu)) return 0;
  const IndexDimensions d(a);
  return 16 * d.rows * d.meetings + sort_workspace(d.rows, d.meetings);
}

}  // namespace kernels
}  // namespace ramet
