// The vector layer (vec.h) for x86-64-v4: 16 floats, AVX-512.
#pragma once
// GCC 12 treats the undefined operand inside _mm512_max_ps and others as a mistake of the caller.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"
#include "kernels/simd/shuffle.h"

// Is fma() one rounding?
#define RAMET_FUSED_MULTIPLY 1

namespace ramet::kernels::RAMET_VARIANT {

// floats per register, rows of the GEMM tile (28 accumulators of 32)
constexpr int VL = 16, kMR = 14;
using vf = __m512;
using vi = __m512i;
using vm = __mmask16;
RAMET_INLINE vf load(const float* p) { return _mm512_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm512_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm512_stream_ps(p, v); }
RAMET_INLINE void stream_fence() { _mm_sfence(); }
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
RAMET_INLINE vf zip_low(vf a, vf b) {
  return RAMET_SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
RAMET_INLINE vf zip_high(vf a, vf b) {
  return RAMET_SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

}  // namespace ramet::kernels::RAMET_VARIANT
