// Attention of 16-bit floats on tensor cores (mma.sync). For .cu files only.
//
// Four warps have 64 rows, 16 each; the others go by in tiles of kOthers rows. Scores stay in the
// registers in which the product leaves them, and are the left operand of the next product as they
// lie there (Dao 2023, section 3.3). While one tile is used the next one is on its way.
#pragma once
#include "kernels/attention_gpu.h"
#include "runtime/cuda/ptx.h"

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kTensorRows = 64, kTensorThreads = 128;
/// Rows of a tile that goes by, so that all tiles fit 48 KB.
template <int kColumns, bool kBackward>
constexpr int kOtherRows = kBackward ? (kColumns <= 64 ? 32 : 16) : (kColumns <= 64 ? 64 : 32);

/// The two formats: conversion and product.
struct HalfCores {
  static __device__ uint32_t bits(float x) { return to_half(x).bits; }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    ptx::mma_f16(d, a, b0, b1);
  }
};
struct BfloatCores {
  static __device__ uint32_t bits(float x) { return to_bfloat(x).bits; }
  static __device__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    ptx::mma_bf16(d, a, b0, b1);
  }
};
template <class Cores> __device__ __forceinline__ unsigned pair_of(float low, float high) {
  return Cores::bits(low) | Cores::bits(high) << 16;
}

/// A tile in shared memory: rows of kColumns 16-bit elements and 16 bytes, so that the eight rows
/// of a matrix lie in different banks.
template <int kRows, int kColumns> struct CoreTile {
  static constexpr int kStride = kColumns + 8;
  alignas(16) uint16_t at[kRows][kStride];

  /// Starts to copy n rows from `first` on, zeros behind them and in columns >= `columns`.
  __device__ void fetch(const void* data, int64_t start, int64_t stride, int64_t first, int64_t n,
                        int64_t columns) {
    constexpr int kPieces = kColumns / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kPieces; i += kTensorThreads) {
      const int row = i / kPieces, column = i % kPieces * 8;
      const bool inside = row < n && column < columns;
      const int64_t from = inside ? start + (first + row) * stride + column : start;
      ptx::cp_async16(&at[row][column], static_cast<const uint16_t*>(data) + from,
                      inside ? 16u : 0u);
    }
  }
  /// Rows r0 .. r0 + 15, columns c0 .. c0 + 15 as a left operand.
  __device__ void left(unsigned (&a)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<false>(a, &at[r0 + matrix % 2 * 8 + lane % 8][c0 + matrix / 2 * 8]);
  }
  /// The same as two right operands, its rows the columns of the product: b[0], b[1] for the first
  /// eight of them, b[2], b[3] for the others.
  __device__ void right_of_rows(unsigned (&b)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<false>(b, &at[r0 + matrix / 2 * 8 + lane % 8][c0 + matrix % 2 * 8]);
  }
  /// The same, its columns those of the product.
  __device__ void right(unsigned (&b)[4], int r0, int c0) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8;
    ptx::ldmatrix_x4<true>(b, &at[r0 + matrix % 2 * 8 + lane % 8][c0 + matrix / 2 * 8]);
  }
};

