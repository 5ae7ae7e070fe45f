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

TEST(MaxPool, AsPyTorch) {
  const std::vector<double> want = {1.04119806289673,  1.04119806289673,  0.918596291542053,
                                    0.276644897460938, 0.795994520187378, 0.918596291542053,
                                    0.47501882314682,  0.994368314743042, 0.154043126106262};
  expect_values(max_pool2d(image(), 3, 2, 1, 1, true), want);
  const auto [y, index] = max_pool2d_with_indices(image(), 3, 2, 1, 1, true);
  expect_values(y, want);
  expect_values(index, {1, 1, 9, 15, 17, 9, 20, 22, 23}, 0);
  expect_values(
      max_pool2d(image(), 2, 2, 0, 1, true),
      {1.04119806289673, 0.399246668815613, 0.918596291542053, 0.276644897460938, 0.795994520187378,
       -0.8846559882164, 0.47501882314682, 0.994368314743042, -0.686282062530518});
  // the stride is the kernel
  EXPECT_EQ(max_pool2d(image(), 2).sizes().vec(), (std::vector<int64_t>{1, 1, 2, 2}));
}

TEST(AvgPool, AsPyTorch) {
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
  expect_values(adaptive_avg_pool2d(image(), {3, 2}),
                {0.0403850038846334, 0.193067894379298, -0.0287208398183187, 0.00173982116911148,
                 0.268839983145396, 0.0548561851183573});
}

TEST(Pool, Derivatives) {
  const In x = {varied_leaf({1, 2, 4, 5}, 1)};
  expect_derivatives([](const In& in) { return max_pool2d(in[0], 2); }, x);
  expect_derivatives(
      [](const In& in) {
        return max_pool2d(in[0], {3, 2}, 1, {1, 0}, {1, 2}, true);
      },
      x);
  expect_derivatives(
      [](const In& in) { return std::get<0>(max_pool2d_with_indices(in[0].select(0, 0), 2, 1)); },
      x);
  expect_derivatives([](const In& in) { return avg_pool2d(in[0], 2, 1, 1, false, false); }, x);
  expect_derivatives(
      [](const In& in) {
        return avg_pool2d(in[0], {2, 3}, 2, {0, 1}, true, true, 5);
      },
      x);
  expect_derivatives([](const In& in) { return adaptive_avg_pool2d(in[0], {3, 2}); }, x);
  expect_derivatives([](const In& in) { return max_pool1d(in[0].select(0, 0).select(0, 0), 2); },
                     x);
  expect_derivatives([](const In& in) { return avg_pool1d(in[0].select(0, 0), 3, 2, 1); }, x);
  expect_derivatives([](const In& in) { return adaptive_avg_pool1d(in[0].select(0, 0), 2); }, x);
  expect_derivatives([](const In& in) { return max_pool2d(in[0], 2).square(); }, x);
}

TEST(Pool, InternalLayoutStaysAndIsInvisible) {
  const Tensor x = varied({2, 3, 8, 8}, 1).to(kFloat).requires_grad_(),
               w = varied({4, 3, 3, 3}, 2).to(kFloat);
  const Tensor y = conv2d(x, w, {}, 1, 1),
               wanted = conv2d(x.detach().to(kDouble), w.to(kDouble), {}, 1, 1);
  const Tensor p = max_pool2d(y, 2), a = avg_pool2d(y, 2);
  EXPECT_TRUE(autograd::is_channels_last(p));
  EXPECT_TRUE(autograd::is_channels_last(a));
  expect_values(p.flatten(1), values(max_pool2d(wanted, 2).flatten(1)), 1e-5);
  expect_values(a.flatten(1), values(avg_pool2d(wanted, 2).flatten(1)), 1e-5);
  const auto [v, index] = max_pool2d_with_indices(y, 2);
  EXPECT_TRUE(index.is_contiguous());
  expect_values(index, values(std::get<1>(max_pool2d_with_indices(wanted, 2))), 0);
  (p.flatten(1).sum() + v.sum() + a.sum()).backward();
  const Tensor xd = x.detach().to(kDouble).requires_grad_(),
               yd = conv2d(xd, w.to(kDouble), {}, 1, 1);
  (max_pool2d(yd, 2).sum() * 2 + avg_pool2d(yd, 2).sum()).backward();
  expect_values(x.grad(), values(xd.grad()), 1e-5);
}

TEST(Pool, Dtypes) {
  const Tensor x = (image() * 8).round();
  for (ScalarType t : {kFloat, kHalf, kBFloat16, kLong, kInt, kShort, kChar})
    expect_values(max_pool2d(x.to(t), 2).to(kDouble), values(max_pool2d(x, 2)), 0);
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    EXPECT_EQ(avg_pool2d(x.to(t), 2).scalar_type(), t);
    EXPECT_EQ(adaptive_avg_pool2d(x.to(t), 2).scalar_type(), t);
    expect_values(avg_pool2d(x.to(t), 2).to(kDouble), values(avg_pool2d(x, 2)), 1e-2);
  }
  EXPECT_THROW(max_pool2d(x.to(kBool), 2), NotImplementedError);
  EXPECT_EQ(error_of([&] {
              adaptive_avg_pool2d(x.to(kLong), 2);
            }).find("[adaptive_avg_pool2d] not implemented for 'Long'"),
            0u);
}

TEST(Pool, EmptyAndErrors) {
  EXPECT_EQ(max_pool2d(zeros({0, 2, 4, 4}), 2).sizes().vec(), (std::vector<int64_t>{0, 2, 2, 2}));
  EXPECT_EQ(adaptive_avg_pool2d(zeros({2, 3, 4, 4}), 0).numel(), 0);
  EXPECT_EQ(error_of([] {
              max_pool2d(image(), 2, 1, 2);
            }).find("[max_pool2d] pad should be at most half of effective kernel size"),
            0u);
  EXPECT_EQ(error_of([] {
              max_pool2d(image(), 7);
            }).find("[max_pool2d] Given input size: (1x5x5). Calculated output size: (1x0x0)"),
            0u);
  // Elements on both sides of a window and none in it: three steps lead from -1 to 2, beyond 0
  // and 1.
  EXPECT_EQ(error_of([] {
              max_pool2d(zeros({1, 1, 2, 2}), 2, 1, 1, 3);
            }).find("[max_pool2d] a window of padding alone: got "),
            0u);
  EXPECT_EQ(error_of([] {
              max_pool2d(zeros({1, 1, 9, 2}), 2, 1, {30, 50}, {60, 100});
            }).find("[max_pool2d] a window of padding alone: got "),
            0u);
  EXPECT_EQ(error_of([] {
              max_pool1d(zeros({1, 1, 2}), 2, 1, 1, 3);
            }).find("[max_pool1d] a window of padding alone: got "),
            0u);
  EXPECT_EQ(max_pool2d(zeros({1, 1, 3, 3}), 2, 1, 1, 3).numel(), 4);
  EXPECT_EQ(error_of([] { max_pool2d(image(), 0); }).find("[max_pool2d] kernel_size: got 0"), 0u);
  EXPECT_EQ(error_of([] {
              avg_pool2d(image(), 2, 2, 0, false, true, 0);
            }).find("[avg_pool2d] divisor must be not zero"),
            0u);
  EXPECT_EQ(
      error_of([] { avg_pool2d(varied({5}), 2); }).find("[avg_pool2d] Expected 3D or 4D input"),
      0u);
}

}  // namespace
}  // namespace ramet
