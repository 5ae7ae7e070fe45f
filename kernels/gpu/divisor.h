// Division by a number that is known before a kernel starts, as a multiplication. On a GPU a
// quotient of two int64 takes more than a hundred instructions. This one takes three (eight of 64
// bits).
//
// Let 2^(s-1) < d <= 2^s and m = ceil(2^(N-1+s) / d). Then n / d = floor(n m / 2^(N-1+s)) for all 0
// <= n < 2^(N-1), since m d - 2^(N-1+s) < d <= 2^s (Granlund and Montgomery 1994, theorem 4.2). m
// has N bits, so 2 n m needs no more than 2 N.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

template <class I> struct Divisor {
  static_assert(std::is_same<I, int32_t>::value || std::is_same<I, int64_t>::value);
  __extension__ using Longest = unsigned __int128;
  using U = typename std::make_unsigned<I>::type;
  using Double = typename std::conditional<sizeof(I) == 4, uint64_t, Longest>::type;
  static constexpr int kBits = 8 * sizeof(I);

  U magic;
  I by;
  int32_t shift;

  Divisor() = default;
  /// On the host. A number that I cannot hold, or 0, is an extent of a tensor without elements, and
  /// counts as 1.
  [[gnu::always_inline]] explicit Divisor(int64_t d)
      : by(d < 1 || static_cast<I>(d) != d ? 1 : static_cast<I>(d)), shift(0) {
    while (shift < kBits - 1 && (U(1) << shift) < static_cast<U>(by)) ++shift;
    const Double power = static_cast<Double>(1) << (kBits - 1 + shift);
    magic = static_cast<U>((power + static_cast<Double>(by - 1)) / static_cast<Double>(by));
  }

  /// n / by. REQUIRES: n >= 0 (the result for other n has no meaning).
  RAMET_INLINE I operator()(I n) const {
    const U twice = static_cast<U>(n) * 2;
    return static_cast<I>(static_cast<U>(static_cast<Double>(magic) * twice >> kBits) >> shift);
  }
  /// n % by; afterwards n is n / by.
  RAMET_INLINE I take(I& n) const {
    const I whole = (*this)(n), rest = static_cast<I>(n - whole * by);
    n = whole;
    return rest;
  }
};

}  // namespace kernels
}  // namespace ramet
