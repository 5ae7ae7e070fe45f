// Errors in data without kernels: looks are writes of the fault word in the compute stream. Nothing
// that was seen is lost, whoever waits, and whoever waits for what came behind it is told.
#include "runtime/cuda/data_faults.h"

#include <memory>

#include "runtime/allocator.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using cuda::Queue;
constexpr gpu::DataCheck kCheck{"embedding", "rows", true, 0, 4};

/// The kernel of an operation that has found the value 9 at position 3, or nothing.
class Found {
 public:
  explicit Found(int device, bool fault = true)
      : device_(device), to_(gpu::library()->fault(device, kCheck)) {
    word_.check = fault ? to_.check : 0;
  }
  void queue() const {
    cuda::DeviceState& state = cuda::device_state(device_, "test");
    const cuda::CardGuard card("test", state);
    const cuda::Look look(state);
    RAMET_CUDA("test", device_,
               cudaMemcpyAsync(to_.word, &word_, sizeof word_, cudaMemcpyHostToDevice,
                               state.launching("test", 1, Queue::kCompute)));
  }

 private:
  const int device_;
  const gpu::DataFault to_;
  cuda::FaultWord word_{0, 0, 3, 9, 0};
};

void wait_for(int device) { gpu::library()->synchronize(device); }
void order(int earlier, int later) {
  const auto compute = [](int k) {
    return Stream{Device(kCUDA, static_cast<DeviceIndex>(k)), gpu::kCompute};
  };
  gpu::library()->order(compute(earlier), compute(later));
}
#define EXPECT_TOLD(statement, device) \
  EXPECT_MESSAGE(statement, "[embedding] index out of range: got 9 at position 3, on " device)

TEST(CudaDataFaults, AWaitBeforeTheKernelIsQueuedLosesNothing) {
  const Gpus gpus(gpu_settings(1));
  const Found bad(0);
  wait_for(0);  // somebody else's
  bad.queue();
  EXPECT_TOLD(wait_for(0), "cuda:0");
  EXPECT_NO_THROW(wait_for(0));
}

TEST(CudaDataFaults, ADeviceThatCameBehindTells) {
  const Gpus gpus(gpu_settings(3));
  for (int k = 0; k < 3; ++k) cuda::device_state(k, "test");
  Found(1).queue();
  EXPECT_NO_THROW(wait_for(0));  // it has nothing to do with it
  order(1, 2);
  order(2, 0);
  EXPECT_TOLD(wait_for(0), "cuda:1");
  for (int k = 0; k < 3; ++k) EXPECT_NO_THROW(wait_for(k));
  // What comes later is not behind.
  Found(1).queue();
  EXPECT_NO_THROW(wait_for(0));
  EXPECT_TOLD(wait_for(1), "cuda:1");
}

#if RAMET_GPU_EMULATED
TEST(CudaDataFaults, WhatComesLaterIsNotWaitedFor) {
  const Gpus gpus(gpu_settings(2));
  Found(1, /*fault=*/false).queue();
  order(1, 0);
  // Something that does not end before the other stream comes to it, too.
  const auto meeting = emulated::make_meeting(2, [] {});
  const auto join = [&](Queue queue) {
    const cudaStream_t stream = cuda::device_state(1, "test").stream(queue, "test");
    RAMET_CUDA("test", 1, emulated::join_meeting(stream, "meeting", meeting));
  };
  join(Queue::kCompute);
  EXPECT_NO_THROW(wait_for(0));  // an Error after the emulation's timeout
  join(Queue::kCommunication);
  EXPECT_NO_THROW(wait_for(1));
}
#endif

TEST(CudaDataFaults, APeerCopyComesBehind) {
  const Gpus gpus(gpu_settings(2));
  void *a = cuda::caching_allocator(0).allocate(64), *b = cuda::caching_allocator(1).allocate(64);
  const Device first(kCUDA, 0), second(kCUDA, 1), host(kCPU, 0);
  char bytes[64] = {};
  cuda::copy("copy", b, second, bytes, host, 64);
  cuda::copy("copy", a, first, b, second, 64);
  Found(1).queue();
  cuda::copy("copy", a, first, b, second, 64);
  EXPECT_TOLD(cuda::copy("copy", bytes, host, a, first, 64), "cuda:1");
  EXPECT_NO_THROW(cuda::copy("copy", bytes, host, a, first, 64));
  cuda::caching_allocator(0).free(a), cuda::caching_allocator(1).free(b);
}

TEST(CudaDataFaults, AGraphLooksWheneverItIsLaunched) {
  const Gpus gpus(gpu_settings(1));
  const auto bad = std::make_unique<Found>(0);
  const std::unique_ptr<gpu::Graph> graph = gpu::library()->graph(0, [&] { bad->queue(); });
  EXPECT_NO_THROW(wait_for(0));
  for (int i = 0; i < 2; ++i) {
    graph->launch();
    EXPECT_TOLD(wait_for(0), "cuda:0");
    EXPECT_NO_THROW(wait_for(0));
  }
}

TEST(CudaDataFaults, TheWordIsMemoryLikeAnyOther) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  const Gpus gpus(gpu_settings(1));
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  constexpr size_t kMiB = size_t{1} << 20;
  void* all = a.allocate(64 * kMiB);
  EXPECT_MESSAGE(gpu::library()->fault(0, kCheck), "out of memory on cuda:0: got a request of 40");
  a.free(all);  // cached now
  EXPECT_NO_THROW(gpu::library()->fault(0, kCheck));
  EXPECT_EQ(a.stats().current, 512);
}

}  // namespace
}  // namespace ramet::testing
