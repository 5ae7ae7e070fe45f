// Pinned memory for copies between a GPU and pageable memory: Note [Copies].
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/host_copies.h"

namespace ramet {
namespace cuda {

inline constexpr size_t kPiece = size_t{4} << 20;

// A piece of pinned memory, and the event after which it is free again. Under its lock.
struct Place {
  std::mutex mutex;
  char* memory = nullptr;
  std::unique_ptr<EventHandle> free;
  bool travelling = false;

  void wait(const char* op, int device) {
    if (!travelling) return;
    RAMET_CUDA(op, device, cudaEventSynchronize(free->get()));
    travelling = false;
  }
  void sent(const char* op, int device, cudaStream_t stream) {
    RAMET_CUDA(op, device, cudaEventRecord(free->get(), stream));
    travelling = true;
  }
};

// Pinned memory of one device and direction: Note [Copies]. Places have a running index over all
// copies. So a copy waits for the copy that used the place many copies ago, not for the last one.
// The stream of the last one may be waiting for something long. A thread holds a place's lock while
// it waits for the copy. Another thread that wants the lock wants that memory, and tries the other
// places first.
class PinnedPlaces {
 public:
  static constexpr size_t kSmall = size_t{128} << 10;

  explicit PinnedPlaces(size_t halves) : halves_(halves) {}
  ~PinnedPlaces() {
    (void)use_any_card();
    for (Place& p : small_) p.free.reset();
    for (Place& p : large_) {
      p.free.reset();
      free_host_memory(p.memory);
    }
    free_host_memory(small_memory_);
  }

  struct Taken {
    Place& place;
    std::unique_lock<std::mutex> lock;
  };
  /// For a copy of at most kSmall bytes. Called before any of it is queued, because it may fail. No
  /// copy uses the place any more.
  Taken small(const char* op, int device) {
    const size_t first = next_.fetch_add(1, std::memory_order_relaxed);
    for (size_t i = 0;; ++i) {
      Place& p = small_[(first + i) % kPlaces];
      std::unique_lock lock(p.mutex, std::defer_lock);
      if (i == kPlaces) lock.lock();  // all are taken
      else if (!lock.try_lock()) continue;
      if (!p.free) p.free = std::make_unique<EventHandle>(op, device);
      if (!p.memory)
        p.memory = small_memory(op, device) + static_cast<size_t>(&p - small_) * kSmall;
      p.wait(op, device);
      return {p, std::move(lock)};
    }
  }

  std::mutex pipeline;  // one large copy at a time: a waiting thread wants the same memory
  /// Makes what a large copy needs. Called before any of it is queued, because it may fail.
  void prepare(const char* op, int device, size_t bytes) {
    for (size_t i = 0; i < halves_ && i * kPiece < bytes; ++i) {
      Place& p = half(i);
      if (!p.free) p.free = std::make_unique<EventHandle>(op, device);
      if (!p.memory) p.memory = static_cast<char*>(host_memory(op, device, kPiece));
    }
  }
  /// The place of the i-th piece of the copy under way.
  Place& half(size_t i) { return large_[(turn_ + i) % halves_]; }
  /// The copy had so many pieces.
  void end(size_t pieces) { turn_ += pieces; }

 private:
  char* small_memory(const char* op, int device) {
    const std::lock_guard lock(making_);  // a waiting thread wants the same memory
    if (!small_memory_)
      small_memory_ = static_cast<char*>(host_memory(op, device, kPlaces * kSmall));
    return small_memory_;
  }

  static constexpr size_t kPlaces = 32, kMostHalves = 4;
  const size_t halves_;
  Place small_[kPlaces], large_[kMostHalves];
  std::atomic<size_t> next_{0};
  size_t turn_ = 0;
  std::mutex making_;
  char* small_memory_ = nullptr;
};

}  // namespace cuda
}  // namespace ramet
