// The random source of both arms. Number `i` of a draw is a pure function of (seed, case, draw, i).
// So a draw can be repeated alone, and both arms draw the same.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace compare {

/// Steele, Lea, Flood 2014 (the finaliser of SplitMix64).
inline uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class Source {
 public:
  Source(uint64_t seed, const char* name, uint64_t draw) : key_(mixed(seed)) {
    for (; *name; ++name) key_ = mixed(key_ ^ static_cast<unsigned char>(*name));
    key_ = mixed(key_ ^ draw);
  }
  uint64_t bits() { return mixed(key_ ^ mixed(count_++)); }
  /// Uniform on [0, 1), 53 bits.
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// Both ends included.
  int64_t integer(int64_t low, int64_t high) {
    if (high < low) return low;
    return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t key_, count_ = 0;
};

// 16-bit types by arithmetic, independent of either library's conversions. Round to nearest even.

inline uint16_t half_bits(double x) {
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  x = std::fabs(x);
  if (std::isnan(x)) return 0x7E00;
  if (x >= 65520) return static_cast<uint16_t>(sign | 0x7C00);
  int exponent = 0;
  std::frexp(x, &exponent);
  const int ulp = (x < 0x1p-14 ? -13 : exponent) - 11;  // of the last bit
  const int64_t steps = std::llrint(std::ldexp(x, -ulp));
  // Subnormal numbers count steps from zero, others from 1024; a carry moves into the exponent.
  return static_cast<uint16_t>(sign | (steps + static_cast<int64_t>(ulp + 24) * 1024));
}
inline double half_value(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  double x = exponent == 31  ? (fraction ? NAN : INFINITY)
             : exponent == 0 ? std::ldexp(fraction, -24)
                             : std::ldexp(1024 + fraction, exponent - 25);
  return h & 0x8000 ? -x : x;
}
inline uint16_t bfloat16_bits(float x) {
  uint32_t u;
  std::memcpy(&u, &x, 4);
  if (std::isnan(x)) return 0x7FC0;
  u += 0x7FFF + (u >> 16 & 1);
  return static_cast<uint16_t>(u >> 16);
}
inline double bfloat16_value(uint16_t b) {
  const uint32_t u = static_cast<uint32_t>(b) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

}  // namespace compare
