// Kernels with one mistake each, for tests of what the emulated GPU notices.
#pragma once
#include "runtime/cuda/gpu.h"

namespace ramet::testing {

/// The product of matmul() of kernels.h, for 32 x 32 matrices. One barrier is missing: the one
/// after the tiles are written, or the one after they are read.
enum class Missing { Nothing, FirstBarrier, SecondBarrier };
cudaError_t planted_matmul(Missing missing, const float* a, const float* b, float* c,
                           cudaStream_t stream);

/// Two halves of a block at two different __syncthreads().
cudaError_t planted_divergent_barrier(float* x, cudaStream_t stream);
/// Half of a warp in a shuffle with a mask that names all of it, the rest at __syncthreads().
cudaError_t planted_deadlock(float* x, cudaStream_t stream);
/// A shuffle that reads lanes which have left the kernel.
cudaError_t planted_shuffle_of_absent_lane(float* x, cudaStream_t stream);
/// A shuffle that reads a live lane which the mask does not name.
cudaError_t planted_shuffle_outside_mask(float* x, cudaStream_t stream);
/// A lane that calls a primitive with a mask without itself.
cudaError_t planted_foreign_mask(float* x, cudaStream_t stream);
/// Two primitives at two lines under one mask.
cudaError_t planted_divergent_shuffle(float* x, cudaStream_t stream);
/// RAMET_GPU_ASSERT of x[i] < 10.
cudaError_t planted_assert(const int* x, cudaStream_t stream);
cudaError_t planted_trap(cudaStream_t stream);

/// Writes one float past the launch's dynamic shared memory, a __shared__ array, an array of a
/// thread's own (of 8, where `count` is 9), an allocation of 1024.
cudaError_t planted_dynamic_overrun(float* x, cudaStream_t stream);
cudaError_t planted_static_overrun(float* x, int offset, cudaStream_t stream);
cudaError_t planted_own_overrun(float* x, int count, cudaStream_t stream);
cudaError_t planted_global_overrun(float* x, cudaStream_t stream);
/// Writes x[0] to x[last], of at most 64.
cudaError_t write_ones(float* x, int last, cudaStream_t stream);
/// Doubles x[0] to x[3] as one float4 that begins `offset` bytes after x, x[0] and x[1] as a
/// float2, x[0] as a float.
cudaError_t planted_float4(float* x, int offset, cudaStream_t stream);
cudaError_t planted_float2(float* x, int offset, cudaStream_t stream);
cudaError_t planted_float(float* x, int offset, cudaStream_t stream);
/// A block of `threads`, where the kernel says that it has at most 64.
cudaError_t planted_launch_bounds(float* x, int threads, cudaStream_t stream);
/// 40 KiB of __shared__ variables, and `dynamic` bytes of the launch. With `asked` the kernel may
/// have more than 48 KiB.
cudaError_t planted_shared_sum(float* x, size_t dynamic, bool asked, cudaStream_t stream);
/// The second of two blocks reads an element of dynamic shared memory that only the first has
/// written. The other reads a whole allocation that no thread has written.
cudaError_t planted_uninitialised_shared(float* x, cudaStream_t stream);
cudaError_t planted_uninitialised_global(float* x, const float* y, cudaStream_t stream);

// For the checker (--config=check). The first four are in order and must stay without a report.
/// Lanes of one warp exchange through shared memory, with a __syncwarp() between.
cudaError_t exchange_in_warp(float* x, cudaStream_t stream);
/// A lane reads what another then reads and replaces, with a __syncwarp() between.
cudaError_t read_and_replace_in_warp(float* x, cudaStream_t stream);
/// Blocks write neighbouring 16-bit elements, threads of a block read and write such.
cudaError_t neighbouring_halves(__half* x, cudaStream_t stream);
/// Many threads read what others wrote before a barrier, and the barrier comes before the next
/// write.
cudaError_t readers_and_writers(float* x, cudaStream_t stream);
/// exchange_in_warp() without the __syncwarp().
cudaError_t planted_warp_race(float* x, cudaStream_t stream);
/// Two readers, one of them of the writer's warp and one of another; only the warp is synchronised.
cudaError_t planted_reader_of_another_warp(float* x, cudaStream_t stream);
/// Blocks add to one address without atomics, or with atomics on one side only.
cudaError_t planted_block_race(float* x, cudaStream_t stream);
cudaError_t planted_half_atomic(int* x, cudaStream_t stream);
/// sum() of kernels.h without its fence.
cudaError_t planted_missing_fence(const float* x, float* partial, unsigned* counter, float* result,
                                  cudaStream_t stream);
/// Reads, or writes, at the given address.
cudaError_t copy_64(float* to, const float* from, cudaStream_t stream);

}  // namespace ramet::testing
