// Reductions as public operations: shapes, dtypes, derivatives, errors. Values over dtypes and
// layouts: tests/kernels/reduce/reduce_test.cc.
#include "autograd/ops/reduce/reduce.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

Tensor matrix() { return constant({1.5, -2.0, 0.25, 0.5, 3.0, -1.0}).view({2, 3}); }

// Lists of dimensions; the operation table has the first and the last one.
TEST(Reduce, SumsAndShapes) {
  const Tensor x = matrix(), cube = varied({2, 3, 4});
  EXPECT_EQ(x.sum(1, true).sizes(), IntArrayRef({2, 1}));
  EXPECT_EQ(x.sum({0, 1}, true).sizes(), IntArrayRef({1, 1}));
  EXPECT_EQ(x.sum(IntArrayRef()).dim(), 0);
  expect_values(cube.sum(1), values(cube.transpose(1, 2).contiguous().sum(-1)));
  expect_values(cube.sum({0, -1}), values(cube.sum(0).sum(-1)));
  expect_values(x.sum(OptionalIntArrayRef(0), false, kFloat), {2, 1, -0.75});
  const Tensor scalar = constant({4}).view(IntArrayRef());
  expect_values(scalar.sum(-1, true), {4});
  EXPECT_EQ(scalar.sum(0, true).dim(), 0);
}

TEST(Reduce, Dtypes) {
  const Tensor i = matrix().to(kInt);
  EXPECT_EQ(i.sum(kInt).scalar_type(), kInt);
  EXPECT_EQ(i.mean(kDouble).item<double>(), i.to(kDouble).mean().item<double>());
  EXPECT_ERROR_TEXT(i.mean(), "[mean] could not infer output dtype");
  EXPECT_ERROR_TEXT(i.var(), "[var] only supports floating point");
}

TEST(Reduce, NormsAsPyTorch) {  // values of PyTorch 2.15
  expect_values(matrix().norm(3), {3.4060913008575});
  expect_values(matrix().norm(0.5, {1}), {9.85306004890244, 11.827804920294026});
}

TEST(Reduce, Extrema) {
  const Tensor x = matrix();
  expect_values(x.amax({0, 1}), {3});
  expect_values(x.transpose(0, 1).argmax(), {3});
  Tensor y = x.clone();
  y[1][0] = kNaN;
  expect_values(y.argmin(1), {1, 0});
  EXPECT_EQ(x.argmax(std::nullopt, true).sizes(), IntArrayRef({1, 1}));
}

TEST(Reduce, OfNothing) {
  const Tensor x = constant({}).view({0, 3});
  EXPECT_EQ(x.sum(1).numel(), 0);
  expect_values(x.logsumexp({0}), {-kInf, -kInf, -kInf});
  EXPECT_TRUE(x.gt(0).all().item<bool>());
  EXPECT_ERROR_TEXT(x.max(), "[max] Expected reduction dim to be specified");
  EXPECT_ERROR_TEXT(x.max(0), "[max] Expected reduction dim 0 to have non-zero size");
  EXPECT_THROW(x.argmin(0), IndexError);
  EXPECT_EQ(std::get<0>(x.max(1)).numel(), 0);
}

TEST(Reduce, Errors) {
  const Tensor x = matrix();
  EXPECT_ERROR_TEXT(x.sum({0, -2}), "[sum] dim -2 appears multiple times");
  EXPECT_THROW(x.sum(2), IndexError);
  EXPECT_ERROR_TEXT(sum(Tensor()), "[sum] undefined tensor: got Tensor(), or the grad() of");
}

