// RAMET_FAIL_ALLOC: every allocation of a data-parallel step fails once, wherever and on whichever
// worker it is made: a named error, nothing kept, and a right next step.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograd/autograd.h"
#include "nn/optim/adam.h"
#include "runtime/allocator.h"
#include "runtime/devices.h"
#include "runtime/pool.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_FAIL_ALLOC", "0", 1);

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
    Values all = all_values(m->parameters());
    for (double v : all_values(m->buffers())) all.push_back(v);
    for (double v : all_gradients(*m)) all.push_back(v);
    return all;
  }
  Tensor x = varied({6, 1, 6, 6}, 1), y = varied({6, 3}, 2);
  SmallConv m{true};
  std::optional<DataParallel<SmallConv>> dp;
  optim::Adam adam{m->parameters(), optim::AdamOptions(0.01)};
};

std::vector<int64_t> held() {
  devices::synchronize();
  std::vector<int64_t> out;
  for (Device device : {kHost, d(0)}) out.push_back(memory_stats(device).current);
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

// A step of a trained module: the failures come anywhere in forward, backward and optimizer.
TEST(PlannedFailures, EveryAllocationOfAStep) {
  manual_seed(8);
  Job job;
  job.step();
  job.step();
  const Values start = all_values(job.m->parameters()), buffers = all_values(job.m->buffers());
  const GeneratorState random = default_generator(kHost).get_state();
  // What the next step has to come to. Each starts from the same place: parameters, buffers,
  // generator; the optimizer's moments are made anew.
  auto again = [&] {
    const NoGradGuard off;
    size_t at = 0;
    for (const std::vector<Tensor>& list : {job.m->parameters(), job.m->buffers()}) {
      const Values& from = at == 0 ? start : buffers;
      size_t k = 0;
      for (const Tensor& t : list) {
        const auto n = static_cast<size_t>(t.numel());
        t.copy_(make(t.sizes(), Values(from.begin() + k, from.begin() + k + n), t.scalar_type()));
        k += n;
      }
      ++at;
    }
    default_generator(kHost).set_state(random);
    job.adam.state().clear();
    job.m->zero_grad();
  };
  again();
  job.step();
  const Values expected = job.state();
  again();
  const std::vector<int64_t> before = held();
  int failures = 0;
  for (uint64_t n = 1;; ++n) {
    const std::string text = failing(n, [&] { job.step(); });
    if (text.empty()) break;
    ++failures;
    EXPECT_TRUE(contains(text, kPlanned)) << text;
    again();
    ASSERT_EQ(held(), before) << "failure " << n << " kept memory";
    if (n % 7 == 0) {  // and the next step, without a failure, is the right one
      job.step();
      ASSERT_EQ(job.state(), expected) << "after failure " << n;
      again();
    }
  }
  EXPECT_EQ(job.state(), expected);
  EXPECT_GT(failures, 100);
}

// The first step: the replicas, flat stores and slots are made.
TEST(PlannedFailures, EveryAllocationOfTheFirstStep) {
  const Values expected = [] {
    manual_seed(9);
    Job job;
    job.step();
    return job.state();
  }();
  const std::vector<int64_t> before = held();
  for (uint64_t n = 1;; ++n) {
    {
      manual_seed(9);
      Job job;
      const std::string text = failing(n, [&] { job.step(); });
      if (text.empty()) {
        EXPECT_EQ(job.state(), expected);
        break;
      }
      ASSERT_TRUE(contains(text, kPlanned)) << text;
      if (n % 5 == 0) {
        manual_seed(9);
        Job next;  // another module: this one's statistics may have moved
        next.step();
        ASSERT_EQ(next.state(), expected) << "after failure " << n;
      }
      job.step();  // and this one goes on
    }
    ASSERT_EQ(held(), before) << "failure " << n << " kept memory";
  }
}

}  // namespace
}  // namespace ramet
