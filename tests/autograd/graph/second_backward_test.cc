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

// As in LibTorch: what has freed nothing has lost nothing.
TEST(Engine, SecondBackwardOfWhatSavesNothing) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> saves_nothing[] = {
      {"sum", [](const Tensor& x) { return x.sum(); }},
      {"sum(0)", [](const Tensor& x) { return x.sum(0); }},
      {"mean", [](const Tensor& x) { return x.mean(); }},
      {"add", [](const Tensor& x) { return x + x; }},
      {"add 1", [](const Tensor& x) { return x + 1; }},
      {"sub", [](const Tensor& x) { return 1 - x; }},
      {"neg", [](const Tensor& x) { return -x; }},
      {"t", [](const Tensor& x) { return x.t(); }},
      {"view", [](const Tensor& x) { return x.view({4}); }},
      {"reshape", [](const Tensor& x) { return x.t().reshape({4}); }},
      {"permute",
       [](const Tensor& x) {
         return x.permute({1, 0});
       }},
      {"expand",
       [](const Tensor& x) {
         return x.unsqueeze(0).expand({3, 2, 2});
       }},
      {"squeeze", [](const Tensor& x) { return x.unsqueeze(0).squeeze(0); }},
      {"select", [](const Tensor& x) { return x.select(0, 1); }},
      {"narrow", [](const Tensor& x) { return x.narrow(0, 0, 1); }},
      {"split", [](const Tensor& x) { return x.split(1)[1]; }},
      {"unbind", [](const Tensor& x) { return x.unbind()[1]; }},
      {"diagonal", [](const Tensor& x) { return x.diagonal(); }},
      {"unfold", [](const Tensor& x) { return x.unfold(0, 2, 1); }},
      {"as_strided", [](const Tensor& x) { return x.as_strided({2}, {1}, 1); }},
      {"clone", [](const Tensor& x) { return x.clone(); }},
      {"to", [](const Tensor& x) { return x.to(kFloat); }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x}, 0);
       }},
      {"stack",
       [](const Tensor& x) {
         return stack({x, x});
       }},
      {"repeat",
       [](const Tensor& x) {
         return x.repeat({2, 2});
       }},
      {"flip", [](const Tensor& x) { return x.flip({0}); }},
      {"roll", [](const Tensor& x) { return x.roll(1, 0); }},
      {"tril", [](const Tensor& x) { return x.tril(); }},
      {"cumsum", [](const Tensor& x) { return x.cumsum(0); }},
      {"trace", [](const Tensor& x) { return x.trace(); }},
      {"round", [](const Tensor& x) { return x.round(); }},
      {"copy_",
       [](const Tensor& x) {
         return zeros({2, 2}, TensorOptions(kDouble)).copy_(x);
       }},
      {"add_", [](const Tensor& x) { return x.clone().add_(1); }},
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
      {"mul", [](const Tensor& x) { return x * x; }},
      {"exp", [](const Tensor& x) { return x.exp(); }},
      {"relu", [](const Tensor& x) { return x.relu(); }},
      {"matmul", [](const Tensor& x) { return matmul(x, x); }},
      {"max", [](const Tensor& x) { return x.max(); }},
      {"softmax", [](const Tensor& x) { return x.softmax(1); }},
      {"index_select", [](const Tensor& x) { return x.index_select(0, arange(2, kLong)); }},
      {"masked_fill", [](const Tensor& x) { return x.masked_fill(x.gt(2), 0); }},
      {"where", [](const Tensor& x) { return where(x.gt(2), x, x); }},
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

}  // namespace
}  // namespace ramet
