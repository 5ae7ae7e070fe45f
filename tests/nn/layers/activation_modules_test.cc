// Activations as modules: in place, with parameters, with draws; what they refuse.
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/activation.h"
#include "runtime/devices/generator.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor points() { return doubles({-3, -1.5, -0.5, -0.1, 0, 0.25, 0.5, 1, 2.5, 7}); }
// i / 4 - 1 from i = 1 on
Tensor weights(int64_t n) { return arange(1, n + 1, kDouble).div(4).sub(1); }

TEST(ActivationModules, InPlace) {
  const struct {
    const char* name;
    Tensor (*f)(Tensor, bool);
  } functions[] = {
      {"relu", [](Tensor x, bool i) { return F::relu(std::move(x), i); }},
      {"relu6", [](Tensor x, bool i) { return F::relu6(std::move(x), i); }},
      {"selu", [](Tensor x, bool i) { return F::selu(std::move(x), i); }},
      {"elu", [](Tensor x, bool i) { return F::elu(x, F::ELUFuncOptions().inplace(i)); }},
      {"elu, alpha",
       [](Tensor x, bool i) { return F::elu(x, F::ELUFuncOptions().alpha(-2).inplace(i)); }},
      {"celu", [](Tensor x, bool i) { return F::celu(x, F::CELUFuncOptions().inplace(i)); }},
      {"leaky_relu",
       [](Tensor x, bool i) { return F::leaky_relu(x, F::LeakyReLUFuncOptions().inplace(i)); }},
      {"hardtanh",
       [](Tensor x, bool i) { return F::hardtanh(x, F::HardtanhFuncOptions().inplace(i)); }},
      {"threshold",
       [](Tensor x, bool i) {
         return F::threshold(x, F::ThresholdFuncOptions(0.1, 3).inplace(i));
       }},
      {"rrelu", [](Tensor x, bool i) { return F::rrelu(x, F::RReLUFuncOptions().inplace(i)); }},
      {"modules",
       [](Tensor x, bool i) {
         x = Hardtanh(HardtanhOptions().max_val(3).inplace(i))(x);
         x = ELU(ELUOptions().inplace(i))(CELU(CELUOptions().inplace(i))(x));
         x = SELU(i)(Threshold(ThresholdOptions(-0.1, -0.2).inplace(i))(x));
         return ReLU6(i)(RReLU(RReLUOptions().inplace(i))(x));
       }},
  };
  for (const auto& row : functions) {
    SCOPED_TRACE(row.name);
    Tensor gradient[2], result[2];
    for (const bool inplace : {false, true}) {
      const Tensor leaf = points().requires_grad_();
      const Tensor x = leaf.mul(1);
      manual_seed(3);
      result[inplace] = row.f(x, inplace);
      EXPECT_EQ(result[inplace].data_ptr() == x.data_ptr(), inplace);
      result[inplace].mul(weights(10)).sum().backward();
      gradient[inplace] = leaf.grad();
      if (inplace) { EXPECT_ERROR_TEXT(row.f(leaf, true), "leaf"); }
    }
    EXPECT_TRUE(same_bits(result[0], result[1]));
    EXPECT_TRUE(same_bits(gradient[0], gradient[1]));
  }
}

// Their options reach the functions; with those by default: tests/nn/goldens.
TEST(ActivationModules, ModulesHaveOptions) {
  const Tensor x = points(), rows = x.view({2, 5});
  const auto plus = SoftplusOptions().beta(2).threshold(3);
  const auto elu = ELUOptions().alpha(.3);
  const auto celu = CELUOptions().alpha(.3);
  const auto leaky = LeakyReLUOptions().negative_slope(.2);
  const auto tanh = HardtanhOptions().min_val(-.3).max_val(.8);
  const auto gelu = GELUOptions().approximate("tanh");
  const std::pair<Tensor, Tensor> pairs[] = {{Hardshrink(1)(x), F::hardshrink(x, 1)},
                                             {Softshrink(1)(x), F::softshrink(x, 1)},
                                             {Softplus(plus)(x), F::softplus(x, plus)},
                                             {ELU(elu)(x), F::elu(x, elu)},
                                             {CELU(celu)(x), F::celu(x, celu)},
                                             {LeakyReLU(leaky)(x), F::leaky_relu(x, leaky)},
                                             {Hardtanh(tanh)(x), F::hardtanh(x, tanh)},
                                             {GELU(gelu)(x), F::gelu(x, gelu)},
                                             {GLU(0)(rows), F::glu(rows, 0)},
                                             {Softmax(0)(rows), F::softmax(rows, 0)},
                                             {LogSoftmax(0)(rows), F::log_softmax(rows, 0)},
                                             {Softmin(0)(rows), F::softmin(rows, 0)}};
  for (const auto& [got, want] : pairs) EXPECT_TRUE(same_bits(got, want)) << &got - &pairs[0].first;
  expect_values(Softmax2d()(sines(12).view({2, 3, 2})).sum(0), {1, 1, 1, 1, 1, 1});
  for (const Tensor& y : {F::softmin(x.to(kFloat), F::SoftminFuncOptions(0).dtype(kDouble)),
                          F::softmax(x.to(kFloat), F::SoftmaxFuncOptions(0).dtype(kDouble)),
                          F::log_softmax(x.to(kFloat), F::LogSoftmaxFuncOptions(0).dtype(kDouble))})
    EXPECT_EQ(y.scalar_type(), kDouble);
}

