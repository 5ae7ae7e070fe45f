#include "tests/tools/emulated_gpu/kernels.h"

namespace ramet::testing {
namespace {

constexpr unsigned kAll = 0xffffffffu;

unsigned blocks_for(long count, int threads) {
  const long blocks = (count + threads - 1) / threads;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 512 ? 512 : blocks);
}

template <class T> __device__ float to_float(T x) { return static_cast<float>(x); }

struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

template <class Op> __device__ float warp_reduce(float value, Op op) {
  for (int step = 16; step > 0; step >>= 1) value = op(value, __shfl_xor_sync(kAll, value, step));
  return value;
}

/// Every thread gets the result. `buffer` is 33 floats of shared memory, blockDim.x a multiple
/// of 32.
template <class Op> __device__ float block_reduce(float value, Op op, float start, float* buffer) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  value = warp_reduce(value, op);
  if (lane == 0) buffer[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_reduce(lane < warps ? buffer[lane] : start, op);
    if (lane == 0) buffer[32] = value;
  }
  __syncthreads();
  value = buffer[32];
  __syncthreads();  // before a thread writes the buffer again
  return value;
}

__global__ void add_kernel(const float* __restrict__ a, const float* __restrict__ b,
                           float* __restrict__ c, long count) {
  const long stride = static_cast<long>(gridDim.x) * blockDim.x;
  const long first = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto* a4 = reinterpret_cast<const float4*>(a);
  const auto* b4 = reinterpret_cast<const float4*>(b);
  auto* c4 = reinterpret_cast<float4*>(c);
  for (long i = first; i < count / 4; i += stride) {
    const float4 x = a4[i], y = b4[i];
    c4[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  }
  for (long i = count / 4 * 4 + first; i < count; i += stride) c[i] = a[i] + b[i];
}

__global__ void increment_kernel(float* x, long count) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) x[i] += 1.0f;
}

template <class T> __global__ void softmax_kernel(const T* x, T* y, int columns) {
  __shared__ float buffer[33];
  x += static_cast<size_t>(blockIdx.x) * columns;
  y += static_cast<size_t>(blockIdx.x) * columns;
  float largest = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, to_float(x[i]));
  largest = block_reduce(largest, Max(), -INFINITY, buffer);
  float total = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) total += __expf(to_float(x[i]) - largest);
  total = block_reduce(total, Add(), 0.0f, buffer);
  for (int i = threadIdx.x; i < columns; i += blockDim.x)
    y[i] = T(__expf(to_float(x[i]) - largest) / total);
}

__global__ void transpose_kernel(const float* __restrict__ x, float* __restrict__ y, int rows,
                                 int columns) {
  __shared__ float tile[32][33];  // the padding keeps columns in different banks
  const int column = blockIdx.x * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 8) {
    const int row = blockIdx.y * 32 + j;
    if (row < rows && column < columns)
      tile[j][threadIdx.x] = x[static_cast<size_t>(row) * columns + column];
  }
  __syncthreads();
  const int row = blockIdx.y * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 8) {
    const int target = blockIdx.x * 32 + j;
    if (row < rows && target < columns)
      y[static_cast<size_t>(target) * rows + row] = tile[threadIdx.x][j];
  }
}

constexpr int kTile = 16;

