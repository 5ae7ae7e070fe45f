// The functions of the executor that device code calls, only on the fiber of a CUDA thread.
#pragma once
#include "tools/emulated_gpu/executor/grid.h"

namespace ramet::emulated {

/// Whether the caller is inside a kernel.
bool on_device();

/// __syncthreads() and its voting forms: the count of non-zero predicates, or their and / or.
/// Waits for all threads of the block that have not left the kernel.
enum class Vote : uint8_t { None, Count, And, Or };
int block_barrier(Vote vote, int predicate, const char* file, int line);

/// Every warp-level primitive calls this. All live lanes of `mask` meet, and the last to arrive
/// runs `function` over the lanes' argument blocks (null for absent lanes). The blocks lie on the
/// waiting fibers' stacks. A null function only synchronises.
using WarpFunction = void (*)(void* const lanes[32], uint32_t mask);
void warp_rendezvous(uint32_t mask, void* argument, WarpFunction function, const char* file,
                     int line);

/// __threadfence() and its kin.
void fence();

/// cp.async. A copy is made when a thread waits for it, not before. So a missing wait shows as the
/// poison that the issuer left in the target.
struct AsyncCopy {
  void* target;
  const void* source;
  unsigned bytes, source_bytes;
};
void async_copy_issue(const AsyncCopy& copy);
void async_copy_commit();
/// Takes the next copy of all groups but the last `keep`; false when there is none.
bool async_copy_take(int keep, AsyncCopy* copy);

/// Lanes of the calling thread's warp that have not left the kernel.
uint32_t live_lanes();
/// Linear index of the calling thread in its block.
unsigned thread_rank();
/// The block's dynamic shared memory: as many bytes as the launch asked for.
void* dynamic_shared_memory();

/// Reports a fault of the calling thread and abandons its block.
[[noreturn]] void device_fail(Fault fault, const char* what, const char* file, int line);

}  // namespace ramet::emulated
