// Checks of numbers: a number outside of its range is refused, with its value and position. So is a
// NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace {

// Numbers inside the range except one.
Tensor with(double wrong) { return constant({0.25, 0.5, wrong, 0.75}); }

TEST(ValueChecks, ANaNIsOutside) {
  const Tensor half = full({4}, 0.5, kDouble), x = varied({3, 4}), whole = arange(4);
  const std::vector<std::pair<std::string, std::function<void(const Tensor&)>>> all = {
      {"[binary_cross_entropy] all elements of input should be between 0 and 1",
       [&](const Tensor& v) { binary_cross_entropy(v, half); }},
      {"[normal] expects all elements of std >= 0.0", [&](const Tensor& v) { normal(0., v); }},
      {"[normal] expects all elements of std >= 0.0", [&](const Tensor& v) { normal(half, v); }},
      {"[cov] fweights and aweights cannot be negative",
       [&](const Tensor& v) { cov(x, 1, {}, v); }},
      {"[bernoulli] expects every p to be in [0, 1]", [&](const Tensor& v) { bernoulli(v); }},
      {"[bernoulli] expects every p to be in [0, 1]",
       [&](const Tensor& v) { half.clone().bernoulli_(v); }},
      {"[poisson] expected every rate to be non-negative", [&](const Tensor& v) { poisson(v); }},
      {"[multinomial] probability tensor contains either `inf`, `nan` or element < 0",
       [&](const Tensor& v) { multinomial(v, 1); }},
      {"[quantile] q values must be in the range [0, 1]", [&](const Tensor& v) { quantile(x, v); }},
      {"[nanquantile] q values must be in the range [0, 1]",
       [&](const Tensor& v) { nanquantile(x, v); }},
  };
  for (const auto& [text, call] : all) {
    SCOPED_TRACE(text);
    EXPECT_NO_THROW(call(with(0.5)));
    EXPECT_ERROR_TEXT(call(with(kNaN)), text + ": got nan at position 2 of");
    EXPECT_ERROR_TEXT(call(with(-1)), text + ": got -1 at position 2 of");
    // A column of a matrix, with history.
    const Tensor wide = constant({0.25, 9, 0.5, 9, kNaN, 9, 0.75, 9}).requires_grad_();
    EXPECT_ERROR_TEXT(call(wide.view({4, 2}).select(1, 0)), "got nan at position 2");
  }
}

TEST(ValueChecks, InACaptureOfTheReplayedNumbers) {
  const Tensor t = constant({1, 0, 1});
  Captured step([&t](const Tensor& x) { return binary_cross_entropy(x, t); });
  const Tensor x = constant({0.5, 0.25, 0.75});
  for (int call = 0; call < 3; ++call) EXPECT_NO_THROW(step(x));
  x.copy_(constant({0.5, 1.5, 0.75}));
  EXPECT_ERROR_TEXT(step(x), "between 0 and 1: got 1.5 at position 1 of float64[3]");
}

TEST(ValueChecks, WholeNumbersAreNamed) {
  const Tensor w = ones({4, 3}), i = tensor({1, 2, 0});
  const auto bags = [&](const Tensor& offsets) {
    return error_of([&] { embedding_bag(w, i, offsets); });
  };
  expect_part(bags(tensor({1, 2})), "got 1 at position 0 of");
  expect_part(bags(tensor({0, 7})),
              "got 7 at position 0 of int64[1] on cpu, expected [0, 4) (offsets[-1]");
  expect_part(bags(tensor({0, 2, 1, 3})),
              "offsets have to ascend: got 1 at position 2 of int64[4]");
  EXPECT_ERROR_TEXT(repeat_interleave(tensor({1, -3})),
                    "repeats can not be negative: got -3 at position 1 of int64[2]");
}

TEST(ValueChecks, NumbersThatAreNoTensor) {
  const Tensor x = full({4}, 0.5, kDouble), rows = varied({3, 2});
  const std::vector<std::function<void()>> all = {
      [&] { x.clone().uniform_(kNaN, 1); },
      [&] { x.clone().uniform_(0, kNaN); },
      [&] { x.clone().normal_(0, kNaN); },
      [&] { normal(0, kNaN, {3}); },
      [&] { normal(x, kNaN); },
      [&] { x.clone().log_normal_(0, kNaN); },
      [&] { x.clone().cauchy_(0, kNaN); },
      [&] { x.clone().exponential_(kNaN); },
      [&] { x.clone().geometric_(kNaN); },
      [&] { x.clone().bernoulli_(kNaN); },
      [&] { bernoulli(x, kNaN); },
      [&] { dropout(x, kNaN, true); },
      [&] { alpha_dropout(x, kNaN, true); },
      [&] { rrelu(x, kNaN, 0.3, true); },
      [&] { rrelu(x, 0.1, kNaN, true); },
      [&] { smooth_l1_loss(x, x, Reduction::Mean, kNaN); },
      [&] { huber_loss(x, x, Reduction::Mean, kNaN); },
      [&] {
        cross_entropy_loss(rows, tensor({0, 1, 0}), {}, Reduction::Mean, -100, kNaN);
      },
      [&] { quantile(x, kNaN); },
      [&] { nanquantile(x, kNaN); },
      [&] { histc(x, 4, kNaN, 1); },
      [&] { histc(with(kNaN), 4); },
      [&] { arange(0., kNaN); },
      [&] { arange(0., 5., kNaN); },
      [&] { cdist(rows, rows, kNaN); },
      [&] { pdist(rows, kNaN); },
      [&] { rows.renorm(kNaN, 0, 1); },
      [&] { rows.renorm(2, 0, kNaN); },
      [&] { allclose(x, x, kNaN); },
      [&] { allclose(x, x, 0, kNaN); },
      [&] { softshrink(x, kNaN); },
  };
  for (size_t k = 0; k < all.size(); ++k) EXPECT_THROW(all[k](), Error) << "call " << k;
}