TEST(ActivationModules, PReLU) {
  PReLU one;
  ASSERT_EQ(one->named_parameters().keys(), std::vector<std::string>{"weight"});
  expect_values(one->weight, {0.25});
  EXPECT_TRUE(one->weight.requires_grad());
  expect_values(PReLU(PReLUOptions().num_parameters(3).init(0.5))->weight, {0.5, 0.5, 0.5});
  // What is infinite on the other side does not count.
  const Tensor w = doubles({0.5}).requires_grad_();
  F::prelu(doubles({kInf, -2}), w).sum().backward();
  expect_values(w.grad(), {-2});
}

TEST(ActivationModules, RReLUDrawsSlopes) {
  RReLU rrelu(RReLUOptions().lower(0.2).upper(0.6));
  const Tensor x = full({1000}, -2.0, kDouble).requires_grad_();
  manual_seed(1);
  const Tensor y = rrelu(x);
  y.sum().backward();
  EXPECT_TRUE(same_bits(y, x.grad().mul(-2)));
  const std::vector<double> slopes = values(x.grad());
  double sum = 0, least = 1, most = 0;
  for (const double s : slopes) {
    sum += s;
    least = std::min(least, s);
    most = std::max(most, s);
  }
  // Of 1000 uniform ones: six standard deviations of the mean are 0.022.
  EXPECT_GE(least, 0.2);
  EXPECT_LE(most, 0.6);
  EXPECT_LT(least, 0.21);
  EXPECT_GT(most, 0.59);
  EXPECT_NEAR(sum / 1000, 0.4, 0.022);
  expect_values(rrelu(doubles({3, 0})), {3, 0});
  rrelu->eval();
  expect_values(rrelu(doubles({3, -1})), {3, -0.4});
  manual_seed(1);
  const Tensor again = F::rrelu(x, F::RReLUFuncOptions().lower(0.2).upper(0.6).training(true));
  EXPECT_TRUE(same_bits(again, y));
}

TEST(ActivationModules, GumbelSoftmax) {
  const Tensor logits = sines(40).view({8, 5}).requires_grad_();
  manual_seed(5);
  const Tensor soft = F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().tau(0.5));
  expect_values(soft.sum(-1), std::vector<double>(8, 1));
  soft.mul(weights(40).view({8, 5})).sum().backward();
  const Tensor gradient = logits.grad().clone();
  logits.mutable_grad().zero_();
  manual_seed(5);
  const Tensor hard = F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().tau(0.5).hard(true));
  EXPECT_TRUE(same_bits(hard.argmax(-1), soft.argmax(-1)));
  expect_values(hard.amax(-1), std::vector<double>(8, 1));
  expect_values(hard.sum(-1), std::vector<double>(8, 1));
  hard.mul(weights(40).view({8, 5})).sum().backward();
  expect_values(logits.grad(), values(gradient));
  // The largest of many draws with probabilities softmax(x): those of 1 and 3 are 1 : 3.
  manual_seed(7);
  const Tensor many = doubles({0, std::log(3.0)}).expand({2000, 2});
  const double share = F::gumbel_softmax(many, F::GumbelSoftmaxFuncOptions().hard(true))
                           .select(1, 1)
                           .mean()
                           .item<double>();
  EXPECT_NEAR(share, 0.75, 0.058);  // six standard deviations
}

