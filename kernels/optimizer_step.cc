#include "kernels/optimizer_step.h"

#include "kernels/chunk.h"
#include "kernels/optimizer_formulas.h"
#include "kernels/smath.h"
#include "runtime/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTaskElements = 8 * 1024;

// A vector of floats or one double, with its loads and stores: the steps below are written once.
template <class T> struct Pack;
template <> struct Pack<float> {
  using V = vf;
  static constexpr int kWidth = VL;
  static RAMET_INLINE V get(const float* p, int64_t n) { return n >= VL ? load(p) : loadn(p, n); }
  static RAMET_INLINE void put(float* p, V v, int64_t n) { storen(p, v, n); }
};
template <> struct Pack<double> {
  using V = double;
  static constexpr int kWidth = 1;
  static RAMET_INLINE V get(const double* p, int64_t) { return *p; }
  static RAMET_INLINE void put(double* p, V v, int64_t) { *p = v; }
};

template <class T, bool kMomentum> void sgd_run(const SgdArgs& a, int64_t begin, int64_t end) {
  using P = Pack<T>;
  using V = typename P::V;
  T* p = static_cast<T*>(a.parameter);
  const T* g = static_cast<const T*>(a.gradient);
  T* buffer = static_cast<T*>(a.momentum_buffer);
  const SgdStep<P> step(a);
  for (int64_t i = begin; i < end; i += P::kWidth) {
    const int64_t n = end - i;
    V w = P::get(p + i, n), b{};
    const V d = P::get(g + i, n);
    if (kMomentum) b = P::get(buffer + i, n);
    step.template take<kMomentum>(w, d, b);
    if (kMomentum) P::put(buffer + i, b, n);
    P::put(p + i, w, n);
  }
}

template <class T, bool kAmsgrad> void adam_run(const AdamArgs& a, int64_t begin, int64_t end) {
  using P = Pack<T>;
  using V = typename P::V;
  T *p = static_cast<T*>(a.parameter), *m = static_cast<T*>(a.m), *v = static_cast<T*>(a.v),
    *vmax = static_cast<T*>(a.max_v);
  const T* g = static_cast<const T*>(a.gradient);
  const AdamStep<P> step(a);
  for (int64_t i = begin; i < end; i += P::kWidth) {
    const int64_t n = end - i;
    V w = P::get(p + i, n), m1 = P::get(m + i, n), v1 = P::get(v + i, n), most{};
    const V d = P::get(g + i, n);
    if (kAmsgrad) most = P::get(vmax + i, n);
    step.template take<kAmsgrad>(w, d, m1, v1, most);
    P::put(m + i, m1, n), P::put(v + i, v1, n);
    if (kAmsgrad) P::put(vmax + i, most, n);
    P::put(p + i, w, n);
  }
}

template <class F> RAMET_INLINE void in_blocks(int64_t n, int64_t bytes, const F& run) {
  if (bytes < parallel_grain()) return run(int64_t{0}, n);
  parallel_tasks(ceil_div(n, kTaskElements),
                 [&](int64_t t, int) { run(t * kTaskElements, imin(n, (t + 1) * kTaskElements)); });
}

template <class T> double block_sum_squares(const T* x, int64_t n) {
  constexpr int kLanes = 32;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l)
      lane[l] += static_cast<double>(x[i + l]) * static_cast<double>(x[i + l]);
  for (int l = 0; i < n; ++i, ++l) lane[l] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int h = kLanes / 2; h; h /= 2)
    for (int l = 0; l < h; ++l) lane[l] += lane[l + h];
  return lane[0];
}

}  // namespace

void sgd_step(const SgdArgs& a) {
  in_blocks(a.n, a.n * bytes_of(a.dtype) * (a.momentum_buffer ? 5 : 3),
            [&](int64_t begin, int64_t end) {
              if (a.dtype == ScalarType::Double)
                a.momentum_buffer ? sgd_run<double, true>(a, begin, end)
                                  : sgd_run<double, false>(a, begin, end);
              else
                a.momentum_buffer ? sgd_run<float, true>(a, begin, end)
                                  : sgd_run<float, false>(a, begin, end);
            });
}

void adam_step(const AdamArgs& a) {
  in_blocks(a.n, a.n * bytes_of(a.dtype) * 7, [&](int64_t begin, int64_t end) {
    if (a.dtype == ScalarType::Double)
      a.max_v ? adam_run<double, true>(a, begin, end) : adam_run<double, false>(a, begin, end);
    else a.max_v ? adam_run<float, true>(a, begin, end) : adam_run<float, false>(a, begin, end);
  });
}

void sum_squares(const SumSquaresArgs& a) {
  const int64_t blocks = sum_squares_partials(a.n);
  auto block = [&](int64_t t, int) {
    const int64_t begin = t * kSumSquaresBlock, n = imin(kSumSquaresBlock, a.n - begin);
    const char* x = at(a.x, a.dtype, begin);
    if (a.dtype == ScalarType::Float)
      a.partials[t] = block_sum_squares(reinterpret_cast<const float*>(x), n);
    else if (a.dtype == ScalarType::Double)
      a.partials[t] = block_sum_squares(reinterpret_cast<const double*>(x), n);
    else {
      double sum = 0, buffer[kChunk];
      for (int64_t i = 0; i < n; i += kChunk) {
        const int64_t m = imin(kChunk, n - i);
        load_chunk(at(x, a.dtype, i), a.dtype, 1, m, buffer);
        sum += block_sum_squares(buffer, m);
      }
      a.partials[t] = sum;
    }
  };
  if (a.n * bytes_of(a.dtype) < parallel_grain())
    for (int64_t t = 0; t < blocks; ++t) block(t, 0);
  else parallel_tasks(blocks, block);
  double sum = 0;
  for (int64_t t = 0; t < blocks; ++t) sum += a.partials[t];
  *a.out = sum;
}

}  // namespace ramet::kernels::RAMET_VARIANT
