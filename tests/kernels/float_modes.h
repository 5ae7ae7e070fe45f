// Floating-point modes of a thread, for tests of kernels that have a mode of their own.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/float_modes_internal.h"

namespace ramet::kernels::raw {

/// The usual mode; rounding up; subnormal numbers are zero; rounding down.
inline std::vector<uint64_t> modes_to_try() {
#if defined(__x86_64__)
  return {0x1f80, 0x1f80 | 0x4000, 0x1f80 | 0x8040, 0x1f80 | 0x2040};
#else
  return {0, 1 << 22, 1 << 24, 2 << 22};
#endif
}

}  // namespace ramet::kernels::raw
