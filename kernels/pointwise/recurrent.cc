#include "kernels/pointwise/recurrent.h"

#include "kernels/copy/chunk.h"
#include "kernels/pointwise/recurrent_formulas.h"
#include "kernels/simd/lanes.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// Columns that are computed at a time: the buffers of all operands stay in the first-level cache.
constexpr int64_t kColumns = 128;

template <class F>
void over(const float* const (&in)[F::kIn], float* const (&out)[F::kOut], int64_t n) {
  vf x[F::kIn], y[F::kOut];
  int64_t i = 0;
  for (; i + VL <= n; i += VL) {
#pragma GCC unroll 16
    for (int k = 0; k < F::kIn; ++k) x[k] = load(in[k] + i);
    F::run(x, y);
#pragma GCC unroll 16
    for (int k = 0; k < F::kOut; ++k) store(out[k] + i, y[k]);
  }
  if (i == n) return;
  for (int k = 0; k < F::kIn; ++k) x[k] = loadn(in[k] + i, n - i);  // the same on padded registers
  F::run(x, y);
  for (int k = 0; k < F::kOut; ++k) storen(out[k] + i, y[k], n - i);
}
template <class F>
void over(const double* const (&in)[F::kIn], double* const (&out)[F::kOut], int64_t n) {
  double x[F::kIn], y[F::kOut];
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < F::kIn; ++k) x[k] = in[k][i];
    F::run(x, y);
    for (int k = 0; k < F::kOut; ++k) out[k][i] = y[k];
  }
}

// `n` columns of one row from column `c` on. A null result is written to a buffer.
template <class F, class T>
void columns(const StepParts<F>& parts, ScalarType t, int64_t row, int64_t cols, int64_t c,
             int64_t n) {
  T buffers[F::kIn + F::kOut][kColumns];
  const T* in[F::kIn];
  T* out[F::kOut];
  const auto place = [&](const StepPart& p) {
    return at(p.p, t, (row * p.width + p.part) * cols + c);
  };
  for (int k = 0; k < F::kIn; ++k) {
    T* buffer = buffers[k];
    if (parts.in[k].p) in[k] = chunk_in(place(parts.in[k]), t, 1, n, buffer);
    else in[k] = static_cast<T*>(memset(buffer, 0, static_cast<size_t>(n) * sizeof(T)));
  }
  for (int k = 0; k < F::kOut; ++k) {
    T* buffer = buffers[F::kIn + k];
    out[k] = parts.out[k].p ? chunk_out(place(parts.out[k]), t, 1, buffer) : buffer;
  }
  over<F>(in, out, n);
  for (int k = 0; k < F::kOut; ++k)
    if (parts.out[k].p) chunk_done(place(parts.out[k]), t, 1, n, out[k]);
}

template <class F, class Args> RAMET_INLINE void run(const Args& a) {
  const StepParts<F> parts = parts_of(a);
  const int64_t each = imax(1, 4096 / imax(1, a.cols));
  by_floating_type(a.dtype, [&](auto t) {
    run_tasks(ceil_div(a.rows, each), a.rows * a.cols * (F::kIn + F::kOut) * bytes_of(a.dtype),
              [&](int64_t task, int) {
                for (int64_t row = task * each; row < imin(a.rows, (task + 1) * each); ++row)
                  for (int64_t c = 0; c < a.cols; c += kColumns)
                    columns<F, decltype(t)>(parts, a.dtype, row, a.cols, c,
                                            imin(kColumns, a.cols - c));
              });
  });
}

}  // namespace

void lstm_step(const LstmStepArgs& a) { run<LstmStep>(a); }
void lstm_step_backward(const LstmStepBackwardArgs& a) { run<LstmStepBackward>(a); }
void gru_step(const GruStepArgs& a) { run<GruStep>(a); }
void gru_step_backward(const GruStepBackwardArgs& a) { run<GruStepBackward>(a); }

}  // namespace ramet::kernels::RAMET_VARIANT
