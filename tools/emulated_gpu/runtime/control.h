// The emulated GPUs beyond the CUDA API: for tests, and for the libraries that put host work into
// streams (matrix products, collectives).
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "tools/emulated_gpu/executor/settings.h"
#include "tools/emulated_gpu/runtime/runtime_api.h"

namespace ramet::emulated {

/// Throws all devices away and starts again with `next`. Queued work that has not started never
/// does. Every handle and pointer from before is invalid. No other thread may use the devices
/// during the call. The calling thread's device is 0 and its last error cudaSuccess.
void restart(const Settings& next);

/// Text of the last fault: of a kernel, of a stream that waits for ever, of a collective. Empty
/// when there was none since the start, the last restart() or cudaDeviceReset().
std::string last_report();

/// Puts host code into a stream. `what` names it in reports and must outlive it.
cudaError_t enqueue_work(cudaStream_t stream, const char* what, std::function<void()> work);

/// Several streams meet: `work` runs once, when each of `count` streams has reached the operation
/// that join_meeting() put into it. A collective is one of these.
struct Meeting;
std::shared_ptr<Meeting> make_meeting(int count, std::function<void()> work);
cudaError_t join_meeting(cudaStream_t stream, const char* what, std::shared_ptr<Meeting> meeting,
                         const void* owner = nullptr);

/// Has a call made a context on the device? cudaSetDevice() makes one, and so does every call that
/// needs one, on the thread's device (0 until cudaSetDevice()). On a GPU a context takes some
/// hundred megabytes.
bool has_context(int device);

/// The device allocation that `address` lies in. False where there is none.
struct Allocation {
  const void* base;
  size_t bytes;
  int device;
  bool in_order = false;  // cudaMallocAsync() gave it
};
bool find_allocation(const void* address, Allocation* allocation);

/// Makes `report` the last fault and prints it as the settings say. For refused calls that need
/// more explanation than a code.
void note_report(const std::string& report);

/// The same, and every device has the sticky error `error` from here on. For errors outside
/// kernels.
void fail_all_devices(cudaError_t error, const std::string& report);

}  // namespace ramet::emulated
