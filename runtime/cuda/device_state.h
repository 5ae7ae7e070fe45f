// The state of each logical device cuda:k: streams, events, names for error texts. The first use of
// the device makes it.
//
// Note [Streams of a device]
// Kernels and allocations belong to the compute stream. Copies from and to the host and other
// devices have their own streams, so that they overlap with kernels. A copy waits for the work that
// the compute stream had before it, and the compute stream waits for the copy. So the order of the
// program does not change. But the two directions of copies run concurrently. And a copy out does
// not delay the next kernels: they wait for it only where its memory is freed. A copy to another
// GPU does delay its sender, which goes on after the copy. So where there are several, the
// receivers fetch them (FanOut in parallel/move/peers_internal.h). Copies that do not block the
// host wait for less: Note in runtime/tensor/pinned.h.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/device.h"
#include "runtime/base/error.h"
#include "runtime/cuda/data_faults.h"
#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

enum class Queue : uint8_t { kCompute, kCopyIn, kCopyOut, kCommunication };
inline constexpr int kQueues = 4;

class DeviceState;

/// For each device: how many of its looks the work here comes after. See Note [Looks].
struct Looks {
  uint64_t of[kMaxDevicesPerType] = {};
};
/// Throws the faults that these looks reported. The caller knows that the looks are done.
RAMET_API void raise_faults(const Looks& looks);

/// While it lives, the calling thread's current GPU is that of cuda:k, and the thread is bound to
/// it. Libraries need that binding. A fresh thread has none, although CUDA names GPU 0 as its
/// current one.
///
/// Note [Contexts]
/// The first call that needs a context makes one on the thread's current GPU, and so does
/// cudaSetDevice(). A context takes some hundred megabytes. So a program that uses cuda:1 alone
/// must not get one on GPU 0, the current GPU of every fresh thread. Hence the guard restores the
/// thread's previous GPU only if that GPU has a context. Otherwise the thread keeps this one. Calls
/// that belong to no device call use_any_card() first.
class RAMET_API CardGuard {
 public:
  CardGuard(const char* op, int device);
  CardGuard(const char* op, const DeviceState& state);
  ~CardGuard();
  CardGuard(const CardGuard&) = delete;
  CardGuard& operator=(const CardGuard&) = delete;

 private:
  int before_ = -1;
};

/// The device's GPU becomes the calling thread's, for good. Returns the previous one.
int use_card(const char* op, const DeviceState& state);
/// For calls that belong to no device, like calls that free something. If the thread's current GPU
/// has no context, it gets a GPU that is in use. False where none is.
RAMET_API bool use_any_card() noexcept;

/// An event that its owner records many times. Without times it costs less.
class RAMET_API EventHandle {
 public:
  EventHandle(const char* op, int device, bool timing = false);
  ~EventHandle();
  EventHandle(EventHandle&& o) noexcept : event_(std::exchange(o.event_, nullptr)) {}
  EventHandle& operator=(EventHandle o) noexcept {
    std::swap(event_, o.event_);
    return *this;
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Kernels queued, and the threads of the widest one.
struct Launches {
  uint64_t count = 0, most_threads = 0;
};

class RAMET_API DeviceState {
 public:
  explicit DeviceState(int device);
  ~DeviceState();
  const int device, card;

  /// The stream of this queue. The first call makes it.
  cudaStream_t stream(Queue queue, const char* op);
  /// Work that `later` gets from now on begins after all work that `earlier` has got so far.
  void order(Queue earlier, Queue later, const char* op);
  /// Waits for all streams.
  void wait(const char* op);
  /// wait(), then raise_fault().
  void synchronize(const char* op);
  /// The stream of this queue, for a kernel of so many threads that the caller queues at once. The
  /// kernel is recorded for errors that show later, and for launches().
  cudaStream_t launching(const char* kernel, uint64_t threads, Queue queue);
  /// "kernel a" or "one of the kernels a, b": those queued since the device was last waited for.
  std::string suspects();
  /// The kernels queued since the last forget_launches().
  Launches launches();
  void forget_launches();
  /// For kernels that check their operands, on the compute stream.
  gpu::DataFault fault(const gpu::DataCheck& check);
  /// For use after a wait(). Throws the faults that kernels of this device have reported, and those
  /// of devices that this one was ordered after.
  void raise_fault();
  /// The looks that work queued here now comes after. Call it before an event is recorded.
  Looks looks() const;
  /// This device's further work comes after those.
  void came_behind(const Looks& earlier);
  /// The queue holds something that never ends: a wait for the whole device would not return.
  void keep_cached_memory() { keeps_ = true; }
  bool keeps_cached_memory() const { return keeps_; }
  /// Before all memory goes back. Nothing may be running.
  void forget_faults() { faults_.forget(device); }

 private:
  // No thread calls CUDA while it holds one of these locks. Each CUDA call may wait, for space in a
  // stream or for memory, and other threads need the locks to go on.
  std::atomic<cudaStream_t> streams_[kQueues] = {};
  std::mutex mutex_;
  std::vector<EventHandle> marks_;  // of order(), while not in use
  std::mutex launches_mutex_;
  static constexpr int kRemembered = 8;
  const char* recent_[kRemembered] = {};
  uint64_t launched_ = 0, waited_for_ = 0;
  Launches launches_;
  std::atomic<bool> keeps_{false};
  friend class Look;
  friend void raise_faults(const Looks& looks);
  void raise_fault_up_to(uint64_t looks);
  DataFaults faults_;
  // By device: the looks that work here comes after, and the looks that were already checked.
  std::atomic<uint64_t> behind_[kMaxDevicesPerType] = {}, asked_[kMaxDevicesPerType] = {};
};

/// Lives while a kernel or graph that checks its operands is queued on the compute stream, or is
/// put into a graph: Note [Looks].
class RAMET_API Look {
 public:
  explicit Look(DeviceState& state);
  ~Look();
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

 private:
  DataFaults* faults_;  // null: into a graph
};

/// While it lives, work that this thread gives to the compute stream of cuda:k goes to `stream`. A
/// graph is made of that stream.
class RAMET_API ComputeStreamGuard {
 public:
  ComputeStreamGuard(int device, cudaStream_t stream);
  ~ComputeStreamGuard();
  /// Has a Look lived since this guard was made?
  bool looked() const { return looked_; }
  /// Does this thread make a graph?
  static bool captures() noexcept;
  ComputeStreamGuard(const ComputeStreamGuard&) = delete;
  ComputeStreamGuard& operator=(const ComputeStreamGuard&) = delete;

 private:
  friend class DeviceState;
  friend class Look;
  const int device_;
  const cudaStream_t stream_;
  bool looked_ = false;
  ComputeStreamGuard* const before_;
};

/// The state of cuda:k; an Error where there is no such device.
RAMET_API DeviceState& device_state(int device, const char* op);
/// The one that exists already, or null: for error texts and clean-up.
RAMET_API DeviceState* existing_state(int device);
/// Destroys all states and forgets which GPUs are in use. Nothing may be running, and nothing may
/// refer to the states.
RAMET_API void destroy_states();

}  // namespace cuda
}  // namespace ramet