/// s = mine other' of 16 rows from r0 on, in fragments of eight columns.
template <class Cores, int kMine, int kOthers, int kColumns>
__device__ __forceinline__ void scores_of(float (&s)[kOthers / 8][4],
                                          const CoreTile<kMine, kColumns>& mine, int r0,
                                          const CoreTile<kOthers, kColumns>& other) {
  RAMET_UNROLL
  for (int j = 0; j < kOthers / 8; ++j) {
    RAMET_UNROLL
    for (int e = 0; e < 4; ++e) s[j][e] = 0;
  }
  RAMET_UNROLL
  for (int d = 0; d < kColumns; d += 16) {
    unsigned a[4], b[4];
    mine.left(a, r0, d);
    RAMET_UNROLL
    for (int j = 0; j < kOthers / 16; ++j) {
      other.right_of_rows(b, j * 16, d);
      Cores::multiply(s[2 * j], a, b[0], b[1]);
      Cores::multiply(s[2 * j + 1], a, b[2], b[3]);
    }
  }
}
/// sum += p other, p in the fragments of scores, rounded to 16 bits.
template <class Cores, int kOthers, int kColumns>
__device__ __forceinline__ void add_product(float (&sum)[kColumns / 8][4],
                                            const float (&p)[kOthers / 8][4],
                                            const CoreTile<kOthers, kColumns>& other) {
  RAMET_UNROLL
  for (int j = 0; j < kOthers / 16; ++j) {
    const unsigned a[4] = {pair_of<Cores>(p[2 * j][0], p[2 * j][1]),
                           pair_of<Cores>(p[2 * j][2], p[2 * j][3]),
                           pair_of<Cores>(p[2 * j + 1][0], p[2 * j + 1][1]),
                           pair_of<Cores>(p[2 * j + 1][2], p[2 * j + 1][3])};
    RAMET_UNROLL
    for (int c = 0; c < kColumns / 16; ++c) {
      unsigned b[4];
      other.right(b, j * 16, c * 16);
      Cores::multiply(sum[2 * c], a, b[0], b[1]);
      Cores::multiply(sum[2 * c + 1], a, b[2], b[3]);
    }
  }
}
/// Fragments as 16-bit rows from `row` on: element e of a fragment is in row lane / 4 (+ 8 for the
/// last two), column 2 (lane % 4) + e % 2.
template <class Cores, int kColumns>
__device__ __forceinline__ void put_rows(const AttentionMatrix& to, int64_t start, int64_t row,
                                         int64_t rows, int64_t columns,
                                         const float (&sum)[kColumns / 8][4], const float (&k)[2]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  RAMET_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t at = row + lane / 4 + half * 8;
    if (at >= rows) continue;
    auto* line = static_cast<uint16_t*>(to.data) + start + at * to.row;
    RAMET_UNROLL
    for (int c = 0; c < kColumns / 8; ++c) {
      const int column = c * 8 + lane % 4 * 2;
      if (column >= columns) continue;
      *reinterpret_cast<uint32_t*>(line + column) =
          pair_of<Cores>(sum[c][half * 2] * k[half], sum[c][half * 2 + 1] * k[half]);
    }
  }
}
/// op over the four lanes of a row of fragments.
template <class Op> __device__ __forceinline__ float over_quad(float x, const Op& op) {
  x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

template <class Cores, int kColumns>
__global__ void __launch_bounds__(kTensorThreads) attention_tensor_kernel(AttentionArgs a) {
  constexpr int kOthers = kOtherRows<kColumns, false>;
  __shared__ CoreTile<kTensorRows, kColumns> q;
  __shared__ CoreTile<kOthers, kColumns> k, v;
  const int lane = static_cast<int>(threadIdx.x) % 32, r0 = static_cast<int>(threadIdx.x) / 32 * 16;
  const float scale = static_cast<float>(a.scale), none = -INFINITY;
  const int64_t tiles = ceil_div(a.q_rows, kTensorRows), all = a.batch * a.heads * tiles;
  for (int64_t tile = blockIdx.x; tile < all; tile += gridDim.x) {
    // With `causal` the last rows have the most work: they come first.
    const int64_t matrix = tile / tiles, q0 = (tiles - 1 - tile % tiles) * kTensorRows,
                  rows = imin(kTensorRows, a.q_rows - q0);
    const int64_t of_k = start_of(a.k, matrix, a.heads), of_v = start_of(a.v, matrix, a.heads);
    const int64_t keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
    q.fetch(a.q.data, start_of(a.q, matrix, a.heads), a.q.row, q0, rows, a.columns);
    if (keys > 0) k.fetch(a.k.data, of_k, a.k.row, 0, imin(kOthers, keys), a.columns);
    ptx::cp_async_commit();
    float most[2] = {none, none}, sum[2] = {0, 0}, out[kColumns / 8][4];
    RAMET_UNROLL
    for (int c = 0; c < kColumns / 8; ++c) {
      RAMET_UNROLL
      for (int e = 0; e < 4; ++e) out[c][e] = 0;
    }
    for (int64_t k0 = 0; k0 < keys; k0 += kOthers) {
      const int64_t n = imin(kOthers, keys - k0);
      ptx::cp_async_wait<0>();
      __syncthreads();  // k is here, and nobody needs the last v
      v.fetch(a.v.data, of_v, a.v.row, k0, n, a.columns);
      ptx::cp_async_commit();
      float s[kOthers / 8][4];
      scores_of<Cores>(s, q, r0, k);
      ptx::cp_async_wait<0>();
      __syncthreads();  // v is here, and nobody needs k
      if (k0 + kOthers < keys)
        k.fetch(a.k.data, of_k, a.k.row, k0 + kOthers, imin(kOthers, keys - k0 - kOthers),
                a.columns);
      ptx::cp_async_commit();
      float keep[2];
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int64_t seen = a.causal ? imin(n, q0 + r0 + lane / 4 + half * 8 + 1 - k0) : n;
        float block = none;
        RAMET_UNROLL
        for (int j = 0; j < kOthers / 8; ++j) {
          RAMET_UNROLL
          for (int e = 0; e < 2; ++e) {
            float& x = s[j][half * 2 + e];
            x = j * 8 + lane % 4 * 2 + e < seen ? x * scale : none;
            block = x > block ? x : block;
          }
        }
        block = over_quad(block, [](float x, float y) { return x > y ? x : y; });
        const float next = block > most[half] ? block : most[half], shift = attention_shift(next);
        keep[half] = vexp(most[half] - shift);
        most[half] = next;
        sum[half] *= keep[half];
        RAMET_UNROLL
        for (int j = 0; j < kOthers / 8; ++j) {
          RAMET_UNROLL
          for (int e = 0; e < 2; ++e) {
            float& x = s[j][half * 2 + e];
            x = vexp(x - shift);
            sum[half] += x;
          }
        }
      }
      RAMET_UNROLL
      for (int c = 0; c < kColumns / 8; ++c) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e) out[c][e] *= keep[e / 2];
      }
      add_product<Cores>(out, s, v);
    }
    float k_of_row[2];
    float* log_sum = static_cast<float*>(a.log_sum) + matrix * a.q_rows + q0;
    RAMET_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float total = over_quad(sum[half], [](float x, float y) { return x + y; });
      k_of_row[half] = total == 0 ? 0.0f : 1 / total;
      const int row = r0 + lane / 4 + half * 8;
      if (lane % 4 == 0 && row < rows)
        log_sum[row] = total == 0 ? none : attention_shift(most[half]) + vlog(total);
    }
    put_rows<Cores, kColumns>(a.o, start_of(a.o, matrix, a.heads), q0 + r0, a.q_rows, a.columns,
                              out, k_of_row);
    ptx::cp_async_wait<0>();
    __syncthreads();  // all are done with the tiles
  }
}

