// Attention in plain arithmetic, of any floating type. For .cu files only.
//
// A block of 8 n threads has n rows; eight neighbouring threads share a row. Thread (row, part)
// computes the scores of its row by the columns part, part + 8, ... of a tile of n others, and the
// columns part, part + 8, ... of its row of the result.
#pragma once
#include "kernels/matrix/attention_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kParts = 8;
constexpr int kStaticShared = 0xc000;  // bytes of shared memory that every block may have

/// Rows of a tile, so that `tiles` tiles and two tiles of scores fit the shared memory.
template <class T> constexpr int attention_tile(int tiles, int columns) {
  int rows = 32;
  while ((tiles * rows * (columns + 1) + 2 * rows * (rows + 1)) * static_cast<int>(sizeof(T)) >
         kStaticShared)
    rows /= 2;
  return rows;
}

/// A tile of rows: `n` from `first` on of a matrix. Later rows, and columns >= `columns`, are
/// zeros.
template <class T, int kTile, int kColumns>
__device__ void get_tile(T (&tile)[kTile][kColumns + 1], const void* data, ScalarType t,
                         int64_t start, int64_t stride, int64_t first, int n, int columns) {
  start += first * stride;
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kColumns; i += kTile * kParts) {
    const int row = i / kColumns, column = i % kColumns;
    const bool inside = row < n && column < columns;
    tile[row][column] = inside ? load_element<T>(data, t, start + row * stride + column) : T(0);
  }
}
/// op over the eight threads of a row.
template <class T, class Op> __device__ T over_parts(T value, const Op& op) {
  for (int step = kParts / 2; step > 0; step /= 2)
    value = op(value, __shfl_xor_sync(0xffffffffu, value, step));
  return value;
}

template <class T, int kTile, int kColumns>
__global__ void attention_plain_kernel(AttentionArgs a) {
  constexpr int kScores = kTile / kParts, kOwnColumns = kColumns / kParts;
  __shared__ T mine[kTile][kColumns + 1], other[kTile][kColumns + 1], scores[kTile][kTile + 1];
  static_assert(sizeof(mine) + sizeof(other) + sizeof(scores) <= kStaticShared);
  const int row = static_cast<int>(threadIdx.x) / kParts,
            part = static_cast<int>(threadIdx.x) % kParts;
  const int columns = static_cast<int>(a.columns);
  const T scale = static_cast<T>(a.scale), none = static_cast<T>(-INFINITY);
  const int64_t tiles = ceil_div(a.q_rows, kTile);
  for (int64_t tile = blockIdx.x; tile < a.batch * a.heads * tiles; tile += gridDim.x) {
    const int64_t matrix = tile / tiles, q0 = tile % tiles * kTile, q = q0 + row;
    const int rows = static_cast<int>(imin(kTile, a.q_rows - q0));
    get_tile<T, kTile, kColumns>(mine, a.q.data, a.dtype, start_of(a.q, matrix, a.heads), a.q.row,
                                 q0, rows, columns);
    T most = none, sum = T(0), out[kOwnColumns] = {};
    const int64_t keys = a.causal ? imin(a.k_rows, q0 + rows) : a.k_rows;
    for (int64_t k0 = 0; k0 < keys; k0 += kTile) {
      const int n = static_cast<int>(imin(kTile, keys - k0)),
                seen = a.causal ? static_cast<int>(imin(n, q - k0 + 1)) : n;
      get_tile<T, kTile, kColumns>(other, a.k.data, a.dtype, start_of(a.k, matrix, a.heads),
                                   a.k.row, k0, n, columns);
      __syncthreads();
      T s[kScores] = {}, block = none;
      for (int d = 0; d < kColumns; ++d) {
        const T x = mine[row][d];
        RAMET_UNROLL
        for (int j = 0; j < kScores; ++j) s[j] = fma(x, other[part + j * kParts][d], s[j]);
      }
      RAMET_UNROLL
      for (int j = 0; j < kScores; ++j) {
        s[j] = part + j * kParts < seen ? s[j] * scale : none;
        block = s[j] > block ? s[j] : block;
      }
      block = over_parts(block, [](T x, T y) { return x > y ? x : y; });
      const T next = block > most ? block : most, shift = attention_shift(next),
              keep = vexp(most - shift);
      most = next;
      sum *= keep;
      RAMET_UNROLL
      for (int j = 0; j < kScores; ++j) {
        s[j] = vexp(s[j] - shift);
        sum += s[j];
        scores[row][part + j * kParts] = s[j];
      }
      __syncthreads();
      get_tile<T, kTile, kColumns>(other, a.v.data, a.dtype, start_of(a.v, matrix, a.heads),
                                   a.v.row, k0, n, columns);
      __syncthreads();
      RAMET_UNROLL
      for (int c = 0; c < kOwnColumns; ++c) out[c] *= keep;
      for (int j = 0; j < kTile; ++j) {
        const T p = scores[row][j];
        RAMET_UNROLL
        for (int c = 0; c < kOwnColumns; ++c) out[c] = fma(p, other[j][part + c * kParts], out[c]);
      }
      __syncthreads();
    }
    sum = over_parts(sum, [](T x, T y) { return x + y; });
    if (row < rows) {
      const T k = sum == T(0) ? T(0) : T(1) / sum;
      const int64_t start = start_of(a.o, matrix, a.heads) + q * a.o.row;
      RAMET_UNROLL
      for (int c = 0; c < kOwnColumns; ++c)
        if (part + c * kParts < columns)
          store_element(a.o.data, a.dtype, start + part + c * kParts, out[c] * k);
      if (part == 0)
        static_cast<T*>(a.log_sum)[matrix * a.q_rows + q] =
            sum == T(0) ? none : attention_shift(most) + vlog(sum);
    }
    __syncthreads();
  }
}

