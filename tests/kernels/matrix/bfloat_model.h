// A model of sums of pairs in bfloat16 (gemm_bfloat.h), in integers.
#pragma once
#include <cstdint>
#include <cstring>
#include <functional>

#include "kernels/matrix/gemm_plan.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace base {
bool set_bfloat_pairs(BfloatPairs);
}
namespace v3 {
bool set_bfloat_pairs(BfloatPairs);
}
namespace v4 {
bool set_bfloat_pairs(BfloatPairs);
}

namespace raw {

/// f() for every variant, without and, where there is one, with the instruction for pairs.
inline void for_each_way(const std::function<void()>& f) {
  for_each_variant([&]([[maybe_unused]] Variant v) {
    auto set = base::set_bfloat_pairs;
#if defined(RAMET_ALL_VARIANTS)
    if (v == Variant::kV3) set = v3::set_bfloat_pairs;
    if (v == Variant::kV4) set = v4::set_bfloat_pairs;
#endif
    EXPECT_FALSE(set(BfloatPairs::kNever));
    f();
    if (set(BfloatPairs::kAlways)) {
      SCOPED_TRACE("with the instruction for pairs");
      f();
    }
    set(BfloatPairs::kIfFaster);
  });
}

inline constexpr uint32_t kNan = 0xffc00000u, kInfinity = 0x7f800000u;

/// sign * mantissa * 2^exponent
struct Number {
  bool negative, zero, infinite, nan;
  uint32_t mantissa;
  int exponent;
};
inline Number decode(uint32_t bits) {
  const uint32_t e = bits >> 23 & 255, m = bits & 0x7fffffu;
  return {bits >> 31 != 0,    e == 0,        e == 255 && m == 0,
          e == 255 && m != 0, m | 0x800000u, static_cast<int>(e) - 150};
}
inline uint32_t signed_bits(bool negative, uint32_t bits) {
  return bits | (negative ? 0x80000000u : 0);
}

/// sign * magnitude * 2^exponent to the nearest float, ties to even; too small a float is zero.
inline uint32_t rounded(bool negative, unsigned __int128 magnitude, int exponent) {
  if (magnitude == 0) return 0;
  int width = 0;
  while (magnitude >> width) ++width;
  const int cut = width - 24;
  if (cut > 0) {
    const unsigned __int128 rest = magnitude & ((static_cast<unsigned __int128>(1) << cut) - 1),
                            half = static_cast<unsigned __int128>(1) << (cut - 1);
    magnitude >>= cut;
    if (rest > half || (rest == half && (magnitude & 1))) ++magnitude;
    if (magnitude >> 24) magnitude >>= 1, ++exponent;
  } else {
    magnitude <<= -cut;
  }
  const int biased = exponent + cut + 150;
  if (biased >= 255) return signed_bits(negative, kInfinity);
  if (biased <= 0) return signed_bits(negative, 0);
  return signed_bits(negative, static_cast<uint32_t>(biased) << 23 |
                                   (static_cast<uint32_t>(magnitude) & 0x7fffffu));
}

/// sum + a * b with one rounding.
inline uint32_t model_step(uint32_t sum, uint16_t a, uint16_t b) {
  const Number x = decode(static_cast<uint32_t>(a) << 16),
               y = decode(static_cast<uint32_t>(b) << 16), s = decode(sum);
  const bool negative = x.negative != y.negative, infinite = x.infinite || y.infinite;
  if (x.nan || y.nan || s.nan) return kNan;
  if (infinite && (x.zero || y.zero)) return kNan;
  if (infinite && s.infinite && negative != s.negative) return kNan;
  if (infinite) return signed_bits(negative, kInfinity);
  if (s.infinite) return sum;
  if (x.zero || y.zero) {
    if (!s.zero) return sum;
    return signed_bits(negative && s.negative, 0);
  }
  using Wide = __int128;
  Wide p = static_cast<Wide>(x.mantissa >> 16) * (y.mantissa >> 16), q = s.mantissa;
  int e = x.exponent + y.exponent + 32;
  if (negative) p = -p;
  if (s.negative) q = -q;
  if (s.zero) return rounded(negative, static_cast<unsigned __int128>(p < 0 ? -p : p), e);
  const int d = e - s.exponent;
  Wide sum_of;
  if (d > 80) sum_of = (p << 40) + (q < 0 ? -1 : 1), e -= 40;  // too small to count but for ties
  else if (d < -80) sum_of = (q << 40) + (p < 0 ? -1 : 1), e = s.exponent - 40;
  else if (d >= 0) sum_of = (p << d) + q, e = s.exponent;
  else sum_of = p + (q << -d);
  const bool below = sum_of < 0;
  return rounded(below, static_cast<unsigned __int128>(below ? -sum_of : sum_of), e);
}

inline uint16_t to_bfloat(uint32_t bits) {
  if ((bits & 0x7fffffffu) > kInfinity) return 0xffc0;
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
inline float as_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint32_t as_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float widened(uint16_t bits) { return as_float(static_cast<uint32_t>(bits) << 16); }

/// The sum of n products as a chain from `sum` on. An element is 0 at the odd place after the last.
template <class A, class B> uint32_t model_chain(uint32_t sum, int64_t n, const A& a, const B& b) {
  const auto step = [&](int64_t i) { sum = model_step(sum, i < n ? a(i) : 0, i < n ? b(i) : 0); };
  for (int64_t i = 0; i < n; i += 2) step(i + 1), step(i);
  return sum;
}

}  // namespace raw
}  // namespace ramet::kernels
