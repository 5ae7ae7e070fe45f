// A link of one rank, by NCCL itself on a machine with a real GPU. It checks that NCCL's functions,
// configuration and enumerations are what the code assumes. Several ranks want several GPUs,
// emulated ones or real: tests/parallel/distributed/cuda.
#include <chrono>
#include <thread>

#include "runtime/cuda/copies.h"
#include "runtime/devices/gpu_link.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

template <class F> bool soon(const F& f) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!f()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}
#define RAMET_NEEDS_NCCL() \
  if (const std::string why = gpu::why_no_links(); !why.empty()) GTEST_SKIP() << why

std::unique_ptr<gpu::Link> link_of_one() {
  auto link = gpu::make_link(gpu::make_link_id(), 0, 0, 1);
  EXPECT_TRUE(soon([&] { return link->settled(); }));
  return link;
}

// Device memory of n elements.
template <class T> struct DeviceMemory {
  explicit DeviceMemory(const std::vector<T>& values)
      : bytes(values.size() * sizeof(T)), at(gpu::library()->allocate(bytes, 0)) {
    cuda::copy("copy", at, kGpu, values.data(), kCpu, static_cast<int64_t>(bytes));
  }
  ~DeviceMemory() { gpu::library()->free(at, bytes, 0); }
  std::vector<T> values() const {
    std::vector<T> out(bytes / sizeof(T));
    cuda::copy("copy", out.data(), kCpu, at, kGpu, static_cast<int64_t>(bytes));
    return out;
  }
  const size_t bytes;
  void* const at;
};

TEST(NcclOfOneRank, SumsAndMessages) {
  const Gpus gpus(gpu_settings(1));
  RAMET_NEEDS_NCCL();
  auto link = link_of_one();
  const std::vector<float> given = {1, 2.5, -3, 1e30f};
  DeviceMemory<float> x(given), y({0, 0, 0, 0});
  DeviceMemory<int64_t> whole({1, -2, int64_t{1} << 40});
  link->come_after_kernels();
  const auto finished = [&] {
    EXPECT_TRUE(soon([&] { return link->settled(); }));
    link->come_before_kernels();
    link->mark();
    EXPECT_TRUE(soon([&] { return link->reached(); }));
  };
  EXPECT_TRUE(link->can_sum(kFloat) && link->can_sum(kLong) && link->can_sum(kBFloat16));
  link->sum(x.at, 4, kFloat);
  finished();
  link->sum(whole.at, 3, kLong);
  finished();
  link->exchange({{0, x.at, x.bytes}}, {{0, y.at, y.bytes}});
  finished();
  EXPECT_EQ(x.values(), given);
  EXPECT_EQ(y.values(), given);
  EXPECT_EQ(whole.values(), (std::vector<int64_t>{1, -2, int64_t{1} << 40}));
}

TEST(NcclOfOneRank, AbortedAndMadeAgain) {
  const Gpus gpus(gpu_settings(1));
  RAMET_NEEDS_NCCL();
  for (int i = 0; i < 2; ++i) {
    auto link = link_of_one();
    DeviceMemory<float> x({7});
    link->sum(x.at, 1, kFloat);
    link->abort(std::chrono::steady_clock::now() + gpu::kLinkAbortTakes);
    link = nullptr;
    EXPECT_EQ(x.values(), std::vector<float>{7});
  }
}

}  // namespace
}  // namespace ramet::testing
