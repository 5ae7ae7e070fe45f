// CUDA's qualifiers, dim3 and built-in vector types for a host compiler, under CUDA's names. This
// header replaces the toolkit's, which the emulated build does not need.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(RAMET_EMULATED_TOOLKIT_HEADERS)
// The toolkit's types, without its qualifiers (runtime_api.h).
#include <vector_functions.h>
#include <vector_types.h>
#undef __host__
#undef __device__
#undef __global__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __align__
#endif

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __grid_constant__
#define __align__(n) alignas(n)
// The kernel's code holds the largest number of threads of a block as no-operations before its
// first instruction, one for each warp. A launch reads it there (launch.cc). g++ accepts a number
// here that depends on a template's parameters; clang++ accepts plain numbers only, so it does not
// use this.
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__clang__)
#define __launch_bounds__(threads, ...) \
  __attribute__((patchable_function_entry(((threads) + 31) / 32)))
#else
#define __launch_bounds__(...)
#endif
// There is no __constant__ and no __device__ variable: one copy would be shared by all emulated
// devices. There must be no macro __noinline__ either: libstdc++ writes
// __attribute__((__noinline__)).

#if defined(__SANITIZE_ADDRESS__)
#define RAMET_EMULATED_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RAMET_EMULATED_ASAN 1
#endif
#endif

// A host thread runs one block at a time and its fibers never change threads, so a thread_local is
// a block's shared memory. AddressSanitizer puts no red zones around thread_local variables; there
// it is a plain static and blocks take turns (grid.cc).
#if defined(RAMET_EMULATED_ASAN)
#define __shared__ static
#else
#define __shared__ static thread_local
#endif

#if !defined(RAMET_EMULATED_TOOLKIT_HEADERS)
// CUDA aligns vectors of two and four to their size, at most 16 bytes, and vectors of three as
// their element.
#define RAMET_EMULATED_VECTOR(T, Name)                                  \
  struct alignas(sizeof(T) * 2) Name##2 {                               \
    T x, y;                                                             \
  };                                                                    \
  struct Name##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct alignas(sizeof(T) * 4 > 16 ? 16 : sizeof(T) * 4) Name##4 {     \
    T x, y, z, w;                                                       \
  };                                                                    \
  constexpr Name##2 make_##Name##2(T x, T y) { return {x, y}; }         \
  constexpr Name##3 make_##Name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr Name##4 make_##Name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

RAMET_EMULATED_VECTOR(signed char, char)
RAMET_EMULATED_VECTOR(unsigned char, uchar)
RAMET_EMULATED_VECTOR(short, short)
RAMET_EMULATED_VECTOR(unsigned short, ushort)
RAMET_EMULATED_VECTOR(int, int)
RAMET_EMULATED_VECTOR(unsigned int, uint)
RAMET_EMULATED_VECTOR(long long, longlong)
RAMET_EMULATED_VECTOR(unsigned long long, ulonglong)
RAMET_EMULATED_VECTOR(float, float)
RAMET_EMULATED_VECTOR(double, double)
#undef RAMET_EMULATED_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
#endif

// Thread-local objects, not macros, so that a debugger can evaluate `threadIdx.x` and a conditional
// breakpoint can name it. Set whenever a CUDA thread gets its turn.
extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;
