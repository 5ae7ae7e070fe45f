// Rows in the registers of a warp or of a block, for .cu files only.
//
// Note [Rows in registers]
// A kernel that needs a row several times reads it once, if each thread's share fits its registers:
// up to kRowPacks packs of eight elements. That is 1024 columns for a warp and 8192 for a block of
// 256 threads. All reads of a row are issued before the first result is used, so a thread waits
// once for memory. 24 to 48 warps of a multiprocessor then have 48 to 96 KB under way, and 24 KB are
// enough for the full rate. Longer rows are read once for each pass.
//
// A row of more than kWarp * kPack elements takes the kernel of kRowPacks packs. It skips packs
// after the row's end, and the test is the same for all threads of the group. Shorter rows have a
// kernel with one pack, which needs fewer registers.
//
// Which thread has which elements depends on the row's length alone (over_row_packs), and each
// thread goes through its packs in order. So neither registers nor the row's address change the
// bits. Elements after the end have a value that changes no result: 0 in sums, -inf in maxima.
//
// Counted for sixteen bits (loops of the compiled code: tools/cuda/budgets.py), with the share of
// the copy rate that an H200 should reach. None of these has run on a GPU yet.
//   softmax              4 bytes an element
//   softmax, backward    6 bytes
//   layer norm           4 bytes, 8 with a residual
#pragma once
#include "kernels/rows/rows_gpu.h"
// clang-format off: the first decides what the other means
#include "runtime/cuda/ptx.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {

/// The most packs of a row that a thread keeps.
constexpr int kRowPacks = 4;
/// The longest row that is kept.
constexpr int64_t kMostKept = kThreads * kPack * kRowPacks;

/// Eight neighbours of a row in the layout of memory. A thread that reads all of its part into
/// these before it uses any waits only once for memory.
template <class S> struct Pack {
  uint4 words[kPack * sizeof(S) / 16];

  /// Elements c to c + 7, followed by `fill` after the end. REQUIRES: c < row.n.
  __device__ __forceinline__ void read(const Row<S>& row, int64_t c, S fill = S{}) {
    if (row.packed) {
      RAMET_GLOBAL(row.p);
      load_bytes<sizeof words>(row.p + c, words);
      return;
    }
    S s[kPack];
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) s[j] = c + j < row.n ? row.p[c + j] : fill;
    memcpy(words, s, sizeof words);
  }
  __device__ __forceinline__ void set(S value) {
    S s[kPack];
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) s[j] = value;
    memcpy(words, s, sizeof words);
  }
  __device__ __forceinline__ void get(ComputeOf<S> (&v)[kPack]) const {
    S s[kPack];
    memcpy(s, words, sizeof s);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) v[j] = Cast<ComputeOf<S>, S>::load(s[j]);
  }
  __device__ __forceinline__ void put(const ComputeOf<S> (&v)[kPack]) {
    S s[kPack];
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) s[j] = Cast<ComputeOf<S>, S>::store(v[j]);
    memcpy(words, s, sizeof words);
  }
  /// Writes those that exist. REQUIRES: c < row.n.
  __device__ __forceinline__ void write(const Row<S>& row, int64_t c) const {
    if (row.packed) {
      RAMET_GLOBAL(row.p);
      store_bytes<sizeof words>(row.p + c, words);
      return;
    }
    S s[kPack];
    memcpy(s, words, sizeof s);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j)
      if (c + j < row.n) row.p[c + j] = s[j];
  }
};

/// f(c, k) for this thread's packs of a row, the k-th of at most kPacks. With kPacks = 0 for any
/// number of packs, and k is always 0.
template <int kGroup, int kPacks, class F>
__device__ __forceinline__ void over_share(int64_t n, int place, const F& f) {
  if constexpr (kPacks == 0) {
    over_row_packs<kGroup>(n, place, [&](int64_t c) { f(c, 0); });
  } else {
    RAMET_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      const int c = (k * kGroup + place) * kPack;
      if (c < static_cast<int>(n)) f(c, k);
    }
  }
}

