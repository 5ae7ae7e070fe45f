// The vector layer (vec.h) for x86-64: 4 floats, SSE2. Also for WebAssembly: Emscripten's
// emmintrin.h has the same functions, by its own vectors of 128 bits.
#pragma once
#include <emmintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"
#include "kernels/simd/shuffle.h"

// Is fma() one rounding?
#define RAMET_FUSED_MULTIPLY 0

namespace ramet::kernels::RAMET_VARIANT {

constexpr int VL = 4, kMR = 6;
using vf = __m128;
using vi = __m128i;
using vm = __m128;
RAMET_INLINE vf load(const float* p) { return _mm_loadu_ps(p); }
RAMET_INLINE void store(float* p, vf v) { _mm_storeu_ps(p, v); }
RAMET_INLINE void stream(float* p, vf v) { _mm_stream_ps(p, v); }
RAMET_INLINE void stream_fence() { _mm_sfence(); }
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
RAMET_INLINE vf zip_low(vf a, vf b) { return RAMET_SHUFFLE(a, b, 0, 4, 1, 5); }
RAMET_INLINE vf zip_high(vf a, vf b) { return RAMET_SHUFFLE(a, b, 2, 6, 3, 7); }

}  // namespace ramet::kernels::RAMET_VARIANT
