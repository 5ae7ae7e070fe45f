#include "kernels/index/running.h"

#include <cmath>

#include "kernels/copy/chunk.h"
#include "kernels/index/running_state.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

template <class T, class State> void run_as(const RunningArgs& a, int64_t cost) {
  constexpr int64_t kWidth = 32;
  const int64_t strips = ceil_div(a.inner, kWidth);
  run_tasks(a.outer * strips, a.outer * a.n * a.inner * cost, [&](int64_t task, int) {
    const int64_t c = task % strips * kWidth, w = imin(kWidth, a.inner - c),
                  base = task / strips * a.n * a.inner + c;
    State state[kWidth];
    T row[kChunk];
    // Several lines at once, or chunks of one line.
    const bool line = w == 1;
    const int64_t step = a.reverse ? -a.inner : a.inner,
                  start = a.reverse ? base + (a.n - 1) * a.inner : base, each = line ? kChunk : 1;
    for (int64_t k = 0; k < a.n; k += each) {
      const int64_t m = line ? imin(kChunk, a.n - k) : w, first = start + k * step,
                    stride = line ? step : 1;
      load_chunk(at(a.in, a.in_dtype, first), a.in_dtype, stride, m, row);
      for (int64_t j = 0; j < m; ++j) {
        State& s = state[line ? 0 : j];
        const int64_t place = line ? k + j : k;
        row[j] = s.take(row[j], a.reverse ? a.n - 1 - place : place);
        if constexpr (State::kPlaces) a.positions[first + j * stride] = s.place;
      }
      store_chunk(at(a.out, a.out_dtype, first), a.out_dtype, stride, m, row);
    }
  });
}

}  // namespace

void running(const RunningArgs& a) {
  if (a.outer == 0 || a.n == 0 || a.inner == 0) return;
  if (a.op == RunningOp::kLogSumExp)
    return by_floating_type(
        a.in_dtype, [&](auto t) { run_as<decltype(t), RunningLogSumExp<decltype(t)>>(a, 128); });
  by_compute_type(a.in_dtype, [&](auto t) {
    using T = decltype(t);
    if (a.op == RunningOp::kProduct) run_as<T, RunningProduct<T>>(a, 16);
    else if (a.op == RunningOp::kMax) run_as<T, RunningMax<T>>(a, 16);
    else run_as<T, RunningMin<T>>(a, 16);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
