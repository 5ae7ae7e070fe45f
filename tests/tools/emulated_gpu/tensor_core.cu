#include "tests/tools/emulated_gpu/tensor_core.h"

namespace ramet::testing {
namespace {

// Tiles of 64 x 64 by four warps of 32 x 32, steps of 32 along k, two stages of copies. The padding
// keeps the rows that ldmatrix reads at once in different banks.
constexpr int kTileM = 64, kTileN = 64, kTileK = 32, kStrideA = kTileK + 8, kStrideB = kTileN + 8;
constexpr size_t kSharedBytes = sizeof(__nv_bfloat16) * 2 * (kTileM * kStrideA + kTileK * kStrideB);

template <Forgotten forgotten>
__global__ void __launch_bounds__(128)
    matmul_kernel(const __nv_bfloat16* __restrict__ a, const __nv_bfloat16* __restrict__ b,
                  float* __restrict__ c, int m, int n, int k) {
  __nv_bfloat16* shared_a = dynamic_shared<__nv_bfloat16>();
  __nv_bfloat16* shared_b = shared_a + 2 * kTileM * kStrideA;
  const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
  const int warp_row = (warp & 1) * 32, warp_column = (warp >> 1) * 32;
  const int first_row = blockIdx.y * kTileM, first_column = blockIdx.x * kTileN;

  const auto load = [&](int stage, int at) {
    for (int i = thread; i < kTileM * kTileK / 8; i += 128) {
      const int row = i / (kTileK / 8), column = i % (kTileK / 8) * 8;
      const bool inside = first_row + row < m && at + column < k;
      ptx::cp_async16(shared_a + (stage * kTileM + row) * kStrideA + column,
                      inside ? a + static_cast<size_t>(first_row + row) * k + at + column : a,
                      inside ? 16 : 0);
    }
    for (int i = thread; i < kTileK * kTileN / 8; i += 128) {
      const int row = i / (kTileN / 8), column = i % (kTileN / 8) * 8;
      const bool inside = at + row < k && first_column + column < n;
      ptx::cp_async16(shared_b + (stage * kTileK + row) * kStrideB + column,
                      inside ? b + static_cast<size_t>(at + row) * n + first_column + column : b,
                      inside ? 16 : 0);
    }
    ptx::cp_async_commit();
  };

  float sums[2][4][4] = {};
  load(0, 0);
  for (int at = 0, stage = 0; at < k; at += kTileK, stage ^= 1) {
    if (at + kTileK < k) {
      load(stage ^ 1, at + kTileK);
      if (forgotten != Forgotten::Wait) ptx::cp_async_wait<1>();
    } else {
      ptx::cp_async_wait<0>();
    }
    __syncthreads();
    for (int step = 0; step < kTileK; step += 16) {
      unsigned fragment_a[2][4], fragment_b[2][4];
      for (int i = 0; i < 2; ++i)
        ptx::ldmatrix_x4<false>(fragment_a[i],
                                shared_a +
                                    (stage * kTileM + warp_row + i * 16 + (lane & 15)) * kStrideA +
                                    step + (lane >> 4) * 8);
      for (int j = 0; j < 2; ++j)
        ptx::ldmatrix_x4<true>(fragment_b[j], shared_b +
                                                  (stage * kTileK + step + (lane & 15)) * kStrideB +
                                                  warp_column + j * 16 + (lane >> 4) * 8);
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
          ptx::mma_bf16(sums[i][j], fragment_a[i], fragment_b[j / 2][j % 2 * 2],
                        fragment_b[j / 2][j % 2 * 2 + 1]);
    }
    if (forgotten != Forgotten::SecondBarrier) __syncthreads();
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 4; ++j)
      for (int e = 0; e < 4; ++e) {
        const int row = first_row + warp_row + i * 16 + (lane >> 2) + e / 2 * 8;
        const int column = first_column + warp_column + j * 8 + (lane & 3) * 2 + e % 2;
        if (row < m && column < n) c[static_cast<size_t>(row) * n + column] = sums[i][j][e];
      }
}

__global__ void half_warp_kernel() {
  __nv_bfloat16* shared = dynamic_shared<__nv_bfloat16>();
  for (int i = 0; i < 8; ++i) shared[threadIdx.x * 8 + i] = 0.0f;
  if (threadIdx.x >= 16) return;
  unsigned fragment[4];
  ptx::ldmatrix_x4<false>(fragment, shared + threadIdx.x * 8);
}

__global__ void misaligned_kernel(const float* x) {
  ptx::cp_async16(dynamic_shared<float>() + threadIdx.x * 4, x + threadIdx.x * 4 + 1);
}

}  // namespace

cudaError_t tensor_core_matmul(Forgotten forgotten, const __nv_bfloat16* a, const __nv_bfloat16* b,
                               float* c, int m, int n, int k, cudaStream_t stream) {
  auto* kernel = forgotten == Forgotten::Nothing ? matmul_kernel<Forgotten::Nothing>
                 : forgotten == Forgotten::Wait  ? matmul_kernel<Forgotten::Wait>
                                                 : matmul_kernel<Forgotten::SecondBarrier>;
  const dim3 grid((n + kTileN - 1) / kTileN, (m + kTileM - 1) / kTileM);
  return launch(kernel, grid, 128, kSharedBytes, stream, a, b, c, m, n, k);
}

cudaError_t tensor_core_half_warp(cudaStream_t stream) {
  return launch(half_warp_kernel, 1, 32, 512, stream);
}

cudaError_t tensor_core_misaligned(const float* x, cudaStream_t stream) {
  return launch(misaligned_kernel, 1, 32, 512, stream, x);
}

}  // namespace ramet::testing
