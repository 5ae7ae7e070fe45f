#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

constexpr unsigned kAll = 0xffffffffu;
constexpr int kTile = 16, kSize = 32;

template <Missing missing> __global__ void matmul_kernel(const float* a, const float* b, float* c) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
  float sum = 0;
  for (int t = 0; t < kSize; t += kTile) {
    tile_a[ty][tx] = a[row * kSize + t + tx];
    tile_b[ty][tx] = b[(t + ty) * kSize + column];
    if (missing != Missing::FirstBarrier) __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    if (missing != Missing::SecondBarrier) __syncthreads();
  }
  c[row * kSize + column] = sum;
}

__global__ void divergent_barrier_kernel(float* x) {
  if (threadIdx.x < 32) {
    x[threadIdx.x] = 1;
    __syncthreads();
  } else {
    __syncthreads();
    x[threadIdx.x] = 2;
  }
}

__global__ void deadlock_kernel(float* x) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 32 < 16) value = __shfl_xor_sync(kAll, value, 1);
  __syncthreads();
  x[threadIdx.x] = value;
}

__global__ void absent_lane_kernel(float* x) {
  if (threadIdx.x >= 40) return;
  x[threadIdx.x] = __shfl_xor_sync(kAll, static_cast<float>(threadIdx.x), 16);
}

__global__ void outside_mask_kernel(float* x) {
  if (threadIdx.x >= 16) {
    __syncwarp(0xffff0000u);
    return;
  }
  x[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<float>(threadIdx.x), 20);
}

__global__ void foreign_mask_kernel(float* x) {
  x[threadIdx.x] = __shfl_sync(0x0000ffffu, static_cast<float>(threadIdx.x), 0);
}

__global__ void divergent_shuffle_kernel(float* x) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x % 2) value = __shfl_sync(kAll, value, 0);
  else value = __shfl_sync(kAll, value, 1);
  x[threadIdx.x] = value;
}

__global__ void assert_kernel(const int* x) { RAMET_GPU_ASSERT(x[threadIdx.x] < 10); }

__global__ void trap_kernel() {
  if (threadIdx.x == 3) __trap();
}

__global__ void dynamic_overrun_kernel(float* x) {
  float* s = dynamic_shared<float>();
  s[threadIdx.x + 1] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x];
}

__global__ void own_overrun_kernel(float* x, int count) {
  float own[8] = {};
  for (int i = 0; i < count; ++i) own[i] += x[i];
  x[64 + threadIdx.x] = own[threadIdx.x % 8];
}
__global__ void static_overrun_kernel(float* x, int offset) {
  __shared__ float s[64];
  float* p = s;  // the array's bound is forgotten here
  p[threadIdx.x + offset] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = p[threadIdx.x];
}

__global__ void global_overrun_kernel(float* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= count) x[i] = 1.0f;
}

template <class T> __device__ T twice(T v);
template <> __device__ float twice(float v) { return v * 2; }
template <> __device__ float2 twice(float2 v) { return make_float2(v.x * 2, v.y * 2); }
template <> __device__ float4 twice(float4 v) {
  return make_float4(v.x * 2, v.y * 2, v.z * 2, v.w * 2);
}
template <class T> __global__ void twice_kernel(float* x, int offset) {
  T* at = reinterpret_cast<T*>(reinterpret_cast<char*>(x) + offset);
  *at = twice(*at);
}

__global__ void __launch_bounds__(64) bounded_kernel(float* x) { x[threadIdx.x] = 1.0f; }

__global__ void shared_sum_kernel(float* x) {
  constexpr int kCount = 10 << 10;
  __shared__ float s[kCount];
  for (int i = threadIdx.x; i < kCount; i += blockDim.x) s[i] = 1.0f;
  __syncthreads();
  x[threadIdx.x] = s[kCount - 1 - threadIdx.x];
}

