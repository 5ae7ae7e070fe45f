// The dtype of each result under autocast, on a CPU; tests/autograd/gpu has the same on a GPU.
#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "kernels/kernel.h"
#include "tests/autograd/autocast/calls.h"
#include "tests/error_text.h"

namespace ramet {
namespace autocast_tests {
namespace {

TEST(AutocastDtypes, OnCpu) { expect_dtypes(Device(kCPU, 0)); }

int64_t kernel_calls = 0;
void count_call(KernelCall& call) { kernel_calls += call.done; }

// No dtype fits: nothing is cast, and no kernel runs.
TEST(AutocastDtypes, ErrorsComeBeforeWork) {
  const Tensor half = ones({2, 2}, kHalf), brain = ones({2, 2}, kBFloat16);
  const Tensor index = zeros({2}, kLong);
  const AutocastGuard guard(kCPU);
  kernel_calls = 0;
  const KernelObserver before = ramet::detail::kernel_observer.exchange(count_call);
  EXPECT_ERROR_TEXT(stack({brain, half}),
                    "[stack] got a tensor of Half under autocast to BFloat16, expected tensors of "
                    "that dtype or Float: cast it, or set autocast's dtype");
  EXPECT_ERROR_TEXT(index_copy(half, 0, index, brain), "[index_copy] got a tensor of Half");
  EXPECT_ERROR_TEXT(AutocastGuard(kCPU, kLong), "[AutocastGuard] dtype for cpu: got Long");
  EXPECT_EQ(kernel_calls, 0);
  cat({brain, ones({2, 2})});
  ramet::detail::kernel_observer.store(before);
  EXPECT_GT(kernel_calls, 0);
}

}  // namespace
}  // namespace autocast_tests
}  // namespace ramet
