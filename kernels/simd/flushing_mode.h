// The floating-point mode of VDPBF16PS, which takes no notice of the thread's own mode.
#pragma once
#include <cstdint>

#include "kernels/simd/inline.h"

namespace ramet::kernels::RAMET_VARIANT {

/// While it lives, this thread rounds to nearest even, subnormal operands and results are zero, and
/// nothing traps. Its end restores the mode from before, and the exceptions that had happened.
///
/// A compiler may move arithmetic across a change of the mode. So arithmetic under this guard is in
/// functions that are not inlined.
class FlushingMode {
 public:
  RAMET_INLINE FlushingMode() : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(kFlushing);
  }
  RAMET_INLINE ~FlushingMode() { __builtin_ia32_ldmxcsr(before_); }
  FlushingMode(const FlushingMode&) = delete;
  FlushingMode& operator=(const FlushingMode&) = delete;

  /// Has a result been too large or too small for its type since the guard was made?
  RAMET_INLINE bool left_range() const {
    constexpr uint32_t kOverflow = 8, kUnderflow = 16;
    return (__builtin_ia32_stmxcsr() & (kOverflow | kUnderflow)) != 0;
  }

 private:
  // Flush to zero, all exceptions masked, denormals are zero.
  static constexpr uint32_t kFlushing = 0x8000 | 0x1f80 | 0x0040;
  uint32_t before_;
};

}  // namespace ramet::kernels::RAMET_VARIANT
