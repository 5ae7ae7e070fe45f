#include "runtime/base/checked_size.h"

#include <algorithm>

namespace ramet {

int64_t strided_extent(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  int64_t last = offset, part;
  bool wrapped = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) continue;
    wrapped |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &part);
    wrapped |= __builtin_add_overflow(last, part, &last);
  }
  wrapped |= __builtin_add_overflow(last, 1, &last);
  return wrapped ? -1 : last;
}

int64_t checked_extent(const char* op, IntArrayRef sizes, IntArrayRef strides, int64_t offset,
                       ScalarType dtype) {
  RAMET_CHECK(sizes.size() == strides.size(), op, "strides: got ", strides.size(),
              " of them, expected ", sizes.size(), " as there are sizes");
  RAMET_CHECK(offset >= 0, op, "storage_offset: got ", offset, ", expected 0 or more");
  const auto width = static_cast<int64_t>(item_size(dtype));
  // Zeros count as ones. So no later product of some sizes of an empty tensor overflows.
  int64_t elements = 1, bytes = 0;
  bool fits = true, none = false, negative = false;
  for (int64_t size : sizes) {
    RAMET_CHECK(size >= 0, op, "got sizes ", sizes, ", expected none negative");
    none |= size == 0;
    fits &= !__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements);
  }
  fits &= none || !__builtin_mul_overflow(elements, width, &bytes);
  for (size_t d = 0; d < sizes.size(); ++d) negative |= strides[d] < 0 && sizes[d] != 1;
  // (If sizes do not fit, strides that were computed from them may have wrapped.)
  RAMET_CHECK(!fits || !negative, op, "got strides ", strides, ", expected none negative");
  if (fits) {
    const int64_t extent = strided_extent(sizes, strides, offset);
    fits =
        extent >= 0 && !__builtin_mul_overflow(extent, width, &bytes) && bytes < kMaxStorageBytes;
  }
  RAMET_CHECK(fits, op, "got sizes ", sizes, " with strides ", strides, " from element ", offset,
              " on, which reach further than memory does, expected less than 2^", kMaxStorageBits,
              " bytes");
  return bytes;
}

}  // namespace ramet
