// Conversion between any element type and a compute type, a chunk at a time.
//
// Arithmetic is written for three compute types (float, double, int64). Operands of another type or
// with a stride pass through a buffer of kChunk elements. It is on the stack and stays in the
// first-level cache. So no kernel is a template over the types of its operands.
//
// Rules, LibTorch's on x86-64:
//   floating point -> integer   truncates; out of range and NaN as the processor's conversion:
//                               int64 and int32 give their
//                               smallest value, int8 and int16 wrap the int32 result, unsigned
//                                   types wrap the int64 result
//   integer -> smaller integer  wraps
//   anything -> bool            x != 0 (NaN is true)
//   anything -> 16-bit float    through float, to nearest even
#pragma once
#include <cstdint>

#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Elements of a chunk buffer. A multiple of 64 lanes.
constexpr int64_t kChunk = 512;

/// out[i] = element i * stride of p, of type t, for i < n. Any n; `stride` in elements, any sign, 0
/// for a broadcast.
void load_chunk(const void* p, ScalarType t, int64_t stride, int64_t n, float* out);
void load_chunk(const void* p, ScalarType t, int64_t stride, int64_t n, double* out);
void load_chunk(const void* p, ScalarType t, int64_t stride, int64_t n, int64_t* out);

/// element i * stride of p, of type t, = in[i], for i < n. Any n.
void store_chunk(void* p, ScalarType t, int64_t stride, int64_t n, const float* in);
void store_chunk(void* p, ScalarType t, int64_t stride, int64_t n, const double* in);
void store_chunk(void* p, ScalarType t, int64_t stride, int64_t n, const int64_t* in);

/// The elements themselves if they are dense and of type C. Otherwise a copy in `buffer` (n <= its
/// size).
template <class C>
RAMET_INLINE const C* chunk_in(const void* p, ScalarType t, int64_t stride, int64_t n, C* buffer) {
  if (t == ComputeTag<C>::value && stride == 1) return static_cast<const C*>(p);
  load_chunk(p, t, stride, n, buffer);
  return buffer;
}
/// Where to write n results: in place, or in `buffer`. In that case `chunk_done` converts them.
template <class C> RAMET_INLINE C* chunk_out(void* p, ScalarType t, int64_t stride, C* buffer) {
  return t == ComputeTag<C>::value && stride == 1 ? static_cast<C*>(p) : buffer;
}
template <class C>
RAMET_INLINE void chunk_done(void* p, ScalarType t, int64_t stride, int64_t n, const C* buffer) {
  if (!(t == ComputeTag<C>::value && stride == 1)) store_chunk(p, t, stride, n, buffer);
}

/// One element.
template <class C> RAMET_INLINE C load_one(const void* p, ScalarType t) {
  C x;
  load_chunk(p, t, 1, 1, &x);
  return x;
}
template <class C> RAMET_INLINE void store_one(void* p, ScalarType t, C x) {
  store_chunk(p, t, 1, 1, &x);
}

}  // namespace ramet::kernels::RAMET_VARIANT
