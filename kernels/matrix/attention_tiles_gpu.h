// The parts of attention on tensor cores: tiles in shared memory, the copies that fill them, and
// the products of fragments with them. For .cu files only.
#pragma once
#include "kernels/matrix/attention_gpu.h"
#include "runtime/cuda/ptx.h"

// For a loop with a large body: it is not unrolled.
#if RAMET_GPU_EMULATED
#define RAMET_ROLLED
#else
#define RAMET_ROLLED _Pragma("unroll 1")
#endif

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kTensorWarps = 4, kTensorThreads = kTensorWarps * 32;

/// Blocks of 16 rows of each warp. Two blocks use an operand from shared memory twice. That needs
/// enough registers for their sums (and operands, which are of two matrices in the backward pass).
template <int kColumns> constexpr int kRowBlocks = kColumns <= 64 ? 2 : 1;
template <int kColumns, bool kOfKeys>
constexpr int kBackwardBlocks = kColumns <= (kOfKeys ? 32 : 64) ? 2 : 1;

constexpr double kLog2 = 0.69314718055994530942, kLog2E = 1.44269504088896340736;
/// exp(scale s) = 2^(factor s).
RAMET_INLINE float attention_factor(double scale) { return static_cast<float>(scale * kLog2E); }

/// The two formats: conversion of two values, the first in the lower half, and product.
struct HalfCores {
  using Bits = HalfBits;
  static constexpr bool kBfloat = false;
  static __device__ __forceinline__ unsigned pair(float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    unsigned bits;
    memcpy(&bits, &both, sizeof bits);
    return bits;
  }
  static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
    ptx::mma_f16(d, a, b0, b1);
  }
};
struct BfloatCores {
  using Bits = BfloatBits;
  static constexpr bool kBfloat = true;
  static __device__ __forceinline__ unsigned pair(float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    unsigned bits;
    memcpy(&bits, &both, sizeof bits);
    return bits;
  }
  static __device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4],
                                                  unsigned b0, unsigned b1) {
    ptx::mma_bf16(d, a, b0, b1);
  }
};

/// Rows of a tile, so that four of them fit the 48 KB that every block may have.
template <int kColumns> constexpr int kCoreRows = kColumns <= 64 ? 64 : 32;
/// A tile of rows of kColumns 16-bit elements and 16 bytes, so that the eight rows of a matrix lie
/// in different banks.
template <int kColumns, int kHeight = kCoreRows<kColumns>> struct CoreTile {
  static constexpr int kRows = kHeight;
  alignas(16) uint16_t at[kRows][kColumns + 8];

  /// Rows r0 .. r0 + 15, columns c0 .. c0 + 15 as a left operand.
  __device__ __forceinline__ void left(unsigned (&a)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<false>(a, &at[r0 + matrix % 2 * 8 + lane % 8][c0 + matrix / 2 * 8]);
  }
  /// The same as two right operands. The tile's rows are the columns of the product: b[0], b[1] for
  /// the first eight of them, b[2], b[3] for the others.
  __device__ __forceinline__ void right_of_rows(unsigned (&b)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<false>(b, &at[r0 + matrix / 2 * 8 + lane % 8][c0 + matrix % 2 * 8]);
  }
  /// The same, its columns those of the product.
  __device__ __forceinline__ void right(unsigned (&b)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<true>(b, &at[r0 + matrix % 2 * 8 + lane % 8][c0 + matrix / 2 * 8]);
  }
};

/// How the block copies rows of a matrix. A thread has the same 16 bytes of every kStep-th row, so
/// it computes what depends on the columns only once.
template <int kColumns> struct RowCopy {
  static constexpr int kPieces = kColumns / 8, kStep = kTensorThreads / kPieces;
  const uint16_t* from;  // this thread's piece of its first row
  int64_t stride;        // elements between rows
  int columns;           // of the matrix; others are not read

  __device__ __forceinline__ RowCopy(const AttentionMatrix& m, int64_t matrix, int64_t heads,
                                     int of_matrix)
      : stride(m.row), columns(of_matrix) {
    from = static_cast<const uint16_t*>(m.data) + start_of(m, matrix, heads) + row() * stride +
           column();
  }
  static __device__ __forceinline__ int row() { return static_cast<int>(threadIdx.x) / kPieces; }
  static __device__ __forceinline__ int column() {
    return static_cast<int>(threadIdx.x) % kPieces * 8;
  }
  /// Starts to copy rows from `begin` on: `n` of them, or as many as the tile has. Further rows are
  /// zeros. (It reads no byte at an address outside the matrix.)
  template <int kRows>
  __device__ __forceinline__ void start(CoreTile<kColumns, kRows>& to, int begin, int n) const {
    const uint16_t* source = from + begin * stride;
    const int64_t step = kStep * stride;
    const unsigned bytes = column() < columns ? 16 : 0;
    if (n >= kRows) {
      RAMET_UNROLL
      for (int i = 0; i < kRows / kStep; ++i, source += step)
        ptx::cp_async16(&to.at[row() + i * kStep][column()], source, bytes);
      return;
    }
    RAMET_UNROLL
    for (int i = 0; i < kRows / kStep; ++i, source += step)
      ptx::cp_async16(&to.at[row() + i * kStep][column()], source,
                      row() + i * kStep < n ? bytes : 0);
  }
};