TEST(ActivationModules, OfIntegers) {
  const Tensor x = points().to(kLong);
  expect_values(F::hardtanh(x), {-1, -1, 0, 0, 0, 0, 0, 1, 1, 1});
  expect_values(F::relu6(x), {0, 0, 0, 0, 0, 0, 0, 1, 2, 6});
  expect_values(F::threshold(x, F::ThresholdFuncOptions(0, 4)), {4, 4, 4, 4, 4, 4, 4, 1, 2, 7});
  for (const ScalarType dtype : {kByte, kInt})
    EXPECT_EQ(F::relu6(x.to(dtype)).scalar_type(), dtype);
}

TEST(ActivationModules, Refuse) {
  const Tensor x = sines(24).view({4, 6});
  EXPECT_ERROR_TEXT(F::glu(ones(IntArrayRef())), "does not support scalars because halving size");
  EXPECT_ERROR_TEXT(F::glu(ones({3})), "Halving dimension must be even, but dimension");
  for (const int64_t dim :
       {int64_t{5}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    EXPECT_ERROR_TEXT(F::glu(x, dim), "imension");
    EXPECT_ERROR_TEXT(F::softmin(x, dim), "imension");
  }
  EXPECT_ERROR_TEXT(F::celu(x, F::CELUFuncOptions().alpha(0)), "alpha cannot be 0 for CELU");
  EXPECT_ERROR_TEXT(F::softshrink(x, -1), "but found to be -1");
  EXPECT_ERROR_TEXT(F::softshrink(x, std::nan("")), "but found to be nan");
  EXPECT_ERROR_TEXT(F::rrelu(x, F::RReLUFuncOptions().lower(2)),
                    "Lower bound should be less than or equal to the upper bound");
  EXPECT_ERROR_TEXT(
      F::rrelu(x, F::RReLUFuncOptions().upper(std::numeric_limits<double>::infinity())),
      "bounds must be finite");
  EXPECT_ERROR_TEXT(Hardtanh(HardtanhOptions().min_val(1).max_val(1)),
                    "max_val must be greater than min_val");
  EXPECT_ERROR_TEXT(Softmax2d()(x), "Softmax2d requires a 3D or 4D tensor as input");
  EXPECT_ERROR_TEXT(F::prelu(x, doubles({1, 2})),
                    "Found parameter numbers = 2 and channel size = 6");
  EXPECT_ERROR_TEXT(F::prelu(x, ones({2, 3}, kDouble)), "scalar or 1D tensor");
  EXPECT_ERROR_TEXT(F::prelu(doubles({1}).view(IntArrayRef()), doubles({1, 2})),
                    "Not allow zero-dim input tensor");
  EXPECT_ERROR_TEXT(F::prelu(x, ones({1})), "Type promoting not supported");
  EXPECT_ERROR_TEXT(PReLU(PReLUOptions().num_parameters(-1)), "-1");
  for (Tensor (*f)(const Tensor&) :
       {+[](const Tensor& t) { return F::elu(t); }, +[](const Tensor& t) { return F::selu(t); },
        +[](const Tensor& t) { return F::celu(t); }, +[](const Tensor& t) { return F::silu(t); },
        +[](const Tensor& t) { return F::mish(t); }, +[](const Tensor& t) { return F::glu(t); },
        +[](const Tensor& t) { return F::logsigmoid(t); },
        +[](const Tensor& t) { return F::hardshrink(t); },
        +[](const Tensor& t) { return F::softshrink(t); },
        +[](const Tensor& t) { return F::rrelu(t); },
        +[](const Tensor& t) { return F::prelu(t, ones({1})); },
        +[](const Tensor& t) { return F::gumbel_softmax(t); }}) {
    EXPECT_ERROR_TEXT(f(x.to(kLong)), "only for floating-point dtypes: got int64");
    EXPECT_ERROR_TEXT(f(Tensor()), "undefined tensor");
  }
  EXPECT_ERROR_TEXT(F::hardtanh(ones({2}, kBool)), "not implemented for 'Bool'");
  EXPECT_ERROR_TEXT(F::threshold(ones({2}, kBool), F::ThresholdFuncOptions(0, 1)),
                    "not implemented for 'Bool'");
}

}  // namespace
}  // namespace ramet::nn
