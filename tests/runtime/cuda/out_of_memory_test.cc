// Memory that the driver takes for itself. Where a GPU has none for it, what is cached goes back
// and the call is made once more. Then an error names it and the statistics.
#include <memory>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/devices/gpu.h"
#include "runtime/tensor/pinned.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/runtime/cuda/greedy.h"
#include "tests/tools/emulated_gpu/kernels.h"

namespace ramet::testing {
namespace {

using cuda::Queue;
constexpr size_t kCard = GreedyGpus::kCard;

class DriverMemory : public ::testing::Test {
 protected:
  explicit DriverMemory(const char* list = nullptr) : gpus_(1, list) {}
  void SetUp() override {
    RAMET_EMULATED_ONLY("a card of 64 MiB, and a driver that wants one of them");
  }
  static cuda::CachingAllocator& memory() { return cuda::caching_allocator(0); }
  static cuda::DeviceState& state() { return cuda::device_state(0, "test"); }
  static void* take_the_rest() { return memory().allocate(kCard - memory().reserved()); }
  static void cache_the_rest() {
    memory().free(take_the_rest());
    EXPECT_EQ(memory().reserved(), kCard);
  }
  /// Checks that `f` succeeds where all of the GPU is cached, and that some cached memory goes back
  /// for it.
  template <class F> static void expect_room_for(const F& f) {
    cache_the_rest();
    EXPECT_EQ(message_of(f), "no exception");
    EXPECT_LT(memory().reserved(), kCard);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  }
  /// A number on the device. The compute stream is made for it.
  static float* zero() {
    auto* x = static_cast<float*>(memory().allocate(sizeof(float)));
    RAMET_CUDA("test", 0,
               cudaMemsetAsync(x, 0, sizeof(float), state().stream(Queue::kCompute, "test")));
    return x;
  }
  static void launch(float* x) {
    RAMET_CUDA_ALLOCATING("softmax", 0, increment(x, 1, state().stream(Queue::kCompute, "test")));
  }

