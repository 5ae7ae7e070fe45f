#include <initializer_list>

#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/copy/tensor_tiles.h"
#include "kernels/optim/optimizer_step.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// Elements of a tile: a block of threads has four 16-byte pieces of floats for each.
constexpr int64_t kTileElements = 4 * 4 * kThreads;

// one(tensor, i, constant count) for all elements: in 16-byte pieces where `aligned`(tensor) is
// true. Elsewhere, and for the elements after them, one at a time.
template <class T, class Args, class Aligned, class One>
__device__ __forceinline__ void over_tiles(const Args& a, int64_t tiles, const Aligned& aligned,
                                           const One& one) {
  constexpr int kEach = 16 / sizeof(T);
  const int thread = static_cast<int>(threadIdx.x);
  for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const TensorTile tile = tensor_tile(a, kTileElements, i);
    const auto& tensor = a.tensors[tile.tensor];
    const int64_t packed =
        aligned(tensor) ? tile.begin + (tile.end - tile.begin) / kEach * kEach : tile.begin;
    for (int64_t k = tile.begin + thread * kEach; k < packed; k += kThreads * kEach)
      one(tensor, k, std::integral_constant<int, kEach>());
    for (int64_t k = packed + thread; k < tile.end; k += kThreads)
      one(tensor, k, std::integral_constant<int, 1>());
  }
}
__device__ __forceinline__ bool aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}
template <class Args> dim3 tile_grid(const Args& a) {
  return grid_of(tensor_tiles(a, kTileElements));
}
template <class T, int kCount> __device__ __forceinline__ void get(const T* p, T (&v)[kCount]) {
  if constexpr (kCount > 1) load_bytes<16>(p, v);
  else v[0] = *p;
}
template <class T, int kCount> __device__ __forceinline__ void put(T* p, const T (&v)[kCount]) {
  if constexpr (kCount > 1) store_bytes<16>(p, v);
  else *p = v[0];
}

// Loads kCount elements from i on, as T. They may be stored as another type, `t`, where kConverts.
// Several are loaded by 16 bytes.
template <bool kConverts, class T, int kCount>
__device__ __forceinline__ void load_some(const void* p, ScalarType t, int64_t i, T (&v)[kCount]) {
  if constexpr (!kConverts) get(static_cast<const T*>(p) + i, v);
  else if constexpr (kCount > 1) load_pack(p, t, i, v);
  else v[0] = load_element<T>(p, t, i);
}
template <bool kConverts, class T, int kCount>
__device__ __forceinline__ void store_some(void* p, ScalarType t, int64_t i, const T (&v)[kCount]) {
  if constexpr (!kConverts) put(static_cast<T*>(p) + i, v);
  else if constexpr (kCount > 1) store_pack(p, t, i, v);
  else store_element(p, t, i, v[0]);
}
/// The element type that over_tiles moves by 16 bytes: 16-bit elements, or T.
template <bool kConverts, class T> using Stored = std::conditional_t<kConverts, HalfBits, T>;

template <class T> struct Alone { using V = T; };

// Replaces parameters `w`, of type t, by their masters where those are current: Note [Masters].
template <class T, int kCount>
__device__ __forceinline__ void take_masters(const void* masters, ScalarType t, int64_t i,
                                             T (&w)[kCount]) {
  T m[kCount];
  load_some<true>(masters, ScalarType::Float, i, m);
  by_type(t, [&](auto s) {
    using C = Cast<T, decltype(s)>;
    for (int k = 0; k < kCount; ++k)
      if (C::load(C::store(m[k])) == w[k]) w[k] = m[k];
  });
}

// The step of kCount elements from i on.
template <unsigned kUse, bool kConverts, class T, int kCount, class Step>
__device__ __forceinline__ void step_some(const Step& step, const typename Step::Args& a,
                                          const StepTensor<Step::Args::kStates>& t, int64_t i) {
  constexpr int kStates = Step::Args::kStates;
  T w[kCount], d[kCount], states[kStates][kCount] = {};
  load_some<kConverts>(t.parameter, a.dtype, i, w);
  load_some<kConverts>(t.gradient, a.gradient_dtype, i, d);
  if constexpr (kConverts)
    if (t.master) take_masters(t.master, a.dtype, i, w);
  RAMET_UNROLL
  for (int s = 0; s < kStates; ++s)
    if (kUse >> s & 1) load_some<kConverts>(t.states[s], a.state_dtype, i, states[s]);
  RAMET_UNROLL
  for (int k = 0; k < kCount; ++k) {
    T own[kStates];
    RAMET_UNROLL
    for (int s = 0; s < kStates; ++s) own[s] = states[s][k];
    const T g = a.maximize ? -d[k] : d[k];
    step.template take<kUse>(w[k], g, own);
    RAMET_UNROLL
    for (int s = 0; s < kStates; ++s) states[s][k] = own[s];
  }
  RAMET_UNROLL
  for (int s = 0; s < kStates; ++s)
    if (kUse >> s & 1) store_some<kConverts>(t.states[s], a.state_dtype, i, states[s]);
  if constexpr (kConverts)
    if (t.master) store_some<true>(t.master, ScalarType::Float, i, w);
  store_some<kConverts>(t.parameter, a.dtype, i, w);
}

