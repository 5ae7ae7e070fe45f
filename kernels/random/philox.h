// Conversion of words of a Philox stream (see random.h) to numbers. The arithmetic, and so the
// bits, are the same on CPUs and GPUs. REQUIRES: no contraction of a * b + c.
#pragma once
#include <type_traits>

#include "kernels/copy/cast.h"
#include "kernels/random/random.h"
#include "kernels/util.h"

#if !defined(RAMET_LIBM)
#define RAMET_LIBM(function) __builtin_##function
#endif

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kLanes = 16;          // blocks computed together
constexpr int kGroup = 4 * kLanes;  // their words: elements of a kind that takes one word

/// One of the ten rounds of Philox4x32 on a counter c0..c3 with the round's key.
RAMET_INLINE void philox_round(uint32_t& c0, uint32_t& c1, uint32_t& c2, uint32_t& c3, uint32_t k0,
                               uint32_t k1) {
  const uint64_t p = uint64_t{0xD2511F53} * c0, q = uint64_t{0xCD9E8D57} * c2;
  const uint32_t n0 = static_cast<uint32_t>(q >> 32) ^ c1 ^ k0,
                 n2 = static_cast<uint32_t>(p >> 32) ^ c3 ^ k1;
  c0 = n0, c1 = static_cast<uint32_t>(q), c2 = n2, c3 = static_cast<uint32_t>(p);
}
constexpr uint32_t kPhiloxStep0 = 0x9E3779B9u, kPhiloxStep1 = 0xBB67AE85u;

struct Words {
  uint32_t w[4];
};
/// One block of a stream.
RAMET_INLINE Words philox_block(uint64_t block, const RandomKey& key) {
  uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32),
           c2 = static_cast<uint32_t>(key.stream), c3 = static_cast<uint32_t>(key.stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += kPhiloxStep0, k1 += kPhiloxStep1)
    philox_round(c0, c1, c2, c3, k0, k1);
  return {{c0, c1, c2, c3}};
}

// ---- the normal distribution, in double without fma ----

// log x for normal x > 0: x = 2^k m, log m = 2 atanh((m - 1) / (m + 1)) by its series up to s^21.
RAMET_INLINE double log_plain(double x) {
  uint64_t b;
  memcpy(&b, &x, 8);
  // exponent + 1024, m in [sqrt(1/2), sqrt(2))
  const uint64_t k = (b - 0x3fe6a09e667f3bcdull + (uint64_t{1024} << 52)) >> 52;
  b -= (k - 1024) << 52;
  double m;
  memcpy(&m, &b, 8);
  const double e = static_cast<double>(static_cast<int32_t>(k) - 1024), s = (m - 1) / (m + 1),
               z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19, p = p * z + 2.0 / 17, p = p * z + 2.0 / 15, p = p * z + 2.0 / 13,
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9, p = p * z + 2.0 / 7, p = p * z + 2.0 / 5, p = p * z + 2.0 / 3;
  return e * 6.93147180369123816490e-01 + (e * 1.90821492927058770002e-10 + (s * z * p + 2 * s));
}

// Radius from u1 in (0, 1], angle 2 pi u2: the nearest quarter turn q and the rest by Taylor series
// on [-pi/4, pi/4].
RAMET_INLINE void box_muller(double u1, double u2, double* z0, double* z1) {
  const double radius = RAMET_LIBM(sqrt)(-2 * log_plain(u1));
  const double t = 4 * u2;
  const int32_t q = static_cast<int32_t>(t + 0.5);
  const double x = (t - static_cast<double>(q)) * 1.57079632679489661923, z = x * x;
  double s = -1.0 / 1307674368000, c = 1.0 / 20922789888000;
  s = s * z + 1.0 / 6227020800, s = s * z - 1.0 / 39916800, s = s * z + 1.0 / 362880,
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120, s = s * z - 1.0 / 6, s = s * z * x + x;
  c = c * z - 1.0 / 87178291200, c = c * z + 1.0 / 479001600, c = c * z - 1.0 / 3628800,
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720, c = c * z + 1.0 / 24, c = c * z - 0.5, c = c * z + 1;
  const double cosine = q & 1 ? s : c, sine = q & 1 ? c : s;
  *z0 = radius * ((q + 1) & 2 ? -cosine : cosine);
  *z1 = radius * (q & 2 ? -sine : sine);
}

RAMET_INLINE double unit53(uint32_t high, uint32_t low) {  // [0, 1)
  return static_cast<double>((static_cast<int64_t>(high) << 21) | (low >> 11)) * 0x1p-53;
}