template <class Cores, int kColumns, bool kOfKeys>
__global__ void __launch_bounds__(kTensorThreads, 1)
    attention_tensor_backward_kernel(AttentionBackwardArgs a, AttentionSides m, const float* dots) {
  constexpr int kOthers = kOtherRows<kColumns, true>;
  __shared__ CoreTile<kTensorRows, kColumns> mine1, mine2;
  __shared__ CoreTile<kOthers, kColumns> other1, other2;
  const int lane = static_cast<int>(threadIdx.x) % 32, r0 = static_cast<int>(threadIdx.x) / 32 * 16;
  const float scale = static_cast<float>(a.scale);
  const int64_t tiles = ceil_div(m.mine, kTensorRows), all = a.batch * a.heads * tiles;
  for (int64_t tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const int64_t matrix = tile / tiles,
                  first = (kOfKeys ? tile % tiles : tiles - 1 - tile % tiles) * kTensorRows,
                  rows = imin(kTensorRows, m.mine - first);
    const auto fetch = [&](auto& to, const AttentionMatrix& from, int64_t begin, int64_t n) {
      to.fetch(from.data, start_of(from, matrix, a.heads), from.row, begin, n, a.columns);
    };
    // What sees nothing, or is not seen, is left out, but for the tiles on the diagonal.
    const int64_t begin = a.causal && kOfKeys ? first : 0,
                  end = a.causal && !kOfKeys ? imin(m.others, first + rows) : m.others;
    fetch(mine1, m.mine1, first, rows);
    fetch(mine2, m.mine2, first, rows);
    float sum1[kColumns / 8][4], sum2[kOfKeys ? kColumns / 8 : 1][4];
    RAMET_UNROLL
    for (int c = 0; c < kColumns / 8; ++c) {
      RAMET_UNROLL
      for (int e = 0; e < 4; ++e) {
        sum1[c][e] = 0;
        if (kOfKeys) sum2[c][e] = 0;
      }
    }
    for (int64_t o0 = begin; o0 < end; o0 += kOthers) {
      const int n = static_cast<int>(imin(kOthers, end - o0));
      // How far query 0 of this tile comes behind key 0.
      const int apart = static_cast<int>(kOfKeys ? o0 - first : first - o0);
      const int64_t of_queries = matrix * a.q_rows + (kOfKeys ? o0 : first);
      const float *log_sum = static_cast<const float*>(a.log_sum) + of_queries,
                  *dot = dots + of_queries;
      fetch(other1, m.other1, o0, n);
      fetch(other2, m.other2, o0, n);
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
      __syncthreads();
      float s[kOthers / 8][4], g[kOthers / 8][4];
      scores_of<Cores>(s, mine1, r0, other1);
      scores_of<Cores>(g, mine2, r0, other2);
      RAMET_UNROLL
      for (int j = 0; j < kOthers / 8; ++j) {
        RAMET_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int row = r0 + lane / 4 + e / 2 * 8, column = j * 8 + lane % 4 * 2 + e % 2,
                    later = kOfKeys ? column - row + apart : row - column + apart;
          const bool seen = row < rows && column < n && (!a.causal || later >= 0);
          float p = 0, slope = 0;
          if (seen) {
            const int query = kOfKeys ? column : row;
            p = vexp(s[j][e] * scale - attention_shift(log_sum[query]));
            slope = p * (g[j][e] - dot[query]) * scale;
          }
          s[j][e] = p;
          g[j][e] = slope;
        }
      }
      add_product<Cores>(sum1, g, other1);
      if constexpr (kOfKeys) add_product<Cores>(sum2, s, other2);
      __syncthreads();  // all are done with these tiles
    }
    const float one[2] = {1, 1};
    put_rows<Cores, kColumns>(m.sum1, start_of(m.sum1, matrix, a.heads), first + r0, m.mine,
                              a.columns, sum1, one);
    if constexpr (kOfKeys)
      put_rows<Cores, kColumns>(m.sum2, start_of(m.sum2, matrix, a.heads), first + r0, m.mine,
                                a.columns, sum2, one);
    ptx::cp_async_commit();  // what was fetched where no tile followed is in no group yet
    ptx::cp_async_wait<0>();
    __syncthreads();
  }
}

