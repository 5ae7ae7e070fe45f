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

// A shape is checked after the casts. The error says what was cast, and leaves nothing but casts
// that the next call uses.
TEST(AutocastDtypes, ErrorsAfterCasts) {
  const Tensor w = ones({4, 3}).requires_grad_(), x = ones({2, 3}), wrong = ones({2, 5});
  const AutocastGuard guard(kCPU);
  const std::string said = error_of([&] { linear(wrong, w); });
  expect_part(said, "[linear] shapes: got input bfloat16[2, 5] on cpu and weight bfloat16[4, 3]");
  expect_part(said, "\n  under autocast, which cast its tensors to BFloat16");
  EXPECT_ERROR_TEXT(mse_loss(x.to(kBFloat16), w), "got shapes [2, 3] and [4, 3]\n  under autocast");
  EXPECT_TRUE(autocast::is_autocast_enabled(kCPU));
  EXPECT_FALSE(w.grad().defined());
  const Tensor y = linear(x, w);
  EXPECT_EQ(cast_in(y), cast_in(linear(x, w)));
  y.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat);
  EXPECT_TRUE(w.grad().eq(2).all().item<bool>());
  // An Error of a class of its own stays one. Where nothing is cast, nothing is added.
  EXPECT_THROW(index_copy(x, 0, full({1}, 7, kLong), ones({1, 3}, kBFloat16)), IndexError);
  EXPECT_EQ(error_of([&] { add(x, wrong); }).find("autocast"), std::string::npos);
  EXPECT_EQ(error_of([&] { mse_loss(x, w); }).find("autocast"), std::string::npos);
}

}  // namespace
}  // namespace autocast_tests
}  // namespace ramet
