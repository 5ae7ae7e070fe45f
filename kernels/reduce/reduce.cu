// The loops over a reduction's elements on a GPU; Note [How a reduction is cut] in reduce.h. A
// group of threads has a sequence, or a segment of one. Each thread takes every group-th eight
// elements. Then the group's states are joined as a tree. The elements of each thread depend on the
// shape alone.
#include "kernels/reduce/reduce_loops_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Elements `first` to `first + n` of the sequence that begins at element `start`.
template <class T>
__device__ __forceinline__ void read(const Plan& p, int64_t start, int64_t first, int n,
                                     T (&x)[kPack]) {
  if (p.packed && n == kPack) return load_pack(p.a.in, p.a.in_dtype, start + first, x);
  RAMET_UNROLL
  for (int j = 0; j < kPack; ++j) {
    if (j >= n) break;
    int64_t offset[1];
    p.reduced.at(first + j, offset);
    x[j] = load_element<T>(p.a.in, p.a.in_dtype, start + offset[0]);
  }
}

// The state of a part of an output's sequence: every turns-th eight elements, from the turn-th on.
template <class T, class Kind>
__device__ __forceinline__ StateOf<Kind> state_of(const Plan& p, int64_t output, int64_t part,
                                                  int64_t turn, int64_t turns) {
  const ReduceArgs& a = p.a;
  StateOf<Kind> state = Kind::start(a);
  int64_t start[1];
  p.kept.at(output, start);
  const int64_t begin = part * a.segment, end = imin(a.count, begin + a.segment);
  for (int64_t i = begin + turn * kPack; i < end; i += turns * kPack) {
    T x[kPack];
    const int n = static_cast<int>(imin(kPack, end - i));
    read(p, start[0], i, n, x);
    Kind::take(a, state, x, n, i);
  }
  return state;
}

template <class T, class Kind> __global__ void sequences_kernel(Plan p, int group) {
  StateOf<Kind>* shared = dynamic_shared<StateOf<Kind>>();
  const ReduceArgs& a = p.a;
  const int64_t tasks = a.outputs * a.segments, groups = blockDim.x / static_cast<unsigned>(group);
  const int64_t place = threadIdx.x % static_cast<unsigned>(group);
  // All threads of a block stay in the loop: they join together.
  for (int64_t b = blockIdx.x; b * groups < tasks; b += gridDim.x) {
    const int64_t task = b * groups + threadIdx.x / static_cast<unsigned>(group);
    const int64_t output = task / a.segments, part = task % a.segments;
    StateOf<Kind> state =
        task < tasks ? state_of<T, Kind>(p, output, part, place, group) : Kind::start(a);
    state = join_neighbours(state, group, shared, joining<Kind>(a));
    if (task < tasks && place == 0) put<T, Kind>(a, state, output, part);
  }
}

constexpr int kColumnsAtOnce = static_cast<int>(kReduceGpuColumns),
              kRowGroups = kThreads / kColumnsAtOnce;
static_assert(kColumnsAtOnce == kWarp && kThreads == kReduceGpuThreads && kPack == kReduceGpuPack);

// Neighbouring outputs are adjacent: a warp reads 32 of them, and eight warps take turns in rows.
template <class T, class Kind> __global__ void columns_kernel(Plan p) {
  StateOf<Kind>* shared = dynamic_shared<StateOf<Kind>>();
  const ReduceArgs& a = p.a;
  const int64_t columns = a.kept_sizes[a.kept_rank - 1], across = ceil_div(columns, kColumnsAtOnce),
                tasks = a.outputs / columns * across * a.segments;
  const int x = threadIdx.x % kColumnsAtOnce, y = threadIdx.x / kColumnsAtOnce;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t part = task % a.segments, tile = task / a.segments,
                  column = tile % across * kColumnsAtOnce + x,
                  output = tile / across * columns + column;
    const bool inside = column < columns;
    StateOf<Kind> state =
        inside ? state_of<T, Kind>(p, output, part, y, kRowGroups) : Kind::start(a);
    state = join_warps(state, kRowGroups, shared, joining<Kind>(a));
    if (inside && y == 0) put<T, Kind>(a, state, output, part);
  }
}

