// Many data-parallel steps: memory stays where it is after the first ones, and nothing is left at
// exit.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "autograd/autograd.h"
#include "nn/optim/adam.h"
#include "parallel/move/counters.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pool.h"
#include "tests/parallel/models.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

#if defined(__SANITIZE_ADDRESS__)
[[gnu::noinline]] void lose() { new Tensor(zeros({3})); }
#endif

// The proof that the next test can fail. Before any thread is started: a forked child has only one.
TEST(LeakCheck, SeesLostTensors) {
#if defined(__SANITIZE_ADDRESS__)
  EXPECT_EXIT(
      {
        for (int i = 0; i < 50; ++i) lose();
        std::_Exit(__lsan_do_recoverable_leak_check() ? 3 : 0);
      },
      ::testing::ExitedWithCode(3), "detected memory leaks");
#else
  GTEST_SKIP() << "leaks are looked for in the ASan build";
#endif
}

// Bytes of this process's own memory that are resident; 0 where the system does not say. Not the
// pages of the program's file: those come in whenever a function is called for the first time.
int64_t resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return 0;
}

std::vector<int64_t> held() {
  devices::synchronize();
  std::vector<int64_t> out;
  for (Device device : {kHost, d(0), d(1)}) out.push_back(memory_stats(device).current);
  out.push_back(ramet::parallel::counters().graph_nodes_alive);
  return out;
}

/// Batches of changing size; buffers, dropout, an optimizer with state.
struct Training {
  Training() {
    DataParallelOptions options({kHost, d(0), d(1)});
    options.output_device = kHost;
    options.bucket_bytes = 512;
    dp.emplace(m, options);
  }
  void steps(int n) {
    for (int i = 0; i < n; ++i) {
      const int64_t batch = 3 + i % 4;
      m->zero_grad();
      (*dp)(varied({batch, 1, 6, 6}, 1)).pow(2).mean().backward();
      adam.step();
    }
  }
  SmallConv m{true};
  std::optional<DataParallel<SmallConv>> dp;
  optim::Adam adam{m->parameters(), optim::AdamOptions(1e-3)};
};

TEST(Steady, ResidentSizeIsFlat) {
  // Under a sanitizer freed blocks are kept back on purpose, and each step takes ten times as long.
  const int count = kGpus ? 100 : pool::kPassThrough ? 300 : 10000;
  Training job;
  job.steps(count / 10);
  const std::vector<int64_t> before = held();
  const int64_t start = resident();
  job.steps(count);
  EXPECT_EQ(held(), before);
  if (pool::kPassThrough || kGpus) {
    std::printf("resident size not compared: %s\n", kGpus
                                                        ? "it holds emulated GPUs and their checker"
                                                        : "a sanitizer keeps freed blocks");
  } else {
    // The allocator of the C++ library may still find a better place for something.
    EXPECT_LE(resident() - start, 64 << 10) << "after " << count << " steps, from " << start;
  }
}

TEST(Steady, SetsComeAndGo) {
  nn::Linear m(8, 8);
  const Tensor x = varied({6, 8}, 1);
  std::vector<int64_t> before;
  int64_t start = 0;
  for (int i = 0; i < (kGpus ? 60 : 220); ++i) {
    data_parallel(m, x, many(2), kHost).sum().backward();
    if (i % 2) clear_data_parallel_cache();
    replicate(m, many(3));
    m->zero_grad();
    if (i == 19) {
      before = held();
      start = resident();
    }
  }
  clear_data_parallel_cache();
  EXPECT_EQ(held(), before);
  if (!pool::kPassThrough && !kGpus) { EXPECT_LE(resident() - start, 64 << 10); }
}

// Everything that the steps made is reachable or gone. LeakSanitizer checks again at exit, in every
// test of the ASan build.
TEST(Steady, NothingLeaks) {
#if defined(__SANITIZE_ADDRESS__)
  {
    Training job;
    job.steps(20);
    EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
  }
  EXPECT_EQ(__lsan_do_recoverable_leak_check(), 0);
#else
  GTEST_SKIP() << "leaks are looked for in the ASan build";
#endif
}

}  // namespace
}  // namespace ramet
