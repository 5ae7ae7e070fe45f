// What each logical device cuda:k has of its own: streams, events, names for error texts. Made at
// its first use.
//
// Note [Streams of a device]
// Kernels and allocations belong to the compute stream. Copies from and to the host and other
// devices have streams of their own, so that they overlap with kernels: a copy waits for what the
// compute stream was given before it, and the compute stream waits for the copy. So in the order of
// the program nothing changes; what is gained is that the two directions go on side by side, and
// that a copy out does not hold up the next kernels (they wait for it only where its memory is
// given back). A copy to another GPU does: the sender goes on after it, so where there are several
// the receivers fetch them (FanOut in parallel/move/peers.h). Copies that the host does not wait
// for wait for less: Note in runtime/tensor/pinned.h.
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

/// Of each device, how many of its looks somebody comes behind: Note [Looks].
struct Looks {
  uint64_t of[kMaxDevicesPerType] = {};
};
/// Throws what they reported. They are known to be done.
RAMET_API void raise_faults(const Looks& looks);

/// Makes the card of cuda:k the calling thread's while it lives, and bound to it: libraries need
/// that, and a thread which has done nothing yet is not, though CUDA calls card 0 its own.
///
/// Note [Contexts]: the first call that needs one makes a context on the thread's card, and so does
/// cudaSetDevice(). It takes some hundred megabytes, so a program that uses cuda:1 alone must not
/// get one on card 0, the card of every fresh thread. Hence the guard gives the thread back the
/// card it had only where that card has a context; else the thread keeps this one. Calls that
/// belong to no device come behind use_any_card().
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

/// The device's card becomes the calling thread's, for good. Returns the one it had.
int use_card(const char* op, const DeviceState& state);
/// For calls that belong to no device, like those that give something back: a thread whose card has
/// no context gets a card that is in use. False where none is.
RAMET_API bool use_any_card() noexcept;

/// An event that its owner records again and again; without times it costs less.
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

  /// The stream of this queue, made at need.
  cudaStream_t stream(Queue queue, const char* op);
  /// `later` does not begin what it is given from now on before `earlier` has done what it was
  /// given.
  void order(Queue earlier, Queue later, const char* op);
  /// Waits for all streams.
  void wait(const char* op);
  /// wait(), then raise_fault().
  void synchronize(const char* op);
  /// The stream of this queue, for a kernel of so many threads that the caller queues at once:
  /// noted for errors that show later, and for launches().
  cudaStream_t launching(const char* kernel, uint64_t threads, Queue queue);
  /// "kernel a" or "one of the kernels a, b": those queued since the device was last waited for.
  std::string suspects();
  /// What was queued since the last forget_launches().
  Launches launches();
  void forget_launches();
  /// For kernels that look at their operands, on the compute stream.
  gpu::DataFault fault(const gpu::DataCheck& check);
  /// Throws what they reported, and those of devices that this one was ordered behind, after a wait
  /// for them.
  void raise_fault();
  /// What work that is queued here now comes behind: taken before an event is recorded.
  Looks looks() const;
  /// This device's further work comes behind those.
  void came_behind(const Looks& earlier);
  /// Something that will never end is queued: what waits for the whole device would never return.
  void keep_cached_memory() { keeps_ = true; }
  bool keeps_cached_memory() const { return keeps_; }
  /// Before all memory goes back. Nothing may be running.
  void forget_faults() { faults_.forget(device); }

 private:
  // Under none of the locks here is a call of CUDA's made: each may wait, for room in a stream or
  // for memory, and others need the locks to go on.
  std::atomic<cudaStream_t> streams_[kQueues] = {};
  std::mutex mutex_;
  std::vector<EventHandle> marks_;  // of order(), while nobody uses them
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
  // Of other devices: the looks that this one's work comes behind, and up to which somebody asked.
  std::atomic<uint64_t> behind_[kMaxDevicesPerType] = {}, asked_[kMaxDevicesPerType] = {};
};

/// Lives while a kernel or graph that looks at its operands is queued on the compute stream, or is
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

/// While it lives, what this thread gives to the compute stream of cuda:k goes to `stream`, of
/// which a graph is made.
class RAMET_API ComputeStreamGuard {
 public:
  ComputeStreamGuard(int device, cudaStream_t stream);
  ~ComputeStreamGuard();
  /// Has a Look lived meanwhile?
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
/// Destroys all states and forgets which cards are in use. Nothing may be running, and nothing
/// refer to them.
RAMET_API void destroy_states();

}  // namespace cuda
}  // namespace ramet
