// Tensor::unfold: windows as a view, against windows cut out one by one.
#include "autograd/autograd.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

TEST(Unfold, WindowsOfAVector) {
  const Tensor x = constant({0, 1, 2, 3, 4, 5, 6});
  const Tensor y = x.unfold(0, 3, 2);
  EXPECT_EQ(y.sizes(), IntArrayRef({3, 3}));
  EXPECT_EQ(y.strides(), IntArrayRef({2, 1}));
  expect_values(y, {0, 1, 2, 2, 3, 4, 4, 5, 6});
  EXPECT_EQ(y.data_ptr<double>(), x.data_ptr<double>());  // a view
}

TEST(Unfold, WindowsOfAMiddleDimension) {
  const Tensor x = varied({2, 5, 3});
  const Tensor y = x.unfold(-2, 2, 1);
  ASSERT_EQ(y.sizes(), IntArrayRef({2, 4, 3, 2}));
  for (int64_t window = 0; window < 4; ++window) {
    const std::vector<double> want = values(x.narrow(1, window, 2).transpose(1, 2));
    expect_values(y.select(1, window), want, 0);
  }
}

TEST(Unfold, NumbersAndNothing) {
  EXPECT_EQ(constant({3}).squeeze().unfold(0, 1, 1).sizes(), IntArrayRef({1}));
  EXPECT_EQ(constant({1, 2, 3}).unfold(0, 0, 2).sizes(), IntArrayRef({2, 0}));
}

TEST(Unfold, Derivatives) {
  const auto squares = [](const Tensor& t) { return t.mul(t); };
  // Windows that overlap, that touch, and that leave gaps.
  for (int64_t step : {1, 2, 3})
    expect_derivatives(
        [&](const std::vector<Tensor>& in) { return squares(in[0].unfold(1, 2, step)); },
        {varied_leaf({2, 6, 2})});
  const Tensor x = leaf({1, 2, 3, 4});
  x.unfold(0, 2, 1).sum().backward();
  expect_values(x.grad(), {1, 2, 2, 1});
}

TEST(Unfold, Errors) {
  const Tensor x = constant({1, 2, 3});
  EXPECT_THROW(x.unfold(0, 4, 1), Error);
  EXPECT_THROW(x.unfold(0, -1, 1), Error);
  EXPECT_THROW(x.unfold(0, 2, 0), Error);
  EXPECT_THROW(x.unfold(1, 2, 1), IndexError);
}

}  // namespace
}  // namespace ramet
