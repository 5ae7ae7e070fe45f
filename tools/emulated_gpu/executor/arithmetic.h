// Atomics and arithmetic intrinsics under CUDA's names. Atomics are the host's: blocks run in
// parallel. Intrinsics that are approximate on a GPU are exact here, so compare with a tolerance.
#pragma once
#include <type_traits>

#include "tools/emulated_gpu/executor/half_types.h"

namespace ramet::emulated {

/// Replaces *target by function(*target) and returns what was there.
template <class T, class Function> T read_modify_write(T* target, Function function) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
  using Small = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, Small>;
  auto* bits = reinterpret_cast<Bits*>(target);
  Bits before = __atomic_load_n(bits, __ATOMIC_RELAXED), after;
  T old, next;
  do {
    std::memcpy(&old, &before, sizeof old);
    next = function(old);
    std::memcpy(&after, &next, sizeof after);
  } while (
      !__atomic_compare_exchange_n(bits, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

// The type of a parameter that takes no part in deducing T.
template <class T> struct Exactly { using type = T; };
template <class T> using exactly = typename Exactly<T>::type;

}  // namespace ramet::emulated

template <class T> T atomicAdd(T* target, ramet::emulated::exactly<T> value) {
  if constexpr (std::is_integral_v<T>) return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
  else return ramet::emulated::read_modify_write(target, [=](T old) { return T(old + value); });
}
template <class T> T atomicSub(T* target, ramet::emulated::exactly<T> value) {
  return ramet::emulated::read_modify_write(target, [=](T old) { return T(old - value); });
}
template <class T> T atomicMax(T* target, ramet::emulated::exactly<T> value) {
  return ramet::emulated::read_modify_write(target,
                                            [=](T old) { return old < value ? value : old; });
}
template <class T> T atomicMin(T* target, ramet::emulated::exactly<T> value) {
  return ramet::emulated::read_modify_write(target,
                                            [=](T old) { return value < old ? value : old; });
}
template <class T> T atomicExch(T* target, ramet::emulated::exactly<T> value) {
  return ramet::emulated::read_modify_write(target, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* target, ramet::emulated::exactly<T> expected, ramet::emulated::exactly<T> value) {
  __atomic_compare_exchange_n(target, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
template <class T> T atomicOr(T* target, ramet::emulated::exactly<T> value) {
  return __atomic_fetch_or(target, value, __ATOMIC_RELAXED);
}
template <class T> T atomicAnd(T* target, ramet::emulated::exactly<T> value) {
  return __atomic_fetch_and(target, value, __ATOMIC_RELAXED);
}
template <class T> T atomicXor(T* target, ramet::emulated::exactly<T> value) {
  return __atomic_fetch_xor(target, value, __ATOMIC_RELAXED);
}
inline unsigned atomicInc(unsigned* target, unsigned limit) {
  return ramet::emulated::read_modify_write(
      target, [=](unsigned old) { return old >= limit ? 0 : old + 1; });
}

#if !defined(__GLIBC__) || __GLIBC__ < 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ < 42)
// Newer C libraries declare it themselves.
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
#endif
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((uint64_t(a) * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

inline int __float_as_int(float f) { return static_cast<int>(ramet::emulated::bits_of(f)); }
inline unsigned __float_as_uint(float f) { return ramet::emulated::bits_of(f); }
inline float __int_as_float(int i) { return ramet::emulated::float_of(static_cast<uint32_t>(i)); }
inline float __uint_as_float(unsigned i) { return ramet::emulated::float_of(i); }

// Cache hints: the emulated memory has no cache.
template <class T> T __ldg(const T* source) { return *source; }
template <class T> T __ldcs(const T* source) { return *source; }
template <class T> void __stcs(T* target, T value) { *target = value; }

#define RAMET_EMULATED_MIN_MAX(T)                  \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
RAMET_EMULATED_MIN_MAX(int)
RAMET_EMULATED_MIN_MAX(unsigned)
RAMET_EMULATED_MIN_MAX(long)
RAMET_EMULATED_MIN_MAX(unsigned long)
RAMET_EMULATED_MIN_MAX(long long)
RAMET_EMULATED_MIN_MAX(unsigned long long)
#undef RAMET_EMULATED_MIN_MAX
// CUDA's rule: the other operand where one is NaN.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }

inline void __nanosleep(unsigned) {}
