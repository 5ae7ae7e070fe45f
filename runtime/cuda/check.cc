#include "runtime/cuda/check.h"

#include <string>

#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

// What a kernel leaves behind, and every later call of the process reports.
bool left_by_a_kernel(cudaError_t code) {
  // Stack error, illegal instruction, misaligned address, invalid address space, invalid program
  // counter: the emulation has no names for these.
  constexpr int kHardwareStackError = 714;
  return code == cudaErrorIllegalAddress || code == cudaErrorAssert ||
         (code >= kHardwareStackError && code <= cudaErrorLaunchFailure);
}

}  // namespace

void raise(cudaError_t code, const char* op, const char* call, int device) {
  const std::string text = call;
  std::string what = text.substr(0, text.find('('));
  if (device >= 0) what += " on cuda:" + std::to_string(device);
  what += std::string(" failed: ") + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
  (void)cudaGetLastError();  // one that is not sticky has been told now
  if (code == cudaErrorMemoryAllocation)
    throw OutOfMemoryError(std::string("[") + op + "] " + what);
  if (left_by_a_kernel(code)) {
    DeviceState* state = existing_state(device);
    const std::string kernels = state ? state->suspects() : "";
    if (!kernels.empty()) what += ", left behind by " + kernels;
    what += ". The device cannot be used any more in this process";
  }
  fail(op, what);
}

}  // namespace cuda
}  // namespace ramet
