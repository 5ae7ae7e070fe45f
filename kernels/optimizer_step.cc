#include "kernels/optimizer_step.h"

#include "kernels/chunk.h"
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
  const V minus_lr = cst<V>(-a.lr), decay = cst<V>(a.weight_decay), momentum = cst<V>(a.momentum),
          damped = cst<V>(1 - a.dampening);
  for (int64_t i = begin; i < end; i += P::kWidth) {
    const int64_t n = end - i;
    const V w = P::get(p + i, n);
    V d = P::get(g + i, n);
    if (a.maximize) d = cst<V>(0) - d;
    if (a.weight_decay != 0) d = fma(w, decay, d);
    if (kMomentum) {
      const V b = a.first ? d : fma(d, damped, P::get(buffer + i, n) * momentum);
      P::put(buffer + i, b, n);
      d = a.nesterov ? fma(b, momentum, d) : b;
    }
    P::put(p + i, fma(d, minus_lr, w), n);
  }
}

template <class T, bool kAmsgrad> void adam_run(const AdamArgs& a, int64_t begin, int64_t end) {
  using P = Pack<T>;
  using V = typename P::V;
  T *p = static_cast<T*>(a.parameter), *m = static_cast<T*>(a.m), *v = static_cast<T*>(a.v),
    *vmax = static_cast<T*>(a.max_v);
  const T* g = static_cast<const T*>(a.gradient);
  const V beta1 = cst<V>(a.beta1), rest1 = cst<V>(1 - a.beta1), beta2 = cst<V>(a.beta2),
          rest2 = cst<V>(1 - a.beta2);
  const V eps = cst<V>(a.eps), decay = cst<V>(a.weight_decay),
          shrink = cst<V>(1 - a.lr * a.weight_decay);
  const V minus_step = cst<V>(-a.lr / a.bias1), root2 = cst<V>(__builtin_sqrt(a.bias2));
  for (int64_t i = begin; i < end; i += P::kWidth) {
    const int64_t n = end - i;
    V w = P::get(p + i, n), d = P::get(g + i, n);
    if (a.maximize) d = cst<V>(0) - d;
    if (a.weight_decay != 0) {
      if (a.decoupled) w = w * shrink;
      else d = fma(w, decay, d);
    }
    const V m1 = fma(d, rest1, P::get(m + i, n) * beta1);
    const V v1 = fma(d * d, rest2, P::get(v + i, n) * beta2);
    P::put(m + i, m1, n), P::put(v + i, v1, n);
    V second = v1;
    if (kAmsgrad) {
      const V old = P::get(vmax + i, n);
      second = pick(ne(old, old), old, max(old, v1));  // a NaN wins
      P::put(vmax + i, second, n);
    }
    P::put(p + i, w + minus_step * m1 / (sqrt(second) / root2 + eps), n);
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