template <class Step, class T, unsigned kUse, bool kConverts>
__global__ void step_kernel(typename Step::Args a, int64_t tiles) {
  using Tensor = StepTensor<Step::Args::kStates>;
  if (a.skip && *a.skip != 0) return;
  const Step step(a);
  const auto fits = [](const Tensor& t) {
    bool fit = aligned(t.parameter) && aligned(t.gradient) && aligned(t.master);
    for (int s = 0; s < Step::Args::kStates; ++s)
      fit = fit && (!(kUse >> s & 1) || aligned(t.states[s]));
    return fit;
  };
  over_tiles<Stored<kConverts, T>>(a, tiles, fits, [&](const Tensor& t, int64_t i, auto count) {
    step_some<kUse, kConverts, T, decltype(count)::value>(step, a, t, i);
  });
}

constexpr int kWarp = 32;

// f(0) + f(1) + ... by one warp, in lane 0, with the CPU's lanes. Several reads are under way at a
// time, whatever the order of the sum.
template <class F> __device__ __forceinline__ double in_lanes(int64_t n, const F& f) {
  constexpr int kReads = 8;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double sum = 0;
  int64_t i = lane;
  for (; i + (kReads - 1) * kWarp < n; i += kReads * kWarp) {
    double x[kReads];
    RAMET_UNROLL
    for (int k = 0; k < kReads; ++k) x[k] = f(i + k * kWarp);
    RAMET_UNROLL
    for (int k = 0; k < kReads; ++k) sum += x[k];
  }
  for (; i < n; i += kWarp) sum += f(i);
  for (int half = kWarp / 2; half > 0; half /= 2) {
    const double other = __shfl_down_sync(0xffffffffu, sum, static_cast<unsigned>(half));
    if (lane < half) sum += other;
  }
  return sum;
}

// One warp for each block of kSumSquaresBlock elements. Lanes and chunks are as on the CPU, so the
// bits are the same. Floats and doubles have no chunks.
__global__ void sum_squares_kernel(SumSquaresArgs a, int64_t blocks, int64_t chunk) {
  // A warp leaves the loop as a whole.
  for (int64_t block = first_item() / kWarp; block < blocks; block += item_step() / kWarp) {
    const TensorTile tile = tensor_tile(a, kSumSquaresBlock, block);
    const void* x = a.tensors[tile.tensor].x;
    double sum = 0;
    by_type(a.dtype, [&](auto s) {  // checked here, so that reads do not wait
      const auto* elements = static_cast<const decltype(s)*>(x);
      for (int64_t c = tile.begin; c < tile.end; c += chunk)
        sum += in_lanes(imin(tile.end - c, chunk), [&](int64_t i) {
          const double v = Cast<double, decltype(s)>::load(elements[c + i]);
          return v * v;
        });
    });
    if (threadIdx.x % kWarp == 0) a.partials[block] = sum;
  }
}
// One warp for each tensor.
__global__ void sum_partials_kernel(SumSquaresArgs a) {
  const int t = static_cast<int>(blockIdx.x);
  const double* partials = a.partials;
  for (int i = 0; i < t; ++i) partials += ceil_div(a.tensors[i].n, kSumSquaresBlock);
  const double sum =
      in_lanes(ceil_div(a.tensors[t].n, kSumSquaresBlock), [&](int64_t i) { return partials[i]; });
  if (threadIdx.x == 0) a.sums[t] = sum;
}
// One block reads, and one thread adds in order, as on the CPU.
__global__ void total_norm_kernel(TotalNormArgs a) {
  __shared__ double sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double sum = 0;
  for (int64_t first = 0; first < a.count; first += kThreads) {
    if (first + thread < a.count) sums[thread] = a.sums[first + thread];
    __syncthreads();
    if (thread == 0)
      for (int i = 0; i < static_cast<int>(imin(kThreads, a.count - first)); ++i) sum += sums[i];
    __syncthreads();
  }
  if (thread == 0) *a.norm = sqrt(sum);
}

