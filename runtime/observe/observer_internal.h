// Connects observers (observer.cc) and captures (program.cc), which share the one hook at kernels.
#pragma once
#include "runtime/observe/kernel_call.h"

namespace ramet {
namespace detail {
/// While `on`, kernel calls of threads with tls.capturing go to capture::record.
void observe_captures(bool on);
}  // namespace detail

namespace capture {
/// Records the call and makes it skip the kernel.
void record(KernelCall& call);
}  // namespace capture
}  // namespace ramet
