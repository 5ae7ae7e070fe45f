// A link between two GPUs that claims to work and never delivers, or that carries copies but not
// what a kernel reads. Copies go through the host, and nothing waits for the trial's remaining
// work.
#include <tuple>

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/peer_read.h"
#include "runtime/tensor/pinned.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gate.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using emulated::StreamMode;

class PeerTrial : public ::testing::TestWithParam<std::tuple<StreamMode, bool>> {
 protected:
  void SetUp() override { cuda::set_trial_deadline(100); }
  void TearDown() override {
    cuda::set_trial_deadline(5000);
    set_log_handler({});
  }
};

// A caller that waits for a trial's copy gets an Error and leaves a report.
emulated::Settings lossy_gpus() {
  emulated::Settings settings = gpu_settings(2);
  settings.lost_peers = {{0, 1}};
  settings.timeout_ms = 400;
  return settings;
}
void expect_that_nobody_waited() {
#if RAMET_GPU_EMULATED
  EXPECT_EQ(emulated::last_report(), "");
#endif
}

TEST_P(PeerTrial, WhatNeverArrivesIsStaged) {
  RAMET_EMULATED_ONLY("a link that swallows copies");
  emulated::Settings settings = lossy_gpus();
  settings.streams = std::get<StreamMode>(GetParam());
  settings.driver_waits = std::get<bool>(GetParam());
  const Gpus gpus(settings);
  std::string logged;
  set_log_handler([&](LogLevel, const std::string& text) { logged += text; });
  const cuda::CopyCounts before = cuda::copy_counts();
  constexpr size_t kBytes = 4096;
  std::vector<char> sent(kBytes, 7), back(kBytes);
  void *a = cuda::caching_allocator(0).allocate(kBytes),
       *b = cuda::caching_allocator(1).allocate(kBytes);
  cuda::copy("copy", a, kGpu, sent.data(), kCpu, kBytes);
  // Where the driver waits for the GPU to pin memory, the pinned memory is there before the trial.
  cuda::copy("copy", b, kSecond, sent.data(), kCpu, kBytes);
  cuda::copy("copy", back.data(), kCpu, b, kSecond, kBytes);
  gpu::host_copies()->free(gpu::host_copies()->allocate(kBytes));
  for (int round = 0; round < 2; ++round) {
    cuda::copy("copy", b, kSecond, a, kGpu, kBytes);
    cuda::copy("copy", back.data(), kCpu, b, kSecond, kBytes);
    EXPECT_EQ(back, sent);
    back.assign(kBytes, 0);
  }
  EXPECT_FALSE(cuda::direct_access(0, 1));
  EXPECT_NE(logged.find("copies from cuda:0 to cuda:1 go through the host: a trial copy did not "
                        "arrive within 100 ms"),
            std::string::npos)
      << logged;
  EXPECT_EQ(logged.find("copies", 7), std::string::npos) << "tried again: " << logged;
  const cuda::CopyCounts now = cuda::copy_counts();
  EXPECT_EQ(now.direct, before.direct);
  EXPECT_EQ(now.through_host - before.through_host, 2u);
  cuda::caching_allocator(0).free(a);
  cuda::caching_allocator(1).free(b);
  // None of these waits for the copy that is still on its way; no other tensor gets its memory.
  empty_cache();
  EXPECT_GT(cuda::caching_allocator(1).stats().current, 0);
  for (int k : {0, 1}) EXPECT_NO_THROW(cuda::device_state(k, "test").synchronize("test"));
  expect_that_nobody_waited();
  cuda::shutdown();
  expect_that_nobody_waited();
}

INSTANTIATE_TEST_SUITE_P(Streams, PeerTrial,
                         ::testing::Combine(::testing::Values(StreamMode::Async, StreamMode::Eager,
                                                              StreamMode::Lazy, StreamMode::Random),
                                            ::testing::Bool()));

