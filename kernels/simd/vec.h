// Vector layer: apart from some of kernels/matrix the only file that names an instruction set. It
// is compiled three times (-march=x86-64, -v3, -v4). Everything is in the namespace
// ramet::kernels::RAMET_VARIANT, which the build defines, so the variants coexist. vf: VL floats,
// vi: VL int32, vm: a truth value a lane. Comparisons with a NaN are false, `ne` true. max and min
// return their second operand when one is a NaN, and when both are equal.
#pragma once
// GCC 12 treats the undefined operand inside _mm512_max_ps and others as a mistake of the caller.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"

namespace ramet::kernels::RAMET_VARIANT {
using std::int32_t;

#if defined(__AVX512F__)
// floats per register, rows of the GEMM tile (28 accumulators of 32)
constexpr int VL = 16, kMR = 14;
using vf = __m512;
using vi = __m512i;
using vm = __mmask16;
RAMET_INLINE vf load(const float* p) { return _mm512_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm512_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm512_stream_ps(p, v); }
RAMET_INLINE vm maskn(long n) { return n >= 16 ? vm(0xffff) : vm((1u << n) - 1); }
RAMET_INLINE vf loadn(const float* p, long n) { return _mm512_maskz_loadu_ps(maskn(n), p); }
RAMET_INLINE void storen(float* p, vf v, long n) { _mm512_mask_storeu_ps(p, maskn(n), v); }
RAMET_INLINE vf set1(float x) { return _mm512_set1_ps(x); }
RAMET_INLINE vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
RAMET_INLINE vf max(vf a, vf b) { return _mm512_max_ps(a, b); }
RAMET_INLINE vf min(vf a, vf b) { return _mm512_min_ps(a, b); }
RAMET_INLINE vf sqrt(vf a) { return _mm512_sqrt_ps(a); }
RAMET_INLINE vm lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
RAMET_INLINE vm eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
RAMET_INLINE vm le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
RAMET_INLINE vm ne(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ); }
RAMET_INLINE vm both(vm a, vm b) { return vm(a & b); }
RAMET_INLINE vm either(vm a, vm b) { return vm(a | b); }
RAMET_INLINE bool any(vm m) { return m != 0; }
RAMET_INLINE void store_mask(uint8_t* p, vm m) {  // VL bytes, 0 or 1
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_maskz_set1_epi8(m, 1));
}
RAMET_INLINE vf pick(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }  // m ? a : b
RAMET_INLINE vf keep(vm m, vf a) { return _mm512_maskz_mov_ps(m, a); }            // m ? a : 0
RAMET_INLINE vm andnot(vm a, vm b) { return vm(a & ~b); }
RAMET_INLINE vf round(vf a) { return _mm512_roundscale_ps(a, 8); }
RAMET_INLINE vf vround(vf a) { return _mm512_roundscale_ps(a, 8); }
RAMET_INLINE vf vfloor(vf a) { return _mm512_roundscale_ps(a, 9); }
RAMET_INLINE vf vceil(vf a) { return _mm512_roundscale_ps(a, 10); }
RAMET_INLINE vf vtrunc(vf a) { return _mm512_roundscale_ps(a, 11); }
RAMET_INLINE vi toint(vf a) { return _mm512_cvtps_epi32(a); }
RAMET_INLINE vf tofloat(vi a) { return _mm512_cvtepi32_ps(a); }
RAMET_INLINE vi seti(int x) { return _mm512_set1_epi32(x); }
RAMET_INLINE vi addi(vi a, vi b) { return _mm512_add_epi32(a, b); }
RAMET_INLINE vi subi(vi a, vi b) { return _mm512_sub_epi32(a, b); }
RAMET_INLINE vi andi(vi a, vi b) { return _mm512_and_si512(a, b); }
RAMET_INLINE vi ori(vi a, vi b) { return _mm512_or_si512(a, b); }
RAMET_INLINE vi xori(vi a, vi b) { return _mm512_xor_si512(a, b); }
template <int S> RAMET_INLINE vi shl(vi a) { return _mm512_slli_epi32(a, S); }
template <int S> RAMET_INLINE vi sra(vi a) { return _mm512_srai_epi32(a, S); }
RAMET_INLINE vi bits(vf a) { return _mm512_castps_si512(a); }
RAMET_INLINE vf float_of(vi a) { return _mm512_castsi512_ps(a); }

