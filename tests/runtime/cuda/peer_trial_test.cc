// A link between two cards that says it works and never delivers: after the deadline copies go
// through the host, and nothing waits for what the trial left behind.
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/logging.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using emulated::StreamMode;
const Device kHost(kCPU, 0), kFirst(kCUDA, 0), kSecond(kCUDA, 1);

class PeerTrial : public ::testing::TestWithParam<StreamMode> {
 protected:
  void SetUp() override { cuda::set_trial_deadline(100); }
  void TearDown() override {
    cuda::set_trial_deadline(5000);
    set_log_handler({});
  }
};

TEST_P(PeerTrial, WhatNeverArrivesIsStaged) {
  RAMET_EMULATED_ONLY("a link that swallows copies");
  emulated::Settings settings = gpu_settings(2);
  settings.streams = GetParam();
  settings.lost_peers = {{0, 1}};
  settings.timeout_ms = 400;  // whoever waits for the trial's copy gets an Error after that
  const Gpus gpus(settings);
  std::string logged;
  set_log_handler([&](LogLevel, const std::string& text) { logged += text; });
  const cuda::CopyCounts before = cuda::copy_counts();
  constexpr size_t kBytes = 4096;
  std::vector<char> sent(kBytes, 7), back(kBytes);
  void *a = cuda::caching_allocator(0).allocate(kBytes),
       *b = cuda::caching_allocator(1).allocate(kBytes);
  cuda::copy("copy", a, kFirst, sent.data(), kHost, kBytes);
  for (int round = 0; round < 2; ++round) {
    cuda::copy("copy", b, kSecond, a, kFirst, kBytes);
    cuda::copy("copy", back.data(), kHost, b, kSecond, kBytes);
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
  // None of these waits for the copy that is still on its way; its memory is nobody else's.
  empty_cache();
  EXPECT_GT(cuda::caching_allocator(1).stats().current, 0);
  for (int k : {0, 1}) EXPECT_NO_THROW(cuda::device_state(k, "test").synchronize("test"));
}

INSTANTIATE_TEST_SUITE_P(Streams, PeerTrial,
                         ::testing::Values(StreamMode::Async, StreamMode::Eager, StreamMode::Lazy,
                                           StreamMode::Random));

}  // namespace
}  // namespace ramet::testing
