// Arithmetic on numbers that users give as sizes, counts and strides: nothing wraps.
#pragma once
#include <cstdint>

#include "runtime/base/array_ref.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {

/// a / b rounded up, right for every a and b > 0 (a + b - 1 may be more than an int64).
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

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

/// The stride of every step-th place along a dimension. More than an int64 holds it only where one
/// place is left, or none: such strides are never used, and this one stays as it is.
inline int64_t stepped_stride(int64_t stride, int64_t step) {
  int64_t product;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

/// A storage has fewer bytes: what addresses of this machine reach, and what its header can hold.
constexpr int64_t kMaxStorageBytes = int64_t{1} << 47;

/// How many elements of a storage a tensor needs, from the first one on, whose own first element is
/// number `offset`: 0 where it has none; -1 where they are more than an int64 holds. Nothing is
/// negative, but strides of sizes of 1, along which no place lies.
RAMET_API int64_t strided_extent(IntArrayRef sizes, IntArrayRef strides, int64_t offset = 0);

/// The bytes of that. An Error of `op` on a negative size or stride, and on what reaches over
/// kMaxStorageBytes or has more elements than have fewer than 2^63 bytes (strides of 0 hide them).
RAMET_API int64_t checked_extent(const char* op, IntArrayRef sizes, IntArrayRef strides,
                                 int64_t offset, ScalarType dtype);

/// An OutOfMemoryError where a list of `count` items of `each` bytes is more than the memory limit
/// of cpu:0 leaves, or than the machine has. For lists on the host that are as long as a user says.
RAMET_API void check_room(const char* op, const char* what, uint64_t count, uint64_t each);

}  // namespace ramet