/// Two standard normals for floats: a cosine and a sine.
RAMET_INLINE void normals(uint32_t w0, uint32_t w1, double* z0, double* z1) {
  box_muller((static_cast<double>(w0) + 1) * 0x1p-32, static_cast<double>(w1) * 0x1p-32, z0, z1);
}
/// Two for doubles, from a whole block.
RAMET_INLINE void normals(uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3, double* z0,
                          double* z1) {
  box_muller(unit53(w0, w1) + 0x1p-53, unit53(w2, w3), z0, z1);
}

/// The 16-bit type of uniform numbers with so many bits.
template <int kBits>
using UniformBits = typename std::conditional<kBits == 11, HalfBits, BfloatBits>::type;

/// The number before x in its 16-bit type. REQUIRES: x is not -infinity.
template <class Bits> RAMET_INLINE float before(Bits x) {
  const float v = widen(x);
  return widen(Bits{static_cast<uint16_t>(v > 0 ? x.bits - 1 : v < 0 ? x.bits + 1 : 0x8001)});
}

/// low + (high - low) u, at most `last`: the number before high in the dtype of so many bits. The
/// rounding of the sum may reach high, and so may the store to 16 bits. If low and high are the
/// same number of that dtype, `last` is infinity, and the store makes all results `low`. Made on
/// the host.
template <int kBits> struct FloatRange {
  float low, width, last;
  FloatRange(double a, double b)
      : low(static_cast<float>(a)),
        // With both roundings the difference may exceed the largest number.
        width(__builtin_fminf(static_cast<float>(b) - low, __FLT_MAX__)),
        last(last_below(static_cast<float>(b))) {}
  RAMET_INLINE float at(uint32_t word) const {
    const float u = static_cast<float>(static_cast<int32_t>(word >> (32 - kBits))) *
                    (1.0f / static_cast<float>(1 << kBits));
    const float y = low + width * u;
    return y > last ? last : y;
  }

 private:
  float last_below(float high) const {
    if constexpr (kBits == 24) {
      if (low < high) return __builtin_nextafterf(high, low);
    } else {
      using Bits = UniformBits<kBits>;
      const Bits end = Cast<float, Bits>::store(high);
      if (widen(Cast<float, Bits>::store(low)) < widen(end)) return before(end);
    }
    return __builtin_inff();
  }
};
struct DoubleRange {
  double low, width, last;
  DoubleRange(double a, double b)
      : low(a), width(b - a), last(a < b ? __builtin_nextafter(b, a) : __builtin_inf()) {}
  RAMET_INLINE double at(uint32_t w0, uint32_t w1) const {
    const double y = low + width * unit53(w0, w1);
    return y > last ? last : y;
  }
};

/// f(bits of a number in [0, 1) as a constant) for a floating dtype.
template <class F>
inline __attribute__((always_inline)) void by_uniform_bits(ScalarType t, const F& f) {
  switch (t) {
    case ScalarType::Half: return f(std::integral_constant<int, 11>());
    case ScalarType::BFloat16: return f(std::integral_constant<int, 8>());
    case ScalarType::Float: return f(std::integral_constant<int, 24>());
    case ScalarType::Double: return f(std::integral_constant<int, 53>());
    case ScalarType::Bool:
    case ScalarType::Byte:
    case ScalarType::Char:
    case ScalarType::Short:
    case ScalarType::Int:
    case ScalarType::Long:
    case ScalarType::UInt16:
    case ScalarType::UInt32:
    case ScalarType::Undefined: break;
  }
  __builtin_trap();
}

/// low + floor(r * range / 2^64) with the 64-bit number r = (w0, w1); a range of 0 is 2^64.
RAMET_INLINE int64_t integer(int64_t low, uint64_t range, uint32_t w0, uint32_t w1) {
  const uint64_t r = (static_cast<uint64_t>(w0) << 32) | w1;
  const uint64_t y =
      range ? static_cast<uint64_t>((static_cast<unsigned __int128>(r) * range) >> 64) : r;
  return static_cast<int64_t>(static_cast<uint64_t>(low) + y);
}

// u < p as a comparison of the 24-bit integer: u = j / 2^24 < p  <=>  j < ceil(p 2^24).
RAMET_INLINE int32_t threshold24(double p) {
  return static_cast<int32_t>(RAMET_LIBM(ceil)(p * 16777216.0));
}

/// The index of a draw among n running sums: random_pick.
RAMET_INLINE int64_t picked(const double* cumulative, const double* probabilities, int64_t n,
                            double draw) {
  const double at = draw * cumulative[n - 1];
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (cumulative[middle] > at) high = middle;
    else low = middle + 1;
  }
  while (low < n && probabilities[low] <= 0) ++low;
  if (low < n) return low;
  for (low = n - 1; low > 0 && probabilities[low] <= 0;) --low;
  return low;
}

}  // namespace ramet::kernels::RAMET_VARIANT