#elif defined(__AVX2__)
constexpr int VL = 8, kMR = 6;
using vf = __m256;
using vi = __m256i;
using vm = __m256;
RAMET_INLINE vf load(const float* p) { return _mm256_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm256_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm256_stream_ps(p, v); }
RAMET_INLINE vf loadn(const float* p, long n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), lane));
}
// stores pieces, because masked stores are microcoded on Zen
RAMET_INLINE void storen(float* p, vf v, long n) {
  if (n >= 8) return store(p, v);
  __m128 h = _mm256_castps256_ps128(v);
  if (n & 4) _mm_storeu_ps(p, h), p += 4, h = _mm256_extractf128_ps(v, 1);
  if (n & 2) _mm_storel_pi(reinterpret_cast<__m64*>(p), h), p += 2, h = _mm_movehl_ps(h, h);
  if (n & 1) _mm_store_ss(p, h);
}
RAMET_INLINE vf set1(float x) { return _mm256_set1_ps(x); }
RAMET_INLINE vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
RAMET_INLINE vf max(vf a, vf b) { return _mm256_max_ps(a, b); }
RAMET_INLINE vf min(vf a, vf b) { return _mm256_min_ps(a, b); }
RAMET_INLINE vf sqrt(vf a) { return _mm256_sqrt_ps(a); }
RAMET_INLINE vm lt(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
RAMET_INLINE vm eq(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
RAMET_INLINE vm le(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LE_OQ); }
RAMET_INLINE vm ne(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_NEQ_UQ); }
RAMET_INLINE vm both(vm a, vm b) { return _mm256_and_ps(a, b); }
RAMET_INLINE vm either(vm a, vm b) { return _mm256_or_ps(a, b); }
RAMET_INLINE bool any(vm m) { return _mm256_movemask_ps(m) != 0; }
RAMET_INLINE void store_mask(uint8_t* p, vm m) {  // VL bytes, 0 or 1
  const __m256i w = _mm256_castps_si256(m);
  const __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(w), _mm256_extracti128_si256(w, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                   _mm_and_si128(_mm_packs_epi16(h, h), _mm_set1_epi8(1)));
}
RAMET_INLINE vf pick(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }
RAMET_INLINE vf keep(vm m, vf a) { return _mm256_and_ps(m, a); }
RAMET_INLINE vm andnot(vm a, vm b) { return _mm256_andnot_ps(b, a); }
RAMET_INLINE vf round(vf a) { return _mm256_round_ps(a, 8); }
RAMET_INLINE vf vround(vf a) { return _mm256_round_ps(a, 8); }
RAMET_INLINE vf vfloor(vf a) { return _mm256_round_ps(a, 9); }
RAMET_INLINE vf vceil(vf a) { return _mm256_round_ps(a, 10); }
RAMET_INLINE vf vtrunc(vf a) { return _mm256_round_ps(a, 11); }
RAMET_INLINE vi toint(vf a) { return _mm256_cvtps_epi32(a); }
RAMET_INLINE vf tofloat(vi a) { return _mm256_cvtepi32_ps(a); }
RAMET_INLINE vi seti(int x) { return _mm256_set1_epi32(x); }
RAMET_INLINE vi addi(vi a, vi b) { return _mm256_add_epi32(a, b); }
RAMET_INLINE vi subi(vi a, vi b) { return _mm256_sub_epi32(a, b); }
RAMET_INLINE vi andi(vi a, vi b) { return _mm256_and_si256(a, b); }
RAMET_INLINE vi ori(vi a, vi b) { return _mm256_or_si256(a, b); }
RAMET_INLINE vi xori(vi a, vi b) { return _mm256_xor_si256(a, b); }
template <int S> RAMET_INLINE vi shl(vi a) { return _mm256_slli_epi32(a, S); }
template <int S> RAMET_INLINE vi sra(vi a) { return _mm256_srai_epi32(a, S); }
RAMET_INLINE vi bits(vf a) { return _mm256_castps_si256(a); }
RAMET_INLINE vf float_of(vi a) { return _mm256_castsi256_ps(a); }

