// The vector layer (vec.h) for x86-64-v3: 8 floats, AVX2 and FMA.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"
#include "kernels/simd/shuffle.h"

// Is fma() one rounding?
#define RAMET_FUSED_MULTIPLY 1

namespace ramet::kernels::RAMET_VARIANT {

constexpr int VL = 8, kMR = 6;
using vf = __m256;
using vi = __m256i;
using vm = __m256;
RAMET_INLINE vf load(const float* p) { return _mm256_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm256_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm256_stream_ps(p, v); }
RAMET_INLINE void stream_fence() { _mm_sfence(); }
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
RAMET_INLINE vf zip_low(vf a, vf b) { return RAMET_SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
RAMET_INLINE vf zip_high(vf a, vf b) { return RAMET_SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

}  // namespace ramet::kernels::RAMET_VARIANT