// ---- bounds of uniform_ -------------------------------------------------------------------------

// The number of this dtype that is nearest to v.
double held(double v, ScalarType t) { return full({}, v, t).item<double>(); }

TEST(UniformBounds, TheEndIsOpenInEveryType) {
  manual_seed(1);
  const std::pair<double, double> bounds[] = {
      {0, 1},  {0, 4},     {.1, .7},  {1, 1.01}, {-5, -4.9},     {1000, 1001}, {0, 1e-7},
      {-1, 0}, {-1e-7, 0}, {-.1, .1}, {3, 3},    {1000, 1000.1}, {-1e4, 5e4}};
  for (ScalarType t : {kHalf, kBFloat16, kFloat, kDouble})
    for (const auto& [from, to] : bounds) {
      SCOPED_TRACE(std::string(short_name_of(t)) + " " + std::to_string(from) + " " +
                   std::to_string(to));
      const double low = held(from, t), high = held(to, t);
      for (const Tensor& x : {empty({30000}, t), empty({2, 30000}, t).t()}) {
        x.uniform_(from, to);
        const double least = x.min().item<double>(), most = x.max().item<double>();
        EXPECT_GE(least, low);
        if (low < high) EXPECT_LT(most, high);
        else EXPECT_EQ(most, low);
      }
    }
}

// The nearest numbers, except those that would be the end.
TEST(UniformBounds, SixteenBitsAreTheRoundedNumbers) {
  const auto counts = [](ScalarType t, double from, double to, std::vector<double> of) {
    manual_seed(2);
    const Tensor x = empty({200000}, t).uniform_(from, to).to(kDouble);
    std::vector<double> parts;
    for (double v : of) parts.push_back(x.eq(v).to(kDouble).mean().item<double>());
    return parts;
  };
  const auto half = counts(kHalf, 1000, 1001, {1000, 1000.5, 1001});
  EXPECT_NEAR(half[0], 0.25, 0.005);
  EXPECT_NEAR(half[1], 0.75, 0.005);
  EXPECT_EQ(half[2], 0);
  const auto brain = counts(kBFloat16, 1, 1.01, {1});
  EXPECT_EQ(brain[0], 1) << "there is no other below the end";
  EXPECT_EQ(empty({9}, kHalf).uniform_(2, 2).sum().item<double>(), 18);
}

TEST(UniformBounds, ThoseThatTheTypeCannotHoldAreRefused) {
  const auto text = [](ScalarType t, double from, double to) {
    return error_of([&] { zeros({3}, t).uniform_(from, to); });
  };
  const std::string out = "is out of bounds for ", wide = "expects to - from to be at most ";
  expect_part(text(kHalf, 0, 1e5), "[uniform_] to " + out + "float16: got 100000, expected");
  expect_part(text(kHalf, -7e4, 0), "[uniform_] from " + out + "float16: got -70000, expected");
  expect_part(text(kHalf, -4e4, 4e4),
              wide + "65504 for float16, but found from=-40000 and to=40000");
  expect_part(text(kFloat, 0, 1e39), "to " + out);
  expect_part(text(kBFloat16, 0, 3.4e38), "to " + out);
  expect_part(text(kFloat, -3e38, 3e38), wide);
  expect_part(text(kDouble, -1.7e308, 1.7e308), wide);
  for (ScalarType t : {kHalf, kBFloat16, kFloat, kDouble})
    for (double bad : {kInf, -kInf, kNaN}) {
      expect_part(text(t, bad, 1), "from " + out);
      expect_part(text(t, 0, bad), "to " + out);
    }
  const GeneratorState before = default_generator(Device(kCPU, 0)).get_state();
  text(kHalf, 0, 1e5);
  EXPECT_TRUE(default_generator(Device(kCPU, 0)).get_state() == before);
  // The widest that there are.
  EXPECT_TRUE(
      isfinite(zeros({3000}, kFloat).uniform_(-0x1p127, 0x1.fffffcp126)).all().item<bool>());
  EXPECT_TRUE(isfinite(zeros({3000}, kHalf).uniform_(0, 65504)).all().item<bool>());
  EXPECT_TRUE(isfinite(zeros({3000}, kHalf).uniform_(-32752, 32752)).all().item<bool>());
}

TEST(ExponentialDraws, AreAboveZero) {
  manual_seed(3);
  for (ScalarType t : {kHalf, kBFloat16, kFloat, kDouble})
    for (double lambda : {0.01, 1., 3., 1e4, 1e38}) {
      SCOPED_TRACE(std::string(short_name_of(t)) + " " + std::to_string(lambda));
      EXPECT_GT(empty({200000}, t).exponential_(lambda).to(kDouble).min().item<double>(), 0);
    }
  // u = 0 is one of 2^24 numbers: draws until it has been among them.
  Generator g(Device(kCPU, 0), 7);
  bool zero = false;
  for (int round = 0; round < 40 && !zero; ++round) {
    const GeneratorState state = g.get_state();
    zero = rand({1 << 21}, g).eq(0).any().item<bool>();
    if (!zero) continue;
    g.set_state(state);
    const Tensor x = empty({1 << 21}).exponential_(2, g);
    EXPECT_FLOAT_EQ(x.min().item<float>(), 0x1p-26f) << "half a step, over lambda";
  }
  EXPECT_TRUE(zero);
  EXPECT_EQ(empty({5}).exponential_(kInf).abs().sum().item<double>(), 0);
}

}  // namespace
}  // namespace ramet
