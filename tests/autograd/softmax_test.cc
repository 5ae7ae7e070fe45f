// Softmax, log-softmax and layer norm as public operations. Values: tests/kernels.
#include "autograd/ops/softmax.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/layer_norm.h"
#include "autograd/ops/view.h"
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
  const Tensor x = varied({3, 4, 5});
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

}  // namespace
}  // namespace ramet
