// __half and __nv_bfloat16 for a host compiler: rounded to nearest even, computed in float,
// trivially constructible, so that __shared__ arrays of them are legal.
//
// runtime/base/half.h has 16-bit types too. Kernels need types with CUDA's names, implicit
// conversions and CUDA's canonical NaN, 0x7fff.
#pragma once
#include "tools/emulated_gpu/executor/types.h"

namespace ramet::emulated {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// The float next to `value` in which the last bit says "inexact". Rounding it to 16 bits gives the
// same result as rounding `value` once.
inline float round_to_odd(double value) {
  const float near = static_cast<float>(value);
  const uint32_t bits = bits_of(near);
  if (!(near < value || near > value) || (bits & 1)) return near;
  return float_of(std::fabs(double(near)) > std::fabs(value) ? bits - 1 : bits + 1);
}

inline uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

inline float bfloat16_to_float(uint16_t bits) { return float_of(uint32_t(bits) << 16); }

inline uint16_t float_to_half(float value) {
  const uint32_t bits = bits_of(value), sign = (bits >> 16) & 0x8000u,
                 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and more
  if (magnitude < 0x38800000u) {                                               // below 2^-14
    if (magnitude < 0x33000000u) return static_cast<uint16_t>(sign);           // below 2^-25
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t shift = 126 - (magnitude >> 23), half = 1u << (shift - 1);
    const uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1);
    const bool up = rest > half || (rest == half && (kept & 1));
    return static_cast<uint16_t>(sign | (kept + up));
  }
  // A carry out of the mantissa raises the exponent, up to infinity: what rounding asks for.
  const uint32_t rebased = magnitude - 0x38000000u;
  return static_cast<uint16_t>(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1)) >> 13));
}

inline float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000u) << 16, exponent = (half >> 10) & 31;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float value = float(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  return float_of(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

}  // namespace ramet::emulated

#define RAMET_EMULATED_HALF(T, encode, decode)                                       \
  struct alignas(2) T {                                                              \
    uint16_t bits;                                                                   \
    T() = default;                                                                   \
    T(float value) : bits(ramet::emulated::encode(value)) {}                         \
    T(double v) : bits(ramet::emulated::encode(ramet::emulated::round_to_odd(v))) {} \
    T(int value) : bits(ramet::emulated::encode(static_cast<float>(value))) {}       \
    operator float() const { return ramet::emulated::decode(bits); }                 \
    T& operator+=(T other) { return *this = T(float(*this) + float(other)); }        \
    T& operator-=(T other) { return *this = T(float(*this) - float(other)); }        \
    T& operator*=(T other) { return *this = T(float(*this) * float(other)); }        \
    T& operator/=(T other) { return *this = T(float(*this) / float(other)); }        \
  };                                                                                 \
  inline T operator+(T a, T b) { return T(float(a) + float(b)); }                    \
  inline T operator-(T a, T b) { return T(float(a) - float(b)); }                    \
  inline T operator*(T a, T b) { return T(float(a) * float(b)); }                    \
  inline T operator/(T a, T b) { return T(float(a) / float(b)); }                    \
  inline T operator-(T a) {                                                          \
    a.bits ^= 0x8000;                                                                \
    return a;                                                                        \
  }                                                                                  \
  struct alignas(4) T##2 {                                                           \
    T x, y;                                                                          \
  };
RAMET_EMULATED_HALF(__half, float_to_half, half_to_float)
RAMET_EMULATED_HALF(__nv_bfloat16, float_to_bfloat16, bfloat16_to_float)
#undef RAMET_EMULATED_HALF

using half = __half;
using half2 = __half2;

inline __half __float2half(float f) { return f; }
inline __half __float2half_rn(float f) { return f; }
inline float __half2float(__half h) { return h; }
inline float2 __half22float2(__half2 h) { return {float(h.x), float(h.y)}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __nv_bfloat16 __float2bfloat16(float f) { return f; }
inline __nv_bfloat16 __float2bfloat16_rn(float f) { return f; }
inline float __bfloat162float(__nv_bfloat16 h) { return h; }
inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {float(h.x), float(h.y)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__nv_bfloat16(a), __nv_bfloat16(b)};
}
