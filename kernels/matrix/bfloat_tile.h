// The register tile of products in bfloat16: R rows x NV vectors of sums stay in registers during
// the loop over k. B is packed (bfloat_pack.h). A is packed, too, or its rows hold steps one after
// the other. An element's sum is one chain over k: a tile of a later K block continues the sums of
// the block before.
//
// A step is either a pair of neighbours in k, one instruction; or one element of a pair, a fused
// multiply-add. Both give the same bits, see kernels/NOTES.md.
#pragma once
#include <array>
#include <utility>

#include "kernels/copy/cast.h"
#include "kernels/simd/flushing_mode.h"
#include "kernels/simd/vec.h"

namespace ramet::kernels::RAMET_VARIANT {

struct BfloatTile {
  // a[step][rows], or row i at a + i * as; b[step][kNR]. A step is a pair of bfloat16, or a float.
  const void* a;
  int64_t as;  // bytes from row to row, or 0 where A is packed
  const float* b;
  float* c;  // whole vectors of each row are written
  int64_t cs, steps;
  bool first;  // the sums start at 0, else at c
};

struct FloatStep {
  static constexpr bool kPairs = false;
  static RAMET_INLINE vf add(vf a, vf b, vf c) { return fma(a, b, c); }
};

#if defined(__AVX512F__)
struct PairStep {  // c += a1 * b1, c += a0 * b0
  static constexpr bool kPairs = true;
  // Not the intrinsic: that needs a compiler option, with which the compiler would use the
  // instruction set anywhere.
  static RAMET_INLINE vf add(vf a, vf b, vf c) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  }
};
#endif

RAMET_INLINE float step_at(const char* p) {
  float x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

template <int R, int NV, class Step, bool kPacked> void bfloat_micro(const BfloatTile& t) {
  vf acc[R][NV];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) acc[i][j] = t.first ? vf{} : load(t.c + i * t.cs + j * VL);
  const char* a = static_cast<const char*>(t.a);
  const int64_t as = kPacked ? 4 : t.as, as3 = 3 * as, next = kPacked ? 4 * R : 4;
  const char *a4 = a + 4 * as, *a8 = a + 8 * as, *a12 = a + 12 * as;
  const float* b = t.b;
#pragma GCC unroll 2
  for (int64_t k = 0; k < t.steps; ++k, b += kNR) {
    vf bv[NV];
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) bv[j] = load(b + j * VL);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const char* g = kPacked ? a + i / 4 * 16 : i < 4 ? a : i < 8 ? a4 : i < 12 ? a8 : a12;
      const vf x = set1(step_at(kPacked        ? g + i % 4 * 4
                                : (i & 3) == 0 ? g
                                : (i & 3) == 1 ? g + as
                                : (i & 3) == 2 ? g + 2 * as
                                               : g + as3));
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) acc[i][j] = Step::add(x, bv[j], acc[i][j]);
    }
    a += next;
    if (!kPacked) a4 += 4, a8 += 4, a12 += 4;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) store(t.c + i * t.cs + j * VL, acc[i][j]);
}

using BfloatMicro = void (*)(const BfloatTile&);
template <int NV, class Step, bool kPacked, int... R>
constexpr std::array<BfloatMicro, kMR> bfloat_rows(std::integer_sequence<int, R...>) {
  return {bfloat_micro<R + 1, NV, Step, kPacked>...};
}
template <class Step, bool kPacked, int NV>
inline constexpr std::array<BfloatMicro, kMR> bfloat_micro_of =
    bfloat_rows<NV, Step, kPacked>(std::make_integer_sequence<int, kMR>{});
// [A packed][vectors - 1] -> functions by rows - 1
template <class Step>
inline constexpr const BfloatMicro* bfloat_micro_table[2][2] = {
    {bfloat_micro_of<Step, false, 1>.data(), bfloat_micro_of<Step, false, 2>.data()},
    {bfloat_micro_of<Step, true, 1>.data(), bfloat_micro_of<Step, true, 2>.data()}};

// Where the tile's own multiply-add and flushing are not those of VDPBF16PS in each case, tiles
// with such cases are computed again.
constexpr bool kExactTiles = !RAMET_FUSED_MULTIPLY || FlushingMode::kFlushesEarly;

// a * b + c with one rounding. The product, of 16 bits, is exact in double. So is the sum, unless
// one operand is less than 2^-28 of the other; then both roundings give the other one. A result
// that is subnormal after its rounding is zero. From half way between the largest of them and the
// smallest normal number on, it rounds to the latter.
RAMET_INLINE float fused(float a, float b, float c) {
  const double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c),
               size = __builtin_fabs(sum);
  if (size < 0x1p-126 && size > 0)
    return __builtin_copysignf(size < 0x1.ffffffp-127 ? 0.0f : 0x1p-126f, static_cast<float>(sum));
  return static_cast<float>(sum);
}

// A tile of `rows` rows, element by element, from the sums in `before`.
[[gnu::noinline, maybe_unused]] static void bfloat_exact_tile(const BfloatTile& t, int64_t rows,
                                                              int64_t columns,
                                                              const float* before) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = before[i * kNR + j];
      const char* a = static_cast<const char*>(t.a) + i * (t.as ? t.as : 4);
      for (int64_t k = 0; k < t.steps; ++k, a += t.as ? 4 : 4 * rows)
        sum = fused(step_at(a), t.b[k * kNR + j], sum);
      t.c[i * t.cs + j] = sum;
    }
}

/// The tile of `rows` <= kMR rows and `nr` <= kNR columns.
template <class Step> RAMET_INLINE void bfloat_tile(const BfloatTile& t, int64_t rows, int64_t nr) {
  const BfloatMicro fn = bfloat_micro_table<Step>[t.as == 0][nr > VL][rows - 1];
  if (Step::kPairs) return fn(t);
  if constexpr (!kExactTiles) {
    const FlushingMode mode;
    fn(t);
  } else {
    // A product of two bfloat16 numbers is exact in float, so a multiplication and an addition are
    // one rounding. The exceptions are products out of float's range, and where the processor
    // flushes early, small sums: then the tile is computed again.
    float before[kMR * kNR] = {};
    const int64_t columns = nr > VL ? kNR : VL;
    for (int64_t i = 0; i < rows && !t.first; ++i)
      __builtin_memcpy(before + i * kNR, t.c + i * t.cs, static_cast<size_t>(columns) * 4);
    const FlushingMode mode;
    fn(t);
    if (RAMET_FUSED_MULTIPLY ? mode.underflowed() : mode.left_range())
      bfloat_exact_tile(t, rows, columns, before);
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
