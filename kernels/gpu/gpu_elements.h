// Elements in a GPU's memory. Reads and writes elements of any type as a compute type, one at a
// time or eight by 16-byte accesses. The type is checked at run time. All threads take the same
// branch, so the check costs nothing compared with the access.
#pragma once
#include "kernels/copy/view.h"
#include "kernels/gpu/gpu_index.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// f(S{}) with the storage type S of `t`.
template <class F> RAMET_INLINE void by_type(ScalarType t, const F& f) {
  switch (t) {
    case ScalarType::Bool: return f(BoolByte{});
    case ScalarType::Byte: return f(uint8_t{});
    case ScalarType::Char: return f(int8_t{});
    case ScalarType::Short: return f(int16_t{});
    case ScalarType::Int: return f(int32_t{});
    case ScalarType::Long: return f(int64_t{});
    case ScalarType::UInt16: return f(uint16_t{});
    case ScalarType::UInt32: return f(uint32_t{});
    case ScalarType::Half: return f(HalfBits{});
    case ScalarType::BFloat16: return f(BfloatBits{});
    case ScalarType::Float: return f(float{});
    case ScalarType::Double: return f(double{});
    case ScalarType::Undefined: return;
  }
}

/// f(word of the size of an element of `bytes`): code that only moves elements needs just their
/// size.
template <class F> void by_word(int64_t bytes, const F& f) {
  switch (bytes) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    default: return f(uint64_t{});
  }
}

/// Element i of p, of type t.
template <class C> RAMET_INLINE C load_element(const void* p, ScalarType t, int64_t i) {
  C out{};
  by_type(t, [&](auto s) {
    using S = decltype(s);
    out = Cast<C, S>::load(static_cast<const S*>(p)[i]);
  });
  return out;
}
template <class C> RAMET_INLINE void store_element(void* p, ScalarType t, int64_t i, C x) {
  by_type(t, [&](auto s) {
    using S = decltype(s);
    static_cast<S*>(p)[i] = Cast<C, S>::store(x);
  });
}

/// Elements that a thread reads, computes and writes together.
constexpr int kPack = 8;

/// May packs of elements of type t begin at p? (Then they may begin at each 8 * k elements from p.)
inline bool packs_fit(const void* p, ScalarType t) {
  const int64_t bytes = kPack * bytes_of(t);
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes < 16 ? bytes : 16) == 0;
}

/// 8 or 16 * k bytes at once. REQUIRES: packs_fit.
template <int kBytes> RAMET_INLINE void load_bytes(const void* p, void* to) {
  if constexpr (kBytes == 8) {
    const uint2 w = *static_cast<const uint2*>(p);
    memcpy(to, &w, 8);
  } else {
    uint4 w[kBytes / 16];
    for (int k = 0; k < kBytes / 16; ++k) w[k] = static_cast<const uint4*>(p)[k];
    memcpy(to, w, kBytes);
  }
}
template <int kBytes> RAMET_INLINE void store_bytes(void* p, const void* from) {
  if constexpr (kBytes == 8) {
    uint2 w;
    memcpy(&w, from, 8);
    *static_cast<uint2*>(p) = w;
  } else {
    uint4 w[kBytes / 16];
    memcpy(w, from, kBytes);
    for (int k = 0; k < kBytes / 16; ++k) static_cast<uint4*>(p)[k] = w[k];
  }
}

/// Elements i to i + 7. REQUIRES: packs_fit(p, t), i a multiple of 8.
template <class C>
RAMET_INLINE void load_pack(const void* p, ScalarType t, int64_t i, C (&out)[kPack]) {
  by_type(t, [&](auto s) {
    using S = decltype(s);
    S v[kPack];
    load_bytes<sizeof v>(static_cast<const S*>(p) + i, v);
    for (int j = 0; j < kPack; ++j) out[j] = Cast<C, S>::load(v[j]);
  });
}
template <class C>
RAMET_INLINE void store_pack(void* p, ScalarType t, int64_t i, const C (&x)[kPack]) {
  by_type(t, [&](auto s) {
    using S = decltype(s);
    S v[kPack];
    for (int j = 0; j < kPack; ++j) v[j] = Cast<C, S>::store(x[j]);
    store_bytes<sizeof v>(static_cast<S*>(p) + i, v);
  });
}

/// Offsets of `kOperands` operands at a linear index over some dimensions, the last one fastest.
template <int kOperands> struct Offsets {
  int32_t rank;
  bool narrow;
  Divisor<int32_t> narrow_by[kMaxKernelRank];
  Divisor<int64_t> by[kMaxKernelRank];
  int64_t strides[kOperands][kMaxKernelRank];

  /// On the host, over dimensions with `count` elements in all. The caller sets the strides, in
  /// elements.
  void set(int dims, const int64_t* extents, int64_t count) {
    rank = dims;
    narrow = count == 0 || is_narrow(static_cast<double>(count));
    for (int d = 0; d < dims; ++d) {
      if (narrow) narrow_by[d] = Divisor<int32_t>(count == 0 ? 1 : extents[d]);
      else by[d] = Divisor<int64_t>(extents[d]);
    }
  }
  RAMET_INLINE void at(int64_t linear, int64_t (&offset)[kOperands]) const {
    for (int o = 0; o < kOperands; ++o) offset[o] = 0;
    const auto walk = [&](auto rest, const auto& divisors) {
      for (int d = rank - 1; d > 0; --d) {
        const int64_t index = divisors[d].take(rest);
        for (int o = 0; o < kOperands; ++o) offset[o] += index * strides[o][d];
      }
      if (rank > 0)
        for (int o = 0; o < kOperands; ++o) offset[o] += rest * strides[o][0];
    };
    narrow ? walk(static_cast<int32_t>(linear), narrow_by) : walk(linear, by);
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
