// The dtype of each result under autocast, on a GPU.
#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/ops.h"
#include "tests/autograd/autocast/calls.h"
#include "tests/error_text.h"

namespace ramet {
namespace autocast_tests {
namespace {

const Device kGpu(kCUDA, 0);

TEST(AutocastDtypes, OnGpu) { expect_dtypes(kGpu); }

TEST(AutocastOnGpu, EachDeviceTypeHasItsOwn) {
  const Tensor host = ones({2, 2}), there = host.to(kGpu);
  const AutocastGuard guard(kCUDA, kBFloat16);
  EXPECT_EQ(mm(there, there).scalar_type(), kBFloat16);
  EXPECT_EQ(mm(host, host).scalar_type(), kFloat);
  const AutocastGuard both(kCPU, kHalf);
  EXPECT_EQ(mm(host, host).scalar_type(), kHalf);
}

TEST(AutocastOnGpu, RefusesWhatIsUnsafe) {
  const Tensor x = full({2}, 0.5, TensorOptions(kGpu));
  const AutocastGuard guard(kCUDA);
  EXPECT_ERROR_TEXT(binary_cross_entropy(x, x), "[binary_cross_entropy] unsafe under autocast");
  EXPECT_ERROR_TEXT(dot(x.to(kBFloat16), x.to(kBFloat16)),
                    "[dot] got a tensor of BFloat16 under autocast to Half");
}

}  // namespace
}  // namespace autocast_tests
}  // namespace ramet
