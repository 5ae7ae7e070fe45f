// Memory of a GPU: what is reused, what goes back, and the errors when there is no more.
#include "runtime/cuda/caching_allocator.h"

#include <cstdint>
#include <random>
#include <vector>

#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/graphs.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class CudaAllocator : public ::testing::Test {
  const Caching on_{"1"};
};
class CudaAllocatorWithoutCache : public ::testing::Test {
  const Caching off_{"0"};
};

TEST_F(CudaAllocator, FreedMemoryIsGivenOutAgain) {
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  void* first = a.allocate(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 512, 0u);
  void* second = a.allocate(1);
  EXPECT_EQ(static_cast<char*>(second) - static_cast<char*>(first), 1024);
  EXPECT_EQ(a.reserved(), 2 * kMiB);
  EXPECT_EQ(a.stats().current, 1536);
  a.free(first);
  EXPECT_EQ(a.allocate(600), first);
  a.free(second);
  a.free(first);
  EXPECT_EQ(a.stats().current, 0);
  EXPECT_EQ(a.stats().peak, 1536);
  EXPECT_EQ(a.stats().cached, static_cast<int64_t>(2 * kMiB));
  // The pieces have joined: the whole segment is one again.
  EXPECT_EQ(a.allocate(kMiB), first);
  a.free(first);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0u);
}

TEST_F(CudaAllocator, LargeBlocksHaveSegmentsOfTheirOwn) {
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  void* large = a.allocate(11 * kMiB);
  EXPECT_EQ(a.reserved(), 12 * kMiB);
  void* middle = a.allocate(3 * kMiB);
  EXPECT_EQ(a.reserved(), 32 * kMiB);
  void* neighbour = a.allocate(3 * kMiB);
  EXPECT_EQ(a.reserved(), 32 * kMiB);
  a.free(large), a.free(middle), a.free(neighbour);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0u);
}

// Random requests against a plain record of which block has which bytes.
TEST_F(CudaAllocator, BlocksNeverOverlap) {
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  std::mt19937 random(5);
  struct Held {
    char* at;
    size_t bytes;
  };
  std::vector<Held> held;
  size_t sum = 0;
  for (int step = 0; step < 3000; ++step) {
    if (held.size() > 40 || (!held.empty() && random() % 2)) {
      const size_t i = random() % held.size();
      a.free(held[i].at);
      sum -= held[i].bytes;
      held.erase(held.begin() + static_cast<long>(i));
      continue;
    }
    const size_t bytes = 1 + random() % (random() % 4 ? 20000 : 2 * kMiB);
    if (sum + bytes > 30 * kMiB) continue;
    char* p = static_cast<char*>(a.allocate(bytes));
    for (const Held& h : held)
      ASSERT_TRUE(p + bytes <= h.at || h.at + h.bytes <= p) << "step " << step;
    held.push_back({p, bytes});
    sum += bytes;
  }
  for (const Held& h : held) a.free(h.at);
  EXPECT_EQ(a.stats().current, 0);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0u);  // so all pieces had joined
}

TEST_F(CudaAllocator, OutOfMemoryNamesRequestAndStatistics) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  const Gpus gpus;  // 64 MiB
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  void* kept = a.allocate(40 * kMiB);
  const std::string what = message_of([&] { a.allocate(30 * kMiB); });
  for (const char* part : {"out of memory on cuda:0", "request of 31457280 bytes",
                           "41943040 bytes are in use", "of 67108864 free"})
    EXPECT_NE(what.find(part), std::string::npos) << what;
  a.free(kept);
  kept = a.allocate(60 * kMiB);  // frees what is cached and tries once more
  a.free(kept);
}

TEST_F(CudaAllocator, CachesOfOtherDevicesOfTheCardGoToo) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  const Gpus gpus(gpu_settings(1), "0,0");
  cuda::CachingAllocator &a = cuda::caching_allocator(0), &b = cuda::caching_allocator(1);
  a.free(a.allocate(40 * kMiB));
  EXPECT_EQ(a.reserved(), 40 * kMiB);
  void* p = b.allocate(50 * kMiB);
  EXPECT_EQ(a.reserved(), 0u);
  b.free(p);
}

TEST_F(CudaAllocator, CachesOfOtherCardsStay) {
  RAMET_EMULATED_ONLY("cards of 64 MiB");
  const Gpus gpus;
  cuda::CachingAllocator &a = cuda::caching_allocator(0), &b = cuda::caching_allocator(1);
  a.free(a.allocate(40 * kMiB)), b.free(b.allocate(40 * kMiB));
  a.free(a.allocate(50 * kMiB));
  EXPECT_EQ(a.reserved(), 50 * kMiB);
  EXPECT_EQ(b.reserved(), 40 * kMiB);
}