// A group of threads has the segments of an output.
template <class T, class Kind> __global__ void segments_kernel(ReduceArgs a, int group) {
  StateOf<Kind>* shared = dynamic_shared<StateOf<Kind>>();
  over_outputs(a.outputs, group, [&](int64_t output, bool there) {
    const auto* states = static_cast<const StateOf<Kind>*>(a.workspace) + output * a.segments;
    const StateOf<Kind> state = join_pieces(
        Kind::start(a), there ? a.segments : 0, group, shared, [&](int64_t k) { return states[k]; },
        joining<Kind>(a));
    if (!there || static_cast<int>(threadIdx.x) % group != 0) return;
    const T value = Kind::result(a, state, output);
    if (a.out) store_element(a.out, a.out_dtype, output, value);
  });
}

template <class T, class Kind> void run(const ReduceArgs& a, Stream where) {
  static_assert(sizeof(StateOf<Kind>) <= kReducePartial, "what workspace_bytes counts with");
  Plan p;
  p.a = a;
  p.kept.set(a.kept_rank, a.kept_sizes, a.outputs);
  p.reduced.set(a.reduced_rank, a.reduced_sizes, a.count);
  for (int d = 0; d < a.kept_rank; ++d) p.kept.strides[0][d] = a.kept_strides[d];
  for (int d = 0; d < a.reduced_rank; ++d) p.reduced.strides[0][d] = a.reduced_strides[d];
  p.packed = a.reduced_rank == 1 && a.reduced_strides[0] == 1 && packs_fit(a.in, a.in_dtype);
  for (int d = 0; d < a.kept_rank; ++d)
    p.packed = p.packed && (a.kept_strides[d] % kPack == 0 || a.kept_sizes[d] == 1);
  const size_t shared = kThreads * sizeof(StateOf<Kind>);
  const ReduceGrid grid = reduce_gpu_grid(a);
  if (a.columns)
    start("reduce", where, grid_of(grid.blocks), kThreads, shared, columns_kernel<T, Kind>, p);
  else if (!start_typed_rows(p, grid, where))
    start("reduce", where, grid_of(grid.blocks), kThreads, shared, sequences_kernel<T, Kind>, p,
          grid.group);
  if (a.segments > 1)
    start_join("reduce", where, a.outputs, a.segments, shared, segments_kernel<T, Kind>, a);
}

template <class T> void run_as(const ReduceArgs& a, Stream where) {
  switch (a.op) {
    case ReduceOp::kMax:
    case ReduceOp::kMin:
    case ReduceOp::kNormInf:
    case ReduceOp::kNormNegInf: return run<T, Extreme<T>>(a, where);
    case ReduceOp::kMaxIndex:
    case ReduceOp::kMinIndex: return run<T, Place<T>>(a, where);
    case ReduceOp::kAny:
    case ReduceOp::kAll: return run<T, Truth<T>>(a, where);
    case ReduceOp::kVar:
    case ReduceOp::kStd:
      if constexpr (!std::is_integral<T>::value) return run<T, Variance<T>>(a, where);
      else return;
    case ReduceOp::kNorm2:
      if constexpr (std::is_same<T, double>::value) return run<T, Norm2>(a, where);
      else return run<T, Fold<T>>(a, where);
    default: return run<T, Fold<T>>(a, where);
  }
}

}  // namespace

void reduce(const ReduceArgs& a, Stream where) {
  if (a.outputs == 0 || start_typed_columns(a, where)) return;
  by_compute_type(a.in_dtype, [&](auto t) { run_as<decltype(t)>(a, where); });
}

}  // namespace ramet::kernels::RAMET_VARIANT
