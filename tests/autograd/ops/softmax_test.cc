// Softmax, log-softmax and layer norm as public operations. Values: tests/kernels.
#include "autograd/ops/layers/softmax.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/layers/layer_norm.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

Tensor matrix() { return constant({1.5, -2.0, 0.25, 0.5, 3.0, -1.0}).view({2, 3}); }

TEST(Softmax, AsPyTorch) {
  expect_values(matrix().softmax(1),
                {0.7594731860969822, 0.022934102999540424, 0.21759271090347723, 0.07459555713221444,
                 0.9087599242585133, 0.016644518609272352});
  expect_values(matrix().log_softmax(0),
                {-0.31326168751822286, -5.006715348489118, -0.25192908134537295,
                 -1.3132616875182228, -0.006715348489117967, -1.501929081345373});
  expect_values(matrix().to(kFloat).softmax(-1, kDouble), values(matrix().softmax(1)));
  expect_values(constant({3}).view(IntArrayRef()).softmax(0), {1});
  EXPECT_EQ(constant({}).view({0, 4}).softmax(1).numel(), 0);
  EXPECT_NE(
      error_of([] { matrix().to(kLong).softmax(0); }).find("[softmax] not implemented for 'Long'"),
      std::string::npos);
  EXPECT_THROW(matrix().softmax(2), IndexError);
}

TEST(Softmax, EveryAxisAndLayout) {
  for (const Tensor& x : {varied({3, 4, 5}), varied({2, 5, 18})})
    for (int64_t d = 0; d < 3; ++d)
      for (bool log : {false, true}) {
        const Tensor y = log ? x.log_softmax(d) : x.softmax(d), e = x.exp(),
                     want = e / e.sum(d, true);
        EXPECT_TRUE(y.is_contiguous());
        expect_values(y, values(log ? want.log() : want), 1e-13);
        const Tensor z = x.transpose(0, 2);
        expect_values(log ? z.log_softmax(d) : z.softmax(d),
                      values(log ? z.contiguous().log_softmax(d) : z.contiguous().softmax(d)), 0);
      }
}

TEST(Softmax, Derivatives) {
  for (int64_t d : {0, 1, 2}) {
    expect_derivatives([d](const In& v) { return v[0].softmax(d); }, {varied_leaf({2, 3, 4})});
    expect_derivatives([d](const In& v) { return v[0].log_softmax(d); }, {varied_leaf({2, 3, 4})});
    expect_derivatives([d](const In& v) { return v[0].softmax(d); }, {varied_leaf({2, 3, 17})});
    expect_derivatives([d](const In& v) { return v[0].log_softmax(d); }, {varied_leaf({2, 3, 17})});
  }
  EXPECT_EQ(varied_leaf({2}).softmax(0).grad_fn()->name(), "SoftmaxBackward0");
  EXPECT_EQ(varied_leaf({2}).log_softmax(0).grad_fn()->name(), "LogSoftmaxBackward0");
}

TEST(Softmax, ThirdDerivative) {
  expect_derivatives(
      [](const In& v) {
        return autograd::grad({v[0].softmax(0).square().sum()}, {v[0]}, {}, true, true)[0];
      },
      {varied_leaf({4})});
}

TEST(LayerNorm, AsPyTorch) {
  const Tensor w = constant({0.5, 1, 2});
  expect_values(layer_norm(matrix(), {3}, w, w),
                {1.0466622674667976, -0.3234981212354049, 2.460347172603619, 0.3989849310824902,
                 2.313195895927627, -0.22233151618521507});
  expect_values(layer_norm(matrix(), {3}),
                values(layer_norm(matrix(), {3}, constant({1, 1, 1}), constant({0, 0, 0}))), 0);
  EXPECT_NE(
      error_of([&] { layer_norm(matrix(), {2}); }).find("[layer_norm] Given normalized_shape=[2]"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              layer_norm(matrix(), {3}, constant({1, 2}));
            }).find("Expected weight to be of same shape"),
            std::string::npos);
}