/// kBlocks blocks of 16 rows as left operands of a product over all columns.
template <int kBlocks, int kColumns> struct RowFragments {
  unsigned a[kBlocks][kColumns / 16][4];
  /// Rows from r0 on of consecutive tiles. All rows are in one of the tiles.
  template <int kRows>
  __device__ __forceinline__ void get(const CoreTile<kColumns, kRows>* tiles, int r0) {
    static_assert(kRows % (16 * kBlocks) == 0);
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int d = 0; d < kColumns / 16; ++d)
        tiles[r0 / kRows].left(a[b][d], r0 % kRows + b * 16, d * 16);
    }
  }
  __device__ __forceinline__ void operand(unsigned (&to)[4], int b, int d) const {
    RAMET_UNROLL
    for (int e = 0; e < 4; ++e) to[e] = a[b][d][e];
  }
  /// With the other sign, which is exact for 16-bit floats.
  __device__ __forceinline__ void negate() {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int d = 0; d < kColumns / 16; ++d) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e) a[b][d][e] ^= 0x80008000u;
      }
    }
  }
};

/// For the case that registers are not enough: reads each operand when it is needed.
template <int kColumns> struct SharedRows {
  const CoreTile<kColumns, 16>* rows;
  __device__ __forceinline__ void operand(unsigned (&to)[4], int, int d) const {
    rows->left(to, 0, d * 16);
  }
};

/// Sums of kBlocks blocks of 16 rows and kWidth columns, in fragments of eight columns. A thread's
/// element e of a fragment is in row lane / 4 (+ 8 for the last two), column 2 (lane % 4) + e % 2.
template <int kBlocks, int kWidth> struct CoreSums {
  static constexpr int kFragments = kWidth / 8;
  float at[kBlocks][kFragments][4];

  __device__ __forceinline__ void clear() {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int j = 0; j < kFragments; ++j) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e) at[b][j][e] = 0;
      }
    }
  }
  /// f(element, block, row of the block, column) for all of them.
  template <class F> __device__ __forceinline__ void each(const F& f) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int j = 0; j < kFragments; ++j) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e)
          f(at[b][j][e], b, lane / 4 + e / 2 * 8, j * 8 + lane % 4 * 2 + e % 2);
      }
    }
  }
  /// Removes columns that rows do not see. The first sees(block, row of it) columns are seen.
  template <class F> __device__ __forceinline__ void hide(const F& sees) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half) {
        // n is compared with constants, which cost no registers.
        const int n = sees(b, lane / 4 + half * 8) - lane % 4 * 2;
        RAMET_UNROLL
        for (int j = 0; j < kFragments; ++j) {
          RAMET_UNROLL
          for (int e = 0; e < 2; ++e)
            if (j * 8 + e >= n) at[b][j][half * 2 + e] = -INFINITY;
        }
      }
    }
  }
  /// Rows times k[block][half].
  __device__ __forceinline__ void scale(const float (&k)[kBlocks][2]) {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int j = 0; j < kFragments; ++j) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e) at[b][j][e] *= k[b][e / 2];
      }
    }
  }
};

