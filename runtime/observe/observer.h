// Observers of scopes, kernel calls and waits. runtime/observe/chrome_trace.h uses them.
//
// A scope is a named period of time on one thread ("DataParallel.forward", "MulBackward"). Without
// an observer, a scope costs one load, a kernel call another, and a wait for a GPU a third.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>

#include "runtime/base/context.h"
#include "runtime/base/device.h"
#include "runtime/memory/storage_impl.h"
#include "runtime/observe/kernel_call.h"

namespace ramet {

struct TensorImpl;

/// Nanoseconds of a monotonic clock.
RAMET_API uint64_t monotonic_ns();

/// One observed scope. Scopes inside it, on other threads too, point to it as their parent.
struct Scope {
  std::atomic<uint32_t> refs{1};  // number of references
  std::string name;               // "MulBackward"
  const Scope* parent;            // one reference, or null
  Device device;                  // the current cpu device of the thread it runs on
  uint64_t start;                 // monotonic_ns()
  uint64_t end = 0;               // set before scope_end
  uint64_t thread;                // small number, one a thread

  /// One reference more, or less; null stays null:
  RAMET_API static const Scope* hold(const Scope* s);
  RAMET_API static void release(const Scope* s);
};

/// The host has waited for a GPU's work, because it needs numbers from there.
struct HostWait {
  const char* what;  // "item", "copy", "print", "synchronize"
  Device device;     // the GPU
  /// The tensor that was read, and the target of a copy. Null where there is none, or no tensor.
  /// They live during the call.
  TensorImpl *from, *to;
  uint64_t start, end;  // monotonic_ns()
};

/// Empty functions are skipped. Each function runs on the thread of the event, several threads at a
/// time. Its own operations are not observed. An exception is caught, logged and forgotten, so that
/// an observer never changes what a program computes.
struct Observer {
  /// A scope begins or ends.
  std::function<void(const Scope&)> scope_begin = {}, scope_end = {};
  /// Before a kernel runs (on a GPU: is queued).
  std::function<void(const KernelCall&)> kernel_begin = {};
  /// `call.start` is the time before the call.
  std::function<void(const KernelCall&)> kernel_end = {};
  /// After the wait.
  std::function<void(const HostWait&)> host_wait = {};
};

/// From now on `observer` gets scopes and kernels of all threads. It also gets the end of a scope
/// that began earlier. Returns a number, never 0, for remove_observer.
RAMET_API uint64_t add_observer(Observer observer);
/// Calls that already run on other threads may still reach it. An Error for an unknown number.
RAMET_API void remove_observer(uint64_t number);

namespace detail {
RAMET_API extern std::atomic<uint32_t> observers;  // their number
}
/// Is there an observer?
inline bool observed() { return detail::observers.load(std::memory_order_relaxed) != 0; }

/// RecordScope scope("DataParallel.forward"); Ends on the thread where it began, in reverse order.
class RAMET_API RecordScope {
 public:
  explicit RecordScope(const char* name) {
    if (RAMET_UNLIKELY(observed() || ramet::detail::tls.watching)) begin(name);
  }
  explicit RecordScope(const std::string& name) : RecordScope(name.c_str()) {}
  ~RecordScope() {
    if (RAMET_UNLIKELY(scope_ != nullptr)) end();
  }
  RecordScope(const RecordScope&) = delete;
  RecordScope& operator=(const RecordScope&) = delete;

 private:
  [[gnu::cold]] void begin(const char* name);
  [[gnu::cold]] void end() noexcept;
  Scope* scope_ = nullptr;
};

/// Surrounds code that makes the host wait for a GPU. Reports nothing if an exception ends it.
class RAMET_API RecordWait {
 public:
  RecordWait(const char* what, Device device, TensorImpl* from = nullptr, TensorImpl* to = nullptr)
      : wait_{what, device, from, to, observed() ? monotonic_ns() : 0, 0} {}
  ~RecordWait() {
    if (RAMET_UNLIKELY(wait_.start != 0)) end();
  }
  RecordWait(const RecordWait&) = delete;
  RecordWait& operator=(const RecordWait&) = delete;

 private:
  [[gnu::cold]] void end() noexcept;
  HostWait wait_;
  const int exceptions_ = std::uncaught_exceptions();
};

/// "outermost > ... > innermost": the scopes around the caller, empty outside of any. Scopes are
/// known only with an observer of scopes or of the graph, or in anomaly mode.
RAMET_API std::string scope_path();

}  // namespace ramet
