// Streams and their queued operations.
//
// Note [One engine, four orders]: A stream is a queue of operations. An operation has work, marks
// that it waits for ("this operation is done"), and a mark of its own. It may run when it is at the
// head of its stream and its marks are done. The stream modes (settings.h) differ in the order of
// operations and in the thread that runs them. That is an executor thread, the enqueuing thread, or
// the thread that waits.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/runtime/control.h"
#include "tools/emulated_gpu/runtime/device_memory.h"
#include "tools/emulated_gpu/runtime/timeline.h"

namespace ramet::emulated {

struct Capture;

/// "This operation is done": shared by the operation, events and all waiting threads and
/// operations.
struct Mark {
  bool done = false;
  double time = 0;
  CUstream_st* stream = nullptr;  // where it is queued, until it is done
  VectorClock clock;              // of the operation once it has run; for the checker
};
using MarkPtr = std::shared_ptr<Mark>;

struct Meeting {
  int count;
  std::function<void()> work;
  std::vector<CUstream_st*> members;
};

struct Operation {
  const char* what;
  std::function<void()> work;
  std::vector<MarkPtr> waits_for = {};
  Transfer transfer = {};
  std::shared_ptr<Meeting> meeting = nullptr;
  const void* owner = nullptr;         // the owner that Engine::give_up() names.
  std::function<void()> instead = {};  // of work that was given up.
  // Set by enqueue(), but where others wait for it before it is queued (`announced`).
  MarkPtr mark = nullptr;
  bool announced = false;
  double enqueued = 0;
  VectorClock host = {};  // what the host had waited for
};

}  // namespace ramet::emulated

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  bool is_default = false, destroyed = false, busy = false;
  std::deque<ramet::emulated::Operation> queue;
  ramet::emulated::MarkPtr last;
  double time = 0;  // when its last operation was done
  std::shared_ptr<ramet::emulated::Capture> capture;
  uint32_t number = 0;  // in vector clocks
  uint64_t operations = 0;
  ramet::emulated::VectorClock clock;

  bool blocking() const { return (flags & cudaStreamNonBlocking) == 0; }
};

struct CUevent_st {
  int device;
  unsigned flags;
  ramet::emulated::MarkPtr mark;  // null until it is recorded
  // Recorded in a stream that is being captured: the nodes it stands for.
  std::shared_ptr<ramet::emulated::Capture> capture;
  std::set<size_t> captured_nodes;
};

namespace ramet::emulated {

struct Device {
  Device(int index, size_t capacity) : id(index), memory(index, capacity) {}
  const int id;
  DeviceMemory memory;
  CUstream_st default_stream;
  std::set<int> enabled_peers;
  std::set<int> pool_peers;              // devices that its memory pool is open to
  std::set<const void*> freed_in_order;  // by cudaFreeAsync() that has not run
  // cudaSuccess, or what every call returns until cudaDeviceReset().
  std::atomic<cudaError_t> sticky{cudaSuccess};
  std::atomic<bool> context{false};  // has_context()
  std::thread executor;
  // The clocks of the streams that were destroyed.
  VectorClock gone_clock;
  double gone_time = 0;
};

/// `mutex` protects all members except `devices`; the constructor and the destructor need no lock.
/// The number of devices never changes.
class Engine {
 public:
  Engine();
  ~Engine();

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Device>> devices;
  std::set<CUstream_st*> streams;  // default streams included
  std::set<CUevent_st*> events;
  std::set<CUgraph_st*> graphs;
  std::set<CUgraphExec_st*> executables;
  std::map<uintptr_t, size_t> pinned;
  std::map<std::pair<const void*, int>, size_t> shared_limits;  // (kernel, device): bytes
  std::set<std::pair<const void*, int>> loaded;                 // (kernel, device): load()
  std::vector<std::shared_ptr<Capture>> captures;
  std::string report;
  Timeline timeline;
  uint32_t stream_count = 0;
  uint64_t launches = 0;

  using Lock = std::unique_lock<std::mutex>;