__global__ void matmul_kernel(const float* __restrict__ a, const float* __restrict__ b,
                              float* __restrict__ c, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
  float sum = 0;
  for (int t = 0; t < k; t += kTile) {
    tile_a[ty][tx] = row < m && t + tx < k ? a[static_cast<size_t>(row) * k + t + tx] : 0.0f;
    tile_b[ty][tx] = column < n && t + ty < k ? b[static_cast<size_t>(t + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<size_t>(row) * n + column] = sum;
}

__global__ void matmul_dynamic_kernel(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ c, int m, int n, int k) {
  const int tile = blockDim.x, tx = threadIdx.x, ty = threadIdx.y;
  float* tile_a = dynamic_shared<float>();
  float* tile_b = tile_a + tile * tile;
  const int row = blockIdx.y * tile + ty, column = blockIdx.x * tile + tx;
  float sum = 0;
  for (int t = 0; t < k; t += tile) {
    tile_a[ty * tile + tx] =
        row < m && t + tx < k ? a[static_cast<size_t>(row) * k + t + tx] : 0.0f;
    tile_b[ty * tile + tx] =
        column < n && t + ty < k ? b[static_cast<size_t>(t + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += tile_a[ty * tile + i] * tile_b[i * tile + tx];
    __syncthreads();
  }
  if (row < m && column < n) c[static_cast<size_t>(row) * n + column] = sum;
}

__global__ void sum_kernel(const float* x, int count, float* partial, unsigned* counter,
                           float* result) {
  __shared__ float buffer[33];
  __shared__ bool last;
  float mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    mine += x[i];
  mine = block_reduce(mine, Add(), 0.0f, buffer);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = mine;
    __threadfence();
    last = atomicAdd(counter, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
    *result = total;
  }
}

__global__ void histogram_kernel(const int* x, int count, int* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&bins[x[i]], 1);
}

__global__ void warp_primitives_kernel(const int* x, int* results, unsigned mask) {
  const int lane = threadIdx.x, value = x[lane];
  int* mine = results + lane * kWarpResults;
  // Sources beyond the lanes that exist would be an error: stay below them.
  const int lanes = blockDim.x;
  mine[0] = __shfl_sync(mask, value, (lane * 7 + 3) % lanes);
  mine[1] = __shfl_sync(mask, value, 1, 4);
  mine[2] = lanes == 32 ? __shfl_xor_sync(mask, value, 5) : 0;
  mine[3] = __shfl_xor_sync(mask, value, 1, 2);
  mine[4] = __shfl_up_sync(mask, value, 3);
  mine[5] = lanes == 32 ? __shfl_down_sync(mask, value, 3) : 0;
  mine[6] = lanes == 32 ? __shfl_down_sync(mask, value, 2, 8) : 0;
  mine[7] = static_cast<int>(__ballot_sync(mask, value & 1));
  mine[8] = __any_sync(mask, value == 3) + 2 * __all_sync(mask, value < 1000) +
            4 * __any_sync(mask, value > 1000) + 8 * __all_sync(mask, value == 3);
  mine[9] = static_cast<int>(__match_any_sync(mask, value % 5));
  const double wide = __shfl_sync(mask, value * 1e10, lanes - 1);
  mine[10] = static_cast<int>(wide / 1e10 + 0.5);
  // The two halves of the warp take different branches and vote with masks of their own.
  const unsigned half = lane % 2 ? mask & 0xaaaaaaaau : mask & 0x55555555u;
  if (lane % 2) mine[11] = __popc(__ballot_sync(half, 1));
  else mine[11] = -__popc(__ballot_sync(half, 1));
}

__global__ void block_votes_kernel(const int* x, int* results) {
  const int i = threadIdx.x;
  results[3 * i] = __syncthreads_count(x[i]);
  results[3 * i + 1] = __syncthreads_and(x[i]);
  results[3 * i + 2] = __syncthreads_or(x[i]);
}

__global__ void coordinates_kernel(unsigned* results) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned* r = results + 12 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  __syncthreads();  // the values must survive a switch
  const uint3 values[4] = {threadIdx, blockIdx, blockDim, gridDim};
  for (int i = 0; i < 4; ++i) {
    r[3 * i] = values[i].x;
    r[3 * i + 1] = values[i].y;
    r[3 * i + 2] = values[i].z;
  }
}

__global__ void early_exit_kernel(int* results) {
  if (threadIdx.x % 2) return;
  const int lanes = __popc(__ballot_sync(kAll, 1));  // the others are not waited for
  results[threadIdx.x] = __syncthreads_count(1) + 1000 * lanes;
}

__global__ void empty_kernel() {}

__global__ void barriers_kernel(int count) {
  for (int i = 0; i < count; ++i) __syncthreads();
}

__global__ void shuffles_kernel(float* x, int count) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < count; ++i) value += __shfl_xor_sync(kAll, value, 1);
  x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

}  // namespace

