// Geometry of a reduction. For fronts and tests. Not for kernel files: their variants must contain
// no out-of-line copies of inline functions.
#pragma once
#include "kernels/reduce/reduce_gpu_plan.h"

namespace ramet {
namespace kernels {

namespace detail {

struct ReduceDims {
  int rank = 0;
  int64_t sizes[64], strides[64];

  /// Appends a dimension that varies faster than all before. False if it would be the ninth.
  void push(int64_t size, int64_t stride) {
    if (size == 1) return;
    if (rank > 0 && strides[rank - 1] == size * stride) {
      sizes[rank - 1] *= size;
      strides[rank - 1] = stride;
      return;
    }
    sizes[rank] = size;
    strides[rank++] = stride;
  }
  bool copy_to(int32_t& out_rank, int64_t* out_sizes, int64_t* out_strides) const {
    if (rank > kMaxKernelRank) return false;
    for (int d = 0; d < rank; ++d) out_sizes[d] = sizes[d], out_strides[d] = strides[d];
    if (rank == 0) out_sizes[0] = 1, out_strides[0] = 0;
    out_rank = rank == 0 ? 1 : rank;
    return true;
  }
};

/// The distance of neighbours. Repeated elements (stride 0) are best repeated as a whole, so they
/// count as far apart.
inline int64_t distance(int64_t stride) {
  return stride < 0 ? -stride : stride == 0 ? INT64_MAX : stride;
}
inline int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

inline void cut_reduce(ReduceArgs& a) {
  const int64_t columns = a.columns ? a.kept_sizes[a.kept_rank - 1] : 1,
                unit = a.columns ? kReduceRows : kReduceBlock;
  const int64_t width = columns < kReduceColumns ? columns : kReduceColumns;
  const int64_t tasks =
      columns == 0 ? 0 : a.outputs / columns * ((columns + kReduceColumns - 1) / kReduceColumns);
  a.segments = 1, a.segment = a.count;
  if (tasks > 0 && tasks < 16 && a.count > 0) {
    int64_t least = 65536 / width;  // elements of a sequence that pay for a task
    const int64_t most = 64;        // segments, columns; a partial result costs 24 bytes
    if (a.columns && (a.count + most - 1) / most > least) least = (a.count + most - 1) / most;
    a.segment = round_up(least, unit);
    a.segments = (a.count + a.segment - 1) / a.segment;
  }
  a.workspace_bytes = a.segments > 1 ? a.segments * a.outputs * kReducePartial : 0;
}

}  // namespace detail

/// Fills the geometry of `a` (ranks, extents, strides, counts, the cut, workspace_bytes) from a
/// tensor's extents and strides. `reduced[d]` marks the reduced dimensions; with `gpu` the cut is
/// for a GPU. op must be set. Outputs are in row-major order of the kept dimensions. Positions of
/// kMaxIndex and kMinIndex are in row-major order of the reduced ones. False if more than 8
/// dimensions remain after neighbours are merged. Then the front copies the tensor with the reduced
/// dimensions last and calls again.
inline bool plan_reduce(ReduceArgs& a, int rank, const int64_t* sizes, const int64_t* strides,
                        const bool* reduced, bool gpu = false) {
  detail::ReduceDims kept, gone;
  int order[64], n = 0;
  a.outputs = a.count = 1;
  for (int d = 0; d < rank; ++d) {
    if (reduced[d]) {
      a.count *= sizes[d];
      order[n++] = d;
    } else {
      a.outputs *= sizes[d];
      kept.push(sizes[d], strides[d]);
    }
  }
  if (a.op != ReduceOp::kMaxIndex &&
      a.op != ReduceOp::kMinIndex) {  // memory order, by insertion (stable)
    for (int i = 1; i < n; ++i)
      for (int j = i;
           j > 0 && detail::distance(strides[order[j - 1]]) < detail::distance(strides[order[j]]);
           --j) {
        const int t = order[j];
        order[j] = order[j - 1], order[j - 1] = t;
      }
  }
  for (int i = 0; i < n; ++i) gone.push(sizes[order[i]], strides[order[i]]);
  if (!kept.copy_to(a.kept_rank, a.kept_sizes, a.kept_strides)) return false;
  if (!gone.copy_to(a.reduced_rank, a.reduced_sizes, a.reduced_strides)) return false;
  const int64_t near = detail::distance(a.kept_strides[a.kept_rank - 1]);
  int64_t step = detail::distance(a.reduced_strides[0]);
  for (int d = 1; d < a.reduced_rank; ++d) {
    const int64_t s = detail::distance(a.reduced_strides[d]);
    if (s < step) step = s;
  }
  a.columns = a.kept_sizes[a.kept_rank - 1] > 1 && a.count > 1 && near < step;
  if (gpu) cut_reduce_for_gpu(a);
  else detail::cut_reduce(a);
  return true;
}

}  // namespace kernels
}  // namespace ramet
