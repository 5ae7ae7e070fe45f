// What kernels report of their operands: Note [Errors in data] in runtime/devices/gpu.h.
//
// Note [Looks]
// A look is a kernel, or a graph with such kernels, that may write the device's fault words. Looks
// are counted when they have been queued, under the lock under which whoever waits queues the
// reading and the clearing of the words: so a fault is in the reading or comes after the clearing,
// and is never lost to another thread's wait. A device that was ordered behind this one, and an
// event, remember the count of that moment: whoever waits for them asks for the faults up to it.
// That is read on a stream of its own, because the compute stream may have been given more since:
// perhaps a collective that waits for the very thread that asks. So it runs beside kernels that
// report and beside the clearing (fault_words.h). For the same reason no lock is
// held while a thread waits for the compute stream: one reading at a time is under way, who wants
// the next one waits for it, and who asks for an earlier count passes by.
//
// Note [Whose fault]
// Threads have words of their own (kFaultWords of them; threads beyond that share), so that one's
// fault does not hide another's. A worker looks for the thread that posted its task
// (devices::origin), a graph for the one that made it. Whoever waits is told of its own thread's
// fault first, then of one that nobody was told of yet: what it reads may come from there. The
// thread that caused a fault is told at its next wait, whoever was told before.
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

  /// Around the queueing of a look: who waits for the lock wants the same stream.
  void begin_look() { queueing_.lock(); }
  void end_look() {
    looks_.fetch_add(1, std::memory_order_release);
    queueing_.unlock();
  }
  /// Looks queued so far.
  uint64_t looks() const { return looks_.load(std::memory_order_acquire); }
  /// May one of the first `looks` have something to tell?
  bool pending(uint64_t looks) const {
    return read_.load(std::memory_order_acquire) < looks || waiting();
  }
  /// Is there a fault of which its thread was not told?
  bool waiting() const { return waiting_.load(std::memory_order_acquire) != 0; }

  /// Waits for what `compute` has so far, clears what was reported since, and throws what this
  /// thread is to be told.
  void raise(int device, cudaStream_t compute);
  /// The first `looks` are known to be done: the same, but waits for `compute` only where something
  /// was reported.
  void raise_up_to(uint64_t looks, int device, cudaStream_t compute);

 private:
  struct Fault {
    FaultWord word;
    uint64_t origin;  // who is to be told
    bool told;        // somebody was
  };
  using Lock = std::unique_lock<std::mutex>;
  bool reported(int device);
  bool cleared_meanwhile(int device);
  // REQUIRES: raising_. tell() gives it back and throws, where there is something to tell.
  void collect(int device, cudaStream_t compute, Lock& lock);
  void merge();
  const Fault* next();
  void tell(int device, Lock lock);

  std::mutex queueing_;  // Note [Looks]
  std::mutex making_;    // of what the first check of a device makes: who waits wants the same
  std::mutex asking_;    // of own_, which waits for nothing, and of the second half of host_
  std::mutex raising_;   // of faults_ and reading_; no call of CUDA's under it but questions
  std::condition_variable read_on_;
  bool reading_ = false;             // a thread waits for the first half of host_
  std::atomic<bool> queued_{false};  // and its copy is in the compute stream, behind it copied_
  cudaEvent_t copied_ = nullptr;
  std::atomic<uint64_t> looks_{0}, read_{0};
  std::atomic<FaultWord*> words_{nullptr};
  std::atomic<uint64_t> owner_[kFaultWords] = {};  // whose looks use this word
  FaultWord* host_ = nullptr;                      // pinned, twice as many
  cudaStream_t own_ = nullptr;
  Fault faults_[kFaultWords];         // read, where waiting_ has their bit
  std::atomic<uint64_t> waiting_{0};  // one bit a word
};
static_assert(kFaultWords <= 64, "a bit each");

}  // namespace cuda
}  // namespace ramet
