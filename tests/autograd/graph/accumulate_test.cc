// Gradients that a second backward pass adds to those of the first.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/check.h"

namespace ramet::autograd {
namespace {

constexpr int64_t kWidth = 256, kMatrix = kWidth * kWidth * 4;

std::vector<Tensor> drawn_matrices(int n) {
  std::vector<Tensor> w;
  for (int i = 0; i < n; ++i)
    w.push_back(randn({kWidth, kWidth}, Generator(Device(kCPU, 0), static_cast<uint64_t>(i)))
                    .mul(0.06)
                    .requires_grad_());
  return w;
}
Tensor chain(const std::vector<Tensor>& w, uint64_t seed) {
  Tensor x = randn({8, kWidth}, Generator(Device(kCPU, 0), seed));
  for (const Tensor& m : w) x = x.mm(m).tanh();
  return x.pow(2).sum();
}
// What the pass needs beyond what is there before it.
int64_t peak_of_backward(const Tensor& loss) {
  reset_peak_memory_stats(kCPU);
  const int64_t before = memory_stats(kCPU).current;
  loss.backward();
  return memory_stats(kCPU).peak - before;
}

// A contribution goes as soon as it is added, not at the end of the pass.
TEST(Accumulate, NeedsMemoryForOneContribution) {
  const std::vector<Tensor> w = drawn_matrices(12);
  for (uint64_t seed : {100, 101}) {
    const std::vector<Tensor> alone = grad({chain(w, seed)}, w);
    std::vector<Tensor> before;
    for (const Tensor& m : w) before.push_back(m.grad().defined() ? m.grad().clone() : Tensor());
    const int64_t peak = peak_of_backward(chain(w, seed));
    if (seed > 100) { EXPECT_LT(peak, 3 * kMatrix); }
    for (size_t i = 0; i < w.size(); ++i) {
      const Tensor want = before[i].defined() ? before[i] + alone[i] : alone[i];
      EXPECT_TRUE(w[i].grad().equal(want)) << i;
    }
  }
}

// Those of a leaf that is used twice are added up first, as in a first pass.
TEST(Accumulate, OneAdditionForALeafThatIsUsedTwice) {
  const std::vector<Tensor> w = drawn_matrices(3);
  const std::vector<Tensor> tied = {w[0], w[1], w[0], w[2], w[1]};
  std::vector<Tensor> want;
  for (uint64_t seed : {1, 2, 3}) {
    const std::vector<Tensor> alone = grad({chain(tied, seed)}, w);
    chain(tied, seed).backward();
    for (size_t i = 0; i < w.size(); ++i) {
      if (seed == 1) want.push_back(alone[i]);
      else want[i] = want[i] + alone[i];
      EXPECT_TRUE(w[i].grad().equal(want[i])) << i << " of pass " << seed;
    }
  }
}

// Two graphs lead to the leaf, of which one is alive without being run.
TEST(Accumulate, AnotherGraphChangesNothing) {
  const std::vector<Tensor> w = drawn_matrices(2);
  const std::vector<Tensor> alone = grad({chain(w, 1)}, w);
  const Tensor other = chain(w, 2);
  chain(w, 1).backward();
  chain(w, 1).backward();
  for (size_t i = 0; i < w.size(); ++i) EXPECT_TRUE(w[i].grad().equal(alone[i] * 2)) << i;
  other.backward();
}

// A hook sees what comes in this pass, once. A gradient that the caller holds is added to as ever.
TEST(Accumulate, HooksAndHandles) {
  const std::vector<Tensor> w = drawn_matrices(2);
  const std::vector<Tensor> alone = grad({chain(w, 1)}, w);
  chain(w, 1).backward();
  int calls = 0;
  w[0].register_hook([&](const Tensor& g) {
    ++calls;
    EXPECT_TRUE(g.equal(alone[0]));
    return g * 3;
  });
  const Tensor held = w[1].grad();
  chain(w, 1).backward();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(w[0].grad().equal(alone[0] + alone[0] * 3));
  EXPECT_TRUE(held.equal(alone[1] * 2));
}

// A node needs the gradient of the first pass as it was.
TEST(Accumulate, AGradientThatAGraphHasSaved) {
  const std::vector<Tensor> w = drawn_matrices(2);
  chain(w, 1).backward();
  const Tensor first = w[1].grad().clone();
  // The product with the gradient runs after w[1]'s contribution has come.
  const Tensor x = (w[0] * w[1].grad()).mm(w[1]);
  x.sum().backward();
  const Tensor ones_of = ones({kWidth, kWidth});
  EXPECT_TRUE(w[1].grad().equal(first + (w[0].detach() * first).t().mm(ones_of)));
}

}  // namespace
}  // namespace ramet::autograd
