#include "kernels/optim/optimizer_step.h"

#include "kernels/copy/chunk.h"
#include "kernels/copy/tensor_tiles.h"
#include "kernels/optim/optimizer_formulas.h"
#include "kernels/simd/smath.h"
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

template <class T, bool kMomentum>
void sgd_run(const SgdArgs& a, const SgdTensor& t, int64_t begin, int64_t end) {
  using P = Pack<T>;
  using V = typename P::V;
  T* p = static_cast<T*>(t.parameter);
  const T* g = static_cast<const T*>(t.gradient);
  T* buffer = static_cast<T*>(t.momentum_buffer);
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

template <class T, bool kAmsgrad>
void adam_run(const AdamArgs& a, const AdamTensor& t, int64_t begin, int64_t end) {
  using P = Pack<T>;
  using V = typename P::V;
  T *p = static_cast<T*>(t.parameter), *m = static_cast<T*>(t.m), *v = static_cast<T*>(t.v),
    *vmax = static_cast<T*>(t.max_v);
  const T* g = static_cast<const T*>(t.gradient);
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

// run(tensor, begin, end) over all elements.
template <class Args, class F>
RAMET_INLINE void in_blocks(const Args& a, int64_t operands, const F& run) {
  if (tensor_elements(a) * bytes_of(a.dtype) * operands < parallel_grain()) {
    for (int32_t t = 0; t < a.count; ++t) run(a.tensors[t], int64_t{0}, a.tensors[t].n);
    return;
  }
  parallel_tasks(tensor_tiles(a, kTaskElements), [&](int64_t task, int) {
    const TensorTile tile = tensor_tile(a, kTaskElements, task);
    run(a.tensors[tile.tensor], tile.begin, tile.end);
  });
}

// f(0) + f(1) + ... in 32 lanes, folded as a tree.
template <class F> RAMET_INLINE double in_lanes(int64_t n, const F& f) {
  constexpr int kLanes = 32;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += f(i + l);
  for (int l = 0; i < n; ++i, ++l) lane[l] += f(i);
  for (int h = kLanes / 2; h; h /= 2)
    for (int l = 0; l < h; ++l) lane[l] += lane[l + h];
  return lane[0];
}
template <class T> double block_sum_squares(const T* x, int64_t n) {
  return in_lanes(n,
                  [&](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

}  // namespace

void sgd_step(const SgdArgs& a) {
  const bool momentum = a.count > 0 && a.tensors[0].momentum_buffer;
  by_dtype<float, double>(a.dtype, [&](auto x) {
    using T = decltype(x);
    in_blocks(a, momentum ? 5 : 3, [&](const SgdTensor& t, int64_t begin, int64_t end) {
      momentum ? sgd_run<T, true>(a, t, begin, end) : sgd_run<T, false>(a, t, begin, end);
    });
  });
}

void adam_step(const AdamArgs& a) {
  const bool amsgrad = a.count > 0 && a.tensors[0].max_v;
  by_dtype<float, double>(a.dtype, [&](auto x) {
    using T = decltype(x);
    in_blocks(a, 7, [&](const AdamTensor& t, int64_t begin, int64_t end) {
      amsgrad ? adam_run<T, true>(a, t, begin, end) : adam_run<T, false>(a, t, begin, end);
    });
  });
}

void sum_squares(const SumSquaresArgs& a) {
  const auto block = [&](int64_t i, int) {
    const TensorTile tile = tensor_tile(a, kSumSquaresBlock, i);
    const char* x = at(static_cast<const void*>(a.tensors[tile.tensor].x), a.dtype, tile.begin);
    const int64_t n = tile.end - tile.begin;
    if (a.dtype == ScalarType::Float) {
      a.partials[i] = block_sum_squares(reinterpret_cast<const float*>(x), n);
    } else if (a.dtype == ScalarType::Double) {
      a.partials[i] = block_sum_squares(reinterpret_cast<const double*>(x), n);
    } else {
      double sum = 0, buffer[kChunk];
      for (int64_t i = 0; i < n; i += kChunk) {
        const int64_t m = imin(kChunk, n - i);
        load_chunk(at(static_cast<const void*>(x), a.dtype, i), a.dtype, 1, m, buffer);
        sum += block_sum_squares(buffer, m);
      }
      a.partials[i] = sum;
    }
  };
  const int64_t blocks = tensor_tiles(a, kSumSquaresBlock);
  if (tensor_elements(a) * bytes_of(a.dtype) < parallel_grain())
    for (int64_t i = 0; i < blocks; ++i) block(i, 0);
  else parallel_tasks(blocks, block);
  const double* partials = a.partials;
  for (int32_t t = 0; t < a.count; ++t) {
    const int64_t n = sum_squares_partials(a.tensors[t].n);
    a.sums[t] = in_lanes(n, [&](int64_t i) { return partials[i]; });
    partials += n;
  }
}

void total_norm(const TotalNormArgs& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.count; ++i) sum += a.sums[i];
  *a.norm = __builtin_sqrt(sum);
}

void limit_norm(const LimitNormArgs& a) {
  const double factor = a.max_norm / (*a.norm + 1e-6);
  if (factor >= 1) return;
  in_blocks(a, 2, [&](const DenseTensor& t, int64_t begin, int64_t end) {
    by_floating_type(a.dtype, [&](auto type) {
      using T = decltype(type);
      const T k = static_cast<T>(factor);
      T buffer[kChunk];
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t n = imin(kChunk, end - i);
        T* x = chunk_out<T>(at(t.x, a.dtype, i), a.dtype, 1, buffer);
        if (x == buffer) load_chunk(at(t.x, a.dtype, i), a.dtype, 1, n, buffer);
        for (int64_t j = 0; j < n; ++j) x[j] *= k;
        chunk_done(at(t.x, a.dtype, i), a.dtype, 1, n, x);
      }
    });
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
