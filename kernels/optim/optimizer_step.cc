#include "kernels/optim/optimizer_step.h"

#include "kernels/copy/chunk.h"
#include "kernels/copy/tensor_tiles.h"
#include "kernels/simd/smath.h"
#include "runtime/base/thread_pool.h"

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

// n elements from i on, up to a vector.
template <unsigned kUse, class Step, class T, int kStates>
RAMET_INLINE void step_vector(const Step& step, bool maximize, T* p, const T* g,
                              T* const (&states)[kStates], int64_t i, int64_t n) {
  using P = Pack<T>;
  const auto in_use = [](int k) { return (kUse >> k & 1) != 0; };
  typename P::V w = P::get(p + i, n), s[kStates] = {};
  typename P::V d = P::get(g + i, n);
  if (maximize) d = -d;
  for (int k = 0; k < kStates; ++k)
    if (in_use(k)) s[k] = P::get(states[k] + i, n);
  step.template take<kUse>(w, d, s);
  for (int k = 0; k < kStates; ++k)
    if (in_use(k)) P::put(states[k] + i, s[k], n);
  P::put(p + i, w, n);
}
template <unsigned kUse, class Step, class T, int kStates>
RAMET_INLINE void step_elements(const Step& step, bool maximize, T* p, const T* g,
                                T* const (&states)[kStates], int64_t n) {
  constexpr int64_t kWidth = Pack<T>::kWidth;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) step_vector<kUse>(step, maximize, p, g, states, i, kWidth);
  if (i < n) step_vector<kUse>(step, maximize, p, g, states, i, n - i);
}

// Begins masters of n elements anew where the parameter was written: Note [Masters]. `p` are the
// parameters, of type t, as floats.
void begin_anew(ScalarType t, const float* p, int64_t n, float* masters) {
  uint16_t bits[kChunk];
  float rounded[kChunk];
  store_chunk(bits, t, 1, n, masters);
  load_chunk(bits, t, 1, n, rounded);
  using P = Pack<float>;
  for (int64_t i = 0; i < n; i += VL) {
    const int64_t m = imin(VL, n - i);
    const vf now = P::get(p + i, m);
    P::put(masters + i, pick(ne(P::get(rounded + i, m), now), now, P::get(masters + i, m)), m);
  }
}

// Elements begin to end of a tensor, in chunks of floats.
template <class Step, unsigned kUse, class Args, int kStates>
void step_chunks(const Args& a, const StepTensor<kStates>& t, int64_t begin, int64_t end) {
  const Step step(a);
  float parameter[kChunk], gradient[kChunk], buffers[kStates][kChunk], *states[kStates] = {};
  const auto each_state = [&](const auto& f) {
    for (int k = 0; k < kStates; ++k)
      if (kUse >> k & 1) f(t.states[k], states[k], buffers[k]);
  };
  for (int64_t i = begin; i < end; i += kChunk) {
    const int64_t n = imin(kChunk, end - i);
    load_chunk(at(t.parameter, a.dtype, i), a.dtype, 1, n, parameter);
    const float* g =
        chunk_in(at(t.gradient, a.gradient_dtype, i), a.gradient_dtype, 1, n, gradient);
    each_state([&](void* x, float*& state, float* buffer) {
      state = chunk_out(at(x, a.state_dtype, i), a.state_dtype, 1, buffer);
      if (state == buffer) load_chunk(at(x, a.state_dtype, i), a.state_dtype, 1, n, buffer);
    });
    float* w = parameter;
    if (t.master) {
      w = static_cast<float*>(t.master) + i;
      begin_anew(a.dtype, parameter, n, w);
    }
    step_elements<kUse>(step, a.maximize, w, g, states, n);
    each_state([&](void* x, float*& state, float*) {
      chunk_done(at(x, a.state_dtype, i), a.state_dtype, 1, n, state);
    });
    store_chunk(at(t.parameter, a.dtype, i), a.dtype, 1, n, w);
  }
}

// Elements begin to end of a tensor: in place if nothing is converted.
template <class Step, unsigned kUse, class T, class Args, int kStates>
void step_run(const Args& a, const StepTensor<kStates>& t, int64_t begin, int64_t end) {
  constexpr ScalarType kType = ComputeTag<T>::value;
  if (a.dtype == kType && a.gradient_dtype == kType && a.state_dtype == kType) {
    T* states[kStates] = {};
    for (int k = 0; k < kStates; ++k)
      if (kUse >> k & 1) states[k] = static_cast<T*>(t.states[k]) + begin;
    step_elements<kUse>(Step(a), a.maximize, static_cast<T*>(t.parameter) + begin,
                        static_cast<const T*>(t.gradient) + begin, states, end - begin);
  } else if constexpr (std::is_same_v<T, float>) {
    step_chunks<Step, kUse>(a, t, begin, end);
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

// change(x, n) for chunks of n elements of dense tensors, in their compute type.
template <class Args, class F> RAMET_INLINE void change_chunks(const Args& a, const F& change) {
  in_blocks(a, 2, [&](const DenseTensor& t, int64_t begin, int64_t end) {
    by_floating_type(a.dtype, [&](auto type) {
      using T = decltype(type);
      T buffer[kChunk];
      for (int64_t i = begin; i < end; i += kChunk) {
        const int64_t n = imin(kChunk, end - i);
        T* x = chunk_out<T>(at(t.x, a.dtype, i), a.dtype, 1, buffer);
        if (x == buffer) load_chunk(at(t.x, a.dtype, i), a.dtype, 1, n, buffer);
        change(x, n);
        chunk_done(at(t.x, a.dtype, i), a.dtype, 1, n, x);
      }
    });
  });
}

template <template <class> class Step, class Args> RAMET_INLINE void step_all(const Args& a) {
  if (a.skip && *a.skip != 0) return;
  by_use(a, typename Step<Pack<double>>::Uses(), [&](auto use) {
    by_floating_type(a.dtype, [&](auto x) {
      using T = decltype(x);
      constexpr unsigned kUse = decltype(use)::value;
      in_blocks(a, 3 + 2 * __builtin_popcount(kUse),
                [&](const auto& t, int64_t begin, int64_t end) {
                  step_run<Step<Pack<T>>, kUse, T>(a, t, begin, end);
                });
    });
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

#define RAMET_DEFINE(name, Step) \
  void name(const Step<Pack<double>>::Args& a) { step_all<Step>(a); }
RAMET_OPTIMIZER_STEPS(RAMET_DEFINE)
#undef RAMET_DEFINE

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
  change_chunks(a, [&](auto* x, int64_t n) {
    const auto k = static_cast<std::remove_reference_t<decltype(*x)>>(factor);
    for (int64_t j = 0; j < n; ++j) x[j] *= k;
  });
}

void unscale(const UnscaleArgs& a) {
  const auto factor = static_cast<float>(1 / static_cast<double>(*a.scale));
  change_chunks(a, [&](auto* x, int64_t n) {
    bool finite = true;
    for (int64_t j = 0; j < n; ++j) {
      finite &= x[j] - x[j] == 0;
      x[j] *= factor;
    }
    float one = 1;
    if (!finite) __atomic_store(a.found, &one, __ATOMIC_RELAXED);  // several threads may
  });
}

void update_scale(const UpdateScaleArgs& a) { update_scale_of(a); }

}  // namespace ramet::kernels::RAMET_VARIANT
