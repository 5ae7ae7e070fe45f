// Reading and writing at positions that index tensors name: gather, scatter, index_select,
// index_add, embedding and advanced indexing are one loop; masks have three of their own.
#pragma once
#include "kernels/inline.h"
#include "kernels/kernel.h"
#include "kernels/sort.h"
#include "kernels/view.h"

namespace ramet {
namespace kernels {

/// *first_bad = the smallest i with index[i * stride] outside [low, high), -1 where there is none.
/// `ignored` is never bad where `ignores`: every number can be an index, so none says "nothing". On
/// a GPU it goes to `fault` instead (runtime/gpu.h).
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
  kGet,  // y = x[...]
  kPut,  // x[...] = y: of several values for one element the last one stays
  kAdd,  // x[...] += y: in the order of the loop, in the compute type, rounded once
};

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

  RAMET_INLINE void step(const IndexArgs& a, int32_t d, int64_t& linear) {
    const int64_t at = linear % a.sizes[d];
    linear /= a.sizes[d];
    y += at * a.y_strides[d];
    x += at * a.x_strides[d];
    for (int32_t k = 0; k < a.indices; ++k) index[k] += at * a.index_strides[k][d];
  }
  RAMET_INLINE void add(const IndexArgs& a, const int32_t* dims, int32_t rank, int64_t linear) {
    for (int32_t i = rank - 1; i >= 0; --i) step(a, dims[i], linear);
  }
  /// What the index tensors add to x: steps are not negative, so it is not.
  RAMET_INLINE int64_t place(const IndexArgs& a) const {
    int64_t at = 0;
    for (int32_t k = 0; k < a.indices; ++k) {
      const int64_t v = a.index[k][index[k]], size = a.index_size[k], i = v < 0 ? v + size : v;
      if (i < 0 || i >= size) return kNowhere;
      at += i * a.index_step[k];
    }
    return at;
  }
  RAMET_INLINE int64_t place_unless_skipped(const IndexArgs& a) const {
    const bool skipped =
        a.mode == IndexMode::kAdd && a.indices > 0 && a.index[0][index[0]] == a.skipped;
    return skipped ? kNowhere : place(a);
  }
};

/// More than every place, and the bits it has.
struct IndexPlaces {
  uint64_t none = 1;
  int32_t bits = 1;
  RAMET_INLINE explicit IndexPlaces(const IndexArgs& a) {
    for (int32_t k = 0; k < a.indices; ++k)
      none += static_cast<uint64_t>((a.index_size[k] - 1) * a.index_step[k]);
    while (bits < 64 && none >> bits) ++bits;
  }
};

/// Tuples that meet are put into order on a GPU, where there are more than so many; on a CPU where
/// their sums are rounded.
inline constexpr int64_t kFewMeetings = 64;
RAMET_INLINE bool sorts_meetings(const IndexArgs& a, bool cpu) {
  const bool add = a.mode == IndexMode::kAdd,
             rounds = a.dtype == ScalarType::Half || a.dtype == ScalarType::BFloat16;
  if (cpu ? !add || !rounds : a.mode == IndexMode::kGet) return false;
  return IndexDimensions(a).meetings > (cpu ? 1 : kFewMeetings);
}
/// Bytes of workspace of a loop: places and numbers of tuples, and what sorts them.
inline int64_t index_workspace(const IndexArgs& a, bool cpu) {
  if (!sorts_meetings(a, cpu)) return 0;
  const IndexDimensions d(a);
  return 16 * d.rows * d.meetings + sort_workspace(d.rows, d.meetings);
}

inline constexpr int64_t kMaskBlock = 4096;
/// int64 values mask_count writes.
constexpr int64_t mask_offsets(int64_t n) { return (n + kMaskBlock - 1) / kMaskBlock + 1; }

/// offsets[b] = number of true bytes in mask[0, b * kMaskBlock); the last of mask_offsets(n) values
/// is their total.
struct MaskCountArgs {
  const void* mask;  // dense bool
  int64_t n;
  int64_t* offsets;
};
RAMET_KERNEL(mask_count, MaskCountArgs);

/// The elements under a true mask, in order: packed[k] = dense[i] (select) or dense[i] = packed[k]
/// (scatter). REQUIRES: offsets by mask_count; `bytes` (1, 2, 4 or 8) an element.
struct MaskMoveArgs {
  const void* mask;
  const int64_t* offsets;
  void *dense, *packed;
  int64_t n, bytes;
  bool scatter;
};
RAMET_KERNEL(mask_move, MaskMoveArgs);

/// out[k][d] = coordinate d of the k-th true element of a mask of these extents.
/// Above kMaxKernelRank dimensions the front passes rank 1 and splits the result.
struct NonzeroArgs {
  const void* mask;
  const int64_t* offsets;
  int64_t* out;
  int32_t rank;
  int64_t sizes[kMaxKernelRank];
};
RAMET_KERNEL(nonzero_positions, NonzeroArgs);

/// Running sums along the middle axis of a dense outer x n x inner block: out[o][k][i] = sum of
/// in[o][0..k][i]; floating point in double, integers wrap. `reverse` sums from the end.
struct CumulativeSumArgs {
  const void* in;
  void* out;
  int64_t outer, n, inner;
  ScalarType in_dtype, out_dtype;  // REQUIRES: of one compute type
  bool reverse;
  void* workspace;  // on a GPU cumulative_sum_workspace() bytes
};
RAMET_KERNEL(cumulative_sum, CumulativeSumArgs);

/// How a GPU cuts the lines along the middle axis: few long ones into segments of a multiple of
/// 1,024 elements, about 1,024 of all lines together. Many lines, or short ones, stay whole.
constexpr int64_t cumulative_sum_segment(int64_t outer, int64_t n, int64_t inner) {
  const int64_t unit = 1024, lines = outer * inner, per = (n * lines + unit - 1) / unit;
  return ((per > unit ? per : unit) + unit - 1) / unit * unit;
}
/// Bytes of its workspace on a GPU: a sum of 8 bytes for each segment. On a CPU it needs none.
constexpr int64_t cumulative_sum_workspace(int64_t outer, int64_t n, int64_t inner) {
  const int64_t segment = cumulative_sum_segment(outer, n, inner);
  return n <= segment ? 0 : 8 * outer * inner * ((n + segment - 1) / segment);
}

}  // namespace kernels
}  // namespace ramet
