// A second backward through one graph: what was freed, and what had nothing to free. A part of
// engine_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

using ::testing::HasSubstr;

TEST(Engine, SecondBackwardNeedsRetainGraph) {
  const Tensor x = leaf({2.0});
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{8}));
  EXPECT_ERROR_TEXT(y.backward(), "Trying to backward through the graph a second time");
}

#define F(value) [](const Tensor& x) -> Tensor { return value; }
// As in LibTorch: what has freed nothing has lost nothing.
TEST(Engine, SecondBackwardOfWhatSavesNothing) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> saves_nothing[] = {
      {"sum", F(x.sum())},
      {"sum(0)", F(x.sum(0))},
      {"mean", F(x.mean())},
      {"add", F(x + x)},
      {"add 1", F(x + 1)},
      {"sub", F(1 - x)},
      {"neg", F(-x)},
      {"t", F(x.t())},
      {"view", F(x.view({4}))},
      {"reshape", F(x.t().reshape({4}))},
      {"permute", F(x.permute({1, 0}))},
      {"expand", F(x.unsqueeze(0).expand({3, 2, 2}))},
      {"squeeze", F(x.unsqueeze(0).squeeze(0))},
      {"select", F(x.select(0, 1))},
      {"narrow", F(x.narrow(0, 0, 1))},
      {"split", F(x.split(1)[1])},
      {"unbind", F(x.unbind()[1])},
      {"diagonal", F(x.diagonal())},
      {"unfold", F(x.unfold(0, 2, 1))},
      {"as_strided", F(x.as_strided({2}, {1}, 1))},
      {"clone", F(x.clone())},
      {"to", F(x.to(kFloat))},
      {"cat", F(cat({x, x}, 0))},
      {"stack", F(stack({x, x}))},
      {"repeat", F(x.repeat({2, 2}))},
      {"flip", F(x.flip({0}))},
      {"roll", F(x.roll(1, 0))},
      {"tril", F(x.tril())},
      {"cumsum", F(x.cumsum(0))},
      {"trace", F(x.trace())},
      {"round", F(x.round())},
      {"copy_", F(zeros({2, 2}, TensorOptions(kDouble)).copy_(x))},
      {"add_", F(x.clone().add_(1))},
  };
  for (const auto& [name, f] : saves_nothing) {
    const Tensor x = leaf({1, 2, 3, 4}).view({2, 2}).detach().requires_grad_();
    const Tensor y = f(x), seed = ones_like(y);
    y.backward(seed);
    const Tensor once = x.grad().clone();
    EXPECT_EQ(error_of([&] { y.backward(seed); }), "no error") << name;
    EXPECT_EQ(values(x.grad()), values(once * 2)) << name;
  }
}
TEST(Engine, SecondBackwardOfWhatSavesATensor) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> saves[] = {
      {"mul", F(x * x)},
      {"exp", F(x.exp())},
      {"relu", F(x.relu())},
      {"matmul", F(matmul(x, x))},
      {"max", F(x.max())},
      {"softmax", F(x.softmax(1))},
      {"index_select", F(x.index_select(0, arange(2, kLong)))},
      {"masked_fill", F(x.masked_fill(x.gt(2), 0))},
      {"where", F(where(x.gt(2), x, x))},
  };
  for (const auto& [name, f] : saves) {
    const Tensor x = leaf({1, 2, 3, 4}).view({2, 2}).detach().requires_grad_();
    const Tensor y = f(x), seed = ones_like(y);
    y.backward(seed);
    EXPECT_THAT(error_of([&] { y.backward(seed); }),
                HasSubstr("Trying to backward through the graph a second time (or "
                          "directly access saved tensors after they have already been "
                          "freed). Specify retain_graph=true"))
        << name;
  }
}
#undef F

}  // namespace
}  // namespace ramet
