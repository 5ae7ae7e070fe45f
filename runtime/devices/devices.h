// Logical CPU devices and their workers.
//
// Note [What an operation on a logical device means]
// A CPU operation runs at once on the calling thread, for operands on any cpu:k. A device's worker
// is a thread with a queue, made at first use. It runs the tasks of parallel_apply, of a
// multi-device backward pass or of an explicit post, in order.
//
// Note [Pending storages]
// A queued task that will write a storage leaves its ticket in the storage's pending word. A ticket
// is (device << 56 | task number), never a pointer, because an event could be freed while a thread
// reads it. A thread that touches that storage before then waits. A movement (parallel/) is queued
// after the task instead. A worker that waits runs its own queue, so nested use cannot deadlock. No
// worker runs the queue of another, which would break its order. Copies that do not block the host
// leave tickets of another kind (runtime/tensor/pinned.h).
//
// Note [Shares]
// Logical devices share the cores. While D devices work concurrently (parallel_apply, multi-device
// backward pass), a region inside one of them uses threads / D threads, at least one.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/device.h"
#include "runtime/memory/storage_impl.h"

namespace ramet {
namespace devices {

/// Queues `task` on the worker of `device`. Returns its ticket, never 0. Does not carry thread
/// state: see ThreadLocalState. An exception of the task is rethrown by wait(), else by
/// synchronize(), and in each thread that touches memory with its ticket.
RAMET_API uint64_t post(Device device, std::function<void()> task);
/// Like post(), but the task joins the queue when everything in `after` is done. Until then it
/// blocks nothing: tasks posted later run before it, and no worker waits inside it. Movements use
/// it to run after their operands.
RAMET_API uint64_t post_after(Device device, std::vector<uint64_t> after,
                              std::function<void()> task);
/// While it lives, the calling thread takes every storage for ready. For a task that was queued
/// after all its operands. Their pending words may already hold tickets of later readers, which
/// wait for this task.
class RAMET_API OperandsReady {
 public:
  OperandsReady();
  ~OperandsReady();
  OperandsReady(const OperandsReady&) = delete;
  OperandsReady& operator=(const OperandsReady&) = delete;

 private:
  bool before_;
};
/// Has the task run?
RAMET_API bool done(uint64_t ticket);
/// Returns when the task is done; throws what it threw. A worker runs its own queue while it waits.
RAMET_API void wait(uint64_t ticket);
/// If this thread is a device's worker, the device's ordinal; -1 elsewhere.
RAMET_API int worker();
/// Is this thread a device's worker?
inline bool on_worker() { return worker() >= 0; }
/// The thread for which this thread works. For a worker, that is the thread that posted the task;
/// for any other thread, itself. Never 0, never given twice. The low 16 bits are small numbers,
/// which are reused after their threads end.
RAMET_API uint64_t origin();
/// Waits for everything queued so far on every device. Then throws the error of the first device
/// that has one, or of the first task that threw and was not waited for. The next call throws the
/// errors of other devices.
RAMET_API void synchronize();
/// How often a user's thread has waited for a pending storage.
RAMET_API uint64_t host_syncs();
/// host_syncs() counts from 0 again.
RAMET_API void reset_host_syncs();

}  // namespace devices

namespace gpu {
class Event;
}

/// A point in a device's queue, like LibTorch's. A second record() moves it, but not its copies. An
/// event that was never recorded is done. For a GPU: not while a step is captured.
class RAMET_API Event {
 public:
  Event() = default;
  /// With times, for elapsed_time().
  explicit Event(bool enable_timing) : timing_(enable_timing) {}
  /// Moves the event after all current work of `device`, copies included.
  void record(Device device);
  /// Is everything before it done? Does not wait.
  bool query() const;
  /// Waits for it. Throws the faults that kernels before it reported: Note [Errors in data] in
  /// runtime/devices/gpu.h.
  void synchronize() const;
  /// Work that `later` gets from now on begins after it. Between GPUs the host does not wait. CPU
  /// operations run at once on the calling thread, so before them the host waits.
  void wait(Device later) const;
  /// LibTorch's name for it.
  void block(Device later) const { wait(later); }
  /// Milliseconds from this point to `end`, negative where `end` came first. A GPU measures between
  /// its kernels, a CPU device uses the host's clock. Does not wait: an Error unless both events
  /// were recorded on one device, with times, and are done.
  double elapsed_time(const Event& end) const;

 private:
  bool timing_ = false;
  uint64_t ticket_ = 0;
  Device device_ = Device(kCPU);
  std::shared_ptr<double> host_time_;  // ms of a steady clock; null for a GPU, or without times
  std::shared_ptr<gpu::Event> on_gpu_;
};

/// Makes `device` current for its type while it lives: factories without a device option create
/// there.
class RAMET_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  /// The device that the guard made current.
  Device current_device() const;

 private:
  uint8_t cpu_, cuda_;
  DeviceType type_;
};

/// The device that factories use by default: cpu of the current index.
RAMET_API Device current_device();

}  // namespace ramet