cudaError_t add(const float* a, const float* b, float* c, long count, cudaStream_t stream) {
  return launch(add_kernel, blocks_for(count / 4, 256), 256, 0, stream, a, b, c, count);
}

cudaError_t increment(float* x, long count, cudaStream_t stream) {
  return launch(increment_kernel, static_cast<unsigned>((count + 255) / 256), 256, 0, stream, x,
                count);
}

template <class T>
cudaError_t softmax(const T* x, T* y, int rows, int columns, cudaStream_t stream) {
  return launch(softmax_kernel<T>, rows, columns <= 128 ? 64 : 256, 0, stream, x, y, columns);
}
template cudaError_t softmax(const float*, float*, int, int, cudaStream_t);
template cudaError_t softmax(const __half*, __half*, int, int, cudaStream_t);
template cudaError_t softmax(const __nv_bfloat16*, __nv_bfloat16*, int, int, cudaStream_t);

cudaError_t transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  const dim3 grid((columns + 31) / 32, (rows + 31) / 32);
  return launch(transpose_kernel, grid, dim3(32, 8), 0, stream, x, y, rows, columns);
}

cudaError_t matmul(const float* a, const float* b, float* c, int m, int n, int k,
                   cudaStream_t stream) {
  const dim3 grid((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  return launch(matmul_kernel, grid, dim3(kTile, kTile), 0, stream, a, b, c, m, n, k);
}

cudaError_t matmul_dynamic(const float* a, const float* b, float* c, int m, int n, int k, int tile,
                           cudaStream_t stream) {
  const dim3 grid((n + tile - 1) / tile, (m + tile - 1) / tile);
  const size_t bytes = 2 * sizeof(float) * tile * tile;
  return launch(matmul_dynamic_kernel, grid, dim3(tile, tile), bytes, stream, a, b, c, m, n, k);
}

cudaError_t sum(const float* x, int count, float* partial, unsigned* counter, float* result,
                cudaStream_t stream) {
  return launch(sum_kernel, kSumBlocks, 64, 0, stream, x, count, partial, counter, result);
}

cudaError_t histogram(const int* x, int count, int* bins, cudaStream_t stream) {
  return launch(histogram_kernel, (count + 127) / 128, 128, 0, stream, x, count, bins);
}

cudaError_t warp_primitives(const int* x, int* results, int lanes, cudaStream_t stream) {
  const unsigned mask = lanes == 32 ? kAll : (1u << lanes) - 1;
  return launch(warp_primitives_kernel, 1, lanes, 0, stream, x, results, mask);
}

cudaError_t block_votes(const int* x, int* results, int threads, cudaStream_t stream) {
  return launch(block_votes_kernel, 1, threads, 0, stream, x, results);
}

cudaError_t coordinates(unsigned* results, dim3 grid, dim3 block, cudaStream_t stream) {
  return launch(coordinates_kernel, grid, block, 0, stream, results);
}

cudaError_t early_exit(int* results, int threads, cudaStream_t stream) {
  return launch(early_exit_kernel, 1, threads, 0, stream, results);
}

cudaError_t empty(int blocks, int threads, cudaStream_t stream) {
  return launch(empty_kernel, blocks, threads, 0, stream);
}

cudaError_t barriers(int blocks, int threads, int count, cudaStream_t stream) {
  return launch(barriers_kernel, blocks, threads, 0, stream, count);
}

cudaError_t shuffles(float* x, int blocks, int threads, int count, cudaStream_t stream) {
  return launch(shuffles_kernel, blocks, threads, 0, stream, x, count);
}

}  // namespace ramet::testing
