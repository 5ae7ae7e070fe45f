// RAMET_FAIL_ALLOC: every allocation of a data-parallel step (under the checker of GPUs one in a
// few) fails once, at any place and on any worker. Each time there is a named error, nothing is
// kept, and the next step is right.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "autograd/autograd.h"
#include "nn/optim/adam.h"
#include "nn/serialize/save.h"
#include "parallel/move/counters.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pool.h"
#include "tests/parallel/models.h"
#include "tests/share.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_FAIL_ALLOC", "0", 1);

const uint64_t kStep = static_cast<uint64_t>(one_repeat_in());

/// A network with buffers, dropout and an optimizer with state.
struct Job {
  Job() {
    set_parameters(*m, 3);
    DataParallelOptions options({kHost, d(0)});
    options.bucket_bytes = 256;
    dp.emplace(m, options);
  }
  void step() {
    m->zero_grad();
    ((*dp)(x)-y).pow(2).mean().backward();
    adam.step();
  }
  Values state() {
    Values all = all_state(*m);
    for (double v : all_gradients(*m)) all.push_back(v);
    return all;
  }
  Tensor x = varied({6, 1, 6, 6}, 1), y = varied({6, 3}, 2);
  SmallConv m{true};
  std::optional<DataParallel<SmallConv>> dp;
  optim::Adam adam{m->parameters(), optim::AdamOptions(0.01)};
};

// Bytes of each device, graph nodes.
std::vector<int64_t> held() {
  devices::synchronize();
  std::vector<int64_t> out;
  for (Device device : {kHost, d(0)}) out.push_back(memory_stats(device).current);
  out.push_back(ramet::parallel::counters().graph_nodes_alive);
  return out;
}

// The text of what `work` throws while its allocation number n fails; empty: nothing failed.
template <class F> std::string failing(uint64_t n, F&& work) {
  pool::fail_allocation_after(n);
  std::string text;
  try {
    work();
  } catch (const Error& e) { text = e.what(); }
  devices::synchronize();
  pool::fail_allocation_after(0);
  return text;
}
constexpr char kPlanned[] =
    "[allocate] out of memory (planned by RAMET_FAIL_ALLOC): got a request of";

// What a failed forward may rightly change: moved statistics, drawn random numbers, some gradients.
struct Forward {
  explicit Forward(Job& j) : job(j), random(default_generator(kHost).get_state()) {
    for (const Tensor& b : job.m->buffers()) buffers.push_back(b.detach().clone());
  }
  void undo() {
    const NoGradGuard off;
    size_t at = 0;
    for (const Tensor& b : job.m->buffers()) b.copy_(buffers[at++]);
    default_generator(kHost).set_state(random);
    job.m->zero_grad();
  }
  Job& job;
  std::vector<Tensor> buffers;
  const GeneratorState random;
};

// A step of a trained module: the failures come anywhere in forward, backward and optimizer. The
// next step, without a failure, is the right one: parameters and moments are as they were.
TEST(PlannedFailures, EveryAllocationOfAStep) {
  manual_seed(8);
  Job job;
  job.step();
  job.step();
  job.m->zero_grad();
  Forward forward(job);
  std::vector<Tensor> start;
  for (const Tensor& p : job.m->parameters()) start.push_back(p.detach().clone());
  std::ostringstream moments;
  save(job.adam, moments);
  auto restart = [&] {
    const NoGradGuard off;
    size_t at = 0;
    for (const Tensor& p : job.m->parameters()) p.copy_(start[at++]);
    std::istringstream in(moments.str());
    load(job.adam, in);
    forward.undo();
  };
  job.step();
  const Values expected = job.state();
  restart();
  const std::vector<int64_t> before = held();
  uint64_t failures = 0;
  for (uint64_t n = 1;; n += kStep) {
    const std::string text = failing(n, [&] { job.step(); });
    if (text.empty()) break;
    ++failures;
    expect_part(text, kPlanned);
    forward.undo();
    ASSERT_EQ(held(), before) << "failure " << n << " kept memory";
    job.step();
    ASSERT_EQ(job.state(), expected) << "after failure " << n;
    restart();
  }
  EXPECT_EQ(job.state(), expected);
  EXPECT_GT(failures * kStep, 100u);
}

// The first step: the replicas, flat stores, slots and moments are made.
TEST(PlannedFailures, EveryAllocationOfTheFirstStep) {
  const Values expected = [] {
    manual_seed(9);
    Job job;
    job.step();
    return job.state();
  }();
  const std::vector<int64_t> before = held();
  for (uint64_t n = 1;; n += kStep) {
    {
      manual_seed(9);
      Job job;
      Forward forward(job);
      const std::string text = failing(n, [&] { job.step(); });
      if (text.empty()) {
        EXPECT_EQ(job.state(), expected);
        break;
      }
      ASSERT_TRUE(contains(text, kPlanned)) << text;
      forward.undo();
      job.step();
      ASSERT_EQ(job.state(), expected) << "after failure " << n;
    }
    ASSERT_EQ(held(), before) << "failure " << n << " kept memory";
  }
}

}  // namespace
}  // namespace ramet
