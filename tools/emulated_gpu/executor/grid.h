// Runs a grid of CUDA blocks on host threads. Blocks run in parallel over a pool of workers. The
// threads of a block are fibers of one worker.
#pragma once
#include <string>

#include "tools/emulated_gpu/executor/types.h"

namespace ramet::emulated {

// Limits of compute capability 9.0, which the emulated devices claim to have.
constexpr unsigned kMaxThreads = 1024;
constexpr size_t kDefaultShared = 48 * 1024, kMaxShared = 227 * 1024;

struct Grid {
  uint3 grid{1, 1, 1}, block{1, 1, 1};
  size_t shared_bytes = 0;
  size_t most_shared = kDefaultShared;  // of these and the kernel's __shared__ variables
  int device = 0;
  /// Number of the launch in this process. A random order depends on it and on the seed, not on the
  /// worker that runs a block.
  uint64_t launch = 0;
  /// The kernel, for reports.
  const void* function = nullptr;
  /// Runs the kernel for the current CUDA thread.
  void (*body)(const void* arguments) = nullptr;
  const void* arguments = nullptr;
  size_t argument_bytes = 0;
};

enum class Fault : uint8_t {
  None,
  Deadlock,
  DivergentBarrier,
  WarpPrimitive,
  Assert,
  Trap,
  IllegalAddress,
  Misaligned,
  Resources,
  Race,
  Uninitialised
};

struct GridResult {
  /// The first fault.
  Fault fault = Fault::None;
  /// Kernel, launch, block, thread, file and line of every fault, a line or more each.
  std::string report;
};

/// Returns when the last block is done. After a fault the blocks that have not started do not.
GridResult run_grid(const Grid& grid);

/// Ends the pool's threads; the next grid starts new ones. For restart() only.
void stop_workers();

/// Counts since the start of the process, for measurements: switches between fibers, blocks and
/// CUDA threads that have ended.
struct ExecutorCounts {
  uint64_t switches, blocks, threads;
};
ExecutorCounts executor_counts();

}  // namespace ramet::emulated
