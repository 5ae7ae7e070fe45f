// Which GPUs get a context, and which GPU a thread has afterwards.
#include <optional>
#include <thread>

#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_list.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "runtime/tensor/pinned.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

template <class F> void on_a_fresh_thread(const F& f) {
  std::string what;
  std::thread([&] {
    try {
      f();
    } catch (const std::exception& e) { what = e.what(); }
  }).join();
  EXPECT_EQ(what, "");
}
void expect_contexts(bool first, bool second, bool third) {
  EXPECT_EQ(emulated::has_context(0), first);
  EXPECT_EQ(emulated::has_context(1), second);
  EXPECT_EQ(emulated::has_context(2), third);
}
int card_of_this_thread() {
  int card = -1;
  EXPECT_EQ(cudaGetDevice(&card), cudaSuccess);
  return card;
}

TEST(CudaContexts, OnlyOnCardsInUse) {
  RAMET_EMULATED_ONLY("nobody else may have used the first card");
  const Gpus gpus(gpu_settings(3));
  EXPECT_EQ(cuda::device_list().cards.size(), 3u);
  expect_contexts(false, false, false);
  std::optional<Event> event;
  void* pinned = nullptr;
  on_a_fresh_thread([&] {
    std::vector<unsigned char> bytes(100, 7);
    void* there = cuda::caching_allocator(1).allocate(bytes.size());
    cuda::copy("copy", there, kSecond, bytes.data(), kCpu, bytes.size());
    cuda::copy("copy", bytes.data(), kCpu, there, kSecond, bytes.size());
    cuda::caching_allocator(1).free(there);
    event.emplace().record(kSecond);
    cuda::device_state(1, "test").synchronize("test");
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  });
  expect_contexts(false, true, false);
  // Threads that name no device.
  on_a_fresh_thread([&] { pinned = gpu::host_copies()->allocate(1000); });
  on_a_fresh_thread([&] { event.reset(); });
  on_a_fresh_thread([&] {
    gpu::host_copies()->free(pinned);
    gpu::host_copies()->empty_cache();
  });
  on_a_fresh_thread([] { cuda::shutdown(); });
  expect_contexts(false, true, false);
}

TEST(CudaContexts, PinnedMemoryBeforeAnyDevice) {
  RAMET_EMULATED_ONLY("nobody else may have used the first card");
  const Gpus gpus(gpu_settings(3), "2,1");
  on_a_fresh_thread([] {
    void* pinned = gpu::host_copies()->allocate(1000);
    gpu::host_copies()->free(pinned);
  });
  expect_contexts(false, false, true);
}

TEST(CudaContexts, AThreadKeepsTheCardItHad) {
  RAMET_EMULATED_ONLY("there may be one card");
  const Gpus gpus(gpu_settings(3));
  on_a_fresh_thread([] {
    RAMET_CUDA("test", -1, cudaSetDevice(2));
    { const cuda::CardGuard card("test", 1); }
    EXPECT_EQ(card_of_this_thread(), 2);
  });
  expect_contexts(false, true, true);
  on_a_fresh_thread([] {
    {
      const cuda::CardGuard card("test", 1);
      { const cuda::CardGuard inner("test", 2); }
      EXPECT_EQ(card_of_this_thread(), 1);
    }
    EXPECT_EQ(card_of_this_thread(), 1) << "its first one has no context";
  });
  expect_contexts(false, true, true);
}

}  // namespace
}  // namespace ramet::testing
