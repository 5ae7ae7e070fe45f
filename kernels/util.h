// Small helpers of the kernel files: integer arithmetic, element sizes, addresses, task sizes. All
// are always inlined (inline.h), for GPU code too.
#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/compute_type.h"
#include "kernels/simd/inline.h"
#include "runtime/base/dtype.h"

namespace ramet::kernels::RAMET_VARIANT {

RAMET_INLINE int64_t imin(int64_t a, int64_t b) { return a < b ? a : b; }
RAMET_INLINE int64_t imax(int64_t a, int64_t b) { return a > b ? a : b; }
/// a / b rounded up, correct for every a and b > 0; as in runtime/base/checked_size.h.
RAMET_INLINE int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0); }
RAMET_INLINE int64_t product(const int64_t* sizes, int n) {
  int64_t p = 1;
  for (int d = 0; d < n; ++d) p *= sizes[d];
  return p;
}

/// Bytes of one element (item_size of runtime/base/dtype.h, always inlined).
RAMET_INLINE int64_t bytes_of(ScalarType t) {
  static_assert(kScalarTypes == 12, "a digit for each dtype");
  // Four bits per type in one constant, which keeps the table out of memory.
  return static_cast<int64_t>((0x8422'4284'2111ull >> (4 * static_cast<int>(t))) & 15);
}

/// The address of element `i`.
RAMET_INLINE const char* at(const void* p, ScalarType t, int64_t i) {
  return static_cast<const char*>(p) + i * bytes_of(t);
}
RAMET_INLINE char* at(void* p, ScalarType t, int64_t i) {
  return static_cast<char*>(p) + i * bytes_of(t);
}

/// Visits the index tuples of `rank` dimensions (the last one fastest) and keeps an element offset
/// for each operand. The start may be any linear index, so a task can begin in the middle.
template <int kOperands> struct Odometer {
  int rank;
  const int64_t* sizes;
  const int64_t* strides[kOperands];
  int64_t index[8];
  int64_t offset[kOperands];

  RAMET_INLINE void seek(int64_t linear) {
    for (int o = 0; o < kOperands; ++o) offset[o] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = linear % sizes[d];
      linear /= sizes[d];
      for (int o = 0; o < kOperands; ++o) offset[o] += index[d] * strides[o][d];
    }
  }
  RAMET_INLINE void next() {
    for (int d = rank - 1; d >= 0; --d) {
      for (int o = 0; o < kOperands; ++o) offset[o] += strides[o][d];
      if (++index[d] < sizes[d]) return;
      for (int o = 0; o < kOperands; ++o) offset[o] -= strides[o][d] * sizes[d];
      index[d] = 0;
    }
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
