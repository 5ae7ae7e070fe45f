// What ./tools/compare_torch found: where LibTorch was right.
#include "autograd/autograd.h"
#include "autograd/ops/factory.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/view.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

// d/dt of the loss is (p - 1) softplus(-x) - x, whose derivative in x at 0 is -(p - 1) / 2 - 1. The
// two parts of the stable formula have no derivative there, one by one.
TEST(TorchFindings, SecondDerivativeOfBinaryCrossEntropyAtZero) {
  const Tensor x = leaf({0}), t = leaf({.25}), p = constant({3});
  const Tensor loss = binary_cross_entropy_with_logits(x, t, {}, p, Reduction::Sum);
  const Tensor dt = autograd::grad({loss}, {t}, {}, true, true)[0];
  expect_values(autograd::grad({dt}, {x})[0], {-2});
}

TEST(TorchFindings, SqueezeRefusesADimensionTwice) {
  const Tensor x = zeros({1, 1, 2});
  EXPECT_THROW(x.squeeze(IntArrayRef({0, 0})), Error);
  EXPECT_THROW(x.squeeze(IntArrayRef({0, -3})), Error);
  EXPECT_EQ(x.squeeze(IntArrayRef({0, 1})).sizes(), IntArrayRef({2}));
}

}  // namespace
}  // namespace ramet
