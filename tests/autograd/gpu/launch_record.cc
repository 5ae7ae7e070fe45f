#include "tests/autograd/gpu/launch_record.h"

#include <mutex>
#include <utility>

#include "runtime/cuda/device_state.h"

namespace {
std::mutex mutex;
bool recording = false;
std::vector<ramet::KernelLaunch> record;
}  // namespace

// A method is a function of its object under the Itanium ABI, which GCC and Clang share.
#define RAMET_LAUNCHING(prefix) prefix##_ZN5ramet4cuda11DeviceState9launchingEPKcmNS0_5QueueE
extern "C" {
cudaStream_t RAMET_LAUNCHING(__real_)(ramet::cuda::DeviceState* state, const char* kernel,
                                      uint64_t threads, ramet::cuda::Queue queue);
cudaStream_t RAMET_LAUNCHING(__wrap_)(ramet::cuda::DeviceState* state, const char* kernel,
                                      uint64_t threads, ramet::cuda::Queue queue) {
  {
    std::lock_guard lock(mutex);
    if (recording) record.push_back({kernel, threads});
  }
  return RAMET_LAUNCHING(__real_)(state, kernel, threads, queue);
}
}

namespace ramet {
void record_launches() {
  std::lock_guard lock(mutex);
  record.clear();
  recording = true;
}
std::vector<KernelLaunch> recorded_launches() {
  std::lock_guard lock(mutex);
  recording = false;
  return std::exchange(record, {});
}
}  // namespace ramet
