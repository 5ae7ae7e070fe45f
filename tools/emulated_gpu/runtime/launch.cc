// Launches: CUDA's checks, then the queue. Host functions and other host work, too.
#include "tools/emulated_gpu/runtime/launch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tools/emulated_gpu/executor/grid.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {
namespace {

bool extents_are_legal(dim3 grid, dim3 block) {
  const uint64_t threads = uint64_t(block.x) * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads) return false;
  if (block.x > kMaxThreads || block.y > kMaxThreads || block.z > 64) return false;
  if (!grid.x || !grid.y || !grid.z) return false;
  return grid.x <= 0x7fffffffu && grid.y <= 65535 && grid.z <= 65535;
}

/// Threads of a block that __launch_bounds__ of the kernel allows (types.h); 0 where it has none.
unsigned bound_of(const void* function) {
#if defined(__x86_64__)
  const auto* code = static_cast<const unsigned char*>(function);
  constexpr unsigned char kBranchTarget[4] = {0xf3, 0x0f, 0x1e, 0xfa}, kNothing = 0x90;
  if (std::memcmp(code, kBranchTarget, sizeof kBranchTarget) == 0) code += sizeof kBranchTarget;
  unsigned warps = 0;
  while (warps < kMaxThreads / 32 && code[warps] == kNothing) ++warps;
  return warps * 32;
#elif defined(__aarch64__)
  constexpr uint32_t kBranchTarget = 0xd503245f, kNothing = 0xd503201f;
  const auto* code = static_cast<const uint32_t*>(function);
  if (*code == kBranchTarget) ++code;
  unsigned warps = 0;
  while (warps < kMaxThreads / 32 && code[warps] == kNothing) ++warps;
  return warps * 32;
#else
  (void)function;
  return 0;
#endif
}

cudaError_t code_of(Fault fault) {
  if (fault == Fault::Assert) return cudaErrorAssert;
  if (fault == Fault::IllegalAddress) return cudaErrorIllegalAddress;
  if (fault == Fault::Misaligned) return cudaErrorMisalignedAddress;
  return cudaErrorLaunchFailure;
}

void run_and_note_faults(const Grid& grid) {
  GridResult outcome = run_grid(grid);
  if (outcome.fault == Fault::None) return;
  Engine& all = engine();
  Engine::Lock lock(all.mutex);
  all.report = std::move(outcome.report);
  all.devices[static_cast<size_t>(grid.device)]->sticky = code_of(outcome.fault);
}

}  // namespace

cudaError_t Engine::wait_as_drivers_may(Device& device, Lock& lock, const char* who) {
  return settings().driver_waits ? wait_for_device(device, lock, who) : cudaSuccess;
}

cudaError_t Engine::load(const void* code, Device& device, Lock& lock, const char* who) {
  if (!settings().driver_waits || loaded.count({code, device.id})) return cudaSuccess;
  // A thread that launches the kernel during this wait waits, too.
  const cudaError_t error = wait_for_device(device, lock, who);
  if (error == cudaSuccess) loaded.insert({code, device.id});
  return error;
}

cudaError_t launch_kernel(const KernelLaunch& what, dim3 grid, dim3 block, size_t shared_bytes,
                          cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!extents_are_legal(grid, block)) return result(cudaErrorInvalidConfiguration);
  if (const unsigned bound = bound_of(what.function), threads = block.x * block.y * block.z;
      bound && threads > bound) {
    call.lock.unlock();
    note_report("[emulated CUDA] kernel " + function_name_of(what.function) + ": a block of " +
                std::to_string(threads) + " threads, and its __launch_bounds__ are " +
                std::to_string(bound));
    return result(cudaErrorInvalidValue);
  }
  const auto limit = call.engine.shared_limits.find({what.function, this_thread.device});
  const bool asked = limit != call.engine.shared_limits.end();
  if (shared_bytes > (asked ? limit->second : kDefaultShared)) return result(cudaErrorInvalidValue);
  if (stream->device != this_thread.device) return result(cudaErrorInvalidResourceHandle);
  RAMET_EMULATED_DRIVER_ALLOCATES;
  if (const cudaError_t error =
          call.engine.load(what.function, call.device(), call.lock, "the first launch of a kernel"))
    return result(error);
  Grid g;
  g.grid = grid;
  g.block = block;
  g.shared_bytes = shared_bytes;
  g.most_shared = asked ? kMaxShared : kDefaultShared;
  g.device = this_thread.device;
  g.launch = ++call.engine.launches;
  g.function = what.function;
  g.body = what.run;
  g.arguments = what.call.get();
  g.argument_bytes = what.call_bytes;
  // The closure keeps the arguments alive until the kernel has run.
  Operation operation{"kernel", [g, arguments = what.call] { run_and_note_faults(g); }};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

cudaError_t enqueue_work(cudaStream_t handle, const char* what, std::function<void()> work) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  Operation operation{what, std::move(work)};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

std::shared_ptr<Meeting> make_meeting(int count, std::function<void()> work) {
  return std::make_shared<Meeting>(Meeting{count, std::move(work), {}});
}

cudaError_t join_meeting(cudaStream_t handle, const char* what, std::shared_ptr<Meeting> meeting,
                         const void* owner) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  Operation operation{what, nullptr};
  operation.meeting = std::move(meeting);
  operation.owner = owner;
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!function) return result(cudaErrorInvalidValue);
  Operation operation{"host function", [function, data] {
                        this_thread.in_host_function = true;
                        function(data);
                        this_thread.in_host_function = false;
                      }};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

cudaError_t cudaFuncSetAttribute(const void* function, enum cudaFuncAttribute attribute,
                                 int value) {
  RAMET_EMULATED_ENTER;
  // The division of the cache is only a hint.
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) return cudaSuccess;
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<size_t>(value) > kMaxShared)
    return result(cudaErrorInvalidValue);
  call.engine.shared_limits[{function, this_thread.device}] = static_cast<size_t>(value);
  return cudaSuccess;
}

// Threads and dynamic shared memory only: the number of registers is not known here.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          size_t shared_bytes) {
  if (block_size <= 0 || block_size > static_cast<int>(kMaxThreads))
    return result(cudaErrorInvalidValue);
  const size_t by_memory = (kMaxShared + 1024) / (shared_bytes + 1024);
  *blocks = std::min({2048 / block_size, 32, static_cast<int>(std::min<size_t>(by_memory, 32))});
  return cudaSuccess;
}

}  // extern "C"
