// The hook at the one place where kernels are called (kernels/kernel.h). The public interface is
// runtime/observe/observer.h; capture and replay take the raw hook.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/stream.h"

namespace ramet {

/// A kernel call. The hook gets it twice: before the call, and after its return (on a GPU: after
/// the kernel was queued) with `done` set.
struct KernelCall {
  /// Name of the kernel: "mul_forward".
  const char* name;
  /// The stream on which it runs.
  Stream stream;
  const void* args;  ///< trivially copyable: may be copied byte by byte
  /// Size of the arguments.
  size_t bytes;
  uint64_t start = 0;  ///< for the hook's own use between the two calls
  bool done = false;
  /// Set by the hook before the kernel: it does not run, and the hook is not called again.
  bool skip = false;
  /// invoke(kernel, stream, copy of args) repeats the call. The hook sees it like any other.
  void (*invoke)(const void* kernel, Stream stream, const void* args) = nullptr;
  const void* kernel = nullptr;
  /// The RandomKey among the arguments; null where there is none.
  const void* key = nullptr;
};
/// Called before and after a kernel.
using KernelObserver = void (*)(KernelCall&);

namespace detail {
/// Null, or a function called around every kernel, on the thread that calls the kernel. It may
/// throw only on a thread that is making a capture.
RAMET_API extern std::atomic<KernelObserver> kernel_observer;
}  // namespace detail
}  // namespace ramet
