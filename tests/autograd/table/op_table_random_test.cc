// Rows of the operation table: random draws. There is no reference for a draw: a row gives the
// distribution's moments and bounds, and the draws must follow from the seed alone.
#include <algorithm>
#include <cmath>

#include "autograd/gradcheck.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/generator.h"
#include "tests/autograd/table/op_table_suite.h"
#include "tests/error_text.h"

namespace ramet {
namespace op_table {
namespace {

struct Random {
  const char* name;
  uint16_t dtypes;  ///< those LibTorch draws
  std::function<Tensor(const Index&, ScalarType)> draw;
  double mean, variance, lo, hi;
  ScalarType (*result)(ScalarType) = same;
};
using Sizes = const Index&;
using S = ScalarType;

Tensor plain(Sizes n, S t, double value) { return full(n, value, TensorOptions(t)); }

// Alpha dropout of 3 with p = 1 / 4: a (3 or -kAlpha) + a kAlpha / 4.
const double kAlpha = 1.7580993408473766, kScale = 1 / std::sqrt((kAlpha * kAlpha / 4 + 1) * 0.75),
             kAlphaMean = kScale * 3 * 0.75,
             kAlphaVariance = kScale * kScale * (3 + kAlpha) * (3 + kAlpha) * 0.1875;

#define DRAWS(...) [](const Index& n, ScalarType t) { return __VA_ARGS__; }

std::vector<Random> draws() {
  const double inf = INFINITY;
  return {
      {"rand", kFloats, DRAWS(rand(n, t)), 0.5, 1 / 12.0, 0, 1},
      {"rand.out", kFloats,
       [](Sizes n, S t) {
         Tensor o = empty({0}, t);
         return rand_out(o, n);
       },
       0.5, 1 / 12.0, 0, 1},
      {"rand_like", kFloats, DRAWS(rand_like(plain(n, t, 0))), 0.5, 1 / 12.0, 0, 1},
      {"rand.in_place", kFloats, DRAWS(plain(n, t, 0).uniform_(2, 4)), 3, 1 / 3.0, 2, 4},
      {"randn", kFloats, DRAWS(randn(n, t)), 0, 1, -inf, inf},
      {"randn.out", kFloats,
       [](Sizes n, S t) {
         Tensor o = empty({0}, t);
         return randn_out(o, n, std::nullopt);
       },
       0, 1, -inf, inf},
      {"randn_like", kFloats, DRAWS(randn_like(plain(n, t, 0))), 0, 1, -inf, inf},
      {"randn.in_place", kFloats, DRAWS(plain(n, t, 0).normal_(1, 2)), 1, 4, -inf, inf},
      {"randint", kNumbers, DRAWS(randint(2, 9, n, t)), 5, 4, 2, 8},
      {"randint.two", kAll, DRAWS(randint(2, n, t)), 0.5, 0.25, 0, 1},
      {"randint_like", kNumbers, DRAWS(randint_like(plain(n, t, 0), 2, 9)), 5, 4, 2, 8},
      {"randint_like.two", kAll, DRAWS(randint_like(plain(n, t, 0), 2)), 0.5, 0.25, 0, 1},
      {"randint.in_place", kNumbers, DRAWS(plain(n, t, 0).random_(2, 9)), 5, 4, 2, 8},
      {"normal", kFloats, DRAWS(normal(1, 2, n, std::nullopt, TensorOptions(t))), 1, 4, -inf, inf},
      {"normal.means", kFloats, DRAWS(normal(plain(n, t, 1), 2)), 1, 4, -inf, inf},
      {"normal.deviations", kFloats, DRAWS(normal(1, plain(n, t, 2))), 1, 4, -inf, inf},
      {"normal.tensors", kFloats, DRAWS(normal(plain(n, t, 1), plain({1}, t, 2))), 1, 4, -inf, inf},
      {"normal.out", kFloats,
       [](Sizes n, S t) {
         Tensor o = empty({0}, t);
         return normal_out(o, plain(n, t, 1), plain({1}, t, 2));
       },
       1, 4, -inf, inf},
      {"normal.out_like", kFloats,
       [](Sizes n, S t) {
         Tensor o = empty({0}, t);
         return normal_out(o, plain(n, t, 9), 1., 2.);
       },
       1, 4, -inf, inf},
      {"bernoulli.out", kAll,
       [](Sizes n, S t) {
         Tensor o = empty({0}, t);
         return bernoulli_out(o, plain(n, kFloat, 0), 0.25);
       },
       0.25, 0.1875, 0, 1},
      {"bernoulli", kFloats, DRAWS(bernoulli(plain(n, t, 0.25))), 0.25, 0.1875, 0, 1},
      {"bernoulli.number", kAll, DRAWS(bernoulli(plain(n, t, 0), 0.25)), 0.25, 0.1875, 0, 1},
      {"bernoulli.in_place", kAll, DRAWS(plain(n, t, 0).bernoulli_(0.25)), 0.25, 0.1875, 0, 1},
      {"rand.exponential", kFloats, DRAWS(plain(n, t, 0).exponential_(2)), 0.5, 0.25, 0, inf},
      {"rand.log_normal", kFloats, DRAWS(plain(n, t, 0).log_normal_(0.5, 0.25)), std::exp(0.53125),
       std::exp(1.0625) * (std::exp(0.0625) - 1), 0, inf},
      {"rand.geometric", kNumbers, DRAWS(plain(n, t, 0).geometric_(0.5)), 2, 2, 1, 60},
      // Which has no moments: of the angle.
      {"rand.cauchy", kFloats, DRAWS(plain(n, t, 0).cauchy_(3, 2).sub(3).div(2).atan()), 0,
       M_PI * M_PI / 12, -M_PI / 2 - 1e-6, M_PI / 2 + 1e-6},
      {"poisson", kFloats, DRAWS(poisson(plain(n, t, 3))), 3, 3, 0, 40},
      {"poisson.large", kFloats, DRAWS(poisson(plain(n, t, 300))), 300, 300, 0, 600},
      {"binomial", kFloats, DRAWS(binomial(plain(n, t, 8), plain(n, t, 0.25))), 2, 1.5, 0, 8},
      {"binomial.large", kFloats, DRAWS(binomial(plain(n, t, 400), plain({1}, t, 0.75))), 300, 75,
       0, 400},
      // The first of two shares, which is uniform.
      {"_sample_dirichlet", kFloats,
       [](Sizes n, S t) {
         Index pairs = n;
         pairs.push_back(2);
         return _sample_dirichlet(plain(pairs, t, 1)).select(-1, 0);
       },
       0.5, 1.0 / 12, 0, 1},
      {"multinomial", kFloats,
       DRAWS(multinomial(tensor({1.0, 2.0, 1.0}).to(t), count(n), true).reshape(n)), 1, 0.5, 0, 2,
       positions},
      {"multinomial.out", kFloats,
       [](Sizes n, S t) {
         Tensor o = empty({0}, kLong);
         multinomial_out(o, tensor({1.0, 2.0, 1.0}).to(t), std::max<int64_t>(count(n), 1), true);
         return o.narrow(0, 0, count(n)).reshape(n);
       },
       1, 0.5, 0, 2, positions},
      {"dropout", kFloats, DRAWS(dropout(plain(n, t, 3), 0.25, true)), 3, 3, 0, 4},
      {"dropout.in_place", kFloats,
       [](Sizes n, S t) {
         Tensor x = plain(n, t, 3);
         return dropout_(x, 0.25, true);
       },
       3, 3, 0, 4},
      {"feature_dropout", kFloats, DRAWS(feature_dropout(plain(n, t, 3), 0.25, true)), 3, 3, 0, 4},
      {"feature_dropout.in_place", kFloats,
       [](Sizes n, S t) {
         Tensor x = plain(n, t, 3);
         return feature_dropout_(x, 0.25, true);
       },
       3, 3, 0, 4},
      // 3 or selu's value at -infinity, scaled and shifted.
      {"alpha_dropout", kFloats, DRAWS(alpha_dropout(plain(n, t, 3), 0.25, true)), kAlphaMean,
       kAlphaVariance, -2, 4},
      {"alpha_dropout.in_place", kFloats,
       [](Sizes n, S t) {
         Tensor x = plain(n, t, 3);
         return alpha_dropout_(x, 0.25, true);
       },
       kAlphaMean, kAlphaVariance, -2, 4},
      {"feature_alpha_dropout", kFloats, DRAWS(feature_alpha_dropout(plain(n, t, 3), 0.25, true)),
       kAlphaMean, kAlphaVariance, -2, 4},
      {"feature_alpha_dropout.in_place", kFloats,
       [](Sizes n, S t) {
         Tensor x = plain(n, t, 3);
         return feature_alpha_dropout_(x, 0.25, true);
       },
       kAlphaMean, kAlphaVariance, -2, 4},
  };
}

class RandomTable : public ::testing::TestWithParam<Random> {
 protected:
  static Tensor draw(uint64_t seed, Sizes n, S dtype) {
    manual_seed(seed);
    return GetParam().draw(n, dtype);
  }
  void TearDown() override { set_num_threads(2); }
};
void PrintTo(const Random& row, std::ostream* out) { *out << row.name; }

TEST_P(RandomTable, MomentsBoundsAndSeeds) {
  const Random& row = GetParam();
  const Index sizes = {300, 200};
  for (int i = 0; i < kScalarTypes; ++i) {
    const S dtype = static_cast<S>(i);
    SCOPED_TRACE(short_name_of(dtype));
    if (!(with_unsigned(row.dtypes) & set_of(dtype))) {
      EXPECT_THROW(draw(3, sizes, dtype), Error);
      continue;
    }
    const Tensor x = draw(3, sizes, dtype);
    EXPECT_EQ(x.scalar_type(), row.result(dtype));
    EXPECT_FALSE(x.requires_grad());
    ASSERT_EQ(x.sizes().vec(), sizes);
    EXPECT_TRUE(bits(x) == bits(draw(3, sizes, dtype))) << "the same seed";
    EXPECT_FALSE(bits(x) == bits(draw(4, sizes, dtype))) << "another seed";
    const Plain p = plain_of(x);
    double mean = 0, variance = 0;
    const double n = static_cast<double>(p.v.size());
    for (double v : p.v) mean += v / n;
    for (double v : p.v) variance += (v - mean) * (v - mean) / n;
    // Five deviations of the mean of n draws, and half a step of bfloat16.
    EXPECT_NEAR(mean, row.mean, 5 * std::sqrt(row.variance / n) + 0.004 * std::fabs(row.mean));
    EXPECT_NEAR(variance, row.variance, 0.05 * row.variance);
    EXPECT_GE(*std::min_element(p.v.begin(), p.v.end()), row.lo);
    EXPECT_LE(*std::max_element(p.v.begin(), p.v.end()), row.hi);
    if (std::string(row.name) != "multinomial") {  // it draws at least one
      EXPECT_EQ(draw(3, {0, 2}, dtype).sizes().vec(), (Index{0, 2}));
    }
  }
}

TEST_P(RandomTable, ThreadsAgree) {
  const S dtype = kFloat;
  std::string first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const std::string b = bits(draw(5, {300, 200}, dtype));
    if (first.empty()) first = b;
    EXPECT_TRUE(b == first) << threads << " threads";
  }
}

// Replays draw what eager calls would have drawn.
TEST_P(RandomTable, Captured) {
  const auto draw = [] { return GetParam().draw({30, 20}, kFloat); };
  manual_seed(5);
  const std::string first = bits(draw()), second = bits(draw());
  manual_seed(5);
  Captured step(draw);
  if (std::string(GetParam().name).find(".out") != std::string::npos) {  // which it resizes
    EXPECT_ERROR_TEXT(step(), "[set_data] not capturable: the tensor would be given other memory");
    return;
  }
  EXPECT_TRUE(bits(step()) == first);
  EXPECT_TRUE(bits(step()) == second);
  EXPECT_EQ(step.counters().replays, 1u);
}

INSTANTIATE_TEST_SUITE_P(Rows, RandomTable, ::testing::ValuesIn(draws()),
                         [](const ::testing::TestParamInfo<Random>& info) {
                           std::string name = info.param.name;
                           for (char& c : name)
                             if (c == '.') c = '_';
                           return name;
                         });

// ---- those without moments, and what is not random of the others

TEST(RandomRows, Randperm) {
  for (ScalarType dtype : {kByte, kChar, kShort, kInt, kLong, kHalf, kBFloat16, kFloat, kDouble}) {
    manual_seed(3);
    Plain p = plain_of(randperm(100, TensorOptions(dtype)));
    bool moved = false;
    for (size_t i = 0; i < 100; ++i) moved |= p.v[i] != static_cast<double>(i);
    EXPECT_TRUE(moved);
    std::sort(p.v.begin(), p.v.end());
    for (size_t i = 0; i < 100; ++i) EXPECT_EQ(p.v[i], static_cast<double>(i));
    EXPECT_EQ(randperm(0, TensorOptions(dtype)).numel(), 0);
  }
  EXPECT_EQ(randperm(4).scalar_type(), kLong);
  EXPECT_THROW(randperm(2, TensorOptions(kBool)), Error);
  Tensor out = empty({0}, kInt);
  EXPECT_EQ(randperm_out(out, 4).scalar_type(), kInt);
  EXPECT_EQ(randperm_out(out, 9, Generator()).sum().item<int64_t>(), 36);
  // The other forms draw what the functions draw.
  const auto same = [](const std::function<Tensor()>& made, const auto& into, ScalarType dtype) {
    manual_seed(5);
    const Tensor want = made();
    manual_seed(5);
    Tensor o = empty({0}, dtype);
    into(o);
    EXPECT_TRUE(equal(o, want)) << o << want;
  };
  const Tensor half = full({7}, 0.5), two = full({7}, 2.);
  const auto none = std::optional<Generator>();
  same([&] { return normal(half, 2); }, [&](Tensor& o) { normal_out(o, half, 2., none); }, kFloat);
  same([&] { return normal(1, two); }, [&](Tensor& o) { normal_out(o, 1., two); }, kFloat);
  same([&] { return normal(1, 2, {7}); }, [&](Tensor& o) { normal_out(o, 1., 2., {7}); }, kFloat);
  same([&] { return bernoulli(half); }, [&](Tensor& o) { bernoulli_out(o, half, none); }, kFloat);
  same([&] { return bernoulli(two.to(kLong), half); },
       [&](Tensor& o) { bernoulli_out(o, two, half); }, kLong);
}

TEST(RandomRows, MultinomialWithoutReplacementTakesEachOnce) {
  const Tensor weights = tensor({{1.0, 0.0, 2.0, 5.0}, {0.0, 1.0, 1.0, 1.0}});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    manual_seed(seed);
    const Plain p = plain_of(multinomial(weights, 3));
    for (int64_t row = 0; row < 2; ++row) {
      std::vector<double> taken;
      for (int64_t k = 0; k < 3; ++k) taken.push_back(p.at({row, k}));
      std::sort(taken.begin(), taken.end());
      EXPECT_EQ(taken, row == 0 ? (std::vector<double>{0, 2, 3}) : (std::vector<double>{1, 2, 3}));
    }
  }
}

// What is drawn from values says which it does not take, before it draws.
TEST(RandomRows, CountsAreChecked) {
  manual_seed(3);
  const GeneratorState before = default_generator(Device(kCPU, 0)).get_state();
  EXPECT_THROW(poisson(tensor({1.0, -1.0})), Error);
  EXPECT_THROW(poisson(tensor({double(NAN)})), Error);
  EXPECT_THROW(binomial(ones({2}), ones({3})), Error);
  EXPECT_THROW(binomial(ones({2}), ones({2}, kDouble)), Error);
  EXPECT_THROW(ones({2}).log_normal_(0, 0), Error);
  EXPECT_THROW(ones({2}).cauchy_(0, -1), Error);
  EXPECT_THROW(ones({2}).geometric_(1), Error);
  EXPECT_THROW(ones({2}).geometric_(NAN), Error);
  EXPECT_TRUE(default_generator(Device(kCPU, 0)).get_state() == before);
  const Tensor some = binomial(tensor({{0.0}, {5.0}}), tensor({0.0, 1.0, 1.0}));
  expect_close(some, Plain{{2, 3}, {0, 0, 0, 0, 5, 5}});
  // As LibTorch's: no number depends on the rates, and the history shows that.
  const Tensor rates = ones({2}).requires_grad_();
  poisson(rates).sum().backward();
  expect_close(rates.grad(), Plain{{2}, {0, 0}});
}

TEST(RandomRows, DropoutsHaveDerivatives) {
  const Tensor x = operands({real({3, 4, 2})}, kDouble).tensors[0].requires_grad_();
  const autograd::CheckedFunction both = [](V in) {
    manual_seed(3);
    return std::vector<Tensor>{dropout(in[0], 0.25, true), feature_dropout(in[0], 0.5, true),
                               alpha_dropout(in[0], 0.25, true),
                               feature_alpha_dropout(in[0], 0.5, true)};
  };
  EXPECT_NO_THROW(autograd::gradcheck(both, {x}));
  EXPECT_NO_THROW(autograd::gradgradcheck(both, {x}));
}

void add_dropouts(Table& t) {
  const auto row = [&t](const char* name, Calls call) {
    t.row(name, kAll, shapes({{3, 4}, {0, 2}, {2, 3, 4}, {}}), std::move(call), [](P x) {
       return x[0];
     }).big({real({300, 131})}, 1);
  };
  row("dropout.eval", EXPRESSION(dropout(x[0], 0.5, false).clone()));
  row("dropout.none", EXPRESSION(dropout(x[0], 0, true).clone()));
  row("feature_dropout.eval", EXPRESSION(feature_dropout(x[0], 0.5, false).clone()));
  row("alpha_dropout.eval", EXPRESSION(alpha_dropout(x[0], 0.5, false).clone()));
  row("feature_alpha_dropout.none", EXPRESSION(feature_alpha_dropout(x[0], 0, true).clone()));
}

RAMET_OP_TABLE(add_dropouts);

}  // namespace
}  // namespace op_table
}  // namespace ramet
