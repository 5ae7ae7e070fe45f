#include "kernels/gpu_elements.h"
#include "kernels/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/optimizer_formulas.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// n elements of one array as 16-byte pieces where `packed`, one at a time behind them.
template <class T, class One>
__device__ __forceinline__ void over_packs(int64_t n, bool packed, const One& one) {
  constexpr int kEach = 16 / sizeof(T);
  const int64_t packs = packed ? n / kEach : 0;
  for (int64_t i = first_item(); i < packs; i += item_step())
    one(i * kEach, std::integral_constant<int, kEach>());
  for (int64_t i = packs * kEach + first_item(); i < n; i += item_step())
    one(i, std::integral_constant<int, 1>());
}
template <class T, int kCount> __device__ __forceinline__ void get(const T* p, T (&v)[kCount]) {
  if constexpr (kCount > 1) load_bytes<16>(p, v);
  else v[0] = *p;
}
template <class T, int kCount> __device__ __forceinline__ void put(T* p, const T (&v)[kCount]) {
  if constexpr (kCount > 1) store_bytes<16>(p, v);
  else *p = v[0];
}

template <class T> struct Alone {
  using V = T;
};

template <class T, bool kMomentum> __global__ void sgd_kernel(SgdArgs a, bool packed) {
  T *p = static_cast<T*>(a.parameter), *buffer = static_cast<T*>(a.momentum_buffer);
  const T* g = static_cast<const T*>(a.gradient);
  const SgdStep<Alone<T>> step(a);
  over_packs<T>(a.n, packed, [&](int64_t i, auto count) {
    constexpr int kCount = decltype(count)::value;
    T w[kCount], d[kCount], b[kCount] = {};
    get(p + i, w);
    get(g + i, d);
    if (kMomentum) get(buffer + i, b);
    for (int k = 0; k < kCount; ++k) step.template take<kMomentum>(w[k], d[k], b[k]);
    if (kMomentum) put(buffer + i, b);
    put(p + i, w);
  });
}

template <class T, bool kAmsgrad> __global__ void adam_kernel(AdamArgs a, bool packed) {
  T *p = static_cast<T*>(a.parameter), *m = static_cast<T*>(a.m), *v = static_cast<T*>(a.v),
    *most = static_cast<T*>(a.max_v);
  const T* g = static_cast<const T*>(a.gradient);
  const AdamStep<Alone<T>> step(a);
  over_packs<T>(a.n, packed, [&](int64_t i, auto count) {
    constexpr int kCount = decltype(count)::value;
    T w[kCount], d[kCount], m1[kCount], v1[kCount], top[kCount] = {};
    get(p + i, w);
    get(g + i, d);
    get(m + i, m1);
    get(v + i, v1);
    if (kAmsgrad) get(most + i, top);
    for (int k = 0; k < kCount; ++k) step.template take<kAmsgrad>(w[k], d[k], m1[k], v1[k], top[k]);
    put(m + i, m1);
    put(v + i, v1);
    if (kAmsgrad) put(most + i, top);
    put(p + i, w);
  });
}

bool aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }
int64_t items_of(int64_t n, ScalarType t, bool packed) {
  return packed ? ceil_div(n * bytes_of(t), 16) : n;
}

constexpr int kWarp = 32;

// One warp a block of kSumSquaresBlock elements; lanes and chunks as on the CPU, so the bits are
// the same. Floats and doubles have no chunks.
__global__ void sum_squares_kernel(SumSquaresArgs a, int64_t blocks, int64_t chunk) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  // A warp leaves the loop as a whole.
  for (int64_t block = first_item() / kWarp; block < blocks; block += item_step() / kWarp) {
    const int64_t begin = block * kSumSquaresBlock, end = imin(a.n, begin + kSumSquaresBlock);
    double sum = 0;
    for (int64_t c = begin; c < end; c += chunk) {
      double mine = 0;
      for (int64_t i = c + lane; i < imin(end, c + chunk); i += kWarp) {
        const double x = load_element<double>(a.x, a.dtype, i);
        mine += x * x;
      }
      for (int half = kWarp / 2; half > 0; half /= 2) {
        const double other = __shfl_down_sync(0xffffffffu, mine, static_cast<unsigned>(half));
        if (lane < half) mine += other;
      }
      sum += mine;
    }
    if (lane == 0) a.partials[block] = sum;
  }
}
__global__ void sum_partials_kernel(const double* partials, int64_t blocks, double* out) {
  double sum = 0;
  for (int64_t t = 0; t < blocks; ++t) sum += partials[t];
  *out = sum;
}

constexpr int64_t kConvertedAtOnce = 512;  // kChunk of chunk.h

}  // namespace

void sgd_step(const SgdArgs& a, Stream where) {
  const bool packed = aligned(a.parameter) && aligned(a.gradient) && aligned(a.momentum_buffer);
  const int64_t items = items_of(a.n, a.dtype, packed);
  const auto run = [&](auto* kernel) { start_for("sgd_step", where, items, kernel, a, packed); };
  if (a.dtype == ScalarType::Double)
    a.momentum_buffer ? run(sgd_kernel<double, true>) : run(sgd_kernel<double, false>);
  else a.momentum_buffer ? run(sgd_kernel<float, true>) : run(sgd_kernel<float, false>);
}

void adam_step(const AdamArgs& a, Stream where) {
  const bool packed = aligned(a.parameter) && aligned(a.gradient) && aligned(a.m) && aligned(a.v) &&
                      aligned(a.max_v);
  const int64_t items = items_of(a.n, a.dtype, packed);
  const auto run = [&](auto* kernel) { start_for("adam_step", where, items, kernel, a, packed); };
  if (a.dtype == ScalarType::Double)
    a.max_v ? run(adam_kernel<double, true>) : run(adam_kernel<double, false>);
  else a.max_v ? run(adam_kernel<float, true>) : run(adam_kernel<float, false>);
}

void sum_squares(const SumSquaresArgs& a, Stream where) {
  const int64_t blocks = sum_squares_partials(a.n);
  const bool plain = a.dtype == ScalarType::Float || a.dtype == ScalarType::Double;
  start_for("sum_squares", where, blocks * kWarp, sum_squares_kernel, a, blocks,
            plain ? kSumSquaresBlock : kConvertedAtOnce);
  start("sum_squares", where, dim3(1), 1, 0, sum_partials_kernel, a.partials, blocks, a.out);
}

}  // namespace ramet::kernels::RAMET_VARIANT
