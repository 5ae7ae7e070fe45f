// Forward pass of attention of 16-bit floats by the products of warpgroups (wgmma) and bulk copies
// of Hopper. For .cu files only.
//
// A block is one warpgroup that copies and two or three that compute, each with 64 rows of q. Tiles
// of 128 keys and values are in two buffers. A thread of the first warpgroup starts the next copy
// as soon as all others have reported that they no longer need the last tile. Barriers in shared
// memory count the arrived bytes (Note [Tiles of Hopper] in runtime/cuda/ptx_hopper.h). The
// products of a tile's probabilities with the values run concurrently with those of q with the next
// keys (Shah et al. 2024, section 3.2). A warpgroup's exponentials run concurrently with the
// products of the others. A thread's part of a product, and its use, is as in
// attention_tensor_gpu.h.
#pragma once
#include "kernels/matrix/attention_tiles_gpu.h"
#include "runtime/cuda/ptx_hopper.h"

namespace ramet::kernels::RAMET_VARIANT {

/// The block, and its shared memory.
template <int kColumns> struct WgmmaBlock {
  // With few columns there are enough registers on a multiprocessor for three.
  static constexpr int kGroups = kColumns == 64 ? 3 : 2;
  static constexpr int kThreads = 128 * (1 + kGroups), kRows = 64 * kGroups, kKeys = 128;
  static constexpr int kStages = 2, kPanels = kColumns / ::ramet::cuda::kTileColumns;
  // Of 65536. The first warpgroup needs few.
  static constexpr int kFewRegisters = kGroups == 3 ? 32 : 24,
                       kManyRegisters = kGroups == 3 ? 160 : 240;
  static_assert(kColumns % ::ramet::cuda::kTileColumns == 0);
  static_assert(kThreads <= 1024 && 128 * (kFewRegisters + kGroups * kManyRegisters) <= 65536);

  template <int kHeight> using Panels = uint16_t[kPanels][kHeight][::ramet::cuda::kTileColumns];
  Panels<kRows> q;
  Panels<kKeys> k[kStages], v[kStages];
  uint64_t q_full, k_full[kStages], k_free[kStages], v_full[kStages], v_free[kStages];

  /// It begins at a tile's alignment; the size is enough for every start of the memory.
  static constexpr size_t bytes() {
    constexpr size_t kMost = 227 << 10;  // of a block on compute capability 9.0
    static_assert(sizeof(WgmmaBlock) + ptx::kTileAlignment <= kMost);
    return sizeof(WgmmaBlock) + ptx::kTileAlignment;
  }
  static __device__ __forceinline__ WgmmaBlock& get() {
    auto* memory = dynamic_shared<unsigned char>();
    const unsigned over = ptx::shared_address(memory) % ptx::kTileAlignment;
    return *reinterpret_cast<WgmmaBlock*>(memory + (ptx::kTileAlignment - over));
  }
  __device__ __forceinline__ void begin() {
    constexpr unsigned kWarps = kGroups * 4;  // each reports that it no longer needs a tile
    ptx::barrier_init(&q_full, 1);
    for (int i = 0; i < kStages; ++i) {
      ptx::barrier_init(&k_full[i], 1);
      ptx::barrier_init(&v_full[i], 1);
      ptx::barrier_init(&k_free[i], kWarps);
      ptx::barrier_init(&v_free[i], kWarps);
    }
    ptx::barriers_ready();
  }
};
/// The buffer of tile t, and the parity of its phase.
RAMET_INLINE constexpr int stage_of(int t) { return t % 2; }
RAMET_INLINE constexpr unsigned phase_of(int t) { return static_cast<unsigned>(t) / 2 % 2; }

/// Starts to copy rows from `row` on of the matrix, whole panels.
template <int kPanels, int kRows>
__device__ __forceinline__ void get_rows(
    uint16_t (&to)[kPanels][kRows][::ramet::cuda::kTileColumns],
    const ::ramet::cuda::TensorMap& map, int row, int head, int batch, uint64_t* full) {
  ptx::barrier_expect(full, sizeof(to));
  RAMET_UNROLL
  for (int p = 0; p < kPanels; ++p)
    ptx::tile_copy(to[p], map, p * ::ramet::cuda::kTileColumns, row, head, batch, full);
}

/// s = q k', of 64 rows of q from r0 on.
template <class Cores, int kPanels, int kRows>
__device__ __forceinline__ void start_scores(CoreSums<1, 128>& s,
                                             const uint16_t (&q)[kPanels][kRows][64], int r0,
                                             const uint16_t (&k)[kPanels][128][64]) {
  // Addresses are computed again for each tile, because registers are short.
  const unsigned left = ptx::here(ptx::shared_address(q[0][r0])),
                 right = ptx::here(ptx::shared_address(k));
  RAMET_UNROLL
  for (int d = 0; d < kPanels * 4; ++d) {
    const unsigned column = d % 4 * 32;
    const uint64_t a = ptx::tile_operand(left + d / 4 * sizeof(q[0]) + column),
                   b = ptx::tile_operand(right + d / 4 * sizeof(k[0]) + column);
    if (d == 0) ptx::wgmma_tiles<Cores::kBfloat, false>(s.at[0], a, b);
    else ptx::wgmma_tiles<Cores::kBfloat, true>(s.at[0], a, b);
  }
  ptx::wgmma_commit();
}
/// out += p v.
template <class Cores, int kColumns, int kPanels>
__device__ __forceinline__ void start_results(CoreSums<1, kColumns>& out, const unsigned (&p)[8][4],
                                              const uint16_t (&v)[kPanels][128][64]) {
  const unsigned right = ptx::here(ptx::shared_address(v));
  RAMET_UNROLL
  for (int j = 0; j < 8; ++j)
    ptx::wgmma_rows<Cores::kBfloat>(
        out.at[0], p[j], ptx::tile_operand(right + j * 16 * sizeof(v[0][0]), sizeof(v[0])));
  ptx::wgmma_commit();
}

template <class Cores, int kColumns>
__global__ void __launch_bounds__(WgmmaBlock<kColumns>::kThreads, 1)
    attention_wgmma_kernel(AttentionArgs a, const __grid_constant__ ::ramet::cuda::TensorMap q_map,
                           const __grid_constant__ ::ramet::cuda::TensorMap k_map,
                           const __grid_constant__ ::ramet::cuda::TensorMap v_map) {
#if RAMET_HOPPER_CODE
  using Block = WgmmaBlock<kColumns>;
  constexpr int kRows = Block::kRows, kKeys = Block::kKeys;
  Block& block = Block::get();
  const int q_rows = static_cast<int>(a.q_rows), k_rows = static_cast<int>(a.k_rows);
  // With `causal` the last rows have the most work, so they come first.
  const int blocks_of_q = (q_rows + kRows - 1) / kRows,
            nth = static_cast<int>(blockIdx.x) % blocks_of_q, q0 = (blocks_of_q - 1 - nth) * kRows,
            rows = ::min(kRows, q_rows - q0), keys = a.causal ? ::min(k_rows, q0 + rows) : k_rows,
            tiles = (keys + kKeys - 1) / kKeys;
  const int matrix = static_cast<int>(blockIdx.x) / blocks_of_q, heads = static_cast<int>(a.heads);
  const int group = static_cast<int>(threadIdx.x) / 128 - 1;
  if (threadIdx.x == 0) block.begin();
  __syncthreads();

  if (group < 0) {
    ptx::fewer_registers<Block::kFewRegisters>();
    if (threadIdx.x == 0) {
      const int head = matrix % heads, batch = matrix / heads;
      get_rows(block.q, q_map, q0, head, batch, &block.q_full);
      for (int t = 0; t < tiles; ++t) {
        const int stage = stage_of(t);
        // For the first tiles it waits for the phase before the first one, which counts as ended.
        ptx::barrier_wait(&block.k_free[stage], phase_of(t) ^ 1);
        get_rows(block.k[stage], k_map, t * kKeys, head, batch, &block.k_full[stage]);
        ptx::barrier_wait(&block.v_free[stage], phase_of(t) ^ 1);
        get_rows(block.v[stage], v_map, t * kKeys, head, batch, &block.v_full[stage]);
      }
    }
    return;
  }

  ptx::more_registers<Block::kManyRegisters>();
  const int r0 = group * 64;
  // The first row of a warp, computed where it is needed.
  const auto warp_row = [] { return static_cast<int>(ptx::here(threadIdx.x - 128) / 32 * 16); };
  const float factor = attention_factor(a.scale);
  // The tiles of which the warpgroup sees something.
  const int mine = r0 >= rows ? 0
                   : a.causal ? (::min(keys, q0 + r0 + 64) + kKeys - 1) / kKeys
                              : tiles;
  const auto give_back = [](uint64_t* barrier) {
    if (threadIdx.x % 32 == 0) ptx::barrier_arrive(barrier);
  };
  SeenKeys<1> seen;
  seen.clear();
  CoreSums<1, kColumns> out;
  out.clear();
  unsigned p[8][4];
  // Tile t. All but the first one include the results of the tile before, which are then complete.
  const auto tile = [&](int t, auto is_first) {
    constexpr bool kFirst = decltype(is_first)::value;
    CoreSums<1, kKeys> s;
    float keep[1][2];
    const int before = stage_of(t - 1 + 2);
    ptx::barrier_wait(&block.k_full[stage_of(t)], phase_of(t));
    if constexpr (!kFirst) ptx::barrier_wait(&block.v_full[before], phase_of(t - 1));
    ptx::wgmma_fence();
    start_scores<Cores>(s, block.q, r0, block.k[stage_of(t)]);
    if constexpr (!kFirst) {
      start_results<Cores>(out, p, block.v[before]);
      ptx::wgmma_wait<1>();
    } else {
      ptx::wgmma_wait<0>();
    }
    ptx::done(s.at[0]);
    give_back(&block.k_free[stage_of(t)]);
    const int n = keys - t * kKeys, ahead = q0 + warp_row() - t * kKeys;  // of the warp's first row
    if (n < kKeys || (a.causal && ahead < kKeys - 1))
      s.hide([&](int, int row) { return a.causal ? ::min(n, ahead + row + 1) : n; });
    seen.add(s, factor, keep);
    if constexpr (!kFirst) {
      ptx::wgmma_wait<0>();
      ptx::done(out.at[0]);
      give_back(&block.v_free[before]);
      out.scale(keep);
    }
    RAMET_UNROLL
    for (int j = 0; j < 8; ++j) {
      RAMET_UNROLL
      for (int e = 0; e < 4; ++e) {
        const float(&from)[4] = s.at[0][2 * j + e / 2];
        p[j][e] = Cores::pair(from[e % 2 * 2], from[e % 2 * 2 + 1]);
      }
    }
  };
  if (mine > 0) {
    ptx::barrier_wait(&block.q_full, 0);
    tile(0, std::true_type());
    for (int t = 1; t < mine; ++t) tile(t, std::false_type());
    const int last = stage_of(mine - 1);
    ptx::barrier_wait(&block.v_full[last], phase_of(mine - 1));
    ptx::wgmma_fence();
    start_results<Cores>(out, p, block.v[last]);
    ptx::wgmma_wait<0>();
    ptx::done(out.at[0]);
    give_back(&block.v_free[last]);
  }
  // Tiles that only other warpgroups see are also released, so that phases go on.
  for (int t = mine; t < tiles; ++t) {
    ptx::barrier_wait(&block.k_full[stage_of(t)], phase_of(t));
    give_back(&block.k_free[stage_of(t)]);
    ptx::barrier_wait(&block.v_full[stage_of(t)], phase_of(t));
    give_back(&block.v_free[stage_of(t)]);
  }
  float rest[1][2];
  seen.finish(rest, static_cast<float*>(a.log_sum) + matrix * a.q_rows + q0, warp_row(), rows,
              factor);
  put_rows<Cores>(a.o, matrix, a.heads, q0 + warp_row(), q_rows, kColumns, out, rest);
#endif
}

/// The part of the matrix that a block copies.
inline ::ramet::cuda::TiledMatrix tiled(const AttentionArgs& a, const AttentionMatrix& m,
                                        int64_t rows, int tile_rows) {
  return {m.data, a.batch, a.heads, rows, a.columns, m.batch, m.head, m.row, tile_rows};
}
/// Does it support these arguments, among those that tensor cores support?
inline bool wgmma_takes(const AttentionArgs& a) {
  return (a.columns == 64 || a.columns == 128) && a.scale > 0 &&
         ::ramet::cuda::has_tensor_map(tiled(a, a.q, a.q_rows, WgmmaBlock<64>::kRows)) &&
         ::ramet::cuda::has_tensor_map(tiled(a, a.k, a.k_rows, WgmmaBlock<64>::kKeys)) &&
         ::ramet::cuda::has_tensor_map(tiled(a, a.v, a.k_rows, WgmmaBlock<64>::kKeys));
}

/// Does the GPU have these instructions? Only compute capability 9.0 does.
inline bool wgmma_runs_on(Stream where) {
  int major = 0, minor = 0;
  const auto& state = ::ramet::cuda::device_state(where.device.index(), "attention");
  const auto ask = [&](int& to, cudaDeviceAttr what) {
    RAMET_CUDA("attention", state.device, cudaDeviceGetAttribute(&to, what, state.card));
  };
  ask(major, cudaDevAttrComputeCapabilityMajor);
  ask(minor, cudaDevAttrComputeCapabilityMinor);
  return major == 9 && minor == 0;
}

template <class Cores, int kColumns> void attention_wgmma(const AttentionArgs& a, Stream where) {
  using Block = WgmmaBlock<kColumns>;
  const char* op = "attention";
  const int device = where.device.index();
  auto* kernel = attention_wgmma_kernel<Cores, kColumns>;
  const auto map = [&](const AttentionMatrix& m, int64_t rows, int tile_rows) {
    return ::ramet::cuda::tensor_map(op, device, tiled(a, m, rows, tile_rows));
  };
  {
    const ::ramet::cuda::CardGuard card(op, device);
    RAMET_CUDA(op, device,
               cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(Block::bytes())));
  }
  start(op, where,
        dim3(static_cast<unsigned>(a.batch * a.heads * ceil_div(a.q_rows, Block::kRows))),
        Block::kThreads, Block::bytes(), kernel, a, map(a.q, a.q_rows, Block::kRows),
        map(a.k, a.k_rows, Block::kKeys), map(a.v, a.k_rows, Block::kKeys));
}

}  // namespace ramet::kernels::RAMET_VARIANT