// change(x) for each element x of dense tensors.
template <class T, bool kConverts, class Args, class F>
__device__ __forceinline__ void change_tiles(const Args& a, int64_t tiles, const F& change) {
  over_tiles<Stored<kConverts, T>>(
      a, tiles, [](const DenseTensor& t) { return aligned(t.x); },
      [&](const DenseTensor& t, int64_t i, auto count) {
        T v[decltype(count)::value];
        load_some<kConverts>(t.x, a.dtype, i, v);
        for (T& x : v) change(x);
        store_some<kConverts>(t.x, a.dtype, i, v);
      });
}

template <class T, bool kConverts>
__global__ void limit_norm_kernel(LimitNormArgs a, int64_t tiles) {
  const double factor = a.max_norm / (*a.norm + 1e-6);
  if (factor >= 1) return;
  const T k = static_cast<T>(factor);
  change_tiles<T, kConverts>(a, tiles, [&](T& x) { x *= k; });
}

template <class T, bool kConverts> __global__ void unscale_kernel(UnscaleArgs a, int64_t tiles) {
  const T factor = static_cast<float>(1 / static_cast<double>(*a.scale));
  bool finite = true;
  change_tiles<T, kConverts>(a, tiles, [&](T& x) {
    finite = finite && x - x == 0;
    x *= factor;
  });
  // Atomic as several threads may write it.
  if (!finite) atomicExch(reinterpret_cast<unsigned*>(a.found), 0x3f800000u);
}
__global__ void update_scale_kernel(UpdateScaleArgs a) { update_scale_of(a); }

constexpr int64_t kConvertedAtOnce = 512;  // kChunk of chunk.h

template <class Args, class Kernel>
void start_tiles(const char* name, const Args& a, Stream where, Kernel* kernel) {
  const int64_t tiles = tensor_tiles(a, kTileElements);
  if (tiles > 0) start(name, where, tile_grid(a), kThreads, 0, kernel, a, tiles);
}

// f(T{}, constant "an operand has another type") with the compute type T of `t`, for operands of
// these types.
template <class F>
void by_storage(ScalarType t, std::initializer_list<ScalarType> all, const F& f) {
  by_floating_type(t, [&](auto x) {
    using T = decltype(x);
    if constexpr (std::is_same_v<T, float>)
      for (const ScalarType each : all)
        if (each != ScalarType::Float) return f(x, std::true_type());
    f(x, std::false_type());
  });
}

template <template <class> class Step, class Args>
void step_all(const char* name, const Args& a, Stream where) {
  by_use(a, typename Step<Alone<double>>::Uses(), [&](auto use) {
    by_storage(a.dtype, {a.dtype, a.gradient_dtype, a.state_dtype}, [&](auto x, auto converts) {
      using T = decltype(x);
      start_tiles(name, a, where,
                  step_kernel<Step<Alone<T>>, T, decltype(use)::value, decltype(converts)::value>);
    });
  });
}

}  // namespace

#define RAMET_DEFINE(name, Step) \
  void name(const Step<Alone<double>>::Args& a, Stream where) { step_all<Step>(#name, a, where); }
RAMET_OPTIMIZER_STEPS(RAMET_DEFINE)
#undef RAMET_DEFINE

void sum_squares(const SumSquaresArgs& a, Stream where) {
  if (a.count == 0) return;
  const int64_t blocks = tensor_tiles(a, kSumSquaresBlock);
  const bool plain = compute_type_of(a.dtype) == a.dtype;
  start_for("sum_squares", where, blocks * kWarp, sum_squares_kernel, a, blocks,
            plain ? kSumSquaresBlock : kConvertedAtOnce);
  start("sum_squares", where, dim3(static_cast<unsigned>(a.count)), kWarp, 0, sum_partials_kernel,
        a);
}

void total_norm(const TotalNormArgs& a, Stream where) {
  start("total_norm", where, dim3(1), kThreads, 0, total_norm_kernel, a);
}

void limit_norm(const LimitNormArgs& a, Stream where) {
  by_storage(a.dtype, {a.dtype}, [&](auto t, auto converts) {
    start_tiles("limit_norm", a, where, limit_norm_kernel<decltype(t), decltype(converts)::value>);
  });
}

void unscale(const UnscaleArgs& a, Stream where) {
  by_storage(a.dtype, {a.dtype}, [&](auto t, auto converts) {
    start_tiles("unscale", a, where, unscale_kernel<decltype(t), decltype(converts)::value>);
  });
}

void update_scale(const UpdateScaleArgs& a, Stream where) {
  start("update_scale", where, dim3(1), 1, 0, update_scale_kernel, a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
