// Faults that kernels report about their operands: Note [Errors in data] in runtime/devices/gpu.h.
//
// Note [Looks]
// A look is a kernel, or a graph with such kernels, that may write the device's fault words. Looks
// are counted when they have been queued, under a lock. A thread that waits holds the same lock
// while it queues the reading and the clearing of the words. So each fault is either in the reading
// or comes after the clearing. Another thread's wait never loses it. An event, and a device that is
// ordered after this one, remember the count of that moment. A thread that waits for them asks for
// the faults up to that count. They are read on a separate stream, because the compute stream may
// have got more work since. That work may be a collective that waits for the very thread that asks.
// So this reading runs concurrently with kernels that report and with the clearing (fault_words.h).
// For the same reason no thread holds a lock while it waits for the compute stream. One reading at
// a time is under way. A thread that wants the next one waits for it. A thread that asks for an
// earlier count does not wait.
//
// Note [Which thread gets a fault]
// Threads have separate words, so that a fault of one does not hide a fault of another. There are
// kFaultWords of them; further threads share. A fault in a worker's task belongs to the thread that
// posted it (devices::origin). A fault in a graph belongs to the thread that made it. A thread that
// waits gets a fault of its own if there is one. Otherwise it gets a fault that no thread has got
// yet, because its data may come from there. The thread that caused a fault always gets it at its
// next wait, even if another thread got it before.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/cuda/fault_words.h"
#include "runtime/cuda/gpu.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace cuda {

/// The words of one device, and what their numbers mean.
class DataFaults {
 public:
  ~DataFaults();
  /// This thread's word and a number for a kernel that looks for `check`. The first call takes the
  /// words from the caching allocator: throws OutOfMemoryError.
  gpu::DataFault expect(int device, cudaStream_t compute, const gpu::DataCheck& check);
  /// Gives the words back. Nothing may be running.
  void forget(int device);

  /// Called around the queueing of a look. A thread that waits for this lock wants the same stream.
  void begin_look() { queueing_.lock(); }
  void end_look() {
    looks_.fetch_add(1, std::memory_order_release);
    queueing_.unlock();
  }
  /// Looks queued so far.
  uint64_t looks() const { return looks_.load(std::memory_order_acquire); }
  /// May one of the first `looks` have a fault to raise?
  bool pending(uint64_t looks) const {
    return read_.load(std::memory_order_acquire) < looks || waiting();
  }
  /// Is there a fault that its thread has not got yet?
  bool waiting() const { return waiting_.load(std::memory_order_acquire) != 0; }

  /// Waits for the work that `compute` has so far and clears what was reported since. Then throws
  /// the fault that this thread must get.
  void raise(int device, cudaStream_t compute);
  /// The first `looks` are known to be done. Does the same, but waits for `compute` only if a fault
  /// was reported.
  void raise_up_to(uint64_t looks, int device, cudaStream_t compute);

 private:
  struct Fault {
    FaultWord word;
    uint64_t origin;  // the thread that must get it
    bool told;        // a thread has got it
  };
  using Lock = std::unique_lock<std::mutex>;
  bool reported(int device);
  bool cleared_meanwhile(int device);
  // REQUIRES: raising_. tell() releases it, and throws if there is a fault for this thread.
  void collect(int device, cudaStream_t compute, Lock& lock);
  void merge();
  const Fault* next();
  void tell(int device, Lock lock);

  std::mutex queueing_;  // Note [Looks]
  std::mutex making_;    // for what the first check makes; other threads use it too
  std::mutex asking_;    // of own_, which never waits, and of the 2nd half of host_
  std::mutex raising_;   // of faults_ and reading_; under it CUDA is only queried
  std::condition_variable read_on_;
  bool reading_ = false;             // a thread waits for the first half of host_
  std::atomic<bool> queued_{false};  // its copy is in the compute stream, followed by copied_
  cudaEvent_t copied_ = nullptr;
  std::atomic<uint64_t> looks_{0}, read_{0};
  std::atomic<FaultWord*> words_{nullptr};
  std::atomic<uint64_t> owner_[kFaultWords] = {};  // the thread that this word is for
  FaultWord* host_ = nullptr;                      // pinned, twice as many
  cudaStream_t own_ = nullptr;
  Fault faults_[kFaultWords];         // read, where their bit is in waiting_
  std::atomic<uint64_t> waiting_{0};  // one bit for each word
};
static_assert(kFaultWords <= 64, "a bit each");

}  // namespace cuda
}  // namespace ramet
