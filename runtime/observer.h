// Observers of scopes and kernel calls. runtime/chrome_trace.h is built on them.
//
// A scope is a named stretch of time on one thread ("DataParallel.forward", "MulBackward"). While
// nobody observes, a scope costs one load and a kernel call another.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/kernel_call.h"
#include "runtime/storage_impl.h"

namespace ramet {

/// Nanoseconds of a clock that never goes back.
RAMET_API uint64_t monotonic_ns();

/// One observed scope. Scopes inside it, on other threads too, point to it as their parent.
struct Scope {
  std::atomic<uint32_t> refs{1};  // how many hold it
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

/// Empty functions are skipped. They are called on the thread where the thing happens, several
/// threads at a time; what they do is not observed. An exception is caught, logged and forgotten:
/// observing never changes what a program computes.
struct Observer {
  /// A scope begins or ends.
  std::function<void(const Scope&)> scope_begin, scope_end;
  /// Before a kernel runs (on a GPU: is queued).
  std::function<void(const KernelCall&)> kernel_begin;
  /// `call.start` is the time before the call.
  std::function<void(const KernelCall&)> kernel_end;
};

/// From now on `observer` sees scopes and kernels of all threads. An observer sees the end of a
/// scope that began before it. Returns a number, never 0, that remove_observer takes.
RAMET_API uint64_t add_observer(Observer observer);
/// Calls under way on other threads may still reach it. An Error for an unknown number.
RAMET_API void remove_observer(uint64_t number);

namespace detail {
RAMET_API extern std::atomic<uint32_t> observers;  // how many
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

/// "outermost > ... > innermost": the scopes around the caller, empty outside of any. Scopes are
/// known while somebody observes them or the graph, or anomaly mode is on.
RAMET_API std::string scope_path();

}  // namespace ramet
