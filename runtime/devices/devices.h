// Logical CPU devices and their workers.
//
// Note [What an operation on a logical device means]
// A CPU operation runs at once on the calling thread, whatever cpu:k its operands are on. A
// device's worker is a thread with a queue, made at first use; it runs what parallel_apply, a
// multi-device backward or an explicit post put there, in order.
//
// Note [Pending storages]
// A queued task that will write a storage leaves its ticket in the storage's pending word: (device
// << 56 | task number), never a pointer, because an event could die under its reader. Whoever
// touches that storage meanwhile waits; a movement (parallel/) queues behind it instead. A worker
// that waits runs its own queue, so nested use cannot deadlock; nobody runs another's queue, which
// would break its order. Copies that nobody waits for leave tickets of another kind
// (runtime/tensor/pinned.h).
//
// Note [Shares]
// Logical devices are shares of the cores: while D devices work side by side (parallel_apply,
// multi-device backward), a region inside one of them uses threads / D threads, at least one.
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

/// Queues `task` on the worker of `device`. Returns its ticket, never 0. Thread state is not
/// carried: see ThreadLocalState. What the task throws comes out where it is waited for: at wait(),
/// else at synchronize(), and at whoever touches memory with its ticket.
RAMET_API uint64_t post(Device device, std::function<void()> task);
/// As post(), but the task joins the queue when everything in `after` is done. Until then it blocks
/// nobody: tasks posted later run before it, and no worker waits inside it. How movements queue
/// behind their operands.
RAMET_API uint64_t post_after(Device device, std::vector<uint64_t> after,
                              std::function<void()> task);
/// While it lives, the calling thread takes every storage for ready. For a task that was queued
/// behind all its operands: their pending words may already hold tickets of later readers, which
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
/// Returns when the task is done; throws what it threw. On a worker, runs that worker's own queue
/// meanwhile.
RAMET_API void wait(uint64_t ticket);
/// The ordinal of the device whose worker this thread is; -1 elsewhere.
RAMET_API int worker();
/// Is this thread a device's worker?
inline bool on_worker() { return worker() >= 0; }
/// Whose work this thread does: of a worker the thread that posted what it runs, of any other
/// itself. Never 0, never given twice; the low 16 bits are small numbers, which threads that have
/// ended give back.
RAMET_API uint64_t origin();
/// Waits for everything queued so far on every device, then throws what the first one with an error
/// has to tell, or the first task that threw and was not waited for. What others have to tell the
/// next call does.
RAMET_API void synchronize();
/// Times a user's thread waited for a pending storage.
RAMET_API uint64_t host_syncs();
/// host_syncs() counts from 0 again.
RAMET_API void reset_host_syncs();

}  // namespace devices

namespace gpu {
class Event;
}

/// A point in a device's queue, like LibTorch's. Recording again moves it, its copies stay. Never
/// recorded, it is done. Of a GPU: not while a step is captured.
class RAMET_API Event {
 public:
  Event() = default;
  /// With times, for elapsed_time().
  explicit Event(bool enable_timing) : timing_(enable_timing) {}
  /// After everything that `device` was given so far, copies included.
  void record(Device device);
  /// Is everything before it done? Nobody waits.
  bool query() const;
  /// Waits for it. Throws what kernels before it reported: Note [Errors in data] in
  /// runtime/devices/gpu.h.
  void synchronize() const;
  /// What `later` is given from now on begins after it. Between GPUs the host does not wait; CPU
  /// operations run at once on the calling thread, so before them it does.
  void wait(Device later) const;
  /// LibTorch's name for it.
  void block(Device later) const { wait(later); }
  /// Milliseconds from this point to `end`, negative where `end` came first: of a GPU between its
  /// kernels, of a CPU device by the host's clock. Nobody waits: an Error unless both were recorded
  /// on one device, with times, and are done.
  double elapsed_time(const Event& end) const;

 private:
  bool timing_ = false;
  uint64_t ticket_ = 0;
  Device device_ = Device(kCPU);
  std::shared_ptr<double> host_time_;  // ms of a steady clock; null: of a GPU, or without times
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
