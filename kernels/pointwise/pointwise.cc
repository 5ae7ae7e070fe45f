// The drivers of all pointwise operations.
#include "kernels/pointwise/pointwise.h"

#include "kernels/copy/chunk.h"
#include "kernels/pointwise/pointwise_loop.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 8 * 1024;

// A run of elements along one dimension: out first, then the operands.
struct Run {
  char* data[4];
  int64_t stride[4];
  ScalarType type[4];
};

struct Plan {
  const PointwiseOp& op;
  Loop loop;
  ScalarType compute;
  Number s, t;
};
RAMET_INLINE Plan plan_of(const PointwiseOp& op, ScalarType compute, Number s, Number t) {
  Plan plan{op, nullptr, compute, s, t};
  by_dtype<float, double, int64_t>(compute, [&](auto c) { plan.loop = op.loop_of(c); });
  return plan;
}

template <class C> RAMET_INLINE C number_as(Number x) {
  if constexpr (sizeof(C) == 8) {
    C y;
    memcpy(&y, &x, sizeof y);
    return y;
  } else {
    return static_cast<C>(x.d);
  }
}

// n elements of a run. They are converted a chunk at a time if type or stride require it.
template <class C> void segment(const Plan& plan, const Run& run, int64_t n) {
  const int operands = plan.op.operands;
  const ScalarType result =
      plan.op.result == PointwiseResult::kTruth ? ScalarType::Bool : ComputeTag<C>::value;
  C buffer[3][kChunk];
  union {
    C value[kChunk];
    uint8_t truth[kChunk];
  } out;
  bool direct_in[3], direct = run.type[0] == result && run.stride[0] == 1;
  const bool direct_out = direct;
  PointwiseArgs part{};
  part.out = run.data[0], part.n = n, part.s = plan.s, part.t = plan.t;
  const void** in[3] = {&part.a, &part.b, &part.c};
  unsigned fixed_ones = 0;
  for (int o = 0; o < operands; ++o) {
    const bool fixed = !run.data[o + 1] || run.stride[o + 1] == 0;
    direct_in[o] = !fixed && run.type[o + 1] == ComputeTag<C>::value && run.stride[o + 1] == 1;
    *in[o] = direct_in[o] ? run.data[o + 1] : reinterpret_cast<char*>(buffer[o]);
    direct = direct && (direct_in[o] || (fixed && sizeof(C) == 4));
    if (!fixed) continue;
    // one value for all: copies that fill a register for float, else a chunk
    C value = number_as<C>(plan.t);
    if (run.data[o + 1]) load_chunk(run.data[o + 1], run.type[o + 1], 0, 1, &value);
    if (sizeof(C) == 4) fixed_ones |= 1u << o;
    const int64_t copies = sizeof(C) == 4 ? VL : imin(kChunk, n);
    for (int64_t i = 0; i < copies; ++i) buffer[o][i] = value;
  }
  if (direct) return plan.loop(part, fixed_ones);

  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = imin(kChunk, n - i);
    for (int o = 0; o < operands; ++o) {
      const char* p = run.data[o + 1];
      const ScalarType type = run.type[o + 1];
      const int64_t stride = run.stride[o + 1];
      if (!p || stride == 0) continue;
      if (direct_in[o]) *in[o] = at(p, type, i);
      else load_chunk(at(p, type, i * stride), type, stride, m, buffer[o]);
    }
    char* to = at(run.data[0], run.type[0], i * run.stride[0]);
    part.out = direct_out ? static_cast<void*>(to) : static_cast<void*>(&out);
    part.n = m;
    plan.loop(part, fixed_ones);
    if (direct_out) continue;
    if (result == ScalarType::Bool) {  // truth values into another type or a strided output
      C value[kChunk];
      load_chunk(out.truth, ScalarType::Bool, 1, m, value);
      store_chunk(to, run.type[0], run.stride[0], m, value);
    } else {
      store_chunk(to, run.type[0], run.stride[0], m, out.value);
    }
  }
}
void segment_of(const Plan& plan, const Run& run, int64_t n) {
  by_dtype<float, double, int64_t>(plan.compute,
                                   [&](auto c) { segment<decltype(c)>(plan, run, n); });
}

// The bytes that an operation reads and writes, to decide whether threads share the work.
RAMET_INLINE int64_t bytes_touched(const ScalarType* type, int operands, int64_t n) {
  int64_t bytes = 0;
  for (int o = 0; o <= operands; ++o) bytes += bytes_of(type[o]);
  return bytes * n;
}

}  // namespace

void run_dense(const PointwiseArgs& a, const PointwiseOp& op) {
  const Plan plan = plan_of(op, a.compute, a.s, a.t);
  const void* in[3] = {a.a, a.b, a.c};
  Run run{{static_cast<char*>(a.out)}, {1, 1, 1, 1}, {a.out_type, a.a_type, a.b_type, a.c_type}};
  for (int o = 0; o < op.operands; ++o)
    run.data[o + 1] = const_cast<char*>(static_cast<const char*>(in[o]));
  if (bytes_touched(run.type, op.operands, a.n) < parallel_grain())
    return segment_of(plan, run, a.n);
  parallel_tasks(ceil_div(a.n, kTaskElements), [&](int64_t task, int) {
    Run part = run;
    for (int o = 0; o <= op.operands; ++o)
      if (part.data[o]) part.data[o] = at(part.data[o], part.type[o], task * kTaskElements);
    segment_of(plan, part, imin(kTaskElements, a.n - task * kTaskElements));
  });
}

void run_strided(const PointwiseStridedArgs& a, const PointwiseOp& op) {
  const Plan plan = plan_of(op, a.compute, a.s, a.t);
  const int last = a.rank - 1, outer = last < 0 ? 0 : last;
  const int64_t n = a.rank ? a.sizes[last] : 1;
  int64_t rows = 1;
  for (int d = 0; d < outer; ++d) rows *= a.sizes[d];
  if (rows == 0 || n == 0) return;

  // Segments of at most kTaskElements; a task takes as many short rows as fit, or one segment.
  const int64_t segments = ceil_div(n, kTaskElements),
                per_task = segments > 1 ? 1 : imax(1, kTaskElements / n);
  auto task = [&](int64_t t, int) {
    const int64_t begin = t * per_task, end = imin(begin + per_task, rows * segments);
    Odometer<4> row{
        outer, a.sizes, {a.strides[0], a.strides[1], a.strides[2], a.strides[3]}, {}, {}};
    // Operands that the operation does not take have no strides.
    static constexpr int64_t kNone[kMaxKernelRank] = {};
    for (int o = op.operands + 1; o < 4; ++o) row.strides[o] = kNone;
    row.seek(begin / segments);
    for (int64_t s = begin; s < end; ++s, row.next()) {
      const int64_t i = s % segments * kTaskElements;
      Run run{};
      for (int o = 0; o <= op.operands; ++o) {
        run.type[o] = a.type[o];
        run.stride[o] = a.rank ? a.strides[o][last] : 1;
        run.data[o] = a.data[o] ? at(static_cast<char*>(a.data[o]), a.type[o],
                                     row.offset[o] + i * run.stride[o])
                                : nullptr;
      }
      segment_of(plan, run, imin(n - i, kTaskElements));
    }
  };
  const int64_t tasks = ceil_div(rows * segments, per_task);
  if (bytes_touched(a.type, op.operands, rows * n) < parallel_grain())
    for (int64_t t = 0; t < tasks; ++t) task(t, 0);
  else parallel_tasks(tasks, task);
}

}  // namespace ramet::kernels::RAMET_VARIANT