#else
constexpr int VL = 4, kMR = 6;
using vf = __m128;
using vi = __m128i;
using vm = __m128;
RAMET_INLINE vf load(const float* p) { return _mm_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm_stream_ps(p, v); }
RAMET_INLINE vf loadn(const float* p, long n) {
  float t[4] = {};
  for (long i = 0; i < 4 && i < n; ++i) t[i] = p[i];
  return load(t);
}
RAMET_INLINE void storen(float* p, vf h, long n) {
  if (n >= 4) return store(p, h);
  if (n & 2) _mm_storel_pi(reinterpret_cast<__m64*>(p), h), p += 2, h = _mm_movehl_ps(h, h);
  if (n & 1) _mm_store_ss(p, h);
}
RAMET_INLINE vf set1(float x) { return _mm_set1_ps(x); }
// two roundings: baseline bits differ from v3/v4
RAMET_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }
RAMET_INLINE vf max(vf a, vf b) { return _mm_max_ps(a, b); }
RAMET_INLINE vf min(vf a, vf b) { return _mm_min_ps(a, b); }
RAMET_INLINE vf sqrt(vf a) { return _mm_sqrt_ps(a); }
RAMET_INLINE vm lt(vf a, vf b) { return _mm_cmplt_ps(a, b); }
RAMET_INLINE vm eq(vf a, vf b) { return _mm_cmpeq_ps(a, b); }
RAMET_INLINE vm le(vf a, vf b) { return _mm_cmple_ps(a, b); }
RAMET_INLINE vm ne(vf a, vf b) { return _mm_cmpneq_ps(a, b); }
RAMET_INLINE vm both(vm a, vm b) { return _mm_and_ps(a, b); }
RAMET_INLINE vm either(vm a, vm b) { return _mm_or_ps(a, b); }
RAMET_INLINE bool any(vm m) { return _mm_movemask_ps(m) != 0; }
RAMET_INLINE void store_mask(uint8_t* p, vm m) {  // VL bytes, 0 or 1
  const __m128i h = _mm_packs_epi32(_mm_castps_si128(m), _mm_castps_si128(m));
  const int four = _mm_cvtsi128_si32(_mm_and_si128(_mm_packs_epi16(h, h), _mm_set1_epi8(1)));
  memcpy(p, &four, 4);
}
RAMET_INLINE vf pick(vm m, vf a, vf b) { return _mm_or_ps(_mm_and_ps(m, a), _mm_andnot_ps(m, b)); }
RAMET_INLINE vf keep(vm m, vf a) { return _mm_and_ps(m, a); }
RAMET_INLINE vm andnot(vm a, vm b) { return _mm_andnot_ps(b, a); }
RAMET_INLINE vi toint(vf a) { return _mm_cvtps_epi32(a); }
RAMET_INLINE vf tofloat(vi a) { return _mm_cvtepi32_ps(a); }
RAMET_INLINE vf round(vf a) { return tofloat(toint(a)); }  // |a| < 2^31, loses the sign of zero
// Any float; SSE2 has no rounding instruction, and from 2^23 on every float is whole.
RAMET_INLINE vf vround(vf a) {
  const vf sign = _mm_and_ps(a, set1(-0.0f)), r = _mm_or_ps(round(a), sign);
  return pick(lt(_mm_andnot_ps(set1(-0.0f), a), set1(8388608.0f)), r, a);
}
RAMET_INLINE vf vfloor(vf a) {
  const vf r = vround(a);
  return _mm_or_ps(r - keep(lt(a, r), set1(1.0f)), _mm_and_ps(a, set1(-0.0f)));
}
RAMET_INLINE vf vceil(vf a) {
  const vf r = vround(a);
  return _mm_or_ps(r + keep(lt(r, a), set1(1.0f)), _mm_and_ps(a, set1(-0.0f)));
}
RAMET_INLINE vf vtrunc(vf a) {
  const vf sign = _mm_and_ps(a, set1(-0.0f)), m = _mm_andnot_ps(set1(-0.0f), a), r = round(m);
  const vf t = _mm_or_ps(r - keep(lt(m, r), set1(1.0f)), sign);
  return pick(lt(m, set1(8388608.0f)), t, a);
}
RAMET_INLINE vi seti(int x) { return _mm_set1_epi32(x); }
RAMET_INLINE vi addi(vi a, vi b) { return _mm_add_epi32(a, b); }
RAMET_INLINE vi subi(vi a, vi b) { return _mm_sub_epi32(a, b); }
RAMET_INLINE vi andi(vi a, vi b) { return _mm_and_si128(a, b); }
RAMET_INLINE vi ori(vi a, vi b) { return _mm_or_si128(a, b); }
RAMET_INLINE vi xori(vi a, vi b) { return _mm_xor_si128(a, b); }
template <int S> RAMET_INLINE vi shl(vi a) { return _mm_slli_epi32(a, S); }
template <int S> RAMET_INLINE vi sra(vi a) { return _mm_srai_epi32(a, S); }
RAMET_INLINE vi bits(vf a) { return _mm_castps_si128(a); }
RAMET_INLINE vf float_of(vi a) { return _mm_castsi128_ps(a); }
#endif

constexpr int kNR = 2 * VL;  // columns of the GEMM tile

// r (VL registers, one matrix row each) is transposed in place: log2(VL) perfect shuffles.
RAMET_INLINE void transpose(vf (&r)[VL]) {
  typedef int32_t idx __attribute__((vector_size(VL * 4)));
  idx lo, hi;
  for (int i = 0; i < VL; ++i) lo[i] = (i >> 1) + (i & 1) * VL, hi[i] = lo[i] + VL / 2;
#pragma GCC unroll 4
  for (int s = 1; s < VL; s *= 2) {
    vf t[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL / 2; ++i) {
      t[2 * i] = __builtin_shuffle(r[i], r[i + VL / 2], lo);
      t[2 * i + 1] = __builtin_shuffle(r[i], r[i + VL / 2], hi);
    }
#pragma GCC unroll 16
    for (int i = 0; i < VL; ++i) r[i] = t[i];
  }
}
}  // namespace ramet::kernels::RAMET_VARIANT
