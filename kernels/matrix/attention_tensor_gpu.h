// Forward pass of attention of 16-bit floats on tensor cores (mma.sync). For .cu files only.
//
// Each of four warps has 16 or 32 rows of q as operands in registers. Tiles of k and v are in two
// buffers. While one is used, the next one is loaded, and a tile costs one barrier. Scores stay in
// the registers of the product's result, and in that layout they are the left operand of the next
// product (Dao 2023, section 3.3). Powers of two replace exponentials. So an element costs a
// maximum, a multiply-add, the power and the sum. The keys that a row sees are checked only in
// tiles that some row of the warp does not see whole.
#pragma once
#include "kernels/matrix/attention_tiles_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class Cores, int kColumns>
__global__ void __launch_bounds__(kTensorThreads, 2) attention_tensor_kernel(AttentionArgs a) {
  using Tile = CoreTile<kColumns>;
  constexpr int kBlocks = kRowBlocks<kColumns>, kOfWarp = 16 * kBlocks,
                kMine = kTensorWarps * kOfWarp, kOthers = Tile::kRows;
  __shared__ Tile tiles[2][2];  // buffers of k and v
  const int r0 = static_cast<int>(threadIdx.x) / 32 * kOfWarp;
  const int q_rows = static_cast<int>(a.q_rows), k_rows = static_cast<int>(a.k_rows),
            columns = static_cast<int>(a.columns);
  // The largest score is the largest product only if the factor is positive. So q gets the sign.
  const float factor = ::fabsf(attention_factor(a.scale));
  // With `causal` the last rows have the most work, so they come first.
  const int tiles_of_q = (q_rows + kMine - 1) / kMine,
            nth = static_cast<int>(blockIdx.x) % tiles_of_q, q0 = (tiles_of_q - 1 - nth) * kMine,
            rows = ::min(kMine, q_rows - q0), keys = a.causal ? ::min(k_rows, q0 + rows) : k_rows;
  const int64_t matrix = static_cast<int>(blockIdx.x) / tiles_of_q;
  const RowCopy<kColumns> of_q(a.q, matrix, a.heads, columns), of_k(a.k, matrix, a.heads, columns),
      of_v(a.v, matrix, a.heads, columns);
  const auto fetch = [&](int stage, int k0) {
    of_k.start(tiles[stage][0], k0, keys - k0);
    of_v.start(tiles[stage][1], k0, keys - k0);
  };
  // q is loaded through the second buffer.
  static_assert(kMine <= 2 * kOthers);
  RAMET_UNROLL
  for (int i = 0; i < kMine / kOthers; ++i)
    of_q.start(tiles[1][i], q0 + i * kOthers, rows - i * kOthers);
  if (keys > 0) fetch(0, 0);
  ptx::cp_async_commit();
  ptx::cp_async_wait<0>();
  __syncthreads();
  RowFragments<kBlocks, kColumns> q;
  q.get(tiles[1], r0);
  if (a.scale < 0) q.negate();

  SeenKeys<kBlocks> seen;
  seen.clear();
  CoreSums<kBlocks, kColumns> out;
  out.clear();
  for (int k0 = 0, stage = 0; k0 < keys; k0 += kOthers, stage ^= 1) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this tile has arrived, and no warp needs the last one
    if (k0 + kOthers < keys) fetch(stage ^ 1, k0 + kOthers);
    ptx::cp_async_commit();
    const int n = keys - k0, ahead = q0 + r0 - k0;  // the warp's first row, minus key 0 here
    if (r0 >= rows || (a.causal && ahead + kOfWarp <= 0)) continue;
    CoreSums<kBlocks, kOthers> s;
    scores_of<Cores>(s, q, tiles[stage][0], 0);
    if (n < kOthers || (a.causal && ahead < kOthers - 1))
      s.hide([&](int b, int row) { return a.causal ? ::min(n, ahead + b * 16 + row + 1) : n; });
    float keep[kBlocks][2];
    seen.add(s, factor, keep);
    out.scale(keep);
    add_product<Cores>(out, s, tiles[stage][1], 0);
  }
  float rest[kBlocks][2];
  seen.finish(rest, static_cast<float*>(a.log_sum) + matrix * a.q_rows + q0, r0, rows, factor);
  put_rows<Cores>(a.o, matrix, a.heads, q0 + r0, q_rows, columns, out, rest);
}

template <class Cores, int kColumns> void attention_tensor(const AttentionArgs& a, Stream where) {
  constexpr int kOfBlock = kTensorWarps * 16 * kRowBlocks<kColumns>;
  start("attention", where,
        dim3(static_cast<unsigned>(a.batch * a.heads * ceil_div(a.q_rows, kOfBlock))),
        kTensorThreads, 0, attention_tensor_kernel<Cores, kColumns>, a);
}

}  // namespace ramet::kernels::RAMET_VARIANT
