// Packing of bfloat16 operands for the tile (bfloat_tile.h): slivers of lanes (rows of A, columns
// of B), step after step. A step is a pair of neighbours in k as one word of 32 bits, the even one
// in the lower half. Where the processor has no instruction for pairs, it is a float: the odd
// element of the pair, then the even one. An odd k ends with a pair that has a zero, in both
// operands.
#pragma once
#include "kernels/simd/vec.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

typedef uint32_t Words __attribute__((vector_size(VL * 4)));
typedef uint16_t Halves __attribute__((vector_size(VL * 2)));

/// An operand of `lanes` x `k`: element (lane, i) is data[lane * ld + i], or data[i * ld + lane]
/// with `across`.
struct BfloatOperand {
  const uint16_t* data;
  int64_t ld;
  bool across;
  int64_t lanes, k;
};

RAMET_INLINE Words widen_halves(const uint16_t* p) {
#if defined(__AVX512F__)
  return (Words)_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__AVX2__)
  return (Words)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
#else
  Halves h;
  __builtin_memcpy(&h, p, sizeof h);
  return __builtin_convertvector(h, Words);
#endif
}
// Vectors of which only the first `n` numbers exist; zeros are in place of the others. For VL
// numbers n < VL, for VL pairs n < 2 VL.
#if defined(__AVX512F__)
RAMET_INLINE Words widen_some_halves(const uint16_t* p, int64_t n) {
  const auto mask = static_cast<__mmask16>((1u << n) - 1);
  return (Words)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p));
}
RAMET_INLINE vf load_some_pairs(const uint16_t* p, int64_t n) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << n) - 1);
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask, p));
}
#else
[[gnu::noinline, maybe_unused]] static Words widen_some_halves(const uint16_t* p, int64_t n) {
  uint16_t h[VL] = {};
  for (int64_t i = 0; i < n; ++i) h[i] = p[i];
  return widen_halves(h);
}
[[gnu::noinline, maybe_unused]] static vf load_some_pairs(const uint16_t* p, int64_t n) {
  uint16_t h[2 * VL] = {};
  for (int64_t i = 0; i < n; ++i) h[i] = p[i];
  vf v;
  __builtin_memcpy(&v, h, sizeof v);
  return v;
}
#endif

/// n <= VL numbers as floats, zeros after them.
RAMET_INLINE vf as_floats(const uint16_t* p, int64_t n) {
  return (vf)((n == VL ? widen_halves(p) : widen_some_halves(p, n)) << 16);
}
/// The first n <= VL numbers of v, rounded to bfloat16. A NaN is 0xFFC0.
RAMET_INLINE void store_halves(uint16_t* to, vf v, int64_t n) {
  const Words u = (Words)v, near = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16,
              w = (u & 0x7fffffffu) > 0x7f800000u ? Words{} + 0xffc0u : near;
  const Halves h = __builtin_convertvector(w, Halves);
  if (n >= VL) __builtin_memcpy(to, &h, sizeof h);
  else __builtin_memcpy(to, &h, static_cast<size_t>(n) * 2);
}

// Lanes j .. of pair `p` of a sliver that is `stride` lanes wide, of which n are left. A whole
// vector reaches into the next step, which is written later, or into the slack after the sliver.
// That is wrong only after other lanes of that step have been written.
template <bool kPairs>
RAMET_INLINE void put_pairs(float* dst, int64_t stride, int64_t p, int64_t j, int64_t n, Words w) {
  const auto put = [&](int64_t step, Words words) {
    float* d = dst + step * stride + j;
    const vf v = (vf)words;
    if (kMR <= VL || n >= VL || j == 0 || stride % VL == 0) store(d, v);
    else storen(d, v, n);
  };
  if constexpr (kPairs) put(p, w);
  else put(2 * p, w & 0xffff0000u), put(2 * p + 1, w << 16);
}

template <bool kPairs>
void bfloat_pack_across(BfloatOperand o, int64_t lane, int64_t n, int64_t pair, int64_t np,
                        float* dst, int64_t stride) {
  const uint16_t *even = o.data + 2 * pair * o.ld + lane, *odd = even + o.ld;
  const int64_t there = o.lanes - lane;
  for (int64_t p = 0; p < np; ++p, even += 2 * o.ld, odd += 2 * o.ld) {
    const bool whole = 2 * (pair + p) + 1 < o.k;
    int64_t j = 0;
    for (; j < n && j + VL <= there; j += VL) {
      Words w = widen_halves(even + j);
      if (whole) w |= widen_halves(odd + j) << 16;
      put_pairs<kPairs>(dst, stride, p, j, n - j, w);
    }
    if (j < n) {
      Words w = widen_some_halves(even + j, there - j);
      if (whole) w |= widen_some_halves(odd + j, there - j) << 16;
      put_pairs<kPairs>(dst, stride, p, j, n - j, w);
    }
  }
}

template <bool kPairs>
void bfloat_pack_along(BfloatOperand o, int64_t lane, int64_t n, int64_t pair, int64_t np,
                       float* dst, int64_t stride) {
  for (int64_t j = 0; j < n; j += VL)
    for (int64_t p0 = 0; p0 < np; p0 += VL) {
      const int64_t k = 2 * (pair + p0), left = o.k - k;
      const uint16_t* rows = o.data + (lane + j) * o.ld + k;
      vf r[VL];
      if (left >= 2 * VL) {
#pragma GCC unroll 16
        for (int i = 0; i < VL; ++i) {
          r[i] = vf{};
          if (j + i < n) __builtin_memcpy(&r[i], rows + i * o.ld, sizeof r[i]);
        }
      } else {
        for (int i = 0; i < VL; ++i)
          r[i] = j + i < n ? load_some_pairs(rows + i * o.ld, left) : vf{};
      }
      transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < VL; ++i)
        if (p0 + i < np) put_pairs<kPairs>(dst, stride, p0 + i, j, n - j, (Words)r[i]);
    }
}

/// Packs lanes lane .. lane + n and pairs pair .. pair + np as a sliver, `stride` lanes wide. Up to
/// VL - 1 floats after it may be overwritten.
template <bool kPairs>
RAMET_INLINE void bfloat_pack(const BfloatOperand& o, int64_t lane, int64_t n, int64_t pair,
                              int64_t np, float* dst, int64_t stride) {
  const auto fn = o.across ? bfloat_pack_across<kPairs> : bfloat_pack_along<kPairs>;
  fn(o, lane, n, pair, np, dst, stride);
}

}  // namespace ramet::kernels::RAMET_VARIANT
