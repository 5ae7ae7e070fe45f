// 16-bit floating-point storage types. They store 16 bits and compute in float: no arithmetic is
// defined on them here.
#pragma once
#include <cstdint>
#include <cstring>

namespace ramet {
namespace detail {

inline uint32_t bits_of(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  return u;
}
inline float float_of(uint32_t u) {
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

// IEEE 754 binary16, round to nearest even. Every NaN becomes a quiet NaN.
inline uint16_t half_from_float(float value) {
  const uint32_t u = bits_of(value), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  // 65520 and above round to infinity
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // subnormal half: adding 0.5 lets the hardware round at bit 2^-24
    const float shifted = float_of(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (bits_of(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude + 0xc8000fffu + odd) >> 13));
}
inline float float_from_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return float_of(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  if (rest < 0x400u) {
    const float magnitude = static_cast<float>(rest) * 0x1p-24f;
    return float_of(sign | bits_of(magnitude));
  }
  return float_of(sign | ((rest << 13) + 0x38000000u));
}
inline uint16_t bfloat_from_float(float value) {
  const uint32_t u = bits_of(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x40u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float float_from_bfloat(uint16_t b) { return float_of(static_cast<uint32_t>(b) << 16); }

}  // namespace detail

/// IEEE 754 binary16.
struct Half {
  uint16_t bits = 0;  // as they lie in memory
  Half() = default;
  Half(float value) : bits(detail::half_from_float(value)) {}
  operator float() const { return detail::float_from_half(bits); }
};

/// The upper half of a binary32.
struct BFloat16 {
  uint16_t bits = 0;  // as they lie in memory
  BFloat16() = default;
  BFloat16(float value) : bits(detail::bfloat_from_float(value)) {}
  operator float() const { return detail::float_from_bfloat(bits); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2, "storage types");

}  // namespace ramet
