// group_norm as a public operation; numbers from PyTorch 2.15. Kernels:
// tests/kernels/rows/group_norm_test.cc.
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

TEST(GroupNorm, AsPyTorch) {
  const Tensor x = varied_leaf({2, 4, 3}, 6), w = varied_leaf({4}, 7), b = varied_leaf({4}, 8);
  const Tensor y = group_norm(x, 2, w, b);
  EXPECT_EQ(y.grad_fn()->name(), "NativeGroupNormBackward0");
  expect_values(y, {-0.757839840537883, 0.830405179564126,  -0.151184310240014, -0.736883917096621,
                    -0.647599332734944, -0.558314734440676, -0.14152471818616,  1.01863384240699,
                    2.17879240300013,   0.107034265291131,  -0.465517611826385, 0.460890850090977,
                    0.0866509062814857, -0.997625993090715, 0.75677100530347,   -0.576380344032822,
                    -0.735958882485553, -0.637333919193089, 1.46173842395636,   -0.662345453712291,
                    0.650410691210521,  -0.712960256152837, 0.335300087409568,  -0.31256049001774});
  const std::vector<Tensor> g =
      autograd::grad({y.mul(varied({2, 4, 3}, 11)).sum()}, {x, w, b}, {}, true, true);
  expect_values(g[0],
                {0.811265352181059,  0.0472812049289954, -1.06879569967376,  0.193202559492546,
                 0.14799975004196,   -0.1309531669708,   -0.30625803772697,  1.21053346674243,
                 -0.310009703291363, -0.170597352111304, -0.386516285352569, -0.0371520882602203,
                 -0.81143458048274,  0.537157377524844,  0.109486598193544,  -0.174028169492204,
                 0.322999333381207,  0.0158194408753486, -1.34127657857032,  -0.202346460764625,
                 1.21783995973457,   0.836528625848959,  0.0148423272528339, -0.525587873501413});
  expect_values(g[1], {-1.79380561232625, 0.976181366607153, -1.25959544655494, 0.491917014118359});
  expect_values(g[2],
                {-0.00720980167388918, 0.266936278343201, 0.541082096099854, -1.38477195501328});
  const std::vector<Tensor> h = autograd::grad({g[0].square().sum()}, {x, w});
  expect_values(h[0],
                {1.45892493586361,   -0.744232048165399,  0.109010162855899,  -1.44564701744133,
                 -0.249627270132747, 0.871571237019966,   -0.632175071392437, -0.737464132919012,
                 1.73538806023857,   -0.295769971985198,  1.06969501258767,   -1.13967389652959,
                 -0.682248458961055, 1.48004736908313,    -0.324127421126609, 0.261789514509511,
                 -0.649260426735285, -0.0862005767696972, 2.30880940336732,   -3.72009015515987,
                 -0.537142385678778, 3.10643857411292,    -2.42114141430549,  1.2631259776639},
                1e-9);
  expect_values(h[1], {7.78418076756666, 0.714359041017071, -10.966294555032, 5.08683453122937},
                1e-9);
}

TEST(GroupNorm, Derivatives) {
  const Tensor w = varied_leaf({6}, 2), b = varied_leaf({6}, 3);
  const auto f = [](const In& in) { return group_norm(in[0], 3, in[1], in[2], 1e-3); };
  expect_derivatives(f, {varied_leaf({2, 6}, 1), w, b});
  expect_derivatives(f, {varied_leaf({2, 6, 3}, 1), w, b});
  expect_derivatives(f, {varied_leaf({1, 6, 2, 2}, 1), w, b});
  expect_derivatives([](const In& in) { return group_norm(in[0], 1); }, {varied_leaf({2, 4}, 1)});
  expect_derivatives([](const In& in) { return group_norm(in[0], 2, {}, in[1]); },
                     {varied_leaf({2, 6, 2}, 1), b});
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

TEST(GroupNorm, LayoutsAgreeAndStay) {
  const Tensor x = varied({3, 3, 6, 6}, 1).to(kFloat).requires_grad_(),
               w = varied({8, 3, 3, 3}, 2).to(kFloat),
               gamma = varied({8}, 3).to(kFloat).requires_grad_();
  const Tensor y = conv2d(x, w, {}, 1, 1), z = group_norm(y, 4, gamma);
  EXPECT_TRUE(autograd::is_channels_last(z));
  const Tensor xd = x.detach().to(kDouble).requires_grad_(),
               gd = gamma.detach().to(kDouble).requires_grad_();
  const Tensor zd = group_norm(conv2d(xd, w.to(kDouble), {}, 1, 1).contiguous(), 4, gd);
  expect_values(z.flatten(1), values(zd.flatten(1)), 1e-4);
  const Tensor g = varied({3, 8, 6, 6}, 4);
  z.mul(g.to(kFloat)).sum().backward();
  zd.mul(g).sum().backward();
  expect_values(x.grad(), values(xd.grad()), 2e-4);
  expect_values(gamma.grad(), values(gd.grad()), 2e-4);
  // A user's own channels-last memory shows in the result, as in LibTorch.
  const Tensor last = varied({2, 4, 4, 6}, 5).permute({0, 3, 1, 2}).requires_grad_();
  const Tensor of_last = group_norm(last, 2);
  EXPECT_EQ(of_last.strides().vec(), last.strides().vec());
  expect_values(of_last, values(group_norm(last.contiguous(), 2)), 1e-12);
  const Tensor with_gaps = varied({2, 6, 4, 8}, 5).slice(3, 0, 8, 2);
  expect_values(group_norm(with_gaps, 3), values(group_norm(with_gaps.contiguous(), 3)), 0);
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
    EXPECT_EQ(error_of(f).find("[group_norm] " + text), 0u) << error_of(f);
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
