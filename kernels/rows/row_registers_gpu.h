// Rows in the registers of a warp or of a block, for .cu files only.
//
// Note [Rows in registers]
// A kernel that needs a row several times reads it once, if each thread's share fits its registers:
// up to kRowPacks packs of eight elements. That is 1024 columns for a warp and 8192 for a block of
// 256 threads. All reads of a row are issued before the first result is used, so a thread waits
// once for memory. 24 to 48 warps of a multiprocessor then have 48 to 96 KB under way, and 24 KB
// are enough for the full rate. Longer rows are read once for each pass.
//
// There is a kernel for each number of packs, so loops over them are straight code. In the last
// pack some threads may have nothing: they compute with the value for elements after the end.
//
// Which thread has which elements depends on the row's length alone (over_row_packs), and each
// thread goes through its packs in order. So neither registers nor the row's address change the
// bits. Elements after the end have a value that changes no result: 0 in sums, -inf in maxima.
//
// "Rows on a GPU" in kernels/NOTES.md counts bytes and instructions; tools/cuda/budgets.py checks
// them. None of these kernels has run on a GPU yet.
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
  /// All eight, or none of them and `fill`.
  __device__ __forceinline__ void read_whole(const S* p, bool there, S fill) {
    RAMET_GLOBAL(p);
    if (there) load_bytes<sizeof words>(p, words);
    else set(fill);
  }
  /// The first `left` of them, and `fill`.
  __device__ __forceinline__ void read_some(const S* p, int left, S fill) {
    S s[kPack];
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) s[j] = j < left ? p[j] : fill;
    memcpy(words, s, sizeof words);
  }
  __device__ __forceinline__ void write_whole(S* p, bool there) const {
    RAMET_GLOBAL(p);
    if (there) store_bytes<sizeof words>(p, words);
  }
  __device__ __forceinline__ void write_some(S* p, int left) const {
    S s[kPack];
    memcpy(s, words, sizeof s);
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j)
      if (j < left) p[j] = s[j];
  }
  /// Elements c to c + 7 of a row of any length, and zeros after the end. REQUIRES: c < row.n.
  __device__ __forceinline__ void read(const Row<S>& row, int64_t c) {
    if (row.packed) {
      RAMET_GLOBAL(row.p);
      load_bytes<sizeof words>(row.p + c, words);
      return;
    }
    S s[kPack];
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) s[j] = c + j < row.n ? row.p[c + j] : S{};
    memcpy(words, s, sizeof words);
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

  /// Where this thread's first pack is, and how many elements are left there (none, if it is < 1).
  int64_t first;
  int left;
  bool packed;

  __device__ __forceinline__ Share(int64_t cols, int place, bool whole_packs)
      : first(static_cast<int64_t>(place) * kPack),
        left(static_cast<int>(cols) - place * kPack),
        packed(whole_packs) {}
  /// f(k) for each pack, also for one that this thread does not have.
  template <class F> __device__ __forceinline__ void each(const F& f) const {
    RAMET_UNROLL
    for (int k = 0; k < kPacks; ++k) f(k);
  }
  /// f(value) for the eight values of each pack.
  template <class F> __device__ __forceinline__ void over(T (&v)[kPacks][kPack], const F& f) const {
    each([&](int k) {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j) f(v[k][j]);
    });
  }
  __device__ __forceinline__ int left_of(int k) const { return left - k * kGroup * kPack; }
  /// The k-th pack's place in a row that begins at p.
  template <class P> __device__ __forceinline__ P* at(P* p, int k) const {
    return p + first + k * kGroup * kPack;
  }
  /// Elements after the end are `fill`.
  __device__ __forceinline__ void read(const S* row, S fill) {
    if (packed) each([&](int k) { packs[k].read_whole(at(row, k), left_of(k) > 0, fill); });
    else each([&](int k) { packs[k].read_some(at(row, k), left_of(k), fill); });
  }
  __device__ __forceinline__ void write(S* row) const {
    if (packed) each([&](int k) { packs[k].write_whole(at(row, k), left_of(k) > 0); });
    else each([&](int k) { packs[k].write_some(at(row, k), left_of(k)); });
  }
  /// v[k] from the packs and back.
  __device__ __forceinline__ void get(T (&v)[kPacks][kPack]) const {
    each([&](int k) { packs[k].get(v[k]); });
  }
  __device__ __forceinline__ void put(const T (&v)[kPacks][kPack]) {
    each([&](int k) { packs[k].put(v[k]); });
  }
  /// The k-th pack of another row, or of a weight of as many columns.
  __device__ __forceinline__ void get_of(const S* row, int k, T (&v)[kPack]) const {
    Pack<S> other;
    if (packed) other.read_whole(at(row, k), left_of(k) > 0, S{});
    else other.read_some(at(row, k), left_of(k), S{});
    other.get(v);
  }
};
/// Row `row` of a dense block.
template <class S> __device__ __forceinline__ S* dense_row(void* p, int64_t row, int64_t cols) {
  return static_cast<S*>(p) + row * cols;
}
template <class S>
__device__ __forceinline__ const S* dense_row(const void* p, int64_t row, int64_t cols) {
  return static_cast<const S*>(p) + row * cols;
}

template <class S> constexpr bool kShortFloat = sizeof(S) == 2;
/// Storage types of rows that are kept.
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
                                                       T (&v)[kPacks][kPack], T cols, double eps,
                                                       T* shared) {
  T sum = T(0), squares = T(0);
  x.over(v, [&](T e) { sum += e; });
  const T mean = over_group<kGroup>(sum, Plus(), shared) / cols;
  x.each([&](int k) {
    const T from = x.left_of(k) > 0 ? mean : T(0);  // what lies after the end is 0
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) v[k][j] -= from;
    if (!x.packed) {
      RAMET_UNROLL
      for (int j = 0; j < kPack; ++j)
        if (j >= x.left_of(k)) v[k][j] = T(0);
    }
    RAMET_UNROLL
    for (int j = 0; j < kPack; ++j) squares = fma(v[k][j], v[k][j], squares);
  });
  const T var = over_group<kGroup>(squares, Plus(), shared) / cols;
  return {mean, T(1) / sqrt(var + static_cast<T>(eps))};
}

/// Blocks of kept rows that a multiprocessor must have registers for: 80 or 128 for each thread.
template <class S> constexpr int kKeptBlocks = kShortFloat<S> ? 3 : 2;

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
  const auto keep = [&](auto group) {
    static_assert(kRowPacks == 4);
    switch (ceil_div(cols, group * kPack)) {
      case 1: return go(group, std::integral_constant<int, 1>());
      case 2: return go(group, std::integral_constant<int, 2>());
      case 3: return go(group, std::integral_constant<int, 3>());
      default: return go(group, std::integral_constant<int, 4>());
    }
  };
  constexpr std::integral_constant<int, kWarp> warp;
  constexpr std::integral_constant<int, kThreads> block;
  constexpr std::integral_constant<int, 0> none;
  if constexpr (kKept<S>) {
    if (cols <= kWarpColumns) return keep(warp);
    if (cols <= kMostKept) return keep(block);
  } else if (cols <= kWarpColumns) {
    return go(warp, none);
  }
  go(block, none);
}
static_assert(kWarpColumns == kWarp * kPack * kRowPacks);

}  // namespace ramet::kernels::RAMET_VARIANT