__global__ void uninitialised_shared_kernel(float* x) {
  float* s = dynamic_shared<float>();
  if (threadIdx.x != 5 || blockIdx.x == 0) s[threadIdx.x] = 1.0f;
  __syncthreads();
  x[blockIdx.x * 64 + threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void exchange_kernel(float* x, bool synchronise) {
  __shared__ float s[64];
  s[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (synchronise) __syncwarp();
  x[threadIdx.x] = s[threadIdx.x ^ 1];
}

__global__ void read_and_replace_kernel(float* x) {
  __shared__ float s[32];
  s[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  const float first = threadIdx.x == 0 ? s[5] : 0;
  __syncwarp();
  s[threadIdx.x] += 1;
  __syncwarp();
  x[threadIdx.x] = s[threadIdx.x] + first;
}

__global__ void halves_kernel(__half* x) {
  if (threadIdx.x == 0) x[blockIdx.x] = __half(static_cast<float>(blockIdx.x));
  // And its threads read and write neighbouring ones.
  __half* own = x + 16 * (1 + blockIdx.x) + threadIdx.x % 16;
  if (threadIdx.x < 16) *own = __half(static_cast<float>(threadIdx.x));
  __syncthreads();
  if (threadIdx.x < 16) *own = __half(static_cast<float>(*own) + 1);
}

__global__ void readers_kernel(float* x) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  for (int round = 0; round < 3; ++round) {
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += s[i];
    __syncthreads();
    s[threadIdx.x] = sum / 64;
  }
  x[threadIdx.x] = s[threadIdx.x];
}

__global__ void reader_of_another_warp_kernel(float* x) {
  __shared__ float s[2];
  if (threadIdx.x == 1) s[0] = 1.0f;
  __syncthreads();
  if (threadIdx.x == 40 || threadIdx.x == 2) x[threadIdx.x] = s[0];
  __syncwarp();
  if (threadIdx.x == 3) s[0] = 2.0f;
}

__global__ void block_race_kernel(float* x) { x[threadIdx.x] += 1.0f; }

__global__ void half_atomic_kernel(int* x) {
  if (blockIdx.x == 0) x[0] = 5;
  else atomicAdd(&x[0], 1);
}

__global__ void missing_fence_kernel(const float* x, float* partial, unsigned* counter,
                                     float* result) {
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = x[blockIdx.x];
  if (atomicAdd(counter, 1u) != gridDim.x - 1) return;
  float total = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
  *result = total;
}

__global__ void copy_kernel(float* x, const float* y) { x[threadIdx.x] = y[threadIdx.x]; }

}  // namespace

cudaError_t planted_matmul(Missing missing, const float* a, const float* b, float* c,
                           cudaStream_t stream) {
  auto* kernel = missing == Missing::Nothing        ? matmul_kernel<Missing::Nothing>
                 : missing == Missing::FirstBarrier ? matmul_kernel<Missing::FirstBarrier>
                                                    : matmul_kernel<Missing::SecondBarrier>;
  return launch(kernel, dim3(2, 2), dim3(kTile, kTile), 0, stream, a, b, c);
}
cudaError_t planted_divergent_barrier(float* x, cudaStream_t stream) {
  return launch(divergent_barrier_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_deadlock(float* x, cudaStream_t stream) {
  return launch(deadlock_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_shuffle_of_absent_lane(float* x, cudaStream_t stream) {
  return launch(absent_lane_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_shuffle_outside_mask(float* x, cudaStream_t stream) {
  return launch(outside_mask_kernel, 1, 32, 0, stream, x);
}
cudaError_t planted_foreign_mask(float* x, cudaStream_t stream) {
  return launch(foreign_mask_kernel, 1, 32, 0, stream, x);
}
cudaError_t planted_divergent_shuffle(float* x, cudaStream_t stream) {
  return launch(divergent_shuffle_kernel, 1, 32, 0, stream, x);
}
cudaError_t planted_assert(const int* x, cudaStream_t stream) {
  return launch(assert_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_trap(cudaStream_t stream) { return launch(trap_kernel, 1, 64, 0, stream); }
cudaError_t planted_dynamic_overrun(float* x, cudaStream_t stream) {
  return launch(dynamic_overrun_kernel, 1, 64, 64 * sizeof(float), stream, x);
}
cudaError_t planted_static_overrun(float* x, int offset, cudaStream_t stream) {
  return launch(static_overrun_kernel, 1, 64, 0, stream, x, offset);
}
cudaError_t planted_own_overrun(float* x, int count, cudaStream_t stream) {
  return launch(own_overrun_kernel, 1, 64, 0, stream, x, count);
}
cudaError_t planted_global_overrun(float* x, cudaStream_t stream) {
  return launch(global_overrun_kernel, 17, 64, 0, stream, x, 1024);
}
cudaError_t write_ones(float* x, int last, cudaStream_t stream) {
  return launch(global_overrun_kernel, 1, 64, 0, stream, x, last);
}
cudaError_t planted_float4(float* x, int offset, cudaStream_t stream) {
  return launch(twice_kernel<float4>, 1, 1, 0, stream, x, offset);
}
cudaError_t planted_float2(float* x, int offset, cudaStream_t stream) {
  return launch(twice_kernel<float2>, 1, 1, 0, stream, x, offset);
}
cudaError_t planted_float(float* x, int offset, cudaStream_t stream) {
  return launch(twice_kernel<float>, 1, 1, 0, stream, x, offset);
}
cudaError_t planted_launch_bounds(float* x, int threads, cudaStream_t stream) {
  return launch(bounded_kernel, 1, static_cast<unsigned>(threads), 0, stream, x);
}
cudaError_t planted_shared_sum(float* x, size_t dynamic, bool asked, cudaStream_t stream) {
  if (asked)
    (void)cudaFuncSetAttribute(shared_sum_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(dynamic));
  return launch(shared_sum_kernel, 1, 64, dynamic, stream, x);
}
cudaError_t planted_uninitialised_shared(float* x, cudaStream_t stream) {
  return launch(uninitialised_shared_kernel, 2, 64, 64 * sizeof(float), stream, x);
}
cudaError_t planted_uninitialised_global(float* x, const float* y, cudaStream_t stream) {
  return launch(copy_kernel, 1, 64, 0, stream, x, y);
}

cudaError_t read_and_replace_in_warp(float* x, cudaStream_t stream) {
  return launch(read_and_replace_kernel, 1, 32, 0, stream, x);
}
cudaError_t exchange_in_warp(float* x, cudaStream_t stream) {
  return launch(exchange_kernel, 1, 64, 0, stream, x, true);
}
cudaError_t neighbouring_halves(__half* x, cudaStream_t stream) {
  return launch(halves_kernel, 16, 32, 0, stream, x);
}
cudaError_t readers_and_writers(float* x, cudaStream_t stream) {
  return launch(readers_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_warp_race(float* x, cudaStream_t stream) {
  return launch(exchange_kernel, 1, 64, 0, stream, x, false);
}
cudaError_t planted_reader_of_another_warp(float* x, cudaStream_t stream) {
  return launch(reader_of_another_warp_kernel, 1, 64, 0, stream, x);
}
cudaError_t planted_block_race(float* x, cudaStream_t stream) {
  return launch(block_race_kernel, 4, 64, 0, stream, x);
}
cudaError_t planted_half_atomic(int* x, cudaStream_t stream) {
  return launch(half_atomic_kernel, 4, 1, 0, stream, x);
}
cudaError_t planted_missing_fence(const float* x, float* partial, unsigned* counter, float* result,
                                  cudaStream_t stream) {
  return launch(missing_fence_kernel, 8, 32, 0, stream, x, partial, counter, result);
}
cudaError_t copy_64(float* to, const float* from, cudaStream_t stream) {
  return launch(copy_kernel, 1, 64, 0, stream, to, from);
}

}  // namespace ramet::testing
