// The interface between the runtime and the library of GPUs (runtime/cuda).
//
// Note [Linking GPUs]
// The runtime knows one weak function, gpu::linked(). //runtime/cuda defines it and is always
// linked whole: from a plain archive a weak entry would stay null without an error. So a program
// that links that library has cuda:k, and no other program carries a byte of it.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/device.h"
#include "runtime/base/stream.h"
#include "runtime/memory/allocator.h"

namespace ramet {
namespace gpu {

/// What a kernel looks for in its operands.
///
/// Note [Errors in data]
/// Only the kernel sees whether an index is in range, and the operation has returned by then. So a
/// kernel that checks writes its thread's first fault into a word in device memory. Kernels that
/// would use the value skip it. The next thread that waits for the device (a copy to the host,
/// synchronize(), an event) gets the Error. If another thread caused the fault, that thread gets it
/// as well. A wait for a device that was ordered after this one counts as a wait for this one. The
/// device stays usable.
struct DataCheck {
  const char* op;
  const char* what;   ///< the fault or, for an index, the name of its bound
  bool is_index;      ///< IndexError with value and bounds; else an Error with `what`
  int64_t low, high;  ///< of an index
};
/// Where to write it, in device memory, and its number.
struct DataFault {
  void* word;
  uint32_t check;
};

/// Streams of a GPU by Stream::id. Kernels run on kCompute by default. Sums of gradients run on
/// kCommunication, concurrently with them.
inline constexpr uint32_t kCompute = 0, kCommunication = 3;

struct Capacity {
  size_t memory;        // of the GPU, in bytes
  int multiprocessors;  // of the GPU
};

/// Queued work that can be queued again as one piece.
class RAMET_API Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

/// A point in the work of a device's compute stream. Never recorded: nothing to wait for.
class RAMET_API Event {
 public:
  virtual ~Event() = default;
  virtual void record() = 0;
  virtual bool query() = 0;
  /// Waits for it, then throws the faults that kernels before it reported.
  virtual void synchronize() = 0;
  /// Work that `later` gets from now on begins after it. The host does not wait.
  virtual void wait(Stream later) = 0;
  /// Milliseconds from this one to `end`, an event of the same device. Both are reached and were
  /// made with times.
  virtual double elapsed_time(Event& end) = 0;
};

/// `device` is the k of cuda:k. Calls of one thread for one device take effect in their order. They
/// are queued, and only synchronize() and copies into host memory wait. Errors name the call, the
/// device and the operation. Thread safety: all of it.
class RAMET_API Library {
 public:
  /// Devices that can be used; makes no context.
  virtual int device_count() = 0;
  /// Why there are none: no driver, no GPU, or all of them excluded.
  virtual std::string why_none() = 0;
  /// Uninitialised memory, aligned to 512 bytes. Throws OutOfMemoryError with the statistics.
  virtual void* allocate(size_t bytes, int device) = 0;
  /// May be called while queued work still uses the memory.
  virtual void free(void* memory, size_t bytes, int device) noexcept = 0;
  /// One of the devices is a GPU. Host memory is read or written before the call returns.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device,
                    size_t bytes) = 0;
  /// The same between one GPU and the host. It waits only for `earlier`, an event of that GPU, not
  /// for later work of the GPU. Work that the GPU gets afterwards runs after the copy.
  virtual void copy_after(Event& earlier, void* to, Device to_device, const void* from,
                          Device from_device, size_t bytes) = 0;
  /// May kernels of `device` read memory of `owner` in place? The first call for a pair tries it.
  virtual bool reaches(int device, int owner) = 0;
  /// Work that `later` gets from now on begins after all work that `earlier` has. For any two GPUs;
  /// the host does not wait.
  virtual void order(Stream earlier, Stream later) = 0;
  /// Waits for everything queued on the device. For an unused device it does nothing.
  virtual void wait(int device) = 0;
  /// For use after a wait(). Throws the faults that kernels of this device have reported, and those
  /// of other devices that it was ordered after.
  virtual void raise_faults(int device) = 0;
  /// wait(), then raise_faults().
  void synchronize(int device) {
    wait(device);
    raise_faults(device);
  }
  /// The stream of kernels (kCompute), for a launch by the caller. Makes its GPU the thread's
  /// current one.
  virtual CUstream_st* current_stream(int device) = 0;
  /// For a kernel that is about to be queued.
  virtual DataFault fault(int device, const DataCheck& check) = 0;

  virtual std::unique_ptr<Event> event(int device, bool timing = false) = 0;
  /// The work that `queue` gives to the device's compute stream from this thread, as a graph. None
  /// of it runs. If memory runs out, `queue` is called a second time.
  virtual std::unique_ptr<Graph> graph(int device, const std::function<void()>& queue) = 0;

  virtual MemoryStats memory_stats(int device) = 0;
  virtual void reset_peak_memory_stats(int device) = 0;
  /// 0: no limit but the GPU's memory.
  virtual void set_memory_limit(int device, size_t bytes) = 0;
  virtual void empty_cache() = 0;
  virtual Capacity capacity(int device) = 0;
  /// CUDA's number for the GPU of cuda:k. -1: an emulated one; no other library knows its memory.
  virtual int card(int device) = 0;

 protected:
  ~Library() = default;
};

/// Null where the program was linked without GPUs.
[[gnu::weak]] Library* linked();
RAMET_API Library* library();
/// The library, for an operation on `device`; an Error where there is none.
RAMET_API Library& required(const char* op, Device device);

}  // namespace gpu
}  // namespace ramet