// Here the driver refuses because the thread captures outside the library, in a mode that allows no
// cudaFree().
TEST_F(CudaAllocator, ASegmentThatTheDriverRefusesStays) {
  RAMET_EMULATED_ONLY("a driver that refuses cudaFree() for certain");
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  cuda::DeviceState& state = cuda::device_state(0, "test");
  a.free(a.allocate(11 * kMiB));
  const size_t reserved = a.reserved();
  const cuda::CardGuard card("test", state);
  const cudaStream_t stream = state.stream(cuda::Queue::kCopyIn, "test");
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  a.empty_cache();
  cudaGraph_t graph = nullptr;
  (void)cudaStreamEndCapture(stream, &graph);
  (void)cudaGetLastError();
  EXPECT_EQ(a.reserved(), reserved);
  void* again = a.allocate(11 * kMiB);  // it can be used
  EXPECT_GT(a.last_freed(again), 0u) << "behind the kernels that used it";
  a.free(again);
  EXPECT_EQ(a.reserved(), reserved);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0u);
}

TEST_F(CudaAllocator, ALimitIsKept) {
  const Gpus gpus;
  set_memory_limit(kGpu, 3 << 20);
  void* p = cuda::caching_allocator(0).allocate(2 * kMiB);
  EXPECT_MESSAGE(cuda::caching_allocator(0).allocate(2 * kMiB), "set_memory_limit");
  cuda::caching_allocator(0).free(p);
  set_memory_limit(kGpu, 0);
  cuda::caching_allocator(0).free(cuda::caching_allocator(0).allocate(8 * kMiB));
}