/// s = mine other', of kWidth rows of the other tile from o0 on. In the order of columns.
template <class Cores, int kBlocks, int kWidth, class Rows, int kColumns, int kRows>
__device__ __forceinline__ void scores_of(CoreSums<kBlocks, kWidth>& s, const Rows& mine,
                                          const CoreTile<kColumns, kRows>& other, int o0) {
  s.clear();
  RAMET_UNROLL
  for (int d = 0; d < kColumns / 16; ++d) {
    unsigned left[kBlocks][4];
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) mine.operand(left[b], b, d);
    RAMET_UNROLL
    for (int j = 0; j < kWidth / 16; ++j) {
      unsigned right[4];
      other.right_of_rows(right, o0 + j * 16, d * 16);
      RAMET_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        Cores::multiply(s.at[b][2 * j], left[b], right[0], right[1]);
        Cores::multiply(s.at[b][2 * j + 1], left[b], right[2], right[3]);
      }
    }
  }
}
/// sum += p other, of kWidth rows of the other tile from o0 on; p rounded to 16 bits.
template <class Cores, int kBlocks, int kWidth, int kColumns, int kRows>
__device__ __forceinline__ void add_product(CoreSums<kBlocks, kColumns>& sum,
                                            const CoreSums<kBlocks, kWidth>& p,
                                            const CoreTile<kColumns, kRows>& other, int o0) {
  RAMET_UNROLL
  for (int j = 0; j < kWidth / 16; ++j) {
    unsigned left[kBlocks][4];
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float(&from)[4] = p.at[b][2 * j + e / 2];
        left[b][e] = Cores::pair(from[e % 2 * 2], from[e % 2 * 2 + 1]);
      }
    }
    RAMET_UNROLL
    for (int c = 0; c < kColumns / 16; ++c) {
      unsigned right[4];
      other.right(right, o0 + j * 16, c * 16);
      RAMET_UNROLL
      for (int b = 0; b < kBlocks; ++b) {
        Cores::multiply(sum.at[b][2 * c], left[b], right[0], right[1]);
        Cores::multiply(sum.at[b][2 * c + 1], left[b], right[2], right[3]);
      }
    }
  }
}
/// sum times k[block][half] as 16-bit rows from `row` on, those before `rows`.
template <class Cores, int kBlocks, int kColumns>
__device__ __forceinline__ void put_rows(const AttentionMatrix& to, int64_t matrix, int64_t heads,
                                         int row, int rows, int columns,
                                         const CoreSums<kBlocks, kColumns>& sum,
                                         const float (&k)[kBlocks][2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto* data = static_cast<uint16_t*>(to.data) + start_of(to, matrix, heads);
  RAMET_UNROLL
  for (int b = 0; b < kBlocks; ++b) {
    RAMET_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int at = row + b * 16 + lane / 4 + half * 8;
      if (at >= rows) continue;
      uint16_t* line = data + at * to.row + lane % 4 * 2;
      RAMET_UNROLL
      for (int c = 0; c < kColumns / 8; ++c)
        if (c * 8 < columns)
          *reinterpret_cast<uint32_t*>(line + c * 8) = Cores::pair(
              sum.at[b][c][half * 2] * k[b][half], sum.at[b][c][half * 2 + 1] * k[b][half]);
    }
  }
}
/// op over the four lanes of a row of fragments.
template <class Op> __device__ __forceinline__ float over_quad(float x, const Op& op) {
  x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

/// The state of a thread's rows after the keys so far: the largest product, and the sum of
/// 2^(factor times (product - largest product)).
template <int kBlocks> struct SeenKeys {
  float most[kBlocks][2], sum[kBlocks][2];
  __device__ __forceinline__ void clear() {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half) most[b][half] = -INFINITY, sum[b][half] = 0;
    }
  }
  /// Turns products with further keys into powers. `keep`: the factor for the rows' results so far.
  template <int kWidth>
  __device__ __forceinline__ void add(CoreSums<kBlocks, kWidth>& s, float factor,
                                      float (&keep)[kBlocks][2]) {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half) {
        float top = most[b][half];
        RAMET_UNROLL
        for (int j = 0; j < kWidth / 8; ++j)
          top = ::fmaxf(top, ::fmaxf(s.at[b][j][half * 2], s.at[b][j][half * 2 + 1]));
        top = over_quad(top, [](float x, float y) { return ::fmaxf(x, y); });
        const float from = attention_shift(top), shift = from * factor;
        keep[b][half] = ptx::ex2((most[b][half] - from) * factor);
        most[b][half] = top;
        float total = sum[b][half] * keep[b][half];
        RAMET_UNROLL
        for (int j = 0; j < kWidth / 8; ++j) {
          RAMET_UNROLL
          for (int e = half * 2; e < half * 2 + 2; ++e) {
            s.at[b][j][e] = ptx::ex2(fma(s.at[b][j][e], factor, -shift));
            total += s.at[b][j][e];
          }
        }
        sum[b][half] = total;
      }
    }
  }
  /// Writes the logarithms of the sums of the thread's rows, from `row` on, that are before `rows`.
  /// k: the factor for its rows of the result.
  __device__ __forceinline__ void finish(float (&k)[kBlocks][2], float* log_sum, int row, int rows,
                                         float factor) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float total = over_quad(sum[b][half], [](float x, float y) { return x + y; });
        k[b][half] = total == 0 ? 0.0f : 1 / total;
        const int at = row + b * 16 + lane / 4 + half * 8;
        if (lane % 4 == 0 && at < rows)
          log_sum[at] = total == 0 ? -INFINITY
                                   : fma(attention_shift(most[b][half]) * factor,
                                         static_cast<float>(kLog2), vlog(total));
      }
    }
  }
};

}  // namespace ramet::kernels::RAMET_VARIANT
