// batch_norm as a public operation. Values: tests/kernels/image/batch_norm_test.cc.
#include "autograd/ops/layers/batch_norm.h"

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/ops/layers/conv.h"
#include "autograd/ops/layers/instance_norm.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

// PyTorch 2.15's numbers.
TEST(BatchNorm, RunningStatistics) {
  const Tensor x = varied({3, 2, 2}, 6), mean = varied({2}, 9), var = varied({2}, 10).abs();
  const uint32_t version = mean.version();
  batch_norm(x, varied({2}, 7), varied({2}, 8), mean, var, true, 0.1, 1e-5, false);
  expect_values(mean, {-0.332455103000005, 0.943187180757523});
  expect_values(var, {0.851301758375347, 0.461078370743984});
  EXPECT_GT(mean.version(), version);
}

TEST(BatchNorm, Derivatives) {
  const Tensor mean = varied({3}, 9), var = varied({3}, 10).abs() + 0.5;  // of each channel its own
  expect_derivatives(OF_X(batch_norm(x[0], x[1], x[2], mean, var, false, 0.1, 1e-3, false)),
                     {varied_leaf({2, 3, 2}, 1), varied_leaf({3}, 2), varied_leaf({3}, 3)});
  expect_derivatives(OF_X(batch_norm(x[0], {}, {}, {}, {}, true, 0.1, 1e-3, false)),
                     {varied_leaf({4, 2}, 1)});
  expect_derivatives(OF_X(batch_norm(x[0], x[1], {}, {}, {}, true, 0.1, 1e-3, false)),
                     {varied_leaf({4, 2}, 1), varied_leaf({2}, 2)});
  // Channels-last memory.
  expect_derivatives(
      OF_X(batch_norm(x[0].permute({0, 3, 1, 2}), x[1], {}, {}, {}, true, 0.1, 1e-3, false)),
      {varied_leaf({2, 1, 2, 3}, 1), varied_leaf({3}, 2)});
}

TEST(BatchNorm, LayoutsStay) {
  const Tensor y = conv2d(varied({3, 3, 6, 6}, 1).to(kFloat), varied({8, 3, 3, 3}, 2).to(kFloat));
  EXPECT_TRUE(autograd::is_channels_last(batch_norm(y, {}, {}, {}, {}, true, 0.1, 1e-5, false)));
  // A user's own channels-last memory shows in the result, as in LibTorch.
  const Tensor last = varied({2, 4, 4, 3}, 5).permute({0, 3, 1, 2});
  EXPECT_EQ(batch_norm(last, {}, {}, {}, {}, true, 0.1, 1e-5, false).strides().vec(),
            last.strides().vec());
  expect_values(batch_norm(last, {}, {}, {}, {}, true, 0.1, 1e-5, false),
                values(batch_norm(last.contiguous(), {}, {}, {}, {}, true, 0.1, 1e-5, false)),
                1e-12);
}

TEST(BatchNorm, HalfInputWithFloatStatistics) {
  const Tensor x = varied({5, 2, 3}, 1), mean = zeros(2), var = ones(2);
  const Tensor want = batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false);
  for (ScalarType t : {kHalf, kBFloat16}) {
    const Tensor y = batch_norm(x.to(t), ones(2), zeros(2), mean, var, true, 0.1, 1e-5, false);
    EXPECT_EQ(y.scalar_type(), t);
    expect_values(y.to(kDouble), values(want), t == kHalf ? 5e-3 : 4e-2);
  }
  EXPECT_NE(values(mean), (std::vector<double>{0, 0}));
  Tensor half_mean = zeros(2, kHalf), half_var = ones(2, kHalf);
  batch_norm(x.to(kHalf), {}, {}, half_mean, half_var, true, 1.0, 1e-5, false);
  expect_values(half_mean.to(kDouble), values(x.mean({0, 2})), 1e-2);
}

TEST(BatchNorm, EmptyAndErrors) {
  EXPECT_EQ(batch_norm(zeros({0, 3, 2}), ones(3), {}, zeros(3), ones(3), true, 0.1, 1e-5, false)
                .sizes()
                .vec(),
            (std::vector<int64_t>{0, 3, 2}));
  const Tensor x = varied({4, 3});
  EXPECT_ERROR_START(batch_norm(x, varied({2}), {}, {}, {}, true, 0.1, 1e-5, false),
                     "[batch_norm] weight: got float64[2] on cpu, expected 3");
  EXPECT_ERROR_START(batch_norm(x, {}, {}, {}, {}, false, 0.1, 1e-5, false),
                     "[batch_norm] running_mean and running_var must be defined");
  EXPECT_ERROR_START(batch_norm(varied({3}), {}, {}, {}, {}, true, 0.1, 1e-5, false),
                     "[batch_norm] input");
  EXPECT_THROW(batch_norm(x.to(kLong), {}, {}, {}, {}, true, 0.1, 1e-5, false),
               NotImplementedError);
  // Statistics are constants, and one that wants a gradient would not get any.
  for (const bool training : {true, false}) {
    const Tensor mean = zeros({3}).requires_grad_(), var = ones({3}).requires_grad_();
    EXPECT_ERROR_TEXT(batch_norm(x, {}, {}, mean, ones({3}), training, 0.1, 1e-5, false),
                      "[batch_norm] the derivative for 'running_mean' is not implemented");
    EXPECT_THROW(batch_norm_relu_max_pool2d(x.view({4, 3, 1, 1}), {}, {}, zeros({3}), var, training,
                                            0.1, 1e-5),
                 NotImplementedError);
    EXPECT_THROW(
        instance_norm(x.view({1, 3, 4}), {}, {}, zeros({3}), var, training, 0.1, 1e-5, false),
        NotImplementedError);
    EXPECT_EQ(values(mean), (std::vector<double>{0, 0, 0}));
  }
}