// A segment of its own is rounded up to 2 MiB. The rest beyond the limit is not given out.
TEST_F(CudaAllocator, ALimitIsKeptWhateverTheBlock) {
  const Gpus gpus;
  set_memory_limit(kGpu, 14'000'000);
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  for (int round = 0; round < 2; ++round) {  // fresh, and out of the cache
    void* p = a.allocate(13 * kMiB + 1);
    EXPECT_EQ(a.stats().current, static_cast<int64_t>(13 * kMiB + 512));
    EXPECT_LE(a.stats().peak, 14'000'000);
    void* rest = a.allocate(300'000);
    EXPECT_LE(a.stats().current, 14'000'000);
    EXPECT_MESSAGE(a.allocate(300'000), "set_memory_limit");
    a.free(p), a.free(rest);
  }
  set_memory_limit(kGpu, 0);
  a.empty_cache();
  EXPECT_EQ(a.reserved(), 0u);  // all pieces had joined
}

TEST_F(CudaAllocator, TensorsLiveThere) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  const Gpus gpus;
  {
    const TensorBase x = TensorBase::empty({3, 5}, kFloat, kGpu),
                     nothing = TensorBase::empty({0, 5}, kFloat, kGpu);
    EXPECT_EQ(x.device(), kGpu);
    EXPECT_EQ(memory_stats(kGpu).allocations, 2);
    EXPECT_EQ(memory_stats(kGpu).current, 1024);  // an empty one has a place, too
    EXPECT_EQ(memory_stats(Device(kCUDA, 1)).current, 0);
    const TensorBase row(x.view_impl(IntArrayRef({5}), IntArrayRef({1}), 5));
    EXPECT_EQ(static_cast<char*>(row->data) - static_cast<char*>(x->data), 20);
  }
  EXPECT_EQ(memory_stats(kGpu).current, 0);
  EXPECT_MESSAGE(TensorBase::empty({1 << 27}, kFloat, kGpu), "out of memory on cuda:0");
  empty_cache();
  EXPECT_EQ(memory_stats(kGpu).cached, 0);
}

TEST_F(CudaAllocatorWithoutCache, StatisticsAndLimitAreKept) {
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  void *small = a.allocate(20), *large = a.allocate(3 * kMiB + 1);
  const auto all = static_cast<int64_t>(512 + 3 * kMiB + 512);
  EXPECT_EQ(a.stats().current, all);
  EXPECT_EQ(a.stats().cached, 0);
  EXPECT_EQ(a.stats().allocations, 2);
  a.free(large);
  EXPECT_EQ(a.stats().current, 512);
  EXPECT_EQ(a.reserved(), 512u);
  EXPECT_EQ(a.stats().peak, all);
  a.set_limit(kMiB);
  EXPECT_MESSAGE(a.allocate(kMiB), "512 bytes are in use, 0 are cached (largest piece 0)");
  EXPECT_MESSAGE(a.allocate(kMiB), "set_memory_limit");
  a.free(a.allocate(kMiB - 512));
  a.free(small);
  EXPECT_EQ(a.stats().current, 0);
}

// On a device with streams that do nothing until a caller waits.
TEST_F(CudaAllocatorWithoutCache, WhatIsFreedIsWaitedForWhereThereIsNoMore) {
  RAMET_EMULATED_ONLY("a card of 64 MiB");
  emulated::Settings settings = gpu_settings(1);
  settings.streams = emulated::StreamMode::Lazy;
  const Gpus gpus(settings, "0,0");
  cuda::CachingAllocator &a = cuda::caching_allocator(0), &b = cuda::caching_allocator(1);
  void* p = a.allocate(40 * kMiB);
  EXPECT_MESSAGE(b.allocate(30 * kMiB), "of 67108864 free (the card has no more)");
  a.free(p);
  p = b.allocate(40 * kMiB);
  b.free(p);
  b.free(b.allocate(64 * kMiB));
}

// Not as a part of the graph, which would give it back again and again.
TEST_F(CudaAllocatorWithoutCache, FreesWhileAGraphIsMade) {
  const Gpus gpus;
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  cuda::DeviceState& state = cuda::device_state(0, "test");
  void *kept = a.allocate(64), *freed = a.allocate(64);
  const auto graph = cuda::make_graph(0, [&] {
    a.free(freed);
    const cudaStream_t stream = state.stream(cuda::Queue::kCompute, "test");
    EXPECT_EQ(cudaMemsetAsync(kept, 0, 64, stream), cudaSuccess);
    a.free(a.allocate(64));
  });
  for (int i = 0; i < 2; ++i) graph->launch();
  a.free(kept);
  EXPECT_NO_THROW(state.synchronize("test"));
}

// The other pair of calls, for GPUs without memory pools. A thread that makes a graph does not wait
// for the GPU: what it frees goes back later.
TEST_F(CudaAllocatorWithoutCache, WithoutPools) {
  RAMET_EMULATED_ONLY("a card without memory pools");
  emulated::Settings settings = gpu_settings(1);
  settings.memory_pools = false;
  const Gpus gpus(settings);
  cuda::CachingAllocator& a = cuda::caching_allocator(0);
  const auto used = [] {
    const cuda::CardGuard card("test", 0);
    size_t room = 0, total = 0;
    EXPECT_EQ(cudaMemGetInfo(&room, &total), cudaSuccess);
    return total - room;
  };
  void *first = a.allocate(40 * kMiB), *second = a.allocate(3 * kMiB);
  EXPECT_EQ(used(), 43 * kMiB);
  a.free(first);
  EXPECT_EQ(used(), 3 * kMiB);
  const auto graph = cuda::make_graph(0, [&] {
    const cudaStream_t stream = cuda::device_state(0, "test").stream(cuda::Queue::kCompute, "test");
    EXPECT_EQ(cudaMemsetAsync(second, 0, 64, stream), cudaSuccess);
    if (first) a.free(a.allocate(40 * kMiB));
    first = nullptr;
  });
  EXPECT_EQ(used(), 43 * kMiB);
  a.free(a.allocate(60 * kMiB));  // does not fit next to what was kept
  a.free(second);
  EXPECT_EQ(used(), 0u);
}

// Kernels of other GPUs reach a pool when they get access to it.
TEST_F(CudaAllocatorWithoutCache, PeersReachThePool) {
  const Gpus gpus(gpu_settings(2));
  const int cards[] = {cuda::device_state(0, "test").card, cuda::device_state(1, "test").card};
  if (cards[0] == cards[1]) GTEST_SKIP() << "one card";
  const auto access = [&] {
    cudaMemPool_t pool{};
    cudaMemAccessFlags flags{};
    cudaMemLocation from{};
    from.type = cudaMemLocationTypeDevice;
    from.id = cards[1];
    EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, cards[0]), cudaSuccess);
    EXPECT_EQ(cudaMemPoolGetAccess(&flags, pool, &from), cudaSuccess);
    return flags;
  };
  EXPECT_EQ(access(), cudaMemAccessFlagsProtNone);
  if (!cuda::direct_access(0, 1)) GTEST_SKIP() << "the cards do not reach each other";
  EXPECT_EQ(access(), cudaMemAccessFlagsProtReadWrite);
}

TEST_F(CudaAllocatorWithoutCache, AValueThatIsNone) {
  const Caching bad("yes");
  const Gpus gpus;
  EXPECT_MESSAGE(cuda::caching_allocator(0), "[RAMET_CUDA_CACHING] got \"yes\", expected 0 or 1");
}

}  // namespace
}  // namespace ramet::testing
