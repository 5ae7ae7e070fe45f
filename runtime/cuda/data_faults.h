// What kernels report of their operands: Note [Errors in data] in runtime/gpu.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "runtime/cuda/gpu.h"
#include "runtime/gpu.h"

namespace ramet {
namespace cuda {

/// In device memory, zero while nothing is wrong. Kernels of one stream follow each other, so the
/// first one with a fault keeps the word.
struct FaultWord {
  unsigned long long most;  ///< ~position of the first fault of the kernel that runs, by atomicMax
  unsigned long long arrived;  ///< its blocks that are done
  int64_t position, value;
  uint64_t check;  ///< 0: nothing is wrong
};

/// The word of one device, and what its numbers mean.
class DataFaults {
 public:
  ~DataFaults();
  /// `word` and number for a kernel that looks for `check`.
  gpu::DataFault expect(int device, cudaStream_t stream, const gpu::DataCheck& check);
  /// Has a kernel looked since the last raise()?
  bool pending() const { return pending_.load(std::memory_order_relaxed); }
  /// After a wait for `stream`: throws what was reported since, and clears it.
  void raise(int device, cudaStream_t stream);

 private:
  std::mutex mutex_;
  FaultWord* word_ = nullptr;
  FaultWord* host_ = nullptr;  // pinned
  std::atomic<bool> pending_{false};
};

}  // namespace cuda
}  // namespace ramet