template <class T, int kTile, int kColumns, bool kOfKeys>
__global__ void attention_plain_backward_kernel(AttentionBackwardArgs a, AttentionSides m,
                                                const T* dots) {
  constexpr int kScores = kTile / kParts, kOwnColumns = kColumns / kParts;
  __shared__ T mine1[kTile][kColumns + 1], mine2[kTile][kColumns + 1], other1[kTile][kColumns + 1],
      other2[kTile][kColumns + 1], slopes[kTile][kTile + 1], probabilities[kTile][kTile + 1];
  static_assert(4 * sizeof(mine1) + 2 * sizeof(slopes) <= kStaticShared);
  const int row = static_cast<int>(threadIdx.x) / kParts,
            part = static_cast<int>(threadIdx.x) % kParts;
  const int columns = static_cast<int>(a.columns);
  const T scale = static_cast<T>(a.scale);
  const int64_t tiles = ceil_div(m.mine, kTile);
  for (int64_t tile = blockIdx.x; tile < a.batch * a.heads * tiles; tile += gridDim.x) {
    const int64_t matrix = tile / tiles, first = tile % tiles * kTile;
    const int rows = static_cast<int>(imin(kTile, m.mine - first));
    const auto get = [&](auto& to, const AttentionMatrix& from, int64_t start, int n) {
      get_tile<T, kTile, kColumns>(to, from.data, a.dtype, start_of(from, matrix, a.heads),
                                   from.row, start, n, columns);
    };
    get(mine1, m.mine1, first, rows);
    get(mine2, m.mine2, first, rows);
    T sum1[kOwnColumns] = {}, sum2[kOwnColumns] = {};
    // Skips tiles in which no query sees a key. Tiles on the diagonal are processed.
    const int64_t begin = a.causal && kOfKeys ? first / kTile * kTile : 0,
                  end = a.causal && !kOfKeys ? imin(m.others, first + rows) : m.others;
    for (int64_t o0 = begin; o0 < end; o0 += kTile) {
      const int n = static_cast<int>(imin(kTile, end - o0));
      const int64_t of_queries = matrix * a.q_rows + (kOfKeys ? o0 : first);
      const T *log_sum = static_cast<const T*>(a.log_sum) + of_queries, *dot = dots + of_queries;
      // How far query 0 of this tile is after key 0, limited to the range that matters.
      const int apart =
          static_cast<int>(imax(-kTile, imin(kTile, kOfKeys ? o0 - first : first - o0)));
      get(other1, m.other1, o0, n);
      get(other2, m.other2, o0, n);
      __syncthreads();
      T s[kScores] = {}, g[kScores] = {};
      for (int d = 0; d < kColumns; ++d) {
        const T x = mine1[row][d], y = mine2[row][d];
        RAMET_UNROLL
        for (int j = 0; j < kScores; ++j) {
          s[j] = fma(x, other1[part + j * kParts][d], s[j]);
          g[j] = fma(y, other2[part + j * kParts][d], g[j]);
        }
      }
      RAMET_UNROLL
      for (int j = 0; j < kScores; ++j) {
        const int column = part + j * kParts;
        const int q = kOfKeys ? column : row, k = kOfKeys ? row : column;
        const bool seen = row < rows && column < n && (!a.causal || k - q <= apart);
        const T p = seen ? vexp(s[j] * scale - attention_shift(log_sum[q])) : T(0);
        slopes[row][column] = seen ? p * (g[j] - dot[q]) * scale : T(0);
        if (kOfKeys) probabilities[row][column] = p;
      }
      __syncthreads();
      for (int j = 0; j < kTile; ++j) {
        const T slope = slopes[row][j], p = kOfKeys ? probabilities[row][j] : T(0);
        RAMET_UNROLL
        for (int c = 0; c < kOwnColumns; ++c) {
          sum1[c] = fma(slope, other1[j][part + c * kParts], sum1[c]);
          if (kOfKeys) sum2[c] = fma(p, other2[j][part + c * kParts], sum2[c]);
        }
      }
      __syncthreads();
    }
    if (row < rows) RAMET_UNROLL
    for (int c = 0; c < kOwnColumns; ++c) {
      const int column = part + c * kParts;
      if (column >= columns) continue;
      const auto put = [&](const AttentionMatrix& to, T value) {
        store_element(to.data, a.dtype,
                      start_of(to, matrix, a.heads) + (first + row) * to.row + column, value);
      };
      put(m.sum1, sum1[c]);
      if (kOfKeys) put(m.sum2, sum2[c]);
    }
    __syncthreads();
  }
}

