// A step that runs out of memory changes nothing, and can be made again: Note [A step is whole].
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/random/random.h"
#include "autograd/ops/shape/view.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/pool.h"
#include "tests/optimizers.h"

namespace ramet {
namespace {

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_FAIL_ALLOC", "0", 1);

using testing::AnyOptimizer;

/// Two groups of parameters, with some that take the kernels and some that do not. The latter are a
/// 16-bit one, a transposed one with a row-major gradient, and one without a gradient.
struct Job {
  explicit Job(const AnyOptimizer& any) {
    manual_seed(4);
    for (const auto& [sizes, dtype] :
         std::vector<std::pair<std::vector<int64_t>, ScalarType>>{{{3, 5}, kFloat},
                                                                  {{300, 1}, kFloat},
                                                                  {{4, 6}, kBFloat16},
                                                                  {{4, 6}, kBFloat16},
                                                                  {{7, 300}, kDouble},
                                                                  {{2, 1}, kFloat}}) {
      Tensor p = randn(sizes).to(dtype);
      if (dtype == kDouble) p = p.t().contiguous().t();
      parameters.push_back(p.detach());
      parameters.back().requires_grad_();
    }
    optimizer = any.make({std::vector<Tensor>(parameters.begin(), parameters.begin() + 3),
                          std::vector<Tensor>(parameters.begin() + 3, parameters.end())});
    for (size_t i = 0; i + 1 < parameters.size(); ++i)
      gradients.push_back(randn(parameters[i].sizes()).to(parameters[i].scalar_type()));
  }
  /// `times` steps; gradients are new in each.
  void steps(int times) {
    for (int i = 0; i < times; ++i) {
      set_gradients(++count);
      optimizer->step();
    }
  }
  void set_gradients(int n) {
    const NoGradGuard off;
    for (size_t i = 0; i < gradients.size(); ++i)
      parameters[i].mutable_grad() = gradients[i].mul(n);
  }
  std::vector<Tensor> values() const {
    std::vector<Tensor> all;
    for (const Tensor& p : parameters) all.push_back(p.detach().clone());
    return all;
  }
  std::vector<Tensor> parameters, gradients;
  std::unique_ptr<optim::Optimizer> optimizer;
  int count = 0;
};

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b, const char* when,
                  uint64_t n) {
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_TRUE(a[i].equal(b[i])) << when << " failure " << n << ", parameter " << i;
}

class OptimFailures : public ::testing::TestWithParam<AnyOptimizer> {};

// The first step makes the state; a later one needs temporaries at most.
TEST_P(OptimFailures, EveryAllocationOfAStep) {
  for (int before : {0, 2}) {
    Job reference(GetParam());
    reference.steps(before + 2);
    int failures = 0;
    for (uint64_t n = 1;; ++n) {
      Job job(GetParam());
      job.steps(before);
      job.set_gradients(++job.count);
      const std::vector<Tensor> start = job.values();
      pool::fail_allocation_after(n);
      bool failed = false;
      try {
        job.optimizer->step();
      } catch (const OutOfMemoryError&) { failed = true; }
      pool::fail_allocation_after(0);
      if (failed) {
        ++failures;
        expect_equal(job.values(), start, "changed by", n);
        job.optimizer->step();  // again
      }
      job.steps(1);
      expect_equal(job.values(), reference.values(), "two steps after", n);
      if (!failed) break;
    }
    EXPECT_GT(failures, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimFailures, ::testing::ValuesIn(testing::optimizers_of_matrices()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ramet
