// State that must follow work onto another thread.
//
// Captured: grad mode, inference mode, anomaly mode, current devices, thread share, default dtype
// and autocast. Also replica index, random context, profiler scope, and states registered by users.
// Some state belongs to the thread and is not captured. This is free lists, the operation counter,
// the dead-node list, the running backward pass, "inside a fork/join region".
//
//   auto state = std::make_shared<ThreadLocalState>();
//   devices::post(device, [state] { ThreadLocalStateGuard guard(*state); work(); });
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/devices/generator.h"

namespace ramet {

/// A user's own thread-local state. `capture` runs on the thread that captures. `restore` runs with
/// its result on the thread that does the work. When the work ends, it runs there again with the
/// previous state. `restore` must not throw.
using CaptureState = std::function<std::shared_ptr<void>()>;
/// The other half of it.
using RestoreState = std::function<void(const std::shared_ptr<void>&)>;
/// States captured from now on carry it. Returns a number for unregister_thread_local_state.
RAMET_API uint64_t register_thread_local_state(CaptureState capture, RestoreState restore);
/// States captured before no longer restore it. An Error for an unknown number.
RAMET_API void unregister_thread_local_state(uint64_t number);

/// The calling thread's state when it was made. May be copied and used on any thread, several at a
/// time.
class RAMET_API ThreadLocalState {
 public:
  ThreadLocalState();
  ThreadLocalState(const ThreadLocalState& o);
  ThreadLocalState& operator=(const ThreadLocalState&) = delete;
  ~ThreadLocalState();

 private:
  friend class ThreadLocalStateGuard;
  struct Registered;
  void apply() const;

  Context context_;  // only what is captured is meaningful
  ReplicaRandomRef random_;
  std::shared_ptr<const std::vector<Registered>> registered_;  // null: none
};

/// While it lives, the thread has the captured state.
class RAMET_API ThreadLocalStateGuard {
 public:
  explicit ThreadLocalStateGuard(const ThreadLocalState& state);
  ~ThreadLocalStateGuard();
  ThreadLocalStateGuard(const ThreadLocalStateGuard&) = delete;
  ThreadLocalStateGuard& operator=(const ThreadLocalStateGuard&) = delete;

 private:
  ThreadLocalState inside_;  // keeps alive the objects that the thread points to
  ThreadLocalState before_;
};

}  // namespace ramet