/// dots[i] = grad[i] . o[i] of every row: eight threads a row.
template <class T> __global__ void attention_dots_kernel(AttentionBackwardArgs a, T* dots) {
  const int64_t rows = a.batch * a.heads * a.q_rows;
  const int part = static_cast<int>(threadIdx.x) % kParts;
  // A warp leaves the loop as a whole.
  for (int64_t i = first_item() / kParts; i / 4 * 4 < rows; i += item_step() / kParts) {
    const int64_t matrix = imin(i, rows - 1) / a.q_rows, q = imin(i, rows - 1) % a.q_rows,
                  o = start_of(a.o, matrix, a.heads) + q * a.o.row,
                  g = start_of(a.grad, matrix, a.heads) + q * a.grad.row;
    T sum = T(0);
    for (int64_t c = part; c < a.columns; c += kParts)
      sum = fma(load_element<T>(a.o.data, a.dtype, o + c),
                load_element<T>(a.grad.data, a.dtype, g + c), sum);
    sum = over_parts(sum, [](T x, T y) { return x + y; });
    if (part == 0 && i < rows) dots[i] = sum;
  }
}

template <class T, int kColumns> void attention_plain(const AttentionArgs& a, Stream where) {
  constexpr int kTile = attention_tile<T>(2, kColumns);
  start("attention", where, grid_of(a.batch * a.heads * ceil_div(a.q_rows, kTile)), kTile * kParts,
        0, attention_plain_kernel<T, kTile, kColumns>, a);
}
template <class T, int kColumns>
void attention_plain_backward(const AttentionBackwardArgs& a, const T* dots, Stream where) {
  constexpr int kTile = attention_tile<T>(4, kColumns);
  const auto run = [&](auto* kernel, bool of_keys) {
    const AttentionSides m = sides_of(a, of_keys);
    if (m.mine > 0)
      start("attention_backward", where, grid_of(a.batch * a.heads * ceil_div(m.mine, kTile)),
            kTile * kParts, 0, kernel, a, m, dots);
  };
  if (a.dq.data) run(attention_plain_backward_kernel<T, kTile, kColumns, false>, false);
  if (a.dk.data) run(attention_plain_backward_kernel<T, kTile, kColumns, true>, true);
}

}  // namespace ramet::kernels::RAMET_VARIANT
