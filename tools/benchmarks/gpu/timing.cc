// How rows are timed, and the two limits that are calls of the CUDA runtime itself.
#include <algorithm>
#include <chrono>

#include "runtime/base/device.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/memory/allocator.h"
#include "tools/benchmarks/gpu/launch.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {
namespace {

constexpr const char* kOp = "gpu_bench";

cudaStream_t compute_stream() {
  return cuda::device_state(0, kOp).stream(cuda::Queue::kCompute, kOp);
}

class Event {
 public:
  Event() { RAMET_CUDA(kOp, 0, cudaEventCreate(&event_)); }
  ~Event() { (void)cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record() { RAMET_CUDA(kOp, 0, cudaEventRecord(event_, compute_stream())); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

double on_the_gpu(const Work& work, int64_t times) {
  const cuda::CardGuard card(kOp, 0);
  Event start, end;
  start.record();
  for (int64_t i = 0; i < times; ++i) work.run();
  end.record();
  RAMET_CUDA(kOp, 0, cudaEventSynchronize(end.get()));
  float ms = 0;
  RAMET_CUDA(kOp, 0, cudaEventElapsedTime(&ms, start.get(), end.get()));
  cuda::synchronize(0);
  return ms * 1e-3 / static_cast<double>(times);
}

double on_the_host(const Work& work, int64_t times) {
  constexpr int64_t kBurst = 256;  // a quarter of what a device queues before launches wait
  double sum = 0;
  for (int64_t done = 0; done < times; done += kBurst) {
    const int64_t burst = std::min(kBurst, times - done);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < burst; ++i) work.run();
    sum += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    cuda::synchronize(0);
  }
  return sum / static_cast<double>(times);
}

double peak_of(const Work& work) {
  reset_peak_memory_stats(kGpu);
  work.run();
  cuda::synchronize(0);
  return static_cast<double>(memory_stats(kGpu).peak);
}

}  // namespace

double seconds_of(const Row& row, const Work& work, int64_t times) {
  cuda::synchronize(0);
  if (row.memory) return peak_of(work);
  return row.host ? on_the_host(work, times) : on_the_gpu(work, times);
}

void bare_launch() { RAMET_CUDA(kOp, 0, launch_nothing(compute_stream())); }

void bare_copy(void* to, const void* from, int64_t bytes) {
  RAMET_CUDA(kOp, 0,
             cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                             compute_stream()));
}

}  // namespace ramet::gpu_bench