 private:
  const GreedyGpus gpus_;
};

TEST_F(DriverMemory, StreamsAndEvents) {
  expect_room_for([] { state().stream(Queue::kCopyIn, "test"); });
  expect_room_for([] { const cuda::EventHandle event("test", 0); });
  state().stream(Queue::kCopyOut, "test");
  // The mark between the two.
  expect_room_for([] { state().order(Queue::kCopyIn, Queue::kCopyOut, "test"); });
}

TEST_F(DriverMemory, StagingBuffers) {
  void* there = memory().allocate(4);
  int sent = 5, back = 0;
  state().order(Queue::kCompute, Queue::kCopyIn, "test");
  state().order(Queue::kCopyIn, Queue::kCopyOut, "test");
  expect_room_for([&] { cuda::copy("copy", there, kGpu, &sent, kCpu, 4); });
  expect_room_for([&] { cuda::copy("copy", &back, kCpu, there, kGpu, 4); });
  EXPECT_EQ(back, 5);
  memory().free(there);
}

TEST_F(DriverMemory, PinnedMemory) {
  void* pinned = nullptr;
  expect_room_for([&] { pinned = cuda::host_memory("test", 0, 4096); });
  cuda::ignore(cudaFreeHost(pinned));
  void* all = take_the_rest();
  EXPECT_MESSAGE(cuda::host_memory("test", 0, 4096),
                 "[test] out of memory on cuda:0: cudaHostAlloc failed");
  memory().free(all);
}

TEST_F(DriverMemory, PlacesForErrorsInData) {
  state().stream(Queue::kCompute, "test");
  expect_room_for([] { gpu::library()->fault(0, {"embedding", "rows", true, 0, 4}); });
}

TEST_F(DriverMemory, Launches) {
  float* const x = zero();
  expect_room_for([&] { launch(x); });
  void* all = take_the_rest();
  EXPECT_THROW(launch(x), OutOfMemoryError);
  EXPECT_MESSAGE(launch(x),
                 "[softmax] out of memory on cuda:0: increment failed "
                 "(cudaErrorMemoryAllocation), 65012224 bytes are in use, 2096640 are cached, the "
                 "card has 0 of 67108864 free");
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  memory().free(all);
  EXPECT_NO_THROW(launch(x));
  state().synchronize("test");
  memory().free(x);
}

TEST_F(DriverMemory, OtherErrorsAreRaisedAtOnce) {
  cache_the_rest();
  int calls = 0;
  const auto refuse = [&] {
    ++calls;
    return cudaErrorInvalidValue;
  };
  EXPECT_MESSAGE(RAMET_CUDA_ALLOCATING("test", 0, refuse()),
                 "[test] refuse on cuda:0 failed: invalid argument (cudaErrorInvalidValue)");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(memory().reserved(), kCard);
}

// To free memory would be to wait for the device: the graph is begun again.
TEST_F(DriverMemory, NothingGoesWhileAGraphIsMade) {
  float* const x = zero();
  int calls = 0;
  const std::unique_ptr<gpu::Graph> graph = gpu::library()->graph(0, [&] {
    if (++calls == 1) cache_the_rest();
    try {
      launch(x);
    } catch (const OutOfMemoryError&) {
      EXPECT_EQ(memory().reserved(), kCard);
      throw;
    }
  });
  EXPECT_EQ(calls, 2);
  expect_room_for([&] { graph->launch(); });
  state().synchronize("test");

  void* all = nullptr;
  const auto without_room = [&] {
    if (!all) all = take_the_rest();
    launch(x);
  };
  EXPECT_MESSAGE(gpu::library()->graph(0, without_room),
                 "[softmax] out of memory on cuda:0: increment failed");
  memory().free(all);
  memory().free(x);
}

// Not even for memory of the program's own.
TEST_F(DriverMemory, AllocatingWhileAGraphIsMadeFreesNothing) {
  int calls = 0;
  void* got = nullptr;
  const auto allocate = [&] {
    if (++calls == 1) memory().free(memory().allocate(40 * GreedyGpus::kMiB));
    const size_t reserved = memory().reserved();
    EXPECT_MESSAGE(memory().empty_cache(),
                   "[empty_cache] cuda:0: got a call while this thread makes a graph");
    try {
      got = memory().allocate(50 * GreedyGpus::kMiB);
    } catch (const OutOfMemoryError& e) {
      EXPECT_NE(std::string(e.what()).find("nothing is freed while a graph is made"),
                std::string::npos)
          << e.what();
      EXPECT_EQ(memory().reserved(), reserved) << "the segment stays";
      throw;
    }
  };
  EXPECT_NE(gpu::library()->graph(0, allocate), nullptr);
  EXPECT_EQ(calls, 2);
  ASSERT_NE(got, nullptr);
  memory().free(got);
}

TEST_F(DriverMemory, MakingAGraph) {
  int calls = 0;
  const auto cache = [&] {
    if (++calls == 1) cache_the_rest();
  };
  EXPECT_NE(gpu::library()->graph(0, cache), nullptr);
  EXPECT_EQ(calls, 2);
  void* all = nullptr;
  const auto hold = [&] {
    if (!all) all = take_the_rest();
  };
  EXPECT_MESSAGE(gpu::library()->graph(0, hold),
                 "[Captured] out of memory on cuda:0: cudaGraphInstantiate failed");
  memory().free(all);
}

class DriverMemoryOfOneCard : public DriverMemory {
 protected:
  DriverMemoryOfOneCard() : DriverMemory("0,0") {}
};

TEST_F(DriverMemoryOfOneCard, CachesOfOtherDevicesGoToo) {
  float* const x = zero();
  cuda::CachingAllocator& other = cuda::caching_allocator(1);
  other.free(other.allocate(kCard - memory().reserved()));
  EXPECT_NO_THROW(launch(x));
  EXPECT_EQ(other.reserved(), 0u);
  state().synchronize("test");
  memory().free(x);
}

}  // namespace
}  // namespace ramet::testing
