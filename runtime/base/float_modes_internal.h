// How this thread rounds and handles denormal numbers. A result must not depend on the thread that
// computed it. So a thread that works for another one uses that thread's modes.
#pragma once
#include <cfenv>
#include <cstdint>

namespace ramet {
namespace detail {

/// Rounding, denormals as zero, flush to zero, and the exceptions that trap. Not the exceptions
/// that have happened. Takes three nanoseconds.
inline uint64_t float_modes() {
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~uint64_t{0x3f};
#elif defined(__aarch64__)
  uint64_t modes;
  __asm__ volatile("mrs %0, fpcr" : "=r"(modes));
  return modes;
#else
  return static_cast<uint64_t>(std::fegetround());
#endif
}

inline void set_float_modes(uint64_t modes) {
  if (float_modes() == modes) return;
#if defined(__x86_64__)
  __builtin_ia32_ldmxcsr(static_cast<uint32_t>(modes) | (__builtin_ia32_stmxcsr() & 0x3f));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(modes));
#else
  std::fesetround(static_cast<int>(modes));
#endif
}

}  // namespace detail
}  // namespace ramet
