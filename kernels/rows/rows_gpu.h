// Rows on a GPU: a group of kGroup threads, a warp or a whole block, has a row. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/rows/row_tasks.h"
// clang-format on

// Informs the compiler that this pointer is to global memory. It cannot see that through a
// structure that may hold a null pointer.
#if RAMET_GPU_EMULATED
#define RAMET_GLOBAL(pointer)
#else
#define RAMET_GLOBAL(pointer) __builtin_assume(__isGlobal(pointer))
#endif

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kWarp = 32, kWarps = kThreads / kWarp;
/// Rows up to this length have a warp each.
constexpr int64_t kWarpColumns = 1024;
/// Longer rows that are read twice (start_long_rows) have a larger block. So fewer of them are
/// under way at a time, and the second read still finds them in the L2 cache.
constexpr int kLargeThreads = 512;
constexpr int64_t kBlockColumns = 4 * kLargeThreads * kPack;
/// Threads and warps of a block of groups of kGroup threads.
template <int kGroup> constexpr int kBlockOf = kGroup > kThreads ? kGroup : kThreads;
template <int kGroup> constexpr int kWarpsOf = kBlockOf<kGroup> / kWarp;

struct Plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Larger {
  template <class T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Smaller {
  template <class T> __device__ T operator()(T a, T b) const { return a < b ? a : b; }
};

/// op over the values of a group, for all its threads, in an order that depends on kGroup alone.
/// REQUIRES: op is commutative; `shared` holds kWarpsOf<kGroup> values; all threads of the block
/// call this.
template <int kGroup, class T, class Op> __device__ T over_group(T value, const Op& op, T* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
  if constexpr (kGroup == kWarp) return value;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  __syncthreads();  // what is in `shared` has been read
  if (threadIdx.x % kWarp == 0) shared[warp] = value;
  __syncthreads();
  T all = shared[0];
  for (int w = 1; w < kWarpsOf<kGroup>; ++w) all = op(all, shared[w]);
  return all;
}

/// Calls f(row, place) for every row, place in [0, kGroup). `row` is < 0 for a group without a row,
/// which still has to call over_group().
template <int kGroup, class F> __device__ void over_rows(int64_t rows, const F& f) {
  constexpr int kRowsAtOnce = kBlockOf<kGroup> / kGroup;
  const int place = static_cast<int>(threadIdx.x) % kGroup;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kRowsAtOnce; first < rows;
       first += static_cast<int64_t>(gridDim.x) * kRowsAtOnce) {
    const int64_t row = first + threadIdx.x / kGroup;
    f(row < rows ? row : -1, place);
  }
}

/// Storage types of rows, and their compute types.
template <class S> struct RowCompute { using type = float; };
template <> struct RowCompute<double> { using type = double; };
template <class S> using ComputeOf = typename RowCompute<S>::type;
/// f(S{}) with the storage type S of a floating `t`.
template <class F> void by_row_type(ScalarType t, const F& f) {
  switch (t) {
    case ScalarType::Half: return f(HalfBits{});
    case ScalarType::BFloat16: return f(BfloatBits{});
    case ScalarType::Float: return f(float{});
    case ScalarType::Double: return f(double{});
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::Undefined: break;
  }
  __builtin_trap();
}