TEST(Reduce, Derivatives) {
  const Tensor x = varied_leaf({3, 4, 2});
  expect_derivatives([](const In& v) { return v[0].square().sum({0, 2}); }, {x});
  expect_derivatives([](const In& v) { return v[0].square().mean(1, true); }, {x});
  expect_derivatives([](const In& v) { return v[0].prod(1); }, {x});
  expect_derivatives([](const In& v) { return v[0].var(IntArrayRef({1, 2})); }, {x});
  expect_derivatives([](const In& v) { return v[0].std(IntArrayRef({0}), Scalar(0), true); }, {x});
  expect_derivatives(
      [](const In& v) {
        const auto [s, m] = std_mean(v[0], IntArrayRef({1}));
        return s * m;
      },
      {x});
  expect_derivatives([](const In& v) { return std::get<0>(v[0].max(1)).square(); }, {x});
  expect_derivatives([](const In& v) { return v[0].amin({0, 1}).square(); }, {x});
  for (double p : {0.5, 1.0, 1.5, 2.0, 3.0, kInf, -kInf})
    expect_derivatives([p](const In& v) { return v[0].norm(p, {1}).square(); }, {x});
  expect_derivatives([](const In& v) { return v[0].logsumexp({0, 2}); }, {x});
  expect_derivatives([](const In& v) { return v[0].square().cumsum(1); }, {x});
}

TEST(Reduce, LargeGradientsOfProducts) {  // g times the product is no float, the gradients are
  const Tensor x = tensor({1e160, 1e140}, kDouble).requires_grad_();
  x.prod().backward(tensor(1e20, kDouble));
  expect_values(x.grad().div(1e160), {1, 1e20});
}

TEST(Reduce, NormsOfNegativeZero) {  // -0 ^ -1 is -infinity, |-0| ^ -1 is not
  const Tensor x = tensor({0.f, -0.f, 1.f});
  for (double p : {-1.0, -3.0, -0.5}) EXPECT_EQ(x.norm(p).item<float>(), 0);
}

TEST(Reduce, ProductsWithZeros) {
  for (auto list : {std::initializer_list<double>{2, 0, 3, -1, 4, 0.5},
                    {0, 2, 0, 1, 0, 3},
                    {0, 0, 0, 1, 2, 3}}) {
    const Tensor x = constant(list).view({2, 3}).detach().requires_grad_();
    expect_derivatives([](const In& v) { return v[0].prod(1); }, {x});
    expect_derivatives([](const In& v) { return v[0].prod(); }, {x});
  }
}

TEST(Reduce, GradientsAtTies) {
  const Tensor x = leaf({2, 5, 5, 1});
  x.max().backward();
  expect_values(x.grad(), {0, 0.5, 0.5, 0});
  const Tensor y = leaf({2, 5, 5, 1});
  std::get<0>(y.max(0)).backward();
  expect_values(y.grad(), {0, 1, 0, 0});
  const Tensor z = leaf({0, 0});
  z.norm().backward();
  expect_values(z.grad(), {0, 0});
  const Tensor s = leaf({3, 3});
  s.std().backward();
  expect_values(s.grad(), {0, 0});
}

TEST(Reduce, NodeNames) {
  const Tensor x = varied_leaf({2, 3});
  EXPECT_EQ(x.sum().grad_fn()->name(), "SumBackward0");
  EXPECT_EQ(x.sum(1).grad_fn()->name(), "SumBackward1");
  EXPECT_EQ(x.mean().grad_fn()->name(), "MeanBackward0");
  EXPECT_EQ(std::get<0>(x.max(0)).grad_fn()->name(), "MaxBackward0");
  EXPECT_FALSE(std::get<1>(x.max(0)).requires_grad());
  EXPECT_FALSE(x.argmax().requires_grad());
  EXPECT_FALSE(x.any().requires_grad());
}

TEST(Reduce, ManyDimensions) {  // 12 dimensions with neighbours that do not merge
  std::vector<int64_t> sizes(12, 2), order;
  const Tensor x = varied(sizes);
  for (int64_t d = 0; d < 12; ++d) order.push_back(d * 5 % 12);
  const Tensor y = x.permute(order);
  const Tensor want = y.contiguous();
  expect_values(y.sum({0, 2, 4, 6, 8, 10}), values(want.sum({0, 2, 4, 6, 8, 10})), 1e-14);
}

}  // namespace
}  // namespace ramet
