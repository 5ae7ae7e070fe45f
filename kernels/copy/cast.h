// How one element of any type is read as a compute type and written from it, on CPUs and GPUs. The
// rules are in chunk.h.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simd/inline.h"

namespace ramet::kernels::RAMET_VARIANT {

// Storage types: the representation of one element in memory. Plain integers and floating-point
// numbers represent themselves.
struct BoolByte {
  uint8_t bits;
};
struct HalfBits {
  uint16_t bits;
};
struct BfloatBits {
  uint16_t bits;
};

RAMET_INLINE uint32_t bits32(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
RAMET_INLINE float float32(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

RAMET_INLINE float widen(BfloatBits b) { return float32(static_cast<uint32_t>(b.bits) << 16); }
#if defined(RAMET_GPU_MATH)
// One instruction each. The sign and payload of a NaN may differ from the CPU's.
RAMET_INLINE float widen(HalfBits h) {
  __half x;
  memcpy(&x, &h, sizeof x);
  return __half2float(x);
}
RAMET_INLINE HalfBits to_half(float x) {
  const __half y = __float2half_rn(x);
  HalfBits h;
  memcpy(&h, &y, sizeof h);
  return h;
}
RAMET_INLINE BfloatBits to_bfloat(float x) {
  const __nv_bfloat16 y = __float2bfloat16_rn(x);
  BfloatBits b;
  memcpy(&b, &y, sizeof b);
  return b;
}
#else
// The arithmetic of runtime/base/half.h without branches, so that these loops become vector code.
RAMET_INLINE float widen(HalfBits h) {
  const uint32_t sign = static_cast<uint32_t>(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
  const float tiny = static_cast<float>(static_cast<int32_t>(rest)) * 0x1p-24f;
  // Masks: of conditional expressions GCC makes jumps here.
  const uint32_t is_tiny = 0u - static_cast<uint32_t>(rest < 0x400u),
                 is_infinite = 0u - static_cast<uint32_t>(rest >= 0x7c00u),
                 normal = (rest << 13) + 0x38000000u + (is_infinite & 0x38000000u);
  return float32(sign | (bits32(tiny) & is_tiny) | (normal & ~is_tiny));
}
RAMET_INLINE HalfBits to_half(float x) {
  const uint32_t u = bits32(x), sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
  const uint32_t tiny = bits32(float32(m) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (m + 0xc8000fffu + ((m >> 13) & 1u)) >> 13;
  uint32_t r = m < 0x38800000u ? tiny : normal;
  r = m >= 0x477ff000u ? 0x7c00u : r;
  r = m > 0x7f800000u ? 0x7e00u : r;
  return {static_cast<uint16_t>(sign | r)};
}
RAMET_INLINE BfloatBits to_bfloat(float x) {
  const uint32_t u = bits32(x), nan = (u >> 16) | 0x40u,
                 near = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? nan : near)};
}
#endif

// Truncates as the processor does, without undefined behaviour. A value out of range is replaced
// before the conversion, so both selections are plain blends.
template <class F> RAMET_INLINE int32_t trunc32(F x) {
  const bool fits = x > F(-2147483649.0) && x < F(2147483648.0);
  // -2147483649 is -2147483648 as a float
  const bool low = sizeof(F) == 4 ? x >= F(-2147483648.0) : true;
  const int32_t i = static_cast<int32_t>(fits && low ? x : F(0));
  return fits && low ? i : INT32_MIN;
}
template <class F> RAMET_INLINE int64_t trunc64(F x) {
  const bool fits = x >= F(-0x1p63) && x < F(0x1p63);
  const int64_t i = static_cast<int64_t>(fits ? x : F(0));
  return fits ? i : INT64_MIN;
}

// S (an arithmetic type) as C, and C as S
template <class C, class S> struct Cast {
  static RAMET_INLINE C load(S x) {
    if constexpr (std::is_integral<C>::value && !std::is_integral<S>::value) return trunc64(x);
    else return static_cast<C>(x);
  }
  static RAMET_INLINE S store(C x) {
    if constexpr (std::is_integral<C>::value || !std::is_integral<S>::value)
      return static_cast<S>(x);
    else if constexpr (sizeof(S) == 8 || !std::is_signed<S>::value)
      return static_cast<S>(trunc64(x));
    else return static_cast<S>(trunc32(x));
  }
};
template <class C> struct Cast<C, BoolByte> {
  static RAMET_INLINE C load(BoolByte x) { return static_cast<C>(x.bits != 0); }
  static RAMET_INLINE BoolByte store(C x) { return {static_cast<uint8_t>(x != 0)}; }
};
template <class C> struct Cast<C, HalfBits> {
  static RAMET_INLINE C load(HalfBits x) { return Cast<C, float>::load(widen(x)); }
  static RAMET_INLINE HalfBits store(C x) { return to_half(static_cast<float>(x)); }
};
template <class C> struct Cast<C, BfloatBits> {
  static RAMET_INLINE C load(BfloatBits x) { return Cast<C, float>::load(widen(x)); }
  static RAMET_INLINE BfloatBits store(C x) { return to_bfloat(static_cast<float>(x)); }
};

}  // namespace ramet::kernels::RAMET_VARIANT
