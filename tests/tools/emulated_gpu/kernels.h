// Kernels of the kinds that the library has, for tests of the emulated GPU. Pointers are device
// pointers; each launcher returns what the launch returned.
#pragma once
#include "runtime/cuda/gpu.h"

namespace ramet::testing {

/// c = a + b, 16 bytes at a time, with a tail.
cudaError_t add(const float* a, const float* b, float* c, long count, cudaStream_t stream);
/// x = x + 1, one element a thread, in place.
cudaError_t increment(float* x, long count, cudaStream_t stream);
/// Rows of `columns` elements: float, __half or __nv_bfloat16.
template <class T>
cudaError_t softmax(const T* x, T* y, int rows, int columns, cudaStream_t stream);
/// y (columns x rows) = x (rows x columns) transposed, through shared tiles.
cudaError_t transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream);
/// c (m x n) = a (m x k) b (k x n) through static shared tiles of 16, or dynamic ones of `tile`.
cudaError_t matmul(const float* a, const float* b, float* c, int m, int n, int k,
                   cudaStream_t stream);
cudaError_t matmul_dynamic(const float* a, const float* b, float* c, int m, int n, int k, int tile,
                           cudaStream_t stream);

/// Sum of `count` floats by the last block to finish (fence and atomic counter). `partial` has one
/// float a block, `counter` is 0.
constexpr int kSumBlocks = 8;
cudaError_t sum(const float* x, int count, float* partial, unsigned* counter, float* result,
                cudaStream_t stream);
/// histogram[x[i]] += 1 with atomics.
cudaError_t histogram(const int* x, int count, int* bins, cudaStream_t stream);

/// One warp of 32 or fewer lanes a block; `results` has kWarpResults ints a lane. What each means
/// stands in kernels.cu.
constexpr int kWarpResults = 12;
cudaError_t warp_primitives(const int* x, int* results, int lanes, cudaStream_t stream);
/// Counts, ands and ors of x[i] != 0 over a block, three ints a thread.
cudaError_t block_votes(const int* x, int* results, int threads, cudaStream_t stream);
/// Writes threadIdx, blockIdx, blockDim and gridDim (12 unsigned a thread).
cudaError_t coordinates(unsigned* results, dim3 grid, dim3 block, cudaStream_t stream);
/// Half of the threads leave before the ballot and the barrier of the others. Each of the others
/// writes how many threads were at the barrier, and 1000 for each at the ballot.
cudaError_t early_exit(int* results, int threads, cudaStream_t stream);

// For measurements.
cudaError_t empty(int blocks, int threads, cudaStream_t stream);
cudaError_t barriers(int blocks, int threads, int count, cudaStream_t stream);
cudaError_t shuffles(float* x, int blocks, int threads, int count, cudaStream_t stream);

}  // namespace ramet::testing
