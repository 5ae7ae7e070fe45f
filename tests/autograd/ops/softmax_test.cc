// Softmax, log-softmax and layer norm beyond the operation table. Values: tests/kernels.
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

Tensor two_rows() { return constant({1.5, -2.0, 0.25, 0.5, 3.0, -1.0}).view({2, 3}); }

TEST(Softmax, TakesADtypeAndRefuses) {
  expect_values(two_rows().to(kFloat).softmax(-1, kDouble), values(two_rows().softmax(1)));
  EXPECT_ERROR_TEXT(two_rows().to(kLong).softmax(0), "[softmax] not implemented for 'Long'");
  EXPECT_THROW(two_rows().softmax(2), IndexError);
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

// Of a dimension in the middle, and of lines that are longer than vectors.
TEST(Softmax, Derivatives) {
  for (const auto& [d, x] : {std::pair(1, varied_leaf({2, 3, 4})),
                             {1, varied_leaf({2, 3, 17})},
                             {2, varied_leaf({2, 3, 17})}}) {
    expect_derivatives(OF_X(x[0].softmax(d)), {x});
    expect_derivatives(OF_X(x[0].log_softmax(d)), {x});
  }
  EXPECT_EQ(varied_leaf({2}).softmax(0).grad_fn()->name(), "SoftmaxBackward0");
  EXPECT_EQ(varied_leaf({2}).log_softmax(0).grad_fn()->name(), "LogSoftmaxBackward0");
}

TEST(Softmax, ThirdDerivative) {
  expect_derivatives(
      OF_X(autograd::grad({x[0].softmax(0).square().sum()}, {x[0]}, {}, true, true)[0]),
      {varied_leaf({4})});
}

TEST(LayerNorm, Errors) {
  EXPECT_ERROR_TEXT(layer_norm(two_rows(), {2}), "[layer_norm] Given normalized_shape=[2]");
  EXPECT_ERROR_TEXT(layer_norm(two_rows(), {3}, constant({1, 2})),
                    "Expected weight to be of same shape");
}

TEST(LayerNorm, Derivatives) {
  const Tensor x = varied_leaf({3, 5}), w = varied_leaf({5}, 1);
  expect_derivatives(OF_X(layer_norm(x[0], {5}, x[1])), {x, w});
  expect_derivatives(OF_X(layer_norm(x[0], {2, 3}, std::nullopt, x[1])),
                     {varied_leaf({2, 2, 3}), varied_leaf({2, 3}, 4)});
  expect_derivatives(OF_X(layer_norm(x[0].transpose(0, 1), {3})), {x});
  // One tensor as input and weight: their gradients must not be mixed up.
  expect_derivatives(OF_X(layer_norm(x[0], {5}, x[0], x[0])), {w});
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
  expect_derivatives(OF_X(std::get<0>(residual_layer_norm(x[0], x[1], {3, 5}))), {x, r});
  expect_derivatives(OF_X(std::get<1>(residual_layer_norm(x[0], x[0], {5}))), {x});
  EXPECT_EQ(std::get<0>(residual_layer_norm(x, r, {5})).grad_fn()->name(),
            "ResidualLayerNormBackward0");
  // Only the weight wants a gradient: the sum has no history.
  const auto [y, sum] = residual_layer_norm(x.detach(), r.detach(), {5}, w);
  EXPECT_TRUE(y.requires_grad() && !sum.requires_grad());
}

TEST(ResidualLayerNorm, Errors) {
  EXPECT_ERROR_TEXT(residual_layer_norm(two_rows(), two_rows().t(), {3}),
                    "[residual_layer_norm] residual: got ");
  EXPECT_ERROR_TEXT(residual_layer_norm(two_rows(), two_rows(), {2}),
                    "[residual_layer_norm] Given normalized_shape=[2]");
}

}  // namespace
}  // namespace ramet
