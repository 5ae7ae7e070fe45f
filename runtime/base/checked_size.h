// Arithmetic without overflow on sizes, counts and strides that users give.
#pragma once
#include <cstdint>

#include "runtime/base/array_ref.h"
#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {

/// a / b rounded up, correct for every a and b > 0 (a + b - 1 may be more than an int64).
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }

/// a + b, or an Error of `op` which says that `what` is more than an int64 holds.
inline int64_t checked_add(const char* op, const char* what, int64_t a, int64_t b) {
  int64_t sum;
  RAMET_CHECK(!__builtin_add_overflow(a, b, &sum), op, what, ": ", a, " + ", b,
              " is more than an int64 holds");
  return sum;
}

/// a * b, or the Error of checked_add.
inline int64_t checked_mul(const char* op, const char* what, int64_t a, int64_t b) {
  int64_t product;
  RAMET_CHECK(!__builtin_mul_overflow(a, b, &product), op, what, ": ", a, " * ", b,
              " is more than an int64 holds");
  return product;
}

/// The stride of every step-th element along a dimension. It can overflow only where at most one
/// element is left. Such a stride is never used, so `stride` is returned unchanged.
inline int64_t stepped_stride(int64_t stride, int64_t step) {
  int64_t product;
  return __builtin_mul_overflow(stride, step, &product) ? stride : product;
}

/// A storage has fewer bytes than this. The limits are the machine's addresses and the storage
/// header. Where addresses have 32 bits (WebAssembly) the limit is that of differences of them, so
/// each count of bytes below it fits a size_t.
constexpr int kMaxStorageBits = sizeof(size_t) == 8 ? 47 : 31;
constexpr int64_t kMaxStorageBytes = int64_t{1} << kMaxStorageBits;

/// The number of elements that a tensor needs, counted from the start of its storage. `offset` is
/// the number of its first element. 0 for a tensor without elements; -1 if the number is more than
/// an int64 holds. REQUIRES: nothing is negative, except strides of sizes of 1, which do not
/// matter.
RAMET_API int64_t strided_extent(IntArrayRef sizes, IntArrayRef strides, int64_t offset = 0);

/// The bytes of strided_extent(). An Error of `op` on a negative size or stride. Also an Error on
/// more than kMaxStorageBytes, and on more elements than fit 2^63 bytes (strides of 0 hide them).
RAMET_API int64_t checked_extent(const char* op, IntArrayRef sizes, IntArrayRef strides,
                                 int64_t offset, ScalarType dtype);

/// An OutOfMemoryError where a list of `count` items of `each` bytes is more than the memory limit
/// of cpu:0 leaves, or than the machine has. For lists on the host if a user sets the length.
RAMET_API void check_room(const char* op, const char* what, uint64_t count, uint64_t each);

}  // namespace ramet