  /// Null unless the handle is valid. Null and cudaStreamLegacy are the default stream of the
  /// calling thread's device.
  CUstream_st* stream_of(cudaStream_t handle);
  cudaError_t enqueue(CUstream_st* stream, Operation operation, Lock& lock);
  /// Waits for a mark, and runs operations as the mode requires. The report of a deadlock names
  /// `who`, a call that waits although the program did not ask it to.
  cudaError_t wait(const MarkPtr& mark, Lock& lock, const char* who = nullptr);
  /// Waits for all work of a device.
  cudaError_t wait_for_device(Device& device, Lock& lock, const char* who = nullptr);
  /// The same, of a call that waits on some drivers only: Settings::driver_waits.
  cudaError_t wait_as_drivers_may(Device& device, Lock& lock, const char* who);
  /// Loads code that is used on the device for the first time; drivers may wait for this, too.
  cudaError_t load(const void* code, Device& device, Lock& lock, const char* who);
  /// Is the mark done? In modes without executors it also runs something, so that polling ends.
  bool poll(const MarkPtr& mark, Lock& lock);
  /// Forgets the queued work of a device, its streams, events and memory.
  void reset_device(Device& device, Lock& lock);
  void remove_stream(CUstream_st* stream);
  /// Operations of this owner that have not begun run their `instead`. Waits for an announced mark
  /// go on.
  void give_up(const void* owner);
  /// Its streams are ordinary streams again.
  void end_capture(std::shared_ptr<Capture> capture);

  bool find(const void* address, Allocation* allocation) const;
  bool is_pinned(const void* address) const;

 private:
  bool may_run(const CUstream_st* stream) const;
  CUstream_st* first_needed(CUstream_st* stream, int depth) const;
  CUstream_st* pick(CUstream_st* target, int device);
  void run(CUstream_st* stream, Lock& lock);
  void executor_loop(int device);
  class OpenMemory;
  void expose_memory(bool to_host);
  void host_saw(const Mark& mark);
  VectorClock clock_of(const std::vector<CUstream_st*>& members) const;
  void forget_operation(Operation& operation);
  std::string describe_deadlock(const char* who) const;

  const StreamMode mode_;
  uint64_t random_;
  int running_ = 0, open_ = 0;
  bool stopping_ = false;
  VectorClock host_clock_;  // all host threads count as one
};

Engine& engine();

/// The calling thread's state in CUDA.
struct CallerState {
  int device = 0;
  cudaError_t error = cudaSuccess;
  bool in_host_function = false;
  bool bound = false;  // to a context: by cudaSetDevice() or a call that needs one
};
extern thread_local CallerState this_thread;

/// The thread's device has a context, if need be a new one, and the thread is bound to it.
void enter_context();

/// Notes an error for cudaGetLastError() and returns it.
cudaError_t result(cudaError_t error);

/// The answer of calls where there are no devices.
cudaError_t no_device();

/// The beginning of a call of the API. It answers at once where there is no device, a sticky error,
/// or the call comes from a host function. Otherwise it locks the engine.
struct Call {
  Engine& engine;
  Engine::Lock lock;
  cudaError_t refused;
  Call();
  Device& device() { return *engine.devices[static_cast<size_t>(this_thread.device)]; }
  /// Has the thread's device what the driver needs (Settings::driver_memory)?
  bool driver_has_memory() { return driver_has_memory(this_thread.device); }
  bool driver_has_memory(int device) {
    if (refused != cudaSuccess) return true;
    const DeviceMemory& memory = engine.devices[static_cast<size_t>(device)]->memory;
    return memory.capacity() - memory.used() >= settings().driver_memory;
  }
};

}  // namespace ramet::emulated

#define RAMET_EMULATED_ENTER    \
  ::ramet::emulated::Call call; \
  if (call.refused) return result(call.refused)

#define RAMET_EMULATED_DRIVER_ALLOCATES \
  if (!call.driver_has_memory()) return result(cudaErrorMemoryAllocation)

#define RAMET_EMULATED_STREAM(name, handle)                \
  CUstream_st* const name = call.engine.stream_of(handle); \
  if (!name) return result(cudaErrorInvalidResourceHandle)
