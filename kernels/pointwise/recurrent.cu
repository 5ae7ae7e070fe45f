#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/pointwise/recurrent.h"
#include "kernels/pointwise/recurrent_formulas.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// A thread has one element, or eight neighbours of a row by 16-byte accesses. Doubles have no
// packs, because registers are too few.
template <class F, class C, class I, bool kPacked>
__global__ void step_kernel(StepParts<F> parts, Divisor<I> by_row, I items, int64_t cols,
                            ScalarType t) {
  constexpr int kEach = kPacked ? kPack : 1;
  for (int64_t item = first_item(); item < items; item += item_step()) {
    I row = static_cast<I>(item);
    const int64_t c = static_cast<int64_t>(by_row.take(row)) * kEach;
    const auto place = [&](const StepPart& p) {
      return (static_cast<int64_t>(row) * p.width + p.part) * cols + c;
    };
    C x[F::kIn][kPack], y[F::kOut][kPack];
    RAMET_UNROLL
    for (int k = 0; k < F::kIn; ++k) {
      const StepPart& p = parts.in[k];
      if (!p.p) {
        RAMET_UNROLL
        for (int j = 0; j < kEach; ++j) x[k][j] = C(0);
      } else if constexpr (kPacked) {
        load_pack(p.p, t, place(p), x[k]);
      } else {
        x[k][0] = load_element<C>(p.p, t, place(p));
      }
    }
    RAMET_UNROLL
    for (int j = 0; j < kEach; ++j) {
      C in[F::kIn], out[F::kOut];
      RAMET_UNROLL
      for (int k = 0; k < F::kIn; ++k) in[k] = x[k][j];
      F::run(in, out);
      RAMET_UNROLL
      for (int k = 0; k < F::kOut; ++k) y[k][j] = out[k];
    }
    RAMET_UNROLL
    for (int k = 0; k < F::kOut; ++k) {
      const StepPart& p = parts.out[k];
      if (!p.p) continue;
      if constexpr (kPacked) store_pack(p.p, t, place(p), y[k]);
      else store_element(p.p, t, place(p), y[k][0]);
    }
  }
}

template <class F, class Args> void run(const char* name, const Args& a, Stream where) {
  const StepParts<F> parts = parts_of(a);
  bool packed = a.cols % kPack == 0;
  for (const StepPart& p : parts.in) packed = packed && packs_fit(p.p, a.dtype);
  for (const StepPart& p : parts.out) packed = packed && packs_fit(p.p, a.dtype);
  if (a.rows * a.cols == 0) return;
  by_floating_type(a.dtype, [&](auto c) {
    using C = decltype(c);
    constexpr bool kPacks = sizeof(C) == 4;
    const int64_t across = kPacks && packed ? a.cols / kPack : a.cols, items = a.rows * across;
    by_index(static_cast<double>(items), [&](auto i) {
      using I = decltype(i);
      start_for(name, where, items,
                packed ? step_kernel<F, C, I, kPacks> : step_kernel<F, C, I, false>, parts,
                Divisor<I>(across), static_cast<I>(items), a.cols, a.dtype);
    });
  });
}

}  // namespace

void lstm_step(const LstmStepArgs& a, Stream where) { run<LstmStep>("lstm_step", a, where); }
void lstm_step_backward(const LstmStepBackwardArgs& a, Stream where) {
  run<LstmStepBackward>("lstm_step_backward", a, where);
}
void gru_step(const GruStepArgs& a, Stream where) { run<GruStep>("gru_step", a, where); }
void gru_step_backward(const GruStepBackwardArgs& a, Stream where) {
  run<GruStepBackward>("gru_step_backward", a, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
