// Arithmetic on numbers that users give as sizes, counts and strides: nothing wraps.
#pragma once
#include <cstdint>

#include "runtime/error.h"

namespace ramet {

/// a / b rounded up, right for every a >= 0 and b > 0 (a + b - 1 may be more than an int64).
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// a + b, or an Error of `op` that says that `what` is more than an int64 holds.
inline int64_t checked_add(const char* op, const char* what, int64_t a, int64_t b) {
  int64_t sum;
  RAMET_CHECK(!__builtin_add_overflow(a, b, &sum), op, what, ": ", a, " + ", b,
              " is more than an int64 holds");
  return sum;
}

/// a * b, or an Error as checked_add's.
inline int64_t checked_mul(const char* op, const char* what, int64_t a, int64_t b) {
  int64_t product;
  RAMET_CHECK(!__builtin_mul_overflow(a, b, &product), op, what, ": ", a, " * ", b,
              " is more than an int64 holds");
  return product;
}

}  // namespace ramet