TEST(LayerNorm, Derivatives) {
  const Tensor x = varied_leaf({3, 5}), w = varied_leaf({5}, 1), b = varied_leaf({5}, 2);
  expect_derivatives([](const In& v) { return layer_norm(v[0], {5}, v[1], v[2]); }, {x, w, b});
  expect_derivatives([](const In& v) { return layer_norm(v[0], {5}); }, {x});
  expect_derivatives([](const In& v) { return layer_norm(v[0], {5}, v[1]); }, {x, w});
  expect_derivatives(
      [](const In& v) {
        return layer_norm(v[0], {2, 3}, std::nullopt, v[1]);
      },
      {varied_leaf({2, 2, 3}), varied_leaf({2, 3}, 4)});
  expect_derivatives([](const In& v) { return layer_norm(v[0].transpose(0, 1), {3}); }, {x});
  // One tensor as input and weight: their gradients must not be mixed up.
  expect_derivatives([](const In& v) { return layer_norm(v[0], {5}, v[0], v[0]); }, {w});
  EXPECT_EQ(layer_norm(x, {5}).grad_fn()->name(), "NativeLayerNormBackward0");
}

TEST(ResidualLayerNorm, AsTheTwoOperations) {
  const Tensor x = varied({3, 5}), r = varied({3, 5}, 1), w = varied({5}, 2), b = varied({5}, 3),
               g = varied({3, 5}, 4), gs = varied({3, 5}, 5);
  for (ScalarType t : {kDouble, kFloat, kBFloat16}) {
    const auto step = [&](bool fused, bool of_rows, bool of_sum) {
      const In in = {
          x.to(t).detach().clone().requires_grad_(), r.to(t).detach().clone().requires_grad_(),
          w.to(t).detach().clone().requires_grad_(), b.to(t).detach().clone().requires_grad_()};
      Tensor y, sum;
      if (fused) {
        std::tie(y, sum) = residual_layer_norm(in[0], in[1], {5}, in[2], in[3]);
      } else {
        sum = in[0].add(in[1]);
        y = layer_norm(sum, {5}, in[2], in[3]);
      }
      In out = {y.to(kFloat), sum.to(kFloat)};
      Tensor loss = zeros({}, kFloat);
      if (of_rows) loss = loss.add(y.mul(g.to(t)).sum().to(kFloat));
      if (of_sum) loss = loss.add(sum.mul(gs.to(t)).sum().to(kFloat));
      loss.backward();
      for (const Tensor& p : in)
        out.push_back(p.grad().defined() ? p.grad().to(kFloat) : zeros({1}, kFloat));
      return out;
    };
    for (bool of_rows : {false, true})
      for (bool of_sum : {false, true}) {
        if (!of_rows && !of_sum) continue;
        const In got = step(true, of_rows, of_sum), want = step(false, of_rows, of_sum);
        for (size_t i = 0; i < want.size(); ++i)
          expect_values(got[i].detach(), values(want[i].detach()),
                        i < 2            ? 0
                        : t == kBFloat16 ? 0.02
                                         : 1e-6);
      }
  }
}

TEST(ResidualLayerNorm, Derivatives) {
  const Tensor x = varied_leaf({3, 5}), r = varied_leaf({3, 5}, 1), w = varied_leaf({5}, 2),
               b = varied_leaf({5}, 3);
  expect_derivatives(
      [](const In& v) {
        const auto [y, sum] = residual_layer_norm(v[0], v[1], {5}, v[2], v[3]);
        return y.mul(sum);
      },
      {x, r, w, b});
  expect_derivatives(
      [](const In& v) {
        return std::get<0>(residual_layer_norm(v[0], v[1], {3, 5}));
      },
      {x, r});
  expect_derivatives([](const In& v) { return std::get<1>(residual_layer_norm(v[0], v[0], {5})); },
                     {x});
  EXPECT_EQ(std::get<0>(residual_layer_norm(x, r, {5})).grad_fn()->name(),
            "ResidualLayerNormBackward0");
  // Only the weight wants a gradient: the sum has no history.
  const auto [y, sum] = residual_layer_norm(x.detach(), r.detach(), {5}, w);
  EXPECT_TRUE(y.requires_grad() && !sum.requires_grad());
}

TEST(ResidualLayerNorm, Errors) {
  EXPECT_NE(error_of([] {
              residual_layer_norm(matrix(), matrix().t(), {3});
            }).find("[residual_layer_norm] residual: got "),
            std::string::npos);
  EXPECT_NE(error_of([] {
              residual_layer_norm(matrix(), matrix(), {2});
            }).find("[residual_layer_norm] Given normalized_shape=[2]"),
            std::string::npos);
}

}  // namespace
}  // namespace ramet