// Without a cache and without pools every free is a cudaFree(), which would wait.
TEST(PeerTrialWithoutCache, NoFreeWaits) {
  RAMET_EMULATED_ONLY("a link that swallows copies, cards without memory pools");
  const Caching off("0");
  emulated::Settings settings = lossy_gpus();
  settings.memory_pools = false;
  const Gpus gpus(settings);
  cuda::CachingAllocator& memory = cuda::caching_allocator(1);
  void* p = memory.allocate(4096);
  set_log_handler([](LogLevel, const std::string&) {});
  cuda::set_trial_deadline(100);
  EXPECT_FALSE(cuda::direct_access(0, 1));
  cuda::set_trial_deadline(5000);
  set_log_handler({});
  memory.free(p);
  empty_cache();
  expect_that_nobody_waited();
}

// What the trial of this link says, and the log.
struct Tried {
  explicit Tried(cuda::TrialRead read, int deadline = 60000) {
    cuda::set_trial_deadline(deadline);
    cuda::set_trial_read(read);
    set_log_handler([&](LogLevel, const std::string& text) { logged += text; });
  }
  ~Tried() {
    set_log_handler({});
    cuda::set_trial_read(nullptr);
    cuda::set_trial_deadline(5000);
  }
  bool direct() { return cuda::direct_access(0, 1); }
  std::string logged;
};

TEST(PeerReads, AKernelReads) {
  RAMET_EMULATED_ONLY("a second card");
  static int reads;
  reads = 0;
  const Gpus gpus(gpu_settings(2));
  Tried link([](void* to, const void* from, size_t bytes, cudaStream_t stream) {
    ++reads;
    return cuda::read_peer(to, from, bytes, stream);
  });
  EXPECT_TRUE(link.direct());
  EXPECT_TRUE(link.direct());
  EXPECT_EQ(reads, 1) << "tried once";
  EXPECT_EQ(link.logged, "");
}

TEST(PeerReads, ThatAreDamaged) {
  RAMET_EMULATED_ONLY("a link that damages what kernels read");
  for (const StreamMode mode :
       {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy, StreamMode::Random}) {
    emulated::Settings settings = gpu_settings(2);
    settings.streams = mode;
    const Gpus gpus(settings);
    Tried link([](void* to, const void* from, size_t bytes, cudaStream_t stream) {
      const cudaError_t read = cuda::read_peer(to, from, bytes, stream);
      return read != cudaSuccess ? read
                                 : cudaMemsetAsync(static_cast<char*>(to) + 4095, 0, 1, stream);
    });
    EXPECT_FALSE(link.direct());
    EXPECT_NE(link.logged.find("copies from cuda:0 to cuda:1 go through the host: what a kernel "
                               "reads there is damaged"),
              std::string::npos)
        << link.logged;
  }
}

// What was queued before an error may still be running: no other tensor gets its memory.
TEST(PeerReads, ThatCannotBegin) {
  RAMET_EMULATED_ONLY("a second card");
  const Gpus gpus(gpu_settings(2));
  Tried link([](void*, const void*, size_t, cudaStream_t) { return cudaErrorInvalidValue; });
  EXPECT_MESSAGE(link.direct(), "[peer access]");
  for (int k : {0, 1}) {
    EXPECT_GT(cuda::caching_allocator(k).stats().current, 0);
    EXPECT_TRUE(cuda::device_state(k, "test").keeps_cached_memory());
  }
}

TEST(PeerReads, ThatNeverEnd) {
  RAMET_EMULATED_ONLY("a link that swallows what kernels read");
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  static Gate gate;
  const Gpus gpus(gpu_settings(2));
  {
    Tried link([](void*, const void*, size_t,
                  cudaStream_t stream) { return cudaLaunchHostFunc(stream, Gate::wait, &gate); },
               100);
    EXPECT_FALSE(link.direct());
    EXPECT_NE(link.logged.find("what a kernel reads there did not arrive within 100 ms"),
              std::string::npos)
        << link.logged;
  }
  EXPECT_FALSE(gate.passed);
  gate.open = true;
  while (!gate.passed) std::this_thread::yield();
}

}  // namespace
}  // namespace ramet::testing
