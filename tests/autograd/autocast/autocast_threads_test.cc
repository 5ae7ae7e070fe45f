// Autocast belongs to a thread, and follows its work to others.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autocast.h"
#include "autograd/ops.h"
#include "runtime/observe/thread_local_state.h"

namespace ramet {
namespace {

ScalarType dtype_of_product() { return mm(ones({2, 2}), ones({2, 2})).scalar_type(); }

TEST(AutocastThreads, StateFollowsWork) {
  const AutocastGuard guard(kCPU, kHalf);
  const ThreadLocalState state;
  std::thread([&] {
    EXPECT_EQ(dtype_of_product(), kFloat);
    {
      const ThreadLocalStateGuard as(state);
      EXPECT_EQ(dtype_of_product(), kHalf);
    }
    EXPECT_EQ(dtype_of_product(), kFloat);
  }).join();
}

// Each thread casts a parameter for itself. The gradients of all arrive.
TEST(AutocastThreads, ThreadsShareAParameter) {
  const Tensor x = ones({4, 8}), w = full({2, 8}, 0.5).requires_grad_();
  std::vector<std::thread> threads;
  std::vector<Tensor> results(4);
  for (Tensor& result : results)
    threads.emplace_back([&x, &w, &result] {
      const AutocastGuard guard(kCPU);
      result = linear(x, w) + linear(x, w);
    });
  for (std::thread& t : threads) t.join();
  for (const Tensor& result : results) {
    EXPECT_EQ(result.scalar_type(), kBFloat16);
    result.sum().backward();
  }
  EXPECT_EQ(w.grad()[1][3].item<float>(), 4 * 2 * 4);
}

}  // namespace
}  // namespace ramet
