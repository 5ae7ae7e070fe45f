// Copies between host and devices and from device to device. They cover sizes around the pinned
// pieces, every schedule of streams, devices that do not reach each other, and links that deliver
// rubbish.
#include "runtime/cuda/copies.h"

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/cuda/caching_allocator.h"
#include "runtime/cuda/host_copies.h"
#include "runtime/devices/devices.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/emulated_gpu/kernels.h"

namespace ramet::testing {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr size_t kPiece = size_t{4} << 20;
Device gpu(int k) { return Device(kCUDA, static_cast<DeviceIndex>(k)); }

Bytes numbered(size_t n, unsigned seed) {
  Bytes b(n);
  for (size_t i = 0; i < n; ++i) b[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 7);
  return b;
}

struct Memory {
  int device;
  void* p;
  Memory(int d, size_t bytes) : device(d), p(cuda::caching_allocator(d).allocate(bytes)) {}
  ~Memory() { cuda::caching_allocator(device).free(p); }
};

std::vector<emulated::Settings> stream_modes(int devices) {
  std::vector<emulated::Settings> list;
  using emulated::StreamMode;
  for (const StreamMode mode :
       {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy, StreamMode::Random}) {
    list.push_back(gpu_settings(devices));
    list.back().streams = mode;
  }
  return list;
}

TEST(CudaCopies, RoundTripsOfAllSizes) {
  for (const emulated::Settings& settings : stream_modes(1)) {
    const Gpus gpus(settings);
    for (const size_t n :
         {size_t{1}, size_t{4097}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece + 5}) {
      const Memory there(0, n);
      Bytes sent = numbered(n, 1);
      const Bytes expected = sent;
      cuda::copy("copy", there.p, gpu(0), sent.data(), kCpu, n);
      std::fill(sent.begin(), sent.end(), 0);  // it has been read
      Bytes back(n);
      cuda::copy("copy", back.data(), kCpu, there.p, gpu(0), n);
      ASSERT_TRUE(back == expected) << n;
    }
    cuda::copy("copy", nullptr, gpu(0), nullptr, kCpu, 0);
  }
}

// Each copy sees what was queued before it and nothing later, though they use three streams.
TEST(CudaCopies, TheOrderIsTheProgramsOrder) {
  for (const emulated::Settings& settings : stream_modes(2)) {
    const Gpus gpus(settings);
    const size_t n = 10000;
    const Memory a(0, n), b(0, n), c(1, n);
    const Bytes first = numbered(n, 1), second = numbered(n, 2);
    Bytes seen(n);
    cuda::copy("copy", a.p, gpu(0), first.data(), kCpu, n);
    cuda::copy("copy", b.p, gpu(0), a.p, gpu(0), n);
    cuda::copy("copy", c.p, gpu(1), b.p, gpu(0), n);
    cuda::copy("copy", a.p, gpu(0), second.data(), kCpu, n);
    cuda::copy("copy", b.p, gpu(0), a.p, gpu(0), n);  // after c has read b
    cuda::copy("copy", seen.data(), kCpu, c.p, gpu(1), n);
    EXPECT_TRUE(seen == first);
    cuda::copy("copy", seen.data(), kCpu, b.p, gpu(0), n);
    EXPECT_TRUE(seen == second);
  }
}

// Memory that is given back while a copy still uses it may be given out at once.
// What the compute stream was given after the event is not waited for: a lazy stream runs what is
// waited for and nothing else.
TEST(CudaCopies, BehindAnEventAlone) {
  emulated::Settings settings = gpu_settings(1);
  settings.streams = emulated::StreamMode::Lazy;
  const Gpus gpus(settings);
  RAMET_EMULATED_ONLY("lazy streams");
  const size_t n = kPiece + 5;
  const Memory there(0, n);
  const Bytes first = numbered(n, 1), second = numbered(n, 2);
  Bytes back(n);
  cuda::copy("copy", there.p, gpu(0), first.data(), kCpu, n);
  cuda::CardEvent event(0);
  event.record();
  bool ran = false;
  ASSERT_EQ(cudaLaunchHostFunc(
                cuda::device_state(0, "test").stream(cuda::Queue::kCompute, "test"),
                [](void* p) { *static_cast<bool*>(p) = true; }, &ran),
            cudaSuccess);
  cuda::copy_after("copy", event, back.data(), kCpu, there.p, gpu(0), n);
  EXPECT_TRUE(back == first);
  cuda::copy_after("copy", event, there.p, gpu(0), second.data(), kCpu, n);
  EXPECT_FALSE(ran);
  cuda::copy("copy", back.data(), kCpu, there.p, gpu(0), n);
  EXPECT_TRUE(back == second);
  EXPECT_TRUE(ran);
  EXPECT_MESSAGE(cuda::copy_after("copy", event, back.data(), kCpu, back.data(), kCpu, n),
                 "expected a GPU and the host");
}

TEST(CudaCopies, FreedMemoryIsNotOverwrittenEarly) {
  const Caching on("1");
  for (const emulated::Settings& settings : stream_modes(2)) {
    const Gpus gpus(settings);
    const size_t n = 5000;
    const Bytes first = numbered(n, 1), second = numbered(n, 2);
    const Memory target(1, n);
    void* place;
    {
      const Memory source(0, n);
      place = source.p;
      cuda::copy("copy", source.p, gpu(0), first.data(), kCpu, n);
      cuda::copy("copy", target.p, gpu(1), source.p, gpu(0), n);
    }
    const Memory again(0, n);
    ASSERT_EQ(again.p, place);
    cuda::copy("copy", again.p, gpu(0), second.data(), kCpu, n);
    Bytes seen(n);
    cuda::copy("copy", seen.data(), kCpu, target.p, gpu(1), n);
    EXPECT_TRUE(seen == first);
  }
}

struct Link {
  const char* name;
  const char* list;
  bool peers, broken, direct;
};

TEST(CudaCopies, WhatDoesNotReachGoesThroughTheHost) {
  RAMET_EMULATED_ONLY("links that are absent or damaged");
  const Link links[] = {{"direct", nullptr, true, false, true},
                        {"one card", "0,0", true, false, true},
                        {"no peers", nullptr, false, false, false},
                        {"damaged", nullptr, true, true, false}};
  for (const Link& link : links) {
    SCOPED_TRACE(link.name);
    emulated::Settings settings = gpu_settings(2);
    settings.all_peers = link.peers;
    if (link.broken) settings.broken_peers = {{0, 1}, {1, 0}};
    const Gpus gpus(settings, link.list);
    std::string logged;
    set_log_handler([&](LogLevel, const std::string& text) { logged += text; });
    const cuda::CopyCounts counted = cuda::copy_counts();
    const size_t n = kPiece + 100;
    const Memory a(0, n), b(1, n);
    const Bytes sent = numbered(n, 3);
    Bytes back(n);
    for (int round = 0; round < 2; ++round) {
      cuda::copy("copy", a.p, gpu(0), sent.data(), kCpu, n);
      cuda::copy("copy", b.p, gpu(1), a.p, gpu(0), n);
      cuda::copy("copy", back.data(), kCpu, b.p, gpu(1), n);
      EXPECT_TRUE(back == sent);
    }
    set_log_handler({});
    const cuda::CopyCounts now = cuda::copy_counts();
    EXPECT_EQ(now.direct - counted.direct, link.direct ? 2u : 0u);
    EXPECT_EQ(now.through_host - counted.through_host, link.direct ? 0u : 2u);
    EXPECT_EQ(logged.empty(), link.direct) << logged;
    if (!link.direct) {
      EXPECT_NE(logged.find("copies from cuda:0 to cuda:1 go through the host"), std::string::npos);
      EXPECT_EQ(logged.find("copies", 7), std::string::npos) << "said more than once: " << logged;
    }
  }
}

// Pinned memory: what is asked for, a power of two while that is little.
TEST(CudaCopies, SizesOfPinnedBlocks) {
  constexpr size_t kMiB = size_t{1} << 20, kGiB = size_t{1} << 30;
  for (const auto& [asked, block] :
       std::initializer_list<std::pair<size_t, size_t>>{{0, 512},
                                                        {1, 512},
                                                        {513, 1024},
                                                        {kMiB - 1, kMiB},
                                                        {kMiB, kMiB},
                                                        {kMiB + 1, kMiB + kMiB / 8},
                                                        {9 * kGiB, 9 * kGiB},
                                                        {9 * kGiB + 1, 10 * kGiB},
                                                        {SIZE_MAX, SIZE_MAX}})
    EXPECT_EQ(cuda::pinned_block(asked), block) << asked;
  size_t last = 0;
  for (size_t n = 1; n < size_t{1} << 40; n += 1 + n / 37) {
    const size_t block = cuda::pinned_block(n);
    EXPECT_GE(block, std::max(n, last)) << n;
    EXPECT_EQ(block, cuda::pinned_block(block)) << n;
    EXPECT_EQ(block % 512, 0u) << n;
    if (n > kMiB) { EXPECT_LE(block - n, n / 8) << n; }
    last = block;
  }
}

TEST(CudaCopies, ADeviceThatDoesNotExistIsNamed) {
  const Gpus gpus(gpu_settings(1));
  unsigned char x = 0;
  EXPECT_MESSAGE(cuda::copy("to", &x, gpu(3), &x, kCpu, 1),
                 "[to] device: got cuda:3, but there is 1 CUDA device");
}

// A kernel of the program's own runs after the copy before it and before the copy after it, in any
// schedule. The thread has had no GPU, or another one.
TEST(CudaCopies, KernelsOfTheProgramInBetween) {
  for (const emulated::Settings& settings : stream_modes(2)) {
    const Gpus gpus(settings);
    const auto plus_one_on = [](int k) {
      constexpr size_t n = 5000;
      std::vector<float> values(n);
      std::iota(values.begin(), values.end(), 0.f);
      const Memory there(k, n * sizeof(float));
      cuda::copy("copy", there.p, gpu(k), values.data(), kCpu, n * sizeof(float));
      auto* x = static_cast<float*>(there.p);
      ASSERT_EQ(increment(x, n, cuda::current_stream(k)), cudaSuccess);
      ASSERT_EQ(increment(x, n, cuda::current_stream(k)), cudaSuccess);
      cuda::copy("copy", values.data(), kCpu, there.p, gpu(k), n * sizeof(float));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(values[i], static_cast<float>(i) + 2) << k;
    };
    std::thread([&] { plus_one_on(1); }).join();
    plus_one_on(0);
    plus_one_on(1);
    {
      const DeviceGuard second(gpu(1));
      EXPECT_EQ(cuda::current_stream(), cuda::current_stream(1));
    }
    EXPECT_NE(cuda::current_stream(), cuda::current_stream(1));
    for (const int64_t none : {int64_t{2}, int64_t{-2}, INT64_MIN, INT64_MAX})
      EXPECT_MESSAGE((void)cuda::current_stream(none), none == 2 ? "does not exist" : "got cuda:");
  }
}

}  // namespace
}  // namespace ramet::testing