TEST(BatchNorm, AForwardWithoutTrainingTouchesNoStatistics) {
  const Tensor x = varied({4, 3}), mean = varied({3}, 2), var = varied({3}, 3).abs();
  const std::vector<double> before = values(mean);
  const uint32_t version = mean.version();
  batch_norm(x, {}, {}, mean, var, false, 0.1, 1e-5, false);
  EXPECT_EQ(values(mean), before);
  EXPECT_EQ(mean.version(), version);
}

// ---- batch_norm_relu_max_pool2d: the fused way in float against the three operations in double
// ---

struct Stage {
  Tensor x, w, b, mean, var;
  explicit Stage(ScalarType t, int seed = 1) {
    const auto make = [&](IntArrayRef sizes, int s) {
      return varied(sizes, s).to(t).requires_grad_();
    };
    x = make({3, 5, 7, 6}, seed), w = make({5}, 2), b = make({5}, 3);
    mean = varied({5}, 4).to(t), var = (varied({5}, 5).abs() + 0.5).to(t);
  }
  Tensor last() const { return x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}); }
};

TEST(BatchNormReluMaxPool, AgreesWithTheThreeOperations) {
  for (bool training : {true, false}) {
    Stage f(kFloat), d(kDouble);
    const Tensor y =
        batch_norm_relu_max_pool2d(f.last(), f.w, f.b, f.mean, f.var, training, 0.1, 1e-3);
    const Tensor z = batch_norm_relu_max_pool2d(d.x, d.w, d.b, d.mean, d.var, training, 0.1, 1e-3);
    EXPECT_EQ(y.grad_fn()->name(), "BatchNormReluMaxPool2DBackward0");
    EXPECT_EQ(z.grad_fn()->name(), "MaxPool2DWithIndicesBackward0");
    expect_values(y, values(z), 1e-5);
    expect_values(f.mean, values(d.mean), 1e-6);
    expect_values(f.var, values(d.var), 1e-6);
    const Tensor g = varied({3, 5, 3, 3}, 6);
    y.mul(g.to(kFloat)).sum().backward();
    z.mul(g).sum().backward();
    expect_values(f.x.grad(), values(d.x.grad()), 1e-5);
    expect_values(f.w.grad(), values(d.w.grad()), 1e-5);
    expect_values(f.b.grad(), values(d.b.grad()), 1e-5);
  }
}

TEST(BatchNormReluMaxPool, TheSameBitsForwardAsTheThreeOperations) {
  Stage s(kFloat);
  const NoGradGuard off;
  const Tensor x = s.last();
  expect_values(
      batch_norm_relu_max_pool2d(x, s.w, s.b, s.mean, s.var, false, 0.1, 1e-3),
      values(max_pool2d(relu(batch_norm(x, s.w, s.b, s.mean, s.var, false, 0.1, 1e-3, false)), 2)),
      0);
}

TEST(BatchNormReluMaxPool, SecondDerivatives) {
  for (bool training : {true, false}) {
    const auto second = [&](Stage& s, const Tensor& x, const Tensor& g, const Tensor& v) {
      const Tensor y = batch_norm_relu_max_pool2d(x, s.w, s.b, s.mean, s.var, training, 0.1, 1e-3);
      const auto first = autograd::grad({y}, {s.x, s.w, s.b}, {g}, true, true);
      (first[0] * v).sum().add((first[1] * first[1]).sum()).add(first[2].square().sum()).backward();
    };
    Stage f(kFloat), d(kDouble);
    const Tensor gf = varied({3, 5, 3, 3}, 6).to(kFloat).requires_grad_(),
                 gd = varied({3, 5, 3, 3}, 6).requires_grad_();
    const Tensor v = varied({3, 5, 7, 6}, 7);
    second(f, f.last(), gf, v.to(kFloat));
    second(d, d.x, gd, v);
    expect_values(gf.grad(), values(gd.grad()), 2e-3);
    expect_values(f.w.grad(), values(d.w.grad()), 2e-3);
    if (d.x.grad().defined()) expect_values(f.x.grad(), values(d.x.grad()), 2e-3);
    EXPECT_EQ(f.x.grad().defined(), d.x.grad().defined());
  }
}

}  // namespace
}  // namespace ramet
