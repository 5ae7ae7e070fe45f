// C = A B on a GPU, where A and B are read through functions. It serves products of matrices with
// any strides and types, and convolutions (their matrices are never stored). For .cu files only.
//
// A block of 256 threads computes 64 x 64 elements of C, each thread 4 x 4 of them in registers. 16
// columns of A and rows of B at a time go through shared memory. An element is a sum over k in
// order, so its bits do not depend on m and n. The data of a batch, a row of A and a column of B
// are computed once for a tile. The data of a k are computed once by one thread for all others, for
// A and B together. The interface of a problem:
//
//   struct Problem {
//     using Value = float;                     // float, double, int64_t
//     using Index = int32_t;                   // of m, n, k and positions, or int64_t
//     int64_t batch;
//     Index m, n, k;
//     bool rows_adjacent, columns_adjacent;    // neighbouring rows of A (columns of B) are
//                                              // neighbours in memory, else neighbouring k are
//     Batch of(int64_t item);
//     Row row(Batch, Index m);
//     Column column(Batch, Index n);
//     Depth depth(Batch, Index k);
//     Value a(Row, Depth);
//     Value b(Depth, Column);
//     Out out(Batch, Index m);                 // a row of C
//     void put(Out, Index n, Value sum);
//   };
#pragma once
#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"

namespace ramet::kernels::RAMET_VARIANT {

constexpr int kTileRows = 64, kTileColumns = 64, kTileDepth = 16, kOwn = 4;
static_assert(kTileRows / kOwn * (kTileColumns / kOwn) == kThreads && kTileRows == kTileColumns);

/// The four elements of a tile, 64 lines by 16 depths, that a thread fetches. Neighbouring threads
/// fetch neighbouring lines, or neighbouring depths.
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

/// How C is cut.
struct Tiles {
  int64_t count;
  Divisor<int64_t> down, across;
  template <class Problem>
  explicit Tiles(const Problem& p)
      : down(ceil_div(p.m, kTileRows)), across(ceil_div(p.n, kTileColumns)) {
    count = p.m > 0 && p.n > 0 ? p.batch * down.by * across.by : 0;
  }
};

template <class Problem> __global__ void product_kernel(Problem p, Tiles tiles) {
  using T = typename Problem::Value;
  using I = typename Problem::Index;
  // One unused column, so that the accesses of a warp go to different banks.
  __shared__ T a[kTileDepth][kTileRows + 1], b[kTileDepth][kTileColumns + 1];
  __shared__ typename Problem::Depth depths[kTileDepth];
  const int t = static_cast<int>(threadIdx.x), x = t % kTileDepth, y = t / kTileDepth;
  // The elements of the tiles that a thread fetches: neighbouring threads fetch neighbours in
  // memory.
  const Fetch of_a(p.rows_adjacent), of_b(p.columns_adjacent);
  for (int64_t tile = blockIdx.x; tile < tiles.count; tile += gridDim.x) {
    int64_t rest = tile;
    const I n0 = static_cast<I>(tiles.across.take(rest) * kTileColumns),
            m0 = static_cast<I>(tiles.down.take(rest) * kTileRows);
    const auto batch = p.of(rest);
    typename Problem::Row rows[kOwn];
    typename Problem::Column columns[kOwn];
    // Lines outside the matrices are zeros: `there` has no bit for them.
    uint32_t rows_there = 0, columns_there = 0;
    RAMET_UNROLL
    for (int i = 0; i < kOwn; ++i) {
      const I row = static_cast<I>(m0 + of_a.line(i)), column = static_cast<I>(n0 + of_b.line(i));
      rows_there |= static_cast<uint32_t>(row < p.m) << i;
      columns_there |= static_cast<uint32_t>(column < p.n) << i;
      rows[i] = p.row(batch, row < p.m ? row : p.m - 1);
      columns[i] = p.column(batch, column < p.n ? column : p.n - 1);
    }
    if (t < kTileDepth && t < p.k) depths[t] = p.depth(batch, static_cast<I>(t));
    __syncthreads();
    T sum[kOwn][kOwn] = {};
    for (I k0 = 0; k0 < p.k; k0 = static_cast<I>(k0 + kTileDepth)) {
      const I left_over = static_cast<I>(p.k - k0);  // compared with: k0 + k < p.k
      RAMET_UNROLL
      for (int i = 0; i < kOwn; ++i) {
        int k = of_a.depth(i);
        a[k][of_a.line(i)] =
            k < left_over && (rows_there >> i & 1) ? p.a(rows[i], depths[k]) : T(0);
        k = of_b.depth(i);
        b[k][of_b.line(i)] =
            k < left_over && (columns_there >> i & 1) ? p.b(depths[k], columns[i]) : T(0);
      }
      __syncthreads();
      if (t < kTileDepth && kTileDepth + t < left_over)
        depths[t] = p.depth(batch, static_cast<I>(k0 + kTileDepth + t));
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
      const I row = static_cast<I>(m0 + y + i * (kTileRows / kOwn));
      if (row >= p.m) continue;
      const auto out = p.out(batch, row);
      RAMET_UNROLL
      for (int j = 0; j < kOwn; ++j) {
        const I column = static_cast<I>(n0 + x + j * (kTileColumns / kOwn));
        if (column < p.n) p.put(out, column, sum[i][j]);
      }
    }
  }
}

template <class Problem> void multiply(const char* name, Stream where, const Problem& p) {
  const Tiles tiles(p);
  if (tiles.count == 0) return;
  start(name, where, grid_of(tiles.count), kThreads, 0, product_kernel<Problem>, p, tiles);
}

}  // namespace ramet::kernels::RAMET_VARIANT
