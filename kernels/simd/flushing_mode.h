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
///
/// x86 asks whether a result is subnormal after it has rounded it, ARM64 before (kFlushesEarly).
/// They differ for a result that rounds up to the smallest normal number; left_range() shows it.
class FlushingMode {
 public:
#if defined(__x86_64__)
  static constexpr bool kFlushesEarly = false;
#else
  static constexpr bool kFlushesEarly = true;
#endif

  RAMET_INLINE FlushingMode() : before_(read()) { write(kFlushing); }
  RAMET_INLINE ~FlushingMode() { write(before_); }
  FlushingMode(const FlushingMode&) = delete;
  FlushingMode& operator=(const FlushingMode&) = delete;

  /// Has a result been too large or too small for its type since the guard was made?
  RAMET_INLINE bool left_range() const { return (exceptions() & (kOverflow | kUnderflow)) != 0; }
  /// Has a result been flushed to zero, or been too small, since the guard was made?
  RAMET_INLINE bool underflowed() const { return (exceptions() & kUnderflow) != 0; }

 private:
#if defined(__x86_64__)
  using State = uint32_t;
  static constexpr uint32_t kOverflow = 8, kUnderflow = 16;
  // Flush to zero, all exceptions masked, denormals are zero.
  static constexpr State kFlushing = 0x8000 | 0x1f80 | 0x0040;
  static RAMET_INLINE State read() { return __builtin_ia32_stmxcsr(); }
  static RAMET_INLINE void write(State state) { __builtin_ia32_ldmxcsr(state); }
  static RAMET_INLINE uint32_t exceptions() { return __builtin_ia32_stmxcsr(); }
#elif defined(__EMSCRIPTEN__)
  // WebAssembly has neither modes nor exceptions. So every result may have left its range.
  struct State {};
  static constexpr uint32_t kOverflow = 1, kUnderflow = 2;
  static constexpr State kFlushing{};
  static RAMET_INLINE State read() { return {}; }
  static RAMET_INLINE void write(State) {}
  static RAMET_INLINE uint32_t exceptions() { return kOverflow | kUnderflow; }
#else
  struct State {
    uint64_t mode, exceptions;
  };
  static constexpr uint32_t kOverflow = 4, kUnderflow = 8;
  // Flush to zero, which holds for operands too; all exceptions masked; NaNs are propagated.
  static constexpr State kFlushing{uint64_t{1} << 24, 0};
  static RAMET_INLINE State read() {
    State state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state.mode)::"memory");
    __asm__ volatile("mrs %0, fpsr" : "=r"(state.exceptions)::"memory");
    return state;
  }
  static RAMET_INLINE void write(State state) {
    __asm__ volatile("msr fpcr, %0" ::"r"(state.mode) : "memory");
    __asm__ volatile("msr fpsr, %0" ::"r"(state.exceptions) : "memory");
  }
  static RAMET_INLINE uint32_t exceptions() {
    uint64_t now;
    __asm__ volatile("mrs %0, fpsr" : "=r"(now)::"memory");
    return static_cast<uint32_t>(now);
  }
#endif
  State before_;
};

}  // namespace ramet::kernels::RAMET_VARIANT