/// A thread's share of a row that its group keeps in registers.
template <class S, int kGroup, int kPacks> struct Share {
  using T = ComputeOf<S>;
  static_assert(kPacks > 0);
  Pack<S> packs[kPacks];
  int place, n;

  /// f(c, k) for the packs that some thread of the group has, also where this one has none.
  template <class F> __device__ __forceinline__ void each(const F& f) const {
    RAMET_UNROLL
    for (int k = 0; k < kPacks; ++k)
      if (k * kGroup * kPack < n) f((k * kGroup + place) * kPack, k);
  }
  /// Elements after the end are `fill`.
  __device__ __forceinline__ void read(const Row<S>& row, int at, S fill) {
    place = at, n = static_cast<int>(row.n);
    each([&](int c, int k) {
      packs[k].set(fill);
      if (c < n) packs[k].read(row, c, fill);
    });
  }
  __device__ __forceinline__ void write(const Row<S>& row) const {
    each([&](int c, int k) {
      if (c < n) packs[k].write(row, c);
    });
  }
  /// v[k] from the packs and back.
  __device__ __forceinline__ void get(T (&v)[kPacks][kPack]) const {
    each([&](int, int k) { packs[k].get(v[k]); });
  }
  __device__ __forceinline__ void put(const T (&v)[kPacks][kPack]) {
    each([&](int, int k) { packs[k].put(v[k]); });
  }
};

template <class S> constexpr bool kShortFloat = sizeof(S) == 2;
/// Storage types whose rows are kept.
template <class S> constexpr bool kKept = sizeof(S) <= 4;

/// -inf as it is stored.
template <class S> __device__ __forceinline__ S lowest() {
  if constexpr (std::is_same_v<S, BfloatBits>) return {0xff80};
  else if constexpr (std::is_same_v<S, HalfBits>) return {0xfc00};
  else return static_cast<S>(-INFINITY);
}

/// The larger of two, or the number of a number and a NaN: one instruction for floats.
struct Most {
  __device__ __forceinline__ float operator()(float a, float b) const { return ::fmaxf(a, b); }
  __device__ __forceinline__ double operator()(double a, double b) const { return ::fmax(a, b); }
};

/// e^x for results that are stored as S. For sixteen bits the processor's power of two is enough.
/// At x = -100 the result is off by 9e-6 of itself, and S rounds by 5e-4 or 4e-3. Results below
/// 2^-126 are 0.
template <class S> __device__ __forceinline__ ComputeOf<S> row_exp(ComputeOf<S> x) {
  if constexpr (kShortFloat<S>) return ptx::ex2(x * 1.4426950408889634f);
  else return vexp(x);
}

/// The moments of a row in registers, as row_moments() has them; afterwards v are the deviations
/// from the mean, and 0 after the end. REQUIRES: as for over_group(); x was read with fill 0, and v
/// are its values.
template <class S, int kGroup, int kPacks, class T>
__device__ __forceinline__ RowMoments<T> share_moments(const Share<S, kGroup, kPacks>& x,
                                                       T (&v)[kPacks][kPack], bool packed, T cols,
                                                       double eps, T* shared) {
  T sum = T(0), squares = T(0);
  x.each([&](int, int k) {
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) sum += v[k][j];
  });
  const T mean = over_group<kGroup>(sum, Plus(), shared) / cols;
  x.each([&](int c, int k) {
    const T from = c < x.n ? mean : T(0);  // what lies after the end is 0
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) v[k][j] -= from;
    if (!packed) {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j)
        if (c + j >= x.n) v[k][j] = T(0);
    }
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) squares = fma(v[k][j], v[k][j], squares);
  });
  const T var = over_group<kGroup>(squares, Plus(), shared) / cols;
  return {mean, T(1) / sqrt(var + static_cast<T>(eps))};
}

/// Starts the kernel for rows of this length. kernel(group, packs) returns it; both arguments are
/// std::integral_constant<int>, and packs are 0 for rows that are not kept.
template <class S, class Kernel, class... Arguments>
void start_kept_rows(const char* name, Stream where, int64_t rows, int64_t cols,
                     const Kernel& kernel, Arguments&&... arguments) {
  const auto go = [&](auto group, auto packs) {
    const int64_t blocks = group == kWarp ? ceil_div(rows, kWarps) : rows;
    start(name, where, grid_of(blocks), kThreads, 0, kernel(group, packs),
          std::forward<Arguments>(arguments)...);
  };
  constexpr std::integral_constant<int, kWarp> warp;
  constexpr std::integral_constant<int, kThreads> block;
  constexpr std::integral_constant<int, 0> none;
  if constexpr (kKept<S>) {
    constexpr std::integral_constant<int, 1> one;
    constexpr std::integral_constant<int, kRowPacks> most;
    if (cols <= kWarp * kPack) return go(warp, one);
    if (cols <= kWarpColumns) return go(warp, most);
    if (cols <= kMostKept) return go(block, most);
  } else if (cols <= kWarpColumns) {
    return go(warp, none);
  }
  go(block, none);
}
static_assert(kWarpColumns == kWarp * kPack * kRowPacks);

}  // namespace ramet::kernels::RAMET_VARIANT
