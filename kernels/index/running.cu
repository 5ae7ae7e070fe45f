#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/index/running.h"
#include "kernels/index/running_state.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// A thread has a line.
template <class T, class State>
__global__ void running_kernel(RunningArgs a, Divisor<int64_t> by_inner) {
  for (int64_t line = first_item(); line < a.outer * a.inner; line += item_step()) {
    int64_t outer = line;
    const int64_t inner = by_inner.take(outer), base = outer * a.n * a.inner + inner;
    State state;
    for (int64_t k = 0; k < a.n; ++k) {
      const int64_t place = a.reverse ? a.n - 1 - k : k, at = base + place * a.inner;
      store_element(a.out, a.out_dtype, at,
                    state.take(load_element<T>(a.in, a.in_dtype, at), place));
      if constexpr (State::kPlaces) a.positions[at] = state.place;
    }
  }
}
template <class T, class State> void run_as(const RunningArgs& a, Stream where) {
  start_for("running", where, a.outer * a.inner, running_kernel<T, State>, a,
            Divisor<int64_t>(a.inner));
}

}  // namespace

void running(const RunningArgs& a, Stream where) {
  if (a.outer * a.n * a.inner == 0) return;
  if (a.op == RunningOp::kLogSumExp)
    return by_floating_type(
        a.in_dtype, [&](auto t) { run_as<decltype(t), RunningLogSumExp<decltype(t)>>(a, where); });
  by_compute_type(a.in_dtype, [&](auto t) {
    using T = decltype(t);
    if (a.op == RunningOp::kProduct) run_as<T, RunningProduct<T>>(a, where);
    else if (a.op == RunningOp::kMax) run_as<T, RunningMax<T>>(a, where);
    else run_as<T, RunningMin<T>>(a, where);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