/// A row of n elements in memory. A thread of a group has eight neighbours at a time (over_packs),
/// for any alignment of the row. The alignment affects only how they are read and written, not
/// which thread adds which. So a row's bits do not depend on its address.
template <class S> struct Row {
  using T = ComputeOf<S>;
  S* p;
  int64_t n;
  bool packed;  // 16 bytes at a time

  /// Elements c to c + 7, followed by `fill` after the end.
  __device__ __forceinline__ void get(int64_t c, T (&v)[kPack], T fill = T(0)) const {
    S s[kPack];
    if (packed && c + kPack <= n) {
      RAMET_GLOBAL(p);
      load_bytes<sizeof s>(p + c, s);
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) v[j] = Cast<T, S>::load(s[j]);
      return;
    }
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) v[j] = c + j < n ? Cast<T, S>::load(p[c + j]) : fill;
  }
  __device__ __forceinline__ void put(int64_t c, const T (&v)[kPack]) const {
    if (packed && c + kPack <= n) {
      RAMET_GLOBAL(p);
      S s[kPack];
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) s[j] = Cast<T, S>::store(v[j]);
      store_bytes<sizeof s>(p + c, s);
      return;
    }
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j)
      if (c + j < n) p[c + j] = Cast<T, S>::store(v[j]);
  }
};
/// Row `row` of a dense block at p. It has no elements if p is null or row < 0.
template <class S>
__device__ __forceinline__ Row<S> row_of(const void* p, int64_t row, int64_t cols, bool packed) {
  if (!p || row < 0) return {nullptr, 0, false};
  return {static_cast<S*>(const_cast<void*>(p)) + row * cols, cols, packed};
}
/// f(c) for the packs of a row of n elements that this thread of a group has.
template <int kGroup, class F>
__device__ __forceinline__ void over_row_packs(int64_t n, int place, const F& f) {
  for (int64_t c = static_cast<int64_t>(place) * kPack; c < n; c += kGroup * kPack) f(c);
}
/// Mean and 1 / sqrt(var + eps) of a row.
template <class T> struct RowMoments { T mean, rstd; };
/// For a row of `cols` elements, of which n exist: all, or 0 for a group without a row. REQUIRES:
/// as for over_group().
template <int kGroup, class S, class T>
__device__ __forceinline__ RowMoments<T> row_moments(const Row<S>& x, int64_t n, int place, T cols,
                                                     double eps, T* shared) {
  T v[kPack], sum = T(0), squares = T(0);
  over_row_packs<kGroup>(n, place, [&](int64_t c) {
    x.get(c, v);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) sum += v[j];
  });
  const T mean = over_group<kGroup>(sum, Plus(), shared) / cols;
  over_row_packs<kGroup>(n, place, [&](int64_t c) {
    x.get(c, v, mean);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) squares = fma(v[j] - mean, v[j] - mean, squares);
  });
  const T var = over_group<kGroup>(squares, Plus(), shared) / cols;
  return {mean, T(1) / sqrt(var + static_cast<T>(eps))};
}
/// May whole packs be used in all rows of these blocks? Null pointers do not matter.
template <class... P> bool rows_packed(ScalarType t, int64_t cols, const P*... p) {
  return cols % kPack == 0 && ((!p || packs_fit(p, t)) && ...);
}

/// Starts a kernel of over_rows: the one for warps or the one for blocks.
template <class... Parameters, class... Arguments>
void start_rows(const char* name, Stream where, int64_t rows, int64_t cols,
                void (*by_warp)(Parameters...), void (*by_block)(Parameters...),
                Arguments&&... arguments) {
  const bool warps = cols <= kWarpColumns;
  const int64_t blocks = warps ? ceil_div(rows, kWarps) : rows;
  start(name, where, grid_of(blocks), kThreads, 0, warps ? by_warp : by_block,
        std::forward<Arguments>(arguments)...);
}
/// The same with a third kernel, for large blocks. Only the length of a row selects it.
template <class... Parameters, class... Arguments>
void start_long_rows(const char* name, Stream where, int64_t rows, int64_t cols,
                     void (*by_warp)(Parameters...), void (*by_block)(Parameters...),
                     void (*by_large_block)(Parameters...), Arguments&&... arguments) {
  if (cols <= kBlockColumns)
    return start_rows(name, where, rows, cols, by_warp, by_block,
                      std::forward<Arguments>(arguments)...);
  start(name, where, grid_of(rows), kLargeThreads, 0, by_large_block,
        std::forward<Arguments>(arguments)...);
}

}  // namespace ramet::kernels::RAMET_VARIANT
