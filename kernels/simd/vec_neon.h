// The vector layer (vec.h) for ARM64: 4 floats, NEON. Numbers have the bits of x86-64-v3 and -v4,
// also where the processors differ: max, min, and toint of what is no int32. An operation without a
// defined result makes a positive NaN here and a negative one there.
#pragma once
#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/simd/inline.h"

// Is fma() one rounding?
#define RAMET_FUSED_MULTIPLY 1

namespace ramet::kernels::RAMET_VARIANT {

// floats per register, rows of the GEMM tile (28 accumulators of 32)
constexpr int VL = 4, kMR = 14;
using vf = float32x4_t;
using vi = int32x4_t;
using vm = uint32x4_t;
RAMET_INLINE vf load(const float* p) { return vld1q_f32(p); }
RAMET_INLINE void store(float* p, vf v) { vst1q_f32(p, v); }
RAMET_INLINE void stream(float* p, vf v) { vst1q_f32(p, v); }  // there is no such store
RAMET_INLINE void stream_fence() {}
RAMET_INLINE vf loadn(const float* p, long n) {
  float t[4] = {};
  for (long i = 0; i < 4 && i < n; ++i) t[i] = p[i];
  return load(t);
}
RAMET_INLINE void storen(float* p, vf v, long n) {
  if (n >= 4) return store(p, v);
  float32x2_t h = vget_low_f32(v);
  if (n & 2) vst1_f32(p, h), p += 2, h = vget_high_f32(v);
  if (n & 1) vst1_lane_f32(p, h, 0);
}
RAMET_INLINE vf set1(float x) { return vdupq_n_f32(x); }
RAMET_INLINE vf fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
RAMET_INLINE vm lt(vf a, vf b) { return vcltq_f32(a, b); }
RAMET_INLINE vm eq(vf a, vf b) { return vceqq_f32(a, b); }
RAMET_INLINE vm le(vf a, vf b) { return vcleq_f32(a, b); }
RAMET_INLINE vm ne(vf a, vf b) { return vmvnq_u32(vceqq_f32(a, b)); }
RAMET_INLINE vm both(vm a, vm b) { return vandq_u32(a, b); }
RAMET_INLINE vm either(vm a, vm b) { return vorrq_u32(a, b); }
RAMET_INLINE vm andnot(vm a, vm b) { return vbicq_u32(a, b); }
RAMET_INLINE bool any(vm m) { return vmaxvq_u32(m) != 0; }
RAMET_INLINE void store_mask(uint8_t* p, vm m) {  // VL bytes, 0 or 1
  const uint16x4_t h = vmovn_u32(m);
  const uint8x8_t b = vand_u8(vmovn_u16(vcombine_u16(h, h)), vdup_n_u8(1));
  vst1_lane_u32(reinterpret_cast<uint32_t*>(p), vreinterpret_u32_u8(b), 0);
}
RAMET_INLINE vf pick(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }  // m ? a : b
RAMET_INLINE vf keep(vm m, vf a) {                                     // m ? a : 0
  return vreinterpretq_f32_u32(vandq_u32(m, vreinterpretq_u32_f32(a)));
}
// The processor's own maximum of a number and a NaN is the NaN, and that of both zeros is +0.
RAMET_INLINE vf max(vf a, vf b) { return pick(lt(b, a), a, b); }
RAMET_INLINE vf min(vf a, vf b) { return pick(lt(a, b), a, b); }
RAMET_INLINE vf sqrt(vf a) { return vsqrtq_f32(a); }
RAMET_INLINE vf round(vf a) { return vrndnq_f32(a); }
RAMET_INLINE vf vround(vf a) { return vrndnq_f32(a); }
RAMET_INLINE vf vfloor(vf a) { return vrndmq_f32(a); }
RAMET_INLINE vf vceil(vf a) { return vrndpq_f32(a); }
RAMET_INLINE vf vtrunc(vf a) { return vrndq_f32(a); }
RAMET_INLINE vi seti(int x) { return vdupq_n_s32(x); }
// The processor's own conversion gives the nearest int32, and 0 for a NaN.
RAMET_INLINE vi toint(vf a) {
  return vbslq_s32(lt(a, set1(2147483648.0f)), vcvtnq_s32_f32(a), seti(INT32_MIN));
}
RAMET_INLINE vf tofloat(vi a) { return vcvtq_f32_s32(a); }
RAMET_INLINE vi addi(vi a, vi b) { return vaddq_s32(a, b); }
RAMET_INLINE vi subi(vi a, vi b) { return vsubq_s32(a, b); }
RAMET_INLINE vi andi(vi a, vi b) { return vandq_s32(a, b); }
RAMET_INLINE vi ori(vi a, vi b) { return vorrq_s32(a, b); }
RAMET_INLINE vi xori(vi a, vi b) { return veorq_s32(a, b); }
template <int S> RAMET_INLINE vi shl(vi a) { return vshlq_n_s32(a, S); }
template <int S> RAMET_INLINE vi sra(vi a) { return vshrq_n_s32(a, S); }
RAMET_INLINE vi bits(vf a) { return vreinterpretq_s32_f32(a); }
RAMET_INLINE vf float_of(vi a) { return vreinterpretq_f32_s32(a); }
RAMET_INLINE vf zip_low(vf a, vf b) { return vzip1q_f32(a, b); }
RAMET_INLINE vf zip_high(vf a, vf b) { return vzip2q_f32(a, b); }

}  // namespace ramet::kernels::RAMET_VARIANT
