// C = A B on a GPU where A and B are read through functions: products of matrices with any strides
// and types, and convolutions whose matrices never exist. For .cu files only.
//
// A block of 256 threads computes 64 x 64 elements of C, each thread 4 x 4 of them in registers; 16
// columns of A and rows of B at a time go through shared memory. An element is a sum over k in
// order, so its bits do not depend on m and n. What a problem says about itself:
//
//   struct Problem {
//     using Value = float;                     // float, double, int64_t
//     int64_t batch, m, n, k;
//     bool rows_adjacent, columns_adjacent;    // neighbouring rows of A (columns of B) are
//                                              // neighbours in memory, else neighbouring k are
//     Row row(int64_t batch, int64_t m);       // what a() needs to know of a row, computed once
//     Column column(int64_t batch, int64_t n);
//     Depth depth(int64_t k);                  // and of a k, for a() and b()
//     Value a(Row, Depth);
//     Value b(Depth, Column);
//     void put(int64_t batch, int64_t m, int64_t n, Value sum);
//   };
#pragma once
#include "kernels/gpu_elements.h"
#include "kernels/gpu_launch.h"

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kTileRows = 64, kTileColumns = 64, kTileDepth = 16, kOwn = 4;
static_assert(kTileRows / kOwn * (kTileColumns / kOwn) == kThreads && kTileRows == kTileColumns);

/// Which four elements of a tile, 64 lines by 16 depths, a thread fetches: neighbouring threads
/// neighbouring lines, or neighbouring depths.
struct Fetch {
  int depth0, line0, depth_step, line_step;
  __device__ explicit Fetch(bool lines_adjacent) {
    const int t = static_cast<int>(threadIdx.x);
    depth0 = lines_adjacent ? t / kTileRows : t % kTileDepth;
    line0 = lines_adjacent ? t % kTileRows : t / kTileDepth;
    depth_step = lines_adjacent ? kThreads / kTileRows : 0;
    line_step = lines_adjacent ? 0 : kThreads / kTileDepth;
  }
  __device__ int depth(int i) const { return depth0 + i * depth_step; }
  __device__ int line(int i) const { return line0 + i * line_step; }
};

template <class Problem> __global__ void product_kernel(Problem p) {
  using T = typename Problem::Value;
  // A column more than is used: what a warp reads and writes lies in different banks.
  __shared__ T a[kTileDepth][kTileRows + 1], b[kTileDepth][kTileColumns + 1];
  const int t = static_cast<int>(threadIdx.x), x = t % kTileDepth, y = t / kTileDepth;
  // Which elements of the tiles a thread fetches: neighbours in memory by neighbouring threads.
  const Fetch of_a(p.rows_adjacent), of_b(p.columns_adjacent);
  const int64_t down = ceil_div(p.m, kTileRows), across = ceil_div(p.n, kTileColumns);
  for (int64_t tile = blockIdx.x; tile < p.batch * down * across; tile += gridDim.x) {
    const int64_t batch = tile / (down * across), m0 = tile / across % down * kTileRows,
                  n0 = tile % across * kTileColumns;
    typename Problem::Row rows[kOwn];
    typename Problem::Column columns[kOwn];
    RAMET_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      rows[i] = p.row(batch, imin(m0 + of_a.line(i), p.m - 1));
      columns[i] = p.column(batch, imin(n0 + of_b.line(i), p.n - 1));
    }
    T sum[kOwn][kOwn] = {};
    for (int64_t k0 = 0; k0 < p.k; k0 += kTileDepth) {
      RAMET_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        int k = of_a.depth(i), line = of_a.line(i);
        const bool in_a = k0 + k < p.k && m0 + line < p.m;
        a[k][line] = in_a ? p.a(rows[i], p.depth(k0 + k)) : T(0);
        k = of_b.depth(i), line = of_b.line(i);
        const bool in_b = k0 + k < p.k && n0 + line < p.n;
        b[k][line] = in_b ? p.b(p.depth(k0 + k), columns[i]) : T(0);
      }
      __syncthreads();
      for (int k = 0; k < kTileDepth; ++k) {
        T left[kOwn], right[kOwn];
        RAMET_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          left[i] = a[k][y + i * (kTileRows / kOwn)];
          right[i] = b[k][x + i * (kTileColumns / kOwn)];
        }
        RAMET_UNROLL
        for (int i = 0; i < kOwn; ++i) {
          RAMET_UNROLL
          for (int j = 0; j < kOwn; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
        }
      }
      __syncthreads();
    }
    RAMET_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      RAMET_UNROLL
      for (int j = 0; j < kOwn; ++j) {
        const int64_t m = m0 + y + i * (kTileRows / kOwn), n = n0 + x + j * (kTileColumns / kOwn);
        if (m < p.m && n < p.n) p.put(batch, m, n, sum[i][j]);
      }
    }
  }
}

template <class Problem> void multiply(const char* name, Stream where, const Problem& p) {
  const int64_t tiles = p.batch * ceil_div(p.m, kTileRows) * ceil_div(p.n, kTileColumns);
  if (tiles == 0) return;
  start(name, where, grid_of(tiles), kThreads, 0, product_kernel<Problem>, p);
}

}  // namespace ramet::kernels::RAMET_VARIANT
