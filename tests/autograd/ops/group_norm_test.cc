// group_norm beyond the operation table. Kernels: tests/kernels/rows/group_norm_test.cc.
#include "autograd/ops/layers/group_norm.h"

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/layers/batch_norm.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

TEST(GroupNorm, Derivatives) {
  expect_derivatives([](const In& in) { return group_norm(in[0], 1); }, {varied_leaf({2, 4}, 1)});
  expect_derivatives([](const In& in) { return group_norm(in[0], 2, {}, in[1]); },
                     {varied_leaf({2, 6, 2}, 1), varied_leaf({6}, 3)});
  expect_derivatives([](const In& in) { return group_norm(in[0], 2, in[0][0], in[0][1]); },
                     {varied_leaf({2, 4}, 1)});
  // Channels-last memory, and memory with gaps.
  expect_derivatives(
      [](const In& in) {
        return group_norm(in[0].permute({0, 3, 1, 2}), 2, in[1].slice(0, 0, 8, 2), {}, 1e-3);
      },
      {varied_leaf({2, 1, 2, 4}, 1), varied_leaf({8}, 2)});
  expect_derivatives([](const In& in) { return group_norm(in[0].slice(2, 0, 4, 2), 2); },
                     {varied_leaf({2, 4, 5}, 1)});
  EXPECT_EQ(group_norm(varied_leaf({2, 4}), 2).grad_fn()->name(), "NativeGroupNormBackward0");
}

// One group is a layer norm of samples, a group for each channel a batch norm of one sample.
TEST(GroupNorm, WhatItsEndsAre) {
  const Tensor x = varied({3, 4, 2, 5}, 1);
  expect_values(group_norm(x, 1, {}, {}, 0.1), values(layer_norm(x, {4, 2, 5}, {}, {}, 0.1)),
                1e-12);
  const Tensor each = group_norm(x, 4, {}, {}, 0.1);
  for (int64_t n = 0; n < 3; ++n)
    expect_values(each[n],
                  values(batch_norm(x.slice(0, n, n + 1), {}, {}, {}, {}, true, 0, 0.1, false)));
  const Tensor large = varied({2, 6, 7000}, 2);  // longer than what is summed at once
  expect_values(group_norm(large, 2), values(layer_norm(large.view({2, 2, 21000}), {21000})),
                1e-11);
}

TEST(GroupNorm, LayoutsStay) {
  const Tensor y = conv2d(varied({3, 3, 6, 6}, 1).to(kFloat), varied({8, 3, 3, 3}, 2).to(kFloat));
  EXPECT_TRUE(autograd::is_channels_last(group_norm(y, 4)));
  // A user's own channels-last memory shows in the result, as in LibTorch.
  const Tensor last = varied({2, 4, 4, 6}, 5).permute({0, 3, 1, 2}).requires_grad_();
  const Tensor of_last = group_norm(last, 2);
  EXPECT_EQ(of_last.strides().vec(), last.strides().vec());
  expect_values(of_last, values(group_norm(last.contiguous(), 2)), 1e-12);
}

TEST(GroupNorm, HalfInputWithFloatWeights) {
  const Tensor x = varied({5, 4, 3}, 1), w = varied({4}, 2), b = varied({4}, 3),
               g = varied({5, 4, 3}, 4);
  for (ScalarType t : {kHalf, kBFloat16})
    for (ScalarType of_weights : {kFloat, t}) {
      const Tensor xt = x.to(t).requires_grad_(), wt = w.to(of_weights).requires_grad_(),
                   bt = b.to(of_weights).requires_grad_();
      const Tensor xd = xt.detach().to(kDouble).requires_grad_(),
                   wd = wt.detach().to(kDouble).requires_grad_(),
                   bd = bt.detach().to(kDouble).requires_grad_();
      const Tensor y = group_norm(xt, 2, wt, bt), yd = group_norm(xd, 2, wd, bd);
      EXPECT_EQ(y.scalar_type(), t);
      const double tolerance = t == kHalf ? 2e-3 : 1.6e-2;
      expect_values(y.to(kDouble), values(yd), tolerance);
      y.backward(g.to(t));
      yd.backward(g.to(t).to(kDouble));
      EXPECT_EQ(wt.grad().scalar_type(), of_weights);
      expect_values(xt.grad().to(kDouble), values(xd.grad()), tolerance);
      const double fine = of_weights == kFloat ? 1e-5 : tolerance;  // sums are of floats
      expect_values(wt.grad().to(kDouble), values(wd.grad()), fine);
      expect_values(bt.grad().to(kDouble), values(bd.grad()), fine);
    }
}

// LibTorch refuses planes without values; here they add nothing.
TEST(GroupNorm, Empty) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{0, 4, 3}, {2, 4, 0}, {2, 4, 3, 0}}) {
    const Tensor x = zeros(sizes).requires_grad_(), w = ones(4).requires_grad_(),
                 b = ones(4).requires_grad_();
    const Tensor y = group_norm(x, 2, w, b);
    EXPECT_EQ(y.sizes().vec(), sizes);
    y.sum().backward();
    EXPECT_EQ(x.grad().sizes().vec(), sizes);
    expect_values(w.grad(), {0, 0, 0, 0});
    expect_values(b.grad(), {0, 0, 0, 0});
  }
  EXPECT_EQ(group_norm(zeros({2, 0, 3}), INT64_MAX, zeros(0)).numel(), 0);
}

TEST(GroupNorm, Errors) {
  const Tensor x = varied({2, 6, 4});
  const auto refuses = [](const std::string& text, const std::function<void()>& f) {
    EXPECT_ERROR_START(f(), "[group_norm] " + text);
  };
  refuses(
      "Expected number of channels in input to be divisible by num_groups, but got input of "
      "shape [2, 6, 4] and num_groups=4",
      [&] { group_norm(x, 4); });
  refuses("Expected num groups to be greater than 0, got 0", [&] { group_norm(x, 0); });
  refuses("Expected num groups to be greater than 0, got -2", [&] { group_norm(x, -2); });
  refuses("Expected at least 2 dimensions for input tensor but received 1",
          [] { group_norm(varied({4}), 2); });
  refuses(
      "Expected weight to be a vector of size equal to the number of channels in input, but "
      "got weight of shape [5] and input of shape [2, 6, 4]",
      [&] { group_norm(x, 2, varied({5})); });
  refuses(
      "Expected bias to be a vector of size equal to the number of channels in input, but got "
      "bias of shape [6, 1]",
      [&] {
        group_norm(x, 2, {}, varied({6, 1}));
      });
  refuses("weight: got int64", [&] { group_norm(x, 2, ones(6, kLong)); });
  refuses("undefined tensor", [] { group_norm(Tensor(), 2); });
  EXPECT_THROW(group_norm(x.to(kLong), 2), NotImplementedError);
  // A variance below -eps cannot be: a negative eps gives what the square root gives.
  EXPECT_TRUE(group_norm(ones({1, 2}), 1, {}, {}, -1).isnan().all().item<bool>());
}

}  // namespace
}  // namespace ramet
