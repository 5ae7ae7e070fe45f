#include "runtime/cuda/check.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

// After these every call of the process fails. The CUDA runtime's list of errors says of them that
// the process must be terminated; uncorrectable errors of memory and links are here, too. They are
// numbers, because the emulation has names for only a few.
constexpr int kSticky[] = {
    214,  // uncorrectable ECC error
    220,  // uncorrectable NVLink error
    226,  // contained hardware error
    700,  // illegal address
    702,  // launch timed out
    710,  // assert
    714,  // hardware stack error
    715,  // illegal instruction
    716,  // misaligned address
    717,  // invalid address space
    718,  // invalid program counter
    719,  // launch failure
    721,  // tensor memory leak
    810,  // MPS client terminated
    911,  // external device
};
bool is_sticky(cudaError_t code) {
  return std::find(std::begin(kSticky), std::end(kSticky), static_cast<int>(code)) !=
         std::end(kSticky);
}
// The other sticky errors come from outside and hit any kernel that runs.
bool left_by_a_kernel(cudaError_t code) { return code >= 700 && code <= 721; }

std::string function_of(const char* call) {
  const std::string text = call;
  return text.substr(0, text.find('('));
}

}  // namespace

void raise(cudaError_t code, const char* op, const char* call, int device) {
  std::string what = function_of(call);
  if (device >= 0) what += " on cuda:" + std::to_string(device);
  what += std::string(" failed: ") + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
  (void)cudaGetLastError();  // clears an error that is not sticky
  if (code == cudaErrorMemoryAllocation)
    throw OutOfMemoryError(std::string("[") + op + "] " + what);
  if (is_sticky(code)) {
    DeviceState* state = existing_state(device);
    const std::string kernels = state ? state->suspects() : "";
    if (!kernels.empty())
      what += (left_by_a_kernel(code) ? ", left behind by " : ", met by ") + kernels;
    what += ". The device cannot be used any more in this process";
  }
  fail(op, what);
}

void free_caches(cudaError_t code, const char* op, const char* call, int device) {
  if (code != cudaErrorMemoryAllocation) raise(code, op, call, device);
  if (ComputeStreamGuard::captures()) raise_again(code, op, call, device);
  (void)cudaGetLastError();  // the error is handled
  if (device >= 0) empty_caches_of_card(device);
  else empty_all_caches();
}

void raise_again(cudaError_t code, const char* op, const char* call, int device) {
  if (code != cudaErrorMemoryAllocation || device < 0) raise(code, op, call, device);
  (void)cudaGetLastError();
  const MemoryStats held = caching_allocator(device).stats();
  const CardGuard guard(op, device);
  size_t room = 0, total = 0;
  if (cudaMemGetInfo(&room, &total) != cudaSuccess) {
    (void)cudaGetLastError();
    room = total = 0;
  }
  throw OutOfMemoryError(detail::join("[", op, "] out of memory on cuda:", device, ": ",
                                      function_of(call), " failed (", cudaGetErrorName(code), "), ",
                                      held.current, " bytes are in use, ", held.cached,
                                      " are cached, the card has ", room, " of ", total, " free"));
}

}  // namespace cuda
}  // namespace ramet
