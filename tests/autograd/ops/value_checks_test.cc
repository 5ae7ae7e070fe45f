// Checks of numbers: what is not inside a range is refused, so a NaN is, with its value and position.
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

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = INFINITY;

// Numbers inside the range but for one.
Tensor with(double wrong) { return constant({0.25, 0.5, wrong, 0.75}); }

TEST(ValueChecks, ANaNIsOutside) {
  const Tensor half = full({4}, 0.5, kDouble), x = varied({3, 4}), whole = arange(4);
  const std::vector<std::pair<std::string, std::function<void(const Tensor&)>>> all = {
      {"[binary_cross_entropy] all elements of input should be between 0 and 1",
       [&](const Tensor& v) { binary_cross_entropy(v, half); }},
      {"[normal] expects all elements of std >= 0.0", [&](const Tensor& v) { normal(0., v); }},
      {"[normal] expects all elements of std >= 0.0", [&](const Tensor& v) { normal(half, v); }},
      {"[cov] fweights and aweights cannot be negative", [&](const Tensor& v) { cov(x, 1, {}, v); }},
      {"[bernoulli] expects every p to be in [0, 1]", [&](const Tensor& v) { bernoulli(v); }},
      {"[bernoulli] expects every p to be in [0, 1]",
       [&](const Tensor& v) { half.clone().bernoulli_(v); }},
      {"[poisson] expected every rate to be non-negative", [&](const Tensor& v) { poisson(v); }},
      {"[multinomial] probability tensor contains either `inf`, `nan` or element < 0",
       [&](const Tensor& v) { multinomial(v, 1); }},
      {"[quantile] q values must be in the range [0, 1]",
       [&](const Tensor& v) { quantile(x, v); }},
      {"[nanquantile] q values must be in the range [0, 1]",
       [&](const Tensor& v) { nanquantile(x, v); }},
  };
  for (const auto& [text, call] : all) {
    SCOPED_TRACE(text);
    EXPECT_NO_THROW(call(with(0.5)));
    expect_part(error_of([&] { call(with(kNan)); }), text + ": got nan at position 2 of");
    expect_part(error_of([&] { call(with(-1)); }), text + ": got -1 at position 2 of");
    // A column of a matrix, with history.
    const Tensor wide = constant({0.25, 9, 0.5, 9, kNan, 9, 0.75, 9}).requires_grad_();
    expect_part(error_of([&] { call(wide.view({4, 2}).select(1, 0)); }), "got nan at position 2");
  }
}

TEST(ValueChecks, InACaptureOfTheReplayedNumbers) {
  const Tensor t = constant({1, 0, 1});
  Captured step([&t](const Tensor& x) { return binary_cross_entropy(x, t); });
  const Tensor x = constant({0.5, 0.25, 0.75});
  for (int call = 0; call < 3; ++call) EXPECT_NO_THROW(step(x));
  x.copy_(constant({0.5, 1.5, 0.75}));
  expect_part(error_of([&] { step(x); }), "between 0 and 1: got 1.5 at position 1 of float64[3]");
}

TEST(ValueChecks, WholeNumbersAreNamed) {
  const Tensor w = ones({4, 3}), i = tensor({1, 2, 0});
  const auto bags = [&](const Tensor& offsets) {
    return error_of([&] { embedding_bag(w, i, offsets); });
  };
  expect_part(bags(tensor({1, 2})), "got 1 at position 0 of");
  expect_part(bags(tensor({0, 7})), "got 7 at position 0 of int64[1] on cpu, expected [0, 4) (offsets[-1]");
  expect_part(bags(tensor({0, 2, 1, 3})), "offsets have to ascend: got 1 at position 2 of int64[4]");
  expect_part(error_of([] { repeat_interleave(tensor({1, -3})); }),
              "repeats can not be negative: got -3 at position 1 of int64[2]");
}

TEST(ValueChecks, NumbersThatAreNoTensor) {
  const Tensor x = full({4}, 0.5, kDouble), rows = varied({3, 2});
  const std::vector<std::function<void()>> all = {
      [&] { x.clone().uniform_(kNan, 1); },
      [&] { x.clone().uniform_(0, kNan); },
      [&] { x.clone().normal_(0, kNan); },
      [&] { normal(0, kNan, {3}); },
      [&] { normal(x, kNan); },
      [&] { x.clone().log_normal_(0, kNan); },
      [&] { x.clone().cauchy_(0, kNan); },
      [&] { x.clone().exponential_(kNan); },
      [&] { x.clone().geometric_(kNan); },
      [&] { x.clone().bernoulli_(kNan); },
      [&] { bernoulli(x, kNan); },
      [&] { dropout(x, kNan, true); },
      [&] { alpha_dropout(x, kNan, true); },
      [&] { rrelu(x, kNan, 0.3, true); },
      [&] { rrelu(x, 0.1, kNan, true); },
      [&] { smooth_l1_loss(x, x, Reduction::Mean, kNan); },
      [&] { huber_loss(x, x, Reduction::Mean, kNan); },
      [&] { cross_entropy_loss(rows, tensor({0, 1, 0}), {}, Reduction::Mean, -100, kNan); },
      [&] { quantile(x, kNan); },
      [&] { nanquantile(x, kNan); },
      [&] { histc(x, 4, kNan, 1); },
      [&] { histc(with(kNan), 4); },
      [&] { arange(0., kNan); },
      [&] { arange(0., 5., kNan); },
      [&] { cdist(rows, rows, kNan); },
      [&] { pdist(rows, kNan); },
      [&] { rows.renorm(kNan, 0, 1); },
      [&] { rows.renorm(2, 0, kNan); },
      [&] { allclose(x, x, kNan); },
      [&] { allclose(x, x, 0, kNan); },
      [&] { softshrink(x, kNan); },
  };
  for (size_t k = 0; k < all.size(); ++k) EXPECT_THROW(all[k](), Error) << "call " << k;
}

}  // namespace
}  // namespace ramet
