// The instructions of runtime/cuda/ptx.h on the host. Their contracts are in that file.
#pragma once
#include "tools/emulated_gpu/executor/arithmetic.h"
#include "tools/emulated_gpu/executor/power_of_two.h"
#include "tools/emulated_gpu/executor/synchronize.h"

namespace ramet::emulated {

template <int bytes = 16> void require_aligned(const void* memory, RAMET_EMULATED_CALLER) {
  if (reinterpret_cast<uintptr_t>(memory) % bytes)
    device_fail(Fault::Misaligned,
                bytes == 16 ? "MISALIGNED: the address is no multiple of 16"
                            : "MISALIGNED: the address is no multiple of 8",
                RAMET_EMULATED_AT);
}

// Both instructions are for whole warps: without one of the lanes, hardware's result is undefined.
inline bool whole_warp(void* const lanes[32]) {
  for (int l = 0; l < 32; ++l)
    if (!lanes[l]) return false;
  return true;
}

inline void require_whole_warp(bool whole, const char* file, int line) {
  if (!whole)
    device_fail(Fault::WarpPrimitive,
                "HALF A WARP: a lane has left the kernel before a matrix "
                "instruction",
                file, line);
}

struct LoadMatrixArgument {
  uint16_t row[8];
  unsigned result[4];
  bool transposed, whole = false;
};

inline void load_matrix_lanes(void* const lanes[32], uint32_t) {
  if (!whole_warp(lanes)) return;
  const auto lane = [&](int i) { return static_cast<LoadMatrixArgument*>(lanes[i]); };
  for (int l = 0; l < 32; ++l) {
    lane(l)->whole = true;
    for (int matrix = 0; matrix < 4; ++matrix) {
      const auto element = [&](int row, int column) {
        if (lane(l)->transposed) return unsigned(lane(matrix * 8 + column)->row[row]);
        return unsigned(lane(matrix * 8 + row)->row[column]);
      };
      const int row = l / 4, column = l % 4 * 2;
      lane(l)->result[matrix] = element(row, column) | element(row, column + 1) << 16;
    }
  }
}

struct MmaArgument {
  float d[4];
  unsigned a[4], b[2];
  bool whole = false;
};

// Sums in the order of k. Hardware's order and rounding inside one instruction are its own, so
// results agree up to rounding only.
template <bool kBfloat> void mma_lanes(void* const lanes[32], uint32_t) {
  if (!whole_warp(lanes)) return;
  const auto value = [](unsigned pair, int upper) {
    if constexpr (kBfloat) return float_of(upper ? pair & 0xffff0000u : pair << 16);
    return half_to_float(static_cast<uint16_t>(upper ? pair >> 16 : pair));
  };
  float a[16][16], b[16][8], d[16][8];
  for (int l = 0; l < 32; ++l) {
    const auto* lane = static_cast<const MmaArgument*>(lanes[l]);
    const int group = l / 4, column = l % 4 * 2;
    for (int h = 0; h < 2; ++h) {
      a[group][column + h] = value(lane->a[0], h);
      a[group + 8][column + h] = value(lane->a[1], h);
      a[group][column + 8 + h] = value(lane->a[2], h);
      a[group + 8][column + 8 + h] = value(lane->a[3], h);
      b[column + h][group] = value(lane->b[0], h);
      b[column + 8 + h][group] = value(lane->b[1], h);
      d[group][column + h] = lane->d[h];
      d[group + 8][column + h] = lane->d[2 + h];
    }
  }
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k)
      for (int j = 0; j < 8; ++j) d[i][j] += a[i][k] * b[k][j];
  for (int l = 0; l < 32; ++l) {
    auto* lane = static_cast<MmaArgument*>(lanes[l]);
    lane->whole = true;
    const int group = l / 4, column = l % 4 * 2;
    for (int h = 0; h < 2; ++h) {
      lane->d[h] = d[group][column + h];
      lane->d[2 + h] = d[group + 8][column + h];
    }
  }
}

}  // namespace ramet::emulated

namespace ramet::ptx {

// From its start the copy's target is undefined: it holds poison, and the data only after the wait.
template <int bytes>
void cp_async(void* target, const void* source, unsigned source_bytes, const char* file, int line) {
  emulated::require_aligned<bytes>(target, file, line);
  emulated::require_aligned<bytes>(source, file, line);
  for (int i = 0; i < bytes / 4; ++i) static_cast<uint32_t*>(target)[i] = 0xffffffffu;
  emulated::async_copy_issue({target, source, bytes, source_bytes});
}
inline void cp_async16(void* target, const void* source, unsigned source_bytes = 16,
                       RAMET_EMULATED_CALLER) {
  cp_async<16>(target, source, source_bytes, RAMET_EMULATED_AT);
}
inline void cp_async8(void* target, const void* source, unsigned source_bytes = 8,
                      RAMET_EMULATED_CALLER) {
  cp_async<8>(target, source, source_bytes, RAMET_EMULATED_AT);
}

inline void cp_async_commit() { emulated::async_copy_commit(); }

template <int pending> void cp_async_wait() {
  emulated::AsyncCopy copy;
  while (emulated::async_copy_take(pending, &copy)) {
    auto* target = static_cast<uint32_t*>(copy.target);
    const auto* source = static_cast<const uint32_t*>(copy.source);
    for (unsigned i = 0; i < copy.bytes / 4; ++i)
      target[i] = i * 4 < copy.source_bytes ? source[i] : 0;
  }
}

template <bool transposed>
void ldmatrix_x4(unsigned (&r)[4], const void* row, RAMET_EMULATED_CALLER) {
  emulated::require_aligned(row, RAMET_EMULATED_AT);
  emulated::LoadMatrixArgument argument;
  // Read by this lane, so that the checker assigns the access to this lane.
  for (int i = 0; i < 8; ++i) argument.row[i] = static_cast<const uint16_t*>(row)[i];
  argument.transposed = transposed;
  emulated::warp_rendezvous(0xffffffffu, &argument, &emulated::load_matrix_lanes,
                            RAMET_EMULATED_AT);
  emulated::require_whole_warp(argument.whole, RAMET_EMULATED_AT);
  for (int i = 0; i < 4; ++i) r[i] = argument.result[i];
}

inline float ex2(float x) { return emulated::power_of_two(x); }

template <bool kBfloat>
void mma_any(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1, const char* file,
             int line) {
  emulated::MmaArgument argument{{d[0], d[1], d[2], d[3]}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
  emulated::warp_rendezvous(0xffffffffu, &argument, &emulated::mma_lanes<kBfloat>, file, line);
  emulated::require_whole_warp(argument.whole, file, line);
  for (int i = 0; i < 4; ++i) d[i] = argument.d[i];
}
inline void mma_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                     RAMET_EMULATED_CALLER) {
  mma_any<true>(d, a, b0, b1, RAMET_EMULATED_AT);
}
inline void mma_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                    RAMET_EMULATED_CALLER) {
  mma_any<false>(d, a, b0, b1, RAMET_EMULATED_AT);
}

}  // namespace ramet::ptx
