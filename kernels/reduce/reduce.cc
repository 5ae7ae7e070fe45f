// The loops over a reduction's elements; Note [How a reduction is cut] in reduce.h.
#include "kernels/reduce/reduce_kinds.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Reads the sequence of one output piece by piece.
struct Sequence {
  const ReduceArgs& a;
  const Kind& kind;
  const int64_t inner, stride;
  const void* base = nullptr;
  int64_t done = 0;  // in the current run along the innermost reduced dimension
  Odometer<1> runs;

  RAMET_INLINE Sequence(const ReduceArgs& args, const Kind& k)
      : a(args),
        kind(k),
        inner(a.reduced_sizes[a.reduced_rank - 1]),
        stride(a.reduced_strides[a.reduced_rank - 1]) {
    runs.rank = a.reduced_rank - 1, runs.sizes = a.reduced_sizes,
    runs.strides[0] = a.reduced_strides;
  }
  RAMET_INLINE void start(const void* output, int64_t position) {
    base = output,
    done = position == 0 ? 0
                         : position % inner;  // most start at the beginning, and a division is slow
    runs.seek(position == 0 ? 0 : position / inner);
  }
  // The next n elements: in place, or copied into `buffer`.
  RAMET_INLINE const void* next(int64_t n, char* buffer) {
    const void* x = buffer;
    for (int64_t have = 0; have < n;) {
      const int64_t piece = imin(n - have, inner - done);
      const void* p = at(base, a.in_dtype, runs.offset[0] + done * stride);
      if (piece == n) x = kind.read(p, a.in_dtype, stride, n, buffer);
      else kind.copy(p, a.in_dtype, stride, piece, buffer + have * kind.element);
      have += piece, done += piece;
      if (done == inner) done = 0, runs.next();
    }
    return x;
  }
};

void walk_sequences(const ReduceArgs& a, const Kind& kind) {
  const bool cut = a.segments > 1;
  const int64_t each = cut ? 1 : imin(kBatch, imax(1, 16384 / a.count));  // outputs of a task
  const int64_t tasks = cut ? a.outputs * a.segments : ceil_div(a.outputs, each);
  run_tasks(tasks, a.outputs * a.count * bytes_of(a.in_dtype), [&](int64_t task, int) {
    alignas(64) char buffer[kReduceBlock * 8];
    alignas(64) char states[kBatch * kReducePartial];
    const int64_t part = cut ? task % a.segments : 0, first = cut ? task / a.segments : task * each;
    const int64_t n = imin(each, a.outputs - first), begin = part * a.segment,
                  end = imin(a.count, begin + a.segment);
    char* into =
        cut ? static_cast<char*>(a.workspace) + (part * a.outputs + first) * kind.bytes : states;
    Odometer<1> kept;
    kept.rank = a.kept_rank, kept.sizes = a.kept_sizes, kept.strides[0] = a.kept_strides;
    kept.seek(first);
    kind.init(into, n);
    Sequence sequence(a, kind);
    for (int64_t o = 0; o < n; ++o) {
      sequence.start(at(a.in, a.in_dtype, kept.offset[0]), begin);
      for (int64_t i = begin; i < end; i += kReduceBlock) {
        const int64_t m = imin(kReduceBlock, end - i);
        kind.block(into + o * kind.bytes, sequence.next(m, buffer), m, i, a.parameter);
      }
      kept.next();
    }
    if (!cut) kind.finish(a, states, n, first);
  });
}

void walk_columns(const ReduceArgs& a, const Kind& kind) {
  const bool cut = a.segments > 1;
  const int64_t columns = a.kept_sizes[a.kept_rank - 1], step = a.kept_strides[a.kept_rank - 1];
  const bool in_place =
      a.in_dtype == compute_type_of(a.in_dtype) && step == 1;  // else tiles are copied
  const int64_t tile = in_place ? kind.tile : kTile;
  const int64_t groups = ceil_div(columns, kReduceColumns), units = a.outputs / columns * groups;
  const int64_t each =
      cut ? 1 : imax(1, 16384 / (a.count * imin(columns, kReduceColumns)));  // units of a task
  run_tasks(
      cut ? units * a.segments : ceil_div(units, each), a.outputs * a.count * bytes_of(a.in_dtype),
      [&](int64_t task, int) {
        alignas(64) char buffer[kReduceRows * kTile * 8];
        alignas(64) char states[kReduceColumns * kReducePartial];
        const int64_t part = cut ? task % a.segments : 0,
                      first = cut ? task / a.segments : task * each;
        const int64_t begin = part * a.segment, end = imin(a.count, begin + a.segment);
        Odometer<1> kept, sequence;
        kept.rank = a.kept_rank - 1, kept.sizes = a.kept_sizes, kept.strides[0] = a.kept_strides;
        sequence.rank = a.reduced_rank, sequence.sizes = a.reduced_sizes,
        sequence.strides[0] = a.reduced_strides;
        for (int64_t unit = first; unit < imin(first + each, units); ++unit) {
          const int64_t c0 = unit % groups * kReduceColumns,
                        width = imin(kReduceColumns, columns - c0);
          const int64_t output = unit / groups * columns + c0;
          char* into =
              cut ? static_cast<char*>(a.workspace) + (part * a.outputs + output) * kind.bytes
                  : states;
          kept.seek(unit / groups);
          sequence.seek(begin);
          kind.init(into, width);
          for (int64_t i = begin; i < end; i += kReduceRows) {
            const int64_t n = imin(kReduceRows, end - i);
            const char* starts[kReduceRows];
            for (int64_t r = 0; r < n; ++r) {
              starts[r] = at(a.in, a.in_dtype, kept.offset[0] + sequence.offset[0] + c0 * step);
              sequence.next();
            }
            for (int64_t c = 0; c < width; c += tile) {
              const int64_t w = imin(tile, width - c);
              const void* rows[kReduceRows];
              for (int64_t r = 0; r < n; ++r)
                rows[r] = kind.read(at(starts[r], a.in_dtype, c * step), a.in_dtype, step, w,
                                    buffer + r * kTile * kind.element);
              kind.columns(into + c * kind.bytes, rows, n, w, i, a.parameter);
            }
          }
          if (!cut) kind.finish(a, states, width, output);
        }
      });
}

}  // namespace

void reduce(const ReduceArgs& a) {
  const Kind& kind = kind_of(a);
  if (a.outputs == 0) return;
  if (a.count == 0) {
    alignas(64) char states[kBatch * kReducePartial];
    kind.init(states, kBatch);
    for (int64_t o = 0; o < a.outputs; o += kBatch)
      kind.finish(a, states, imin(kBatch, a.outputs - o), o);
    return;
  }
  if (a.columns) walk_columns(a, kind);
  else walk_sequences(a, kind);
  if (a.segments <= 1) return;
  run_tasks(ceil_div(a.outputs, kBatch), a.workspace_bytes, [&](int64_t task, int) {
    const int64_t first = task * kBatch, n = imin(kBatch, a.outputs - first);
    char* states = static_cast<char*>(a.workspace) + first * kind.bytes;
    for (int64_t s = 1; s < a.segments; ++s)
      kind.merge(states, states + s * a.outputs * kind.bytes, n);
    kind.finish(a, states, n, first);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
