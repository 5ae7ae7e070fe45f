// What kernels report of their operands: Note [Errors in data] in runtime/gpu.h.
//
// Note [Looks]
// A look is a kernel, or a graph with such kernels, that may write the device's fault word. Looks
// are counted when they have been queued, under the lock under which whoever waits queues the
// reading and the clearing of the word: so a fault is in the reading or comes after the clearing,
// and is never lost to another thread's wait. A device that was ordered behind this one, and an
// event, remember the count of that moment: whoever waits for them asks for the faults up to it.
// That is read on a stream of its own, because the compute stream may have been given more since.
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
  /// `word` and number for a kernel that looks for `check`. The first call takes the word from the
  /// caching allocator: throws OutOfMemoryError.
  gpu::DataFault expect(int device, cudaStream_t compute, const gpu::DataCheck& check);
  /// Gives the word back. Nothing may be running.
  void forget(int device);

  /// Around the queueing of a look.
  void begin_look() { queueing_.lock(); }
  void end_look() {
    looks_.fetch_add(1, std::memory_order_release);
    queueing_.unlock();
  }
  /// Looks queued so far.
  uint64_t looks() const { return looks_.load(std::memory_order_acquire); }
  /// May one of the first `looks` have something to tell?
  bool pending(uint64_t looks) const { return told_.load(std::memory_order_acquire) < looks; }

  /// Waits for `compute`, throws what was reported since, and clears it.
  void raise(int device, cudaStream_t compute);
  /// The first `looks` are known to be done: the same, but waits for `compute` only where something
  /// was reported.
  void raise_up_to(uint64_t looks, int device, cudaStream_t compute);

 private:
  bool reported(int device);

  std::mutex queueing_;  // Note [Looks]
  std::mutex raising_;   // of host_ and own_; taken before queueing_
  std::atomic<uint64_t> looks_{0}, told_{0};
  std::atomic<FaultWord*> word_{nullptr};
  FaultWord* host_ = nullptr;  // pinned
  cudaStream_t own_ = nullptr;
};

}  // namespace cuda
}  // namespace ramet
