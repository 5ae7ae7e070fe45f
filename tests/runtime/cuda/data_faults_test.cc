// Errors in data. A look is a write of the fault word in the compute stream. No fault that was seen
// is lost, whichever thread waits. A caller that waits for later work gets the error too.
#include "runtime/cuda/data_faults.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "tests/runtime/cuda/gate.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using cuda::Queue;
constexpr gpu::DataCheck kCheck{"embedding", "rows", true, 0, 4};

/// The kernel of an operation that has found a value at position 3, or nothing.
class Found {
 public:
  explicit Found(int device, bool fault = true, int64_t value = 9)
      : device_(device), to_(gpu::library()->fault(device, kCheck)), fault_(fault) {
    word_.check = to_.check;
    word_.value = value;
  }
  void queue() const {
    cuda::DeviceState& state = cuda::device_state(device_, "test");
    const cuda::CardGuard card("test", state);
    const cuda::Look look(state);
    if (!fault_) return;
    RAMET_CUDA("test", device_,
               cudaMemcpyAsync(to_.word, &word_, sizeof word_, cudaMemcpyHostToDevice,
                               state.launching("test", 1, Queue::kCompute)));
  }

 private:
  const int device_;
  const gpu::DataFault to_;
  const bool fault_;
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
  wait_for(0);  // another thread's wait
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
  // Device 0 does not depend on later work.
  Found(1).queue();
  EXPECT_NO_THROW(wait_for(0));
  EXPECT_TOLD(wait_for(1), "cuda:1");
}

TEST(CudaDataFaults, AllDevicesAreWaitedForBeforeAnybodyIsTold) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus(gpu_settings(2));
  Found(0).queue();
  Found(1).queue();
  Gate gate;
  queue(1, Gate::wait, &gate);
  const OpensLater later(gate);
  EXPECT_TOLD(devices::synchronize(), "cuda:0");
  EXPECT_TRUE(gate.passed);
  EXPECT_TOLD(devices::synchronize(), "cuda:1");
  EXPECT_NO_THROW(devices::synchronize());
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

// One thread clears while another one asks: the checker of emulated GPUs would call a copy
// concurrent with a fill a race.
TEST(CudaDataFaults, AskingRunsBesideClearing) {
  const Gpus gpus(gpu_settings(2));
  Found(1, /*fault=*/false).queue();
  std::atomic<bool> done{false};
  std::thread other([&] {
    for (int i = 0; i < 100; ++i) {
      Found(1, /*fault=*/false).queue();
      EXPECT_NO_THROW(wait_for(1)) << i;
    }
    done = true;
  });
  while (!done) {
    order(1, 0);
    EXPECT_NO_THROW(wait_for(0));
  }
  other.join();
}

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

// Note [Which thread gets a fault].
TEST(CudaDataFaults, EveryThreadIsToldOfItsOwn) {
  const Gpus gpus(gpu_settings(2));
  constexpr int kThreads = 40;
  std::atomic<int> queued{0}, told{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      Found(i % 2, true, 100 + i).queue();
      ++queued;
      while (queued < kThreads) std::this_thread::yield();
      const std::string text = message_of([&] { wait_for(i % 2); });
      told += text.find("got " + std::to_string(100 + i) + " ") != std::string::npos;
      EXPECT_NE(text.find("got " + std::to_string(100 + i) + " "), std::string::npos) << text;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(told, kThreads);
  for (int k = 0; k < 2; ++k) EXPECT_NO_THROW(wait_for(k));
}

// More threads than there are fault words, one after the other: a thread that has ended gives its
// word back.
TEST(CudaDataFaults, ThreadsThatEndLeaveTheirFaultToWhoWaits) {
  const Gpus gpus(gpu_settings(1));
  for (int i = 0; i < 100; ++i) {
    std::thread([&] {
      Found(0, true, i).queue();
      if (i % 3 == 0) EXPECT_MESSAGE(wait_for(0), "got " + std::to_string(i) + " ");
    }).join();
    if (i % 3 != 0) EXPECT_MESSAGE(wait_for(0), "got " + std::to_string(i) + " ");
    EXPECT_NO_THROW(wait_for(0));
  }
}

TEST(CudaDataFaults, WhoWaitsFirstIsToldAndSoIsTheThreadThatCausedIt) {
  const Gpus gpus(gpu_settings(2));
  std::atomic<int> step{0};
  const auto until = [&](int n) {
    while (step < n) std::this_thread::yield();
  };
  std::thread other([&] {
    Found(1).queue();
    order(1, 0);
    step = 1;
    until(2);
    EXPECT_TOLD(wait_for(0), "cuda:1");
    EXPECT_NO_THROW(wait_for(0));
    EXPECT_NO_THROW(wait_for(1));
    step = 3;
  });
  until(1);
  EXPECT_TOLD(wait_for(0), "cuda:1");  // what this thread reads may come from there
  EXPECT_NO_THROW(wait_for(0));
  EXPECT_NO_THROW(wait_for(1));
  step = 2;
  until(3);
  EXPECT_NO_THROW(wait_for(1));
  other.join();
}

TEST(CudaDataFaults, AWorkerLooksForWhoPosted) {
  const Gpus gpus(gpu_settings(1));
  std::atomic<bool> posted{false}, told{false};
  std::thread other([&] {
    devices::wait(devices::post(Device(kCUDA, 0), [] { Found(0, true, 7).queue(); }));
    posted = true;
    while (!told) std::this_thread::yield();
    EXPECT_MESSAGE(wait_for(0), "got 7 ");
  });
  while (!posted) std::this_thread::yield();
  devices::wait(devices::post(Device(kCUDA, 0), [] { Found(0, true, 8).queue(); }));
  EXPECT_MESSAGE(wait_for(0), "got 8 ");
  told = true;
  other.join();
  EXPECT_NO_THROW(wait_for(0));
}

TEST(CudaDataFaults, TheWordIsMemoryLikeAnyOther) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  const Gpus gpus(gpu_settings(1));
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  constexpr size_t kMiB = size_t{1} << 20;
  void* all = a.allocate(64 * kMiB);
  EXPECT_MESSAGE(gpu::library()->fault(0, kCheck),
                 "out of memory on cuda:0: got a request of 2560");
  a.free(all);  // cached now
  EXPECT_NO_THROW(gpu::library()->fault(0, kCheck));
  EXPECT_EQ(a.stats().current, 2560);
}

}  // namespace
}  // namespace ramet::testing
