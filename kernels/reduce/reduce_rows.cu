// Sums, means, norms and extrema of dense rows on a GPU, for float32 and 16 bits. The type and the
// operation are known to the compiler. Sums and means of columns are here, too.
//
// A lane of a warp has the reads of four packs under way. That is 64 bytes in 16 bits, and 64 KB
// for 32 warps of a multiprocessor. Rows of up to kReduceWarpCount elements have a warp, which
// joins by shuffles alone: no barrier, and no division for each row. In 16 bits an element takes
// two conversions and an addition in double, and its share of the row's costs. It reads 2 bytes, so
// a sum of rows should reach the copy rate. tools/cuda/budgets.py has the counts. None of this has
// run on a GPU yet.
//
// Thread and order of each element are those of sequences_kernel. That does the rest: rows that are
// not aligned, short rows, other types and operations. So a row's bits do not depend on its
// address.
#include "kernels/reduce/reduce_loops_gpu.h"
// clang-format off: the first decides what the other means
#include "kernels/rows/row_registers_gpu.h"
#include "kernels/rows/row_sums_gpu.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// The state of every kGroup-th pack of the n elements from `from` on, from the place-th pack on.
// `first`: the position of from[0] in its sequence.
template <class S, class Kind, int kGroup>
__device__ __forceinline__ StateOf<Kind> state_of_row(const ReduceArgs& a, const S* from, int64_t n,
                                                      int place, int64_t first) {
  constexpr int kAtOnce = 4;
  constexpr int64_t kStep = kGroup * kPack;
  const Row<S> row{const_cast<S*>(from), n, true};
  StateOf<Kind> state = Kind::start(a);
  ComputeOf<S> x[kPack];
  int64_t i = static_cast<int64_t>(place) * kPack;
  for (; i + (kAtOnce - 1) * kStep + kPack <= n; i += kAtOnce * kStep) {
    Pack<S> packs[kAtOnce];
    RAMET_UNROLL
    for (int k = 0; k < kAtOnce; ++k) packs[k].read(row, i + k * kStep);
    RAMET_UNROLL
    for (int k = 0; k < kAtOnce; ++k) {
      packs[k].get(x);
      Kind::take(a, state, x, kPack, first + i + k * kStep);
    }
  }
  for (; i < n; i += kStep) {
    row.get(i, x);
    Kind::take(a, state, x, static_cast<int>(imin(kPack, n - i)), first + i);
  }
  return state;
}

template <class S, class Kind, ReduceOp kOp, int kGroup> __global__ void rows_kernel(Plan p) {
  constexpr int kRowsAtOnce = kThreads / kGroup;
  __shared__ StateOf<Kind> shared[kGroup > kWarp ? kThreads : 1];
  ReduceArgs a = p.a;
  a.op = kOp;  // a constant in what follows
  const int64_t tasks = a.outputs * a.segments;
  const int place = static_cast<int>(threadIdx.x) % kGroup;
  // All threads of a block stay in the loop: they join together.
  for (int64_t b = blockIdx.x; b * kRowsAtOnce < tasks; b += gridDim.x) {
    const int64_t task = b * kRowsAtOnce + threadIdx.x / kGroup;
    int64_t output = task, part = 0;
    if constexpr (kGroup > kWarp)
      if (a.segments > 1) output = task / a.segments, part = task - output * a.segments;
    StateOf<Kind> state = Kind::start(a);
    if (task < tasks) {
      int64_t start[1];
      p.kept.at(output, start);
      const int64_t first = part * a.segment;
      state = state_of_row<S, Kind, kGroup>(a, static_cast<const S*>(a.in) + start[0] + first,
                                            imin(a.segment, a.count - first), place, first);
    }
    state = join_neighbours(state, kGroup, shared, joining<Kind>(a));
    if (task < tasks && place == 0) put<ComputeOf<S>, Kind>(p.a, state, output, part);
  }
}

template <class S, class Kind, ReduceOp kOp>
bool start_rows_of(const Plan& p, const ReduceGrid& grid, Stream where) {
  start(
      "reduce", where, grid_of(grid.blocks), kThreads, 0,
      grid.group == kWarp ? rows_kernel<S, Kind, kOp, kWarp> : rows_kernel<S, Kind, kOp, kThreads>,
      p);
  return true;
}
template <class S> bool start_as(const Plan& p, const ReduceGrid& grid, Stream where) {
  switch (p.a.op) {
    case ReduceOp::kSum:
    case ReduceOp::kMean: return start_rows_of<S, Fold<float>, ReduceOp::kSum>(p, grid, where);
    case ReduceOp::kSumSquares:
    case ReduceOp::kNorm2:
      return start_rows_of<S, Fold<float>, ReduceOp::kSumSquares>(p, grid, where);
    case ReduceOp::kMax: return start_rows_of<S, Extreme<float>, ReduceOp::kMax>(p, grid, where);
    case ReduceOp::kMin: return start_rows_of<S, Extreme<float>, ReduceOp::kMin>(p, grid, where);
    default: return false;
  }
}

}  // namespace

bool start_typed_rows(const Plan& p, const ReduceGrid& grid, Stream where) {
  const bool by_warp = grid.group == kWarp && p.a.segments == 1;
  if (!p.packed || !(by_warp || grid.group == kThreads)) return false;
  switch (p.a.in_dtype) {
    case ScalarType::Float: return start_as<float>(p, grid, where);
    case ScalarType::Half: return start_as<HalfBits>(p, grid, where);
    case ScalarType::BFloat16: return start_as<BfloatBits>(p, grid, where);
    default: return false;
  }
}

// Eight columns of a thread, in the order of row_sums_gpu.h.
bool start_typed_columns(const ReduceArgs& a, Stream where) {
  if (!a.columns || a.kept_rank != 1 || a.reduced_rank != 1 || a.kept_strides[0] != 1) return false;
  if (a.op != ReduceOp::kSum && a.op != ReduceOp::kMean) return false;
  RowSums sums =
      row_sums(a.in, {{a.count, a.reduced_strides[0]}}, a.outputs, 1, a.out, a.out_dtype);
  if (a.op == ReduceOp::kMean) sums.divisor = static_cast<double>(a.count);
  switch (a.in_dtype) {
    case ScalarType::Float: sum_rows_of<float, float>("reduce", where, sums); return true;
    case ScalarType::Half: sum_rows_of<HalfBits, float>("reduce", where, sums); return true;
    case ScalarType::BFloat16: sum_rows_of<BfloatBits, float>("reduce", where, sums); return true;
    default: return false;
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
