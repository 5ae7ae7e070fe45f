// Support for single 16-bit numbers in programs: std::numeric_limits, and compound assignment,
// which computes in float and rounds once.
#pragma once
#include <limits>

#include "runtime/base/half.h"

namespace ramet {

#define RAMET_ASSIGN(T, op) \
  inline T& operator op##=(T& a, float b) { return a = T(static_cast<float>(a) op b); }
#define RAMET_ASSIGNS(T) RAMET_ASSIGN(T, +) RAMET_ASSIGN(T, -) RAMET_ASSIGN(T, *) RAMET_ASSIGN(T, /)
RAMET_ASSIGNS(Half)
RAMET_ASSIGNS(BFloat16)
#undef RAMET_ASSIGNS
#undef RAMET_ASSIGN

namespace detail {

template <class T> constexpr T of_bits(uint16_t bits) {
  T x;
  x.bits = bits;
  return x;
}
// For a format of 16 bits with `Fraction` of them after the point, and a bias of 2^(15 - Fraction -
// 1)
// - 1. IEEE 754, section 3.4.
template <class T, int Fraction> struct LimitsOf16Bits {
  static constexpr int kBias = (1 << (14 - Fraction)) - 1;
  static constexpr int kInfinity = ((1 << (15 - Fraction)) - 1) << Fraction;
  static constexpr T at(int bits) { return of_bits<T>(static_cast<uint16_t>(bits)); }

  static constexpr bool is_specialized = true, is_signed = true, is_integer = false;
  static constexpr bool is_exact = false, is_bounded = true, is_modulo = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr bool has_denorm_loss = false, is_iec559 = true, traps = false;
  static constexpr bool tinyness_before = std::numeric_limits<float>::tinyness_before;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = Fraction + 1, digits10 = Fraction * 301 / 1000;
  static constexpr int max_digits10 = (Fraction + 1) * 301 / 1000 + 2;
  static constexpr int min_exponent = 2 - kBias, max_exponent = kBias + 1;
  static constexpr int min_exponent10 = (min_exponent - 1) * 301 / 1000;
  static constexpr int max_exponent10 = max_exponent * 301 / 1000;

  static constexpr T min() { return at(1 << Fraction); }
  static constexpr T lowest() { return at(0x8000 | (kInfinity - 1)); }
  static constexpr T max() { return at(kInfinity - 1); }
  static constexpr T epsilon() { return at((kBias - Fraction) << Fraction); }
  static constexpr T round_error() { return at((kBias - 1) << Fraction); }
  static constexpr T infinity() { return at(kInfinity); }
  static constexpr T quiet_NaN() { return at(kInfinity | 1 << (Fraction - 1)); }
  static constexpr T signaling_NaN() { return at(kInfinity | 1 << (Fraction - 2)); }
  static constexpr T denorm_min() { return at(1); }
};

}  // namespace detail
}  // namespace ramet

template <>
struct std::numeric_limits<ramet::Half> : ramet::detail::LimitsOf16Bits<ramet::Half, 10> {};
template <>
struct std::numeric_limits<ramet::BFloat16> : ramet::detail::LimitsOf16Bits<ramet::BFloat16, 7> {};
