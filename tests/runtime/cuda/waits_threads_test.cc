// Which thread waits for what on several GPUs. Ranks are threads, and a GPU that waits for another
// rank's part of a collective delays no thread that can go on. Each of these hung, until a
// time-out.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/kept_memory.h"
#include "runtime/cuda/nccl.h"
#include "runtime/devices/gpu_link.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gate.h"
#include "tests/runtime/cuda/gpus.h"
#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/nccl/nccl_control.h"
#endif

namespace ramet::testing {
namespace {

using cuda::Queue;
constexpr size_t kMiB = size_t{1} << 20;

// Waits until `done`, but not for ever: false after a time limit.
template <class F> bool comes(const F& done) {
  for (int i = 0; i < 10000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

class Waits : public ::testing::Test {
  const Caching on_{"1"};
};

#if RAMET_GPU_EMULATED
// Rank 1's GPU waits for rank 0, and rank 0's own GPU is full. What rank 1 has cached stays,
// because a free would wait for rank 1's GPU.
TEST_F(Waits, OutOfMemoryIsAMatterOfOneCard) {
  emulated::Settings settings = gpu_settings(2);  // of 64 MiB
  settings.timeout_ms = 20000;                    // then a wait in a circle is reported, and ends
  const Gpus gpus(settings);
  const std::string id = gpu::make_link_id();
  std::atomic<bool> begun{false};
  const auto rank = [&](int me) {
    cuda::CachingAllocator& memory = cuda::caching_allocator(me);
    const auto link = gpu::make_link(id, me, me, 2);
    EXPECT_TRUE(comes([&] { return link->settled(); }));
    const std::vector<float> mine = {me + 1.f, 10.f};
    std::vector<float> sum(2);
    const Device card(kCUDA, static_cast<DeviceIndex>(me));
    void* data = memory.allocate(8);
    cuda::copy("copy", data, card, mine.data(), kCpu, 8);
    memory.free(memory.allocate(40 * kMiB));
    if (me == 0) {
      EXPECT_TRUE(comes([&] { return begun.load(); }));
      memory.free(memory.allocate(50 * kMiB));  // does not fit next to the 40
    }
    link->come_after_kernels();
    link->sum(data, 2, kFloat);
    EXPECT_TRUE(comes([&] { return link->settled(); }));
    if (me == 1) begun = true;
    link->come_before_kernels();
    cuda::copy("copy", sum.data(), kCpu, data, card, 8);
    EXPECT_EQ(sum, (std::vector<float>{3, 20}));
    memory.free(data);
  };
  std::thread other([&] { EXPECT_EQ(message_of([&] { rank(1); }), "no exception"); });
  EXPECT_EQ(message_of([&] { rank(0); }), "no exception");
  other.join();
  EXPECT_EQ(emulated::last_report(), "");
  EXPECT_EQ(cuda::caching_allocator(0).reserved(), 52 * kMiB);
  EXPECT_EQ(cuda::caching_allocator(1).reserved(), 42 * kMiB);
}

// NCCL's call may wait for as long as its work would have taken.
TEST_F(Waits, AnAbortThatDoesNotReturn) {
  const Gpus gpus(gpu_settings(1));
  auto link = gpu::make_link(gpu::make_link_id(), 0, 0, 1);
  EXPECT_TRUE(comes([&] { return link->settled(); }));
  std::string logged;
  set_log_handler([&](LogLevel, const std::string& text) { logged += text; });
  emulated::hold_nccl_aborts(true);
  std::atomic<bool> back{false};
  std::thread caller([&] {
    link->abort(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    back = true;
  });
  EXPECT_TRUE(comes([&] { return back.load(); }));
  emulated::hold_nccl_aborts(false);
  caller.join();
  set_log_handler({});
  EXPECT_NE(logged.find("ncclCommAbort on cuda:0 did not return in time"), std::string::npos)
      << logged;
}

// cudaFree() waits for the GPU, and the GPU's kernels end when another thread lets them. That
// thread gets memory during the wait.
TEST_F(Waits, NobodyNeedsALockThatAWaitHolds) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus(gpu_settings(1));
  cuda::CachingAllocator& memory = cuda::caching_allocator(0);
  void* small = memory.allocate(4);
  memory.free(memory.allocate(40 * kMiB));
  Gate gate;
  queue(0, Gate::wait, &gate);
  const auto cycle = [&](size_t bytes) {
    EXPECT_EQ(message_of([&] { memory.free(memory.allocate(bytes)); }), "no exception");
  };
  std::thread full([&] { cycle(50 * kMiB); });
  std::atomic<bool> served{false};
  std::thread other([&] {
    EXPECT_TRUE(comes([&] { return memory.reserved() < 40 * kMiB; }));  // it is on its way
    cycle(4);
    served = true;
  });
  EXPECT_TRUE(comes([&] { return served.load(); }));
  EXPECT_FALSE(gate.passed);
  gate.open = true;
  full.join();
  other.join();
  EXPECT_EQ(memory.reserved(), 52 * kMiB);
  memory.free(small);
}

// Memory that a thread gives back is on its way while the GPU is busy. A thread that needs it waits
// for it, and does not treat the GPU as full.
TEST_F(Waits, MemoryThatIsOnItsWayIsWaitedFor) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus(gpu_settings(1));
  cuda::CachingAllocator& memory = cuda::caching_allocator(0);
  memory.free(memory.allocate(40 * kMiB));
  Gate gate;
  queue(0, Gate::wait, &gate);
  std::thread gives([] { EXPECT_EQ(message_of(cuda::empty_all_caches), "no exception"); });
  EXPECT_TRUE(comes([&] { return memory.reserved() < 40 * kMiB; }));
  EXPECT_FALSE(gate.passed);
  const OpensLater opens(gate);
  EXPECT_EQ(message_of([&] { memory.free(memory.allocate(50 * kMiB)); }), "no exception");
  EXPECT_TRUE(gate.passed);
  gives.join();
}

// While NCCL's work may still be there, nothing that waits for the GPU is called. What is cached
// stays, and a caller that needs it gets an error. When the work has ended the memory goes back
// again.
TEST_F(Waits, WhatAnAbortLeavesIsNotWaitedFor) {
  const Gpus gpus(gpu_settings(2));
  const std::string id = gpu::make_link_id();
  std::unique_ptr<gpu::Link> links[2];
  for (int rank : {0, 1}) links[rank] = gpu::make_link(id, rank, rank, 2);
  for (const auto& link : links) EXPECT_TRUE(comes([&] { return link->settled(); }));
  cuda::CachingAllocator& memory = cuda::caching_allocator(0);
  void* data = memory.allocate(8);
  const std::vector<float> given = {1, 2};
  cuda::copy("copy", data, kGpu, given.data(), kCpu, 8);
  memory.free(memory.allocate(40 * kMiB));
  links[0]->come_after_kernels();
  links[0]->sum(data, 2, kFloat);  // the other rank never joins
  EXPECT_TRUE(comes([&] { return links[0]->settled(); }));
  set_log_handler([](LogLevel, const std::string&) {});
  emulated::hold_nccl_aborts(true);
  links[0]->abort(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  EXPECT_MESSAGE(memory.allocate(50 * kMiB), "out of memory on cuda:0");
  gpu::library()->empty_cache();
  EXPECT_EQ(emulated::last_report(), "");
  EXPECT_EQ(memory.reserved(), 42 * kMiB);
  emulated::hold_nccl_aborts(false);
  EXPECT_TRUE(comes([] { return !cuda::keeps_memory(0); }));
  EXPECT_EQ(message_of([&] { memory.free(memory.allocate(50 * kMiB)); }), "no exception");
  EXPECT_EQ(memory.reserved(), 52 * kMiB);
  memory.free(data);
  links[1]->abort(std::chrono::steady_clock::now() + gpu::kLinkAbortTakes);
  set_log_handler({});
}

// GPUs 0 and 1 wait for GPU 2, and NCCL, which makes a communicator of theirs, waits for them. The
// thread that has GPU 2 sums during that wait, and then lets them go on.
TEST_F(Waits, SumsOfOtherCardsGoOn) {
  emulated::Settings settings = gpu_settings(4);
  settings.driver_waits = true;
  settings.timeout_ms = 20000;
  const Gpus gpus(settings);
  void *in[4], *out[4];
  for (int k = 0; k < 4; ++k) {
    const Device card(kCUDA, static_cast<DeviceIndex>(k));
    for (void** p : {&in[k], &out[k]}) *p = cuda::caching_allocator(k).allocate(4);
    const float value = static_cast<float>(k + 1);
    cuda::copy("copy", in[k], card, &value, kCpu, 4);
  }
  const auto sum = [&](int first) {
    EXPECT_EQ(message_of([&] {
                const int devices[] = {first, first + 1};
                cuda::nccl_sum("test", in + first, devices, 2, out[first], 0, 1, kFloat);
              }),
              "no exception");
  };
  sum(2);  // communicators and streams are there
  const auto meeting = emulated::make_meeting(2, [] {});
  const auto join = [&](int k) {
    RAMET_CUDA("test", k,
               emulated::join_meeting(cuda::device_state(k, "test").stream(Queue::kCompute, "test"),
                                      "meeting", meeting));
  };
  join(0);
  std::atomic<bool> begun{false}, served{false};
  std::thread waits([&] {
    begun = true;
    sum(0);
  });
  EXPECT_TRUE(comes([&] { return begun.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it is in its call
  std::thread other([&] {
    sum(2);
    served = true;
  });
  EXPECT_TRUE(comes([&] { return served.load(); }));
  join(2);
  waits.join();
  other.join();
  EXPECT_EQ(emulated::last_report(), "");
  for (int k : {0, 2}) {
    cuda::device_state(k, "test").wait("test");
    float got = 0;
    cuda::copy("copy", &got, kCpu, out[k], Device(kCUDA, static_cast<DeviceIndex>(k)), 4);
    EXPECT_EQ(got, static_cast<float>(2 * k + 3));
  }
  for (int k = 0; k < 4; ++k)
    for (void* p : {in[k], out[k]}) cuda::caching_allocator(k).free(p);
}

// Errors in data: one thread waits for all work of the GPU, another one for work that is over.
TEST_F(Waits, WhoAsksForWhatIsOverPassesBy) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  emulated::Settings settings = gpu_settings(1);
  settings.timeout_ms = 20000;
  const Gpus gpus(settings);
  cuda::DeviceState& state = cuda::device_state(0, "test");
  (void)gpu::library()->fault(0, {"embedding", "rows", true, 0, 4});
  const auto look = [&] { const cuda::Look one(state); };
  look();
  const auto over = gpu::library()->event(0);
  over->record();
  look();
  std::atomic<bool> waits{false}, told{false}, met{false};
  const auto meeting = emulated::make_meeting(2, [&] { met = true; });
  const auto join = [&](Queue queue) {
    RAMET_CUDA("test", 0, emulated::join_meeting(state.stream(queue, "test"), "meeting", meeting));
  };
  join(Queue::kCompute);
  std::thread all([&] {
    waits = true;
    gpu::library()->raise_faults(0);
  });
  std::thread one([&] {
    while (!waits) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other one is in its wait
    over->synchronize();
    told = true;
  });
  EXPECT_TRUE(comes([&] { return told.load(); }));
  EXPECT_FALSE(met);
  join(Queue::kCommunication);
  all.join();
  one.join();
  EXPECT_TRUE(met);
}
#endif

// A step sends many small tensors to the GPU: none waits for what the first one's stream waits for.
TEST_F(Waits, SmallCopiesDoNotWaitForEachOther) {
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus(gpu_settings(1));
  constexpr int kCopies = 20;
  cuda::CachingAllocator& memory = cuda::caching_allocator(0);
  auto* there = static_cast<int*>(memory.allocate(kCopies * sizeof(int)));
  int first = -1;
  cuda::copy("copy", there, kGpu, &first, kCpu, sizeof first);  // streams and places are there
  cuda::device_state(0, "test").synchronize("test");
  Gate gate;
  queue(0, Gate::wait, &gate);
  std::atomic<int> sent{0};
  std::thread step([&] {
    for (int i = 0; i < kCopies; ++i, ++sent)
      cuda::copy("copy", there + i, kGpu, &i, kCpu, sizeof i);
  });
  EXPECT_TRUE(comes([&] { return sent == kCopies; })) << "only " << sent;
  EXPECT_FALSE(gate.passed);
  gate.open = true;
  step.join();
  std::vector<int> back(kCopies), expected(kCopies);
  for (int i = 0; i < kCopies; ++i) expected[static_cast<size_t>(i)] = i;
  cuda::copy("copy", back.data(), kCpu, there, kGpu, kCopies * sizeof(int));
  EXPECT_EQ(back, expected);
  memory.free(there);
}

}  // namespace
}  // namespace ramet::testing
