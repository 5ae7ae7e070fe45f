// What the runtime asks of the library of GPUs (runtime/cuda).
//
// Note [Linking GPUs]
// The runtime knows one weak function, gpu::linked(). //runtime/cuda defines it and is always
// linked whole: out of a plain archive a weak entry stays null without a word. So a program that
// links that library has cuda:k, and no other program carries a byte of it.
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
/// Whether an index is in range shows only when the kernel runs, and the operation has returned by
/// then. So the kernels that look keep the first fault of their thread in a word of the device's
/// memory, the kernels that would use the value leave it out, and whoever next waits for the device
/// (a copy to the host, synchronize(), an event) gets the Error; so does the thread that caused it,
/// where that was another one. Who waits for a device that was ordered behind this one has waited
/// for it, too. The device stays usable.
struct DataCheck {
  const char* op;
  const char* what;   ///< what is at fault, or, of an index, what its bound is
  bool is_index;      ///< IndexError with the value and the bounds; else an Error with `what`
  int64_t low, high;  ///< of an index
};
/// Where to note it, in device memory, and as what.
struct DataFault {
  void* word;
  uint32_t check;
};

/// Streams of a GPU by Stream::id: kernels run on kCompute unless told otherwise; sums of gradients
/// run on kCommunication beside them.
inline constexpr uint32_t kCompute = 0, kCommunication = 3;

struct Capacity {
  size_t memory;        // of the card, in bytes
  int multiprocessors;  // of the card
};

/// Queued work that can be queued again as one piece.
class RAMET_API Graph {
 public:
  virtual ~Graph() = default;
  virtual void launch() = 0;
};

/// A point in what a device's compute stream was given. Never recorded: nothing to wait for.
class RAMET_API Event {
 public:
  virtual ~Event() = default;
  virtual void record() = 0;
  virtual bool query() = 0;
  /// Waits for it, then throws what kernels before it reported.
  virtual void synchronize() = 0;
  /// What `later` is given from now on begins after it. The host does not wait.
  virtual void wait(Stream later) = 0;
  /// Milliseconds from this one to `end`, an event of the same device. Both are reached and were
  /// made for it.
  virtual double elapsed_time(Event& end) = 0;
};

/// `device` is the k of cuda:k. What one thread asks of one device happens in that order; it is
/// queued, and only synchronize() and copies into host memory wait. Errors name the call, the
/// device and the operation. Thread safety: all of it.
class RAMET_API Library {
 public:
  /// Devices that can be used; makes no context.
  virtual int device_count() = 0;
  /// Why there are none: no driver, no card, all of them left out.
  virtual std::string why_none() = 0;
  /// Uninitialised memory, aligned to 512 bytes. Throws OutOfMemoryError with the statistics.
  virtual void* allocate(size_t bytes, int device) = 0;
  /// May be called while queued work still uses the memory.
  virtual void free(void* memory, size_t bytes, int device) noexcept = 0;
  /// Of one device is a GPU. Host memory is read before it returns, and written when it returns.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device,
                    size_t bytes) = 0;
  /// The same between one GPU and the host, and it waits only for `earlier`, an event of that GPU,
  /// not for what the GPU was given since. What the GPU is given later comes behind it.
  virtual void copy_after(Event& earlier, void* to, Device to_device, const void* from,
                          Device from_device, size_t bytes) = 0;
  /// May kernels of `device` read memory of `owner` where it lies? Tried at the first call of a
  /// pair.
  virtual bool reaches(int device, int owner) = 0;
  /// What `later` is given from now on begins after everything that `earlier` was given. Of any two
  /// GPUs; the host does not wait.
  virtual void order(Stream earlier, Stream later) = 0;
  /// Waits for everything queued on the device. Of a device that nobody has used: nothing.
  virtual void wait(int device) = 0;
  /// Throws what its kernels reported, and those of other devices that it was ordered behind, after
  /// a wait for them.
  virtual void raise_faults(int device) = 0;
  /// wait(), then raise_faults().
  void synchronize(int device) {
    wait(device);
    raise_faults(device);
  }
  /// The stream of kernels (kCompute), for a launch by the caller: its card is the thread's now.
  virtual CUstream_st* current_stream(int device) = 0;
  /// For a kernel that is about to be queued.
  virtual DataFault fault(int device, const DataCheck& check) = 0;

  virtual std::unique_ptr<Event> event(int device, bool timing = false) = 0;
  /// What `queue` gives to the device's compute stream from this thread, as a graph; nothing of it
  /// runs. Where memory runs out it is called a second time.
  virtual std::unique_ptr<Graph> graph(int device, const std::function<void()>& queue) = 0;

  virtual MemoryStats memory_stats(int device) = 0;
  virtual void reset_peak_memory_stats(int device) = 0;
  /// 0: no limit but the card's.
  virtual void set_memory_limit(int device, size_t bytes) = 0;
  virtual void empty_cache() = 0;
  virtual Capacity capacity(int device) = 0;
  /// The number that CUDA gives the card of cuda:k. -1: an emulated one, whose memory no other
  /// library knows.
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
