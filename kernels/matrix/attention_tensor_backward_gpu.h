// Backward pass of attention of 16-bit floats on tensor cores (mma.sync). For .cu files only.
//
// As in the forward pass rows of the warp are in registers, and tiles of the other matrices are in
// two buffers. Powers of two replace exponentials. attention_query_terms_kernel computes once the
// part of the scores that depends on the query alone.
#pragma once
#include "kernels/matrix/attention_tiles_gpu.h"

namespace ramet::kernels::RAMET_VARIANT {

/// p[i][j] = 2^(factor q[i] . k[j] + shift), slope[i][j] = p[i][j] (scale do[i] . v[j] + drop).
struct alignas(8) QueryTerms {
  float shift, drop;  // -log_sum[i] / log(2), -scale d[i]
};

/// Eight threads a row, each with the same 8 columns of every 64.
template <class Cores>
__global__ void attention_query_terms_kernel(AttentionBackwardArgs a, QueryTerms* terms) {
  const int64_t rows = a.batch * a.heads * a.q_rows;
  const int part = static_cast<int>(threadIdx.x) % 8, columns = static_cast<int>(a.columns);
  // A warp leaves the loop as a whole.
  for (int64_t i = first_item() / 8; i / 4 * 4 < rows; i += item_step() / 8) {
    const int64_t row = imin(i, rows - 1), matrix = row / a.q_rows, q = row % a.q_rows,
                  o = start_of(a.o, matrix, a.heads) + q * a.o.row,
                  g = start_of(a.grad, matrix, a.heads) + q * a.grad.row;
    float sum = 0;
    for (int c = part * kPack; c < columns; c += 8 * kPack) {
      typename Cores::Bits x[kPack], y[kPack];
      load_bytes<sizeof x>(static_cast<const uint16_t*>(a.o.data) + o + c, x);
      load_bytes<sizeof y>(static_cast<const uint16_t*>(a.grad.data) + g + c, y);
      RAMET_UNROLL
      for (int e = 0; e < kPack; ++e) sum = fma(widen(x[e]), widen(y[e]), sum);
    }
    RAMET_UNROLL
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (part == 0 && i < rows) {
      const float log_sum = attention_shift(static_cast<const float*>(a.log_sum)[i]);
      terms[i] = {log_sum * -static_cast<float>(kLog2E), sum * -static_cast<float>(a.scale)};
    }
  }
}

template <class Cores, int kColumns, bool kOfKeys>
__global__ void __launch_bounds__(kTensorThreads, 2)
    attention_tensor_backward_kernel(AttentionBackwardArgs a, AttentionSides m,
                                     const QueryTerms* terms) {
  // Two sums of 128 columns leave no registers for both operands of the warp's own rows.
  constexpr bool kShared = kOfKeys && kColumns > 64;
  constexpr int kBlocks = kBackwardBlocks<kColumns, kOfKeys>, kOfWarp = 16 * kBlocks,
                kMine = kTensorWarps * kOfWarp, kOthers = kShared ? 16 : kCoreRows<kColumns>,
                // other rows that have scores in registers
      kStep = kColumns <= (kOfKeys ? 64 : 32) ? 32 : 16;
  using Tile = CoreTile<kColumns, kOthers>;
  __shared__ Tile tiles[2][2];  // buffers of the other matrices
  __shared__ Tile kept[kShared ? kTensorWarps : 1];
  __shared__ float4 of_others[2][kOfKeys ? kOthers / 2 : 1];  // the terms of two queries each
  const int lane = static_cast<int>(threadIdx.x) % 32,
            r0 = static_cast<int>(threadIdx.x) / 32 * kOfWarp;
  const int all_mine = static_cast<int>(m.mine), all_others = static_cast<int>(m.others),
            columns = static_cast<int>(a.columns);
  const float factor = attention_factor(a.scale), scale = static_cast<float>(a.scale);
  // With `causal` the first keys and the last queries have the most work, so they come first.
  const int tiles_of_mine = (all_mine + kMine - 1) / kMine,
            nth = static_cast<int>(blockIdx.x) % tiles_of_mine,
            first = (kOfKeys ? nth : tiles_of_mine - 1 - nth) * kMine,
            rows = ::min(kMine, all_mine - first);
  const int64_t matrix = static_cast<int>(blockIdx.x) / tiles_of_mine;
  const QueryTerms* of_queries = terms + matrix * a.q_rows;
  RowFragments<kBlocks, kColumns> mine1;
  std::conditional_t<kShared, SharedRows<kColumns>, RowFragments<kBlocks, kColumns>> mine2{};
  {  // They are loaded through the buffers of the others.
    constexpr int kTiles = kMine / kOthers;
    static_assert((kShared ? 1 : 2) * kTiles <= 4);
    const RowCopy<kColumns> of_mine1(m.mine1, matrix, a.heads, columns),
        of_mine2(m.mine2, matrix, a.heads, columns);
    Tile *room = &tiles[0][0], *room2 = kShared ? kept : room + kTiles;
    RAMET_UNROLL
    for (int i = 0; i < kTiles; ++i) {
      of_mine1.start(room[i], first + i * kOthers, rows - i * kOthers);
      of_mine2.start(room2[i], first + i * kOthers, rows - i * kOthers);
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    __syncthreads();
    mine1.get(room, r0);
    if constexpr (kShared) mine2.rows = kept + r0 / 16;
    else mine2.get(room2, r0);
    __syncthreads();
  }
  QueryTerms of_mine[kBlocks][2];
  if constexpr (!kOfKeys) {
    RAMET_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      RAMET_UNROLL
      for (int half = 0; half < 2; ++half)
        of_mine[b][half] =
            of_queries[::min(first + r0 + b * 16 + lane / 4 + half * 8, all_mine - 1)];
    }
  }
  // Skips tiles in which no query sees a key. Tiles on the diagonal are processed.
  const int begin = a.causal && kOfKeys ? first : 0,
            end = a.causal && !kOfKeys ? ::min(all_others, first + rows) : all_others;
  const RowCopy<kColumns> of_other1(m.other1, matrix, a.heads, columns),
      of_other2(m.other2, matrix, a.heads, columns);
  const auto fetch = [&](int stage, int o0) {
    of_other1.start(tiles[stage][0], o0, end - o0);
    of_other2.start(tiles[stage][1], o0, end - o0);
    const int i = static_cast<int>(threadIdx.x);
    if (kOfKeys && i < kOthers)
      ptx::cp_async8(reinterpret_cast<QueryTerms*>(of_others[stage]) + i,
                     of_queries + (i < end - o0 ? o0 + i : 0), i < end - o0 ? 8 : 0);
  };
  CoreSums<kBlocks, kColumns> sum1;
  CoreSums<kOfKeys ? kBlocks : 1, kColumns> sum2;
  sum1.clear();
  if (kOfKeys) sum2.clear();
  if (begin < end) fetch(0, begin);
  ptx::cp_async_commit();
  for (int t0 = begin, stage = 0; t0 < end; t0 += kOthers, stage ^= 1) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // this tile has arrived, and no warp needs the last one
    if (t0 + kOthers < end) fetch(stage ^ 1, t0 + kOthers);
    ptx::cp_async_commit();
    const Tile &other1 = tiles[stage][0], &other2 = tiles[stage][1];
    RAMET_ROLLED
    for (int step = 0; step < kOthers; step += kStep) {
      // Rows of this step, and how far the warp's first row is after the first other row.
      const int n = end - t0 - step, ahead = first + r0 - t0 - step;
      if (n <= 0 || r0 >= rows) break;
      if (a.causal && (kOfKeys ? ahead >= kStep : ahead + kOfWarp <= 0)) continue;
      CoreSums<kBlocks, kStep> p, slopes;
      scores_of<Cores>(p, mine1, other1, step);
      scores_of<Cores>(slopes, mine2, other2, step);
      RAMET_UNROLL
      for (int j = 0; j < kStep / 8; ++j) {
        QueryTerms pair[2];
        if constexpr (kOfKeys) {
          const float4 both = of_others[stage][(step + j * 8) / 2 + lane % 4];
          pair[0] = {both.x, both.y}, pair[1] = {both.z, both.w};
        }
        RAMET_UNROLL
        for (int b = 0; b < kBlocks; ++b) {
          RAMET_UNROLL
          for (int e = 0; e < 4; ++e) {
            QueryTerms of;
            if constexpr (kOfKeys) of = pair[e % 2];
            else of = of_mine[b][e / 2];
            float &x = p.at[b][j][e], &slope = slopes.at[b][j][e];
            x = ptx::ex2(fma(x, factor, of.shift));
            slope = x * fma(slope, scale, of.drop);
          }
        }
      }
      if (n < kStep || (a.causal && (kOfKeys ? ahead + kOfWarp - 1 > 0 : ahead < kStep - 1))) {
        const auto seen = [&](int b, int row, int column) {
          const int later = ahead + b * 16 + row - column;
          return column < n && (!a.causal || (kOfKeys ? later <= 0 : later >= 0));
        };
        p.each([&](float& x, int b, int row, int column) {
          if (!seen(b, row, column)) x = 0;
        });
        slopes.each([&](float& x, int b, int row, int column) {
          if (!seen(b, row, column)) x = 0;
        });
      }
      add_product<Cores>(sum1, slopes, other1, step);
      if constexpr (kOfKeys) add_product<Cores>(sum2, p, other2, step);
    }
  }
  float one[kBlocks][2];
  RAMET_UNROLL
  for (int b = 0; b < kBlocks; ++b) one[b][0] = one[b][1] = 1;
  put_rows<Cores>(m.sum1, matrix, a.heads, first + r0, all_mine, columns, sum1, one);
  if constexpr (kOfKeys)
    put_rows<Cores>(m.sum2, matrix, a.heads, first + r0, all_mine, columns, sum2, one);
}

template <class Cores, int kColumns>
void attention_tensor_backward(const AttentionBackwardArgs& a, Stream where) {
  auto* terms = static_cast<QueryTerms*>(a.workspace);
  start_for("attention_backward", where, a.batch * a.heads * a.q_rows * 8,
            attention_query_terms_kernel<Cores>, a, terms);
  const auto run = [&](auto of_keys) {
    constexpr bool kOfKeys = decltype(of_keys)::value;
    constexpr int kMine = kTensorWarps * 16 * kBackwardBlocks<kColumns, kOfKeys>;
    const AttentionSides m = sides_of(a, kOfKeys);
    if (m.mine > 0)
      start("attention_backward", where,
            dim3(static_cast<unsigned>(a.batch * a.heads * ceil_div(m.mine, kMine))),
            kTensorThreads, 0, attention_tensor_backward_kernel<Cores, kColumns, kOfKeys>, a, m,
            terms);
  };
  if (a.dq.data) run(std::false_type());
  if (a.dk.data) run(std::true_type());
}

}  // namespace ramet::kernels::RAMET_VARIANT
