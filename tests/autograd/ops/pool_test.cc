// Pooling as public operations. Values: tests/kernels/image/pool2d_test.cc.
#include "autograd/ops/layers/pool.h"

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

Tensor image() { return varied({1, 1, 5, 5}, 5); }

// PyTorch 2.15's numbers: the last window hangs over, with and without padding counted, and
// divisors.
TEST(AvgPool, CeilAndDivisors) {
  expect_values(avg_pool2d(image(), 3, 2, 1, true),
                {-0.039756613307529, -0.0444045821825663, 0.0620319803555806, -0.22792770465215,
                 -0.135712738831838, -0.19746704366472, -0.0197025484508938, 0.107898722754584,
                 -0.162358413802253});
  expect_values(avg_pool2d(image(), 3, 2, 1, true, false),
                {-0.0894523799419403, -0.0666068732738495, 0.139571955800056, -0.341891556978226,
                 -0.135712738831838, -0.296200565497081, -0.0443307340145111, 0.161848084131877,
                 -0.365306431055069});
  expect_values(avg_pool2d(image(), 3, 2, 1, false, true, 2),
                {-0.178904759883881, -0.199820619821548, 0.279143911600113, -1.02567467093468,
                 -0.610707324743271, -0.888601696491242, -0.0886614680290222, 0.48554425239563,
                 -0.730612862110138});
  expect_derivatives(OF_X(avg_pool2d(x[0], {2, 3}, 2, {0, 1}, true, true, 5)),
                     {varied_leaf({1, 2, 4, 5}, 1)});
}

TEST(MaxPool, StrideIsTheKernel) {
  EXPECT_EQ(max_pool2d(image(), 2).sizes().vec(), (std::vector<int64_t>{1, 1, 2, 2}));
  expect_derivatives(  // padded and dilated along one dimension each
      OF_X(max_pool2d(x[0], {3, 2}, 1, {1, 0}, {1, 2}, true)), {varied_leaf({1, 2, 4, 5}, 1)});
}

TEST(Pool, InternalLayoutStays) {
  const Tensor y = conv2d(varied({2, 3, 8, 8}, 1).to(kFloat), varied({4, 3, 3, 3}, 2).to(kFloat));
  EXPECT_TRUE(autograd::is_channels_last(max_pool2d(y, 2)));
  EXPECT_TRUE(autograd::is_channels_last(avg_pool2d(y, 2)));
  EXPECT_TRUE(std::get<1>(max_pool2d_with_indices(y, 2)).is_contiguous());
}

TEST(Pool, EmptyAndErrors) {
  EXPECT_ERROR_START(adaptive_avg_pool2d(image().to(kLong), 2),
                     "[adaptive_avg_pool2d] not implemented for 'Long'");
  EXPECT_EQ(adaptive_avg_pool2d(zeros({2, 3, 4, 4}), 0).numel(), 0);
  EXPECT_ERROR_START(max_pool2d(image(), 2, 1, 2),
                     "[max_pool2d] pad should be at most half of effective kernel size");
  EXPECT_ERROR_START(max_pool2d(image(), 7),
                     "[max_pool2d] Given input size: (1x5x5). Calculated output size: (1x0x0)");
  // Elements on both sides of a window and none in it: three steps lead from -1 to 2, beyond 0
  // and 1.
  EXPECT_ERROR_START(max_pool2d(zeros({1, 1, 2, 2}), 2, 1, 1, 3),
                     "[max_pool2d] a window of padding alone: got ");
  EXPECT_ERROR_START(max_pool2d(zeros({1, 1, 9, 2}), 2, 1, {30, 50}, {60, 100}),
                     "[max_pool2d] a window of padding alone: got ");
  EXPECT_ERROR_START(max_pool1d(zeros({1, 1, 2}), 2, 1, 1, 3),
                     "[max_pool1d] a window of padding alone: got ");
  EXPECT_EQ(max_pool2d(zeros({1, 1, 3, 3}), 2, 1, 1, 3).numel(), 4);
  EXPECT_ERROR_START(max_pool2d(image(), 0), "[max_pool2d] kernel_size: got 0");
  EXPECT_ERROR_START(avg_pool2d(image(), 2, 2, 0, false, true, 0),
                     "[avg_pool2d] divisor must be not zero");
  EXPECT_ERROR_START(avg_pool2d(varied({5}), 2), "[avg_pool2d] Expected 3D or 4D input");
}

}  // namespace
}  // namespace ramet