template <int kColumns> void attention_tensor(const AttentionArgs& a, Stream where) {
  start("attention", where, grid_of(a.batch * a.heads * ceil_div(a.q_rows, kTensorRows)),
        kTensorThreads, 0,
        a.dtype == ScalarType::Half ? attention_tensor_kernel<HalfCores, kColumns>
                                    : attention_tensor_kernel<BfloatCores, kColumns>,
        a);
}
template <int kColumns>
void attention_tensor_backward(const AttentionBackwardArgs& a, const float* dots, Stream where) {
  const auto run = [&](auto* kernel, bool of_keys) {
    const AttentionSides m = sides_of(a, of_keys);
    if (m.mine > 0)
      start("attention_backward", where, grid_of(a.batch * a.heads * ceil_div(m.mine, kTensorRows)),
            kTensorThreads, 0, kernel, a, m, dots);
  };
  const bool half = a.dtype == ScalarType::Half;
  if (a.dq.data)
    run(half ? attention_tensor_backward_kernel<HalfCores, kColumns, false>
             : attention_tensor_backward_kernel<BfloatCores, kColumns, false>,
        false);
  if (a.dk.data)
    run(half ? attention_tensor_backward_kernel<HalfCores, kColumns, true>
             : attention_tensor_backward_kernel<BfloatCores, kColumns, true>,
        true);
}

}  // namespace ramet::kernels::RAMET_VARIANT
