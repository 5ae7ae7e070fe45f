// LoRA branches: numbers, training, merging, errors. The matrix of modules has LoRALinear too
// (tests/modules).
#include <cmath>

#include "nn/optim/adam.h"
#include "nn/utils/weight_norm.h"
#include "tests/nn/lora_support.h"

namespace ramet::nn {
namespace {

using namespace lora_tests;

TEST(LoRA, StartsAsTheBase) {
  for (const ScalarType dtype : {kFloat, kDouble, kBFloat16, kHalf}) {
    Net net;
    net->to(dtype);
    loss_of(net).backward();
    const std::vector<double> before = values(net(words()));
    EXPECT_EQ(apply_lora(net, 2, 4), (Names{"first", "rest.0", "rest.2"}));
    EXPECT_EQ(values(net(words())), before);
    EXPECT_EQ(net(words()).scalar_type(), dtype);
    EXPECT_EQ(trainable(*net), 2 * (6 + 10) + 2 * (10 + 7) + 2 * (7 + 8));
    const ScalarType own = dtype == kDouble ? kDouble : kFloat;
    for (const auto& p : net->named_parameters()) {
      const bool branch = p.key().find("lora_") != std::string::npos;
      EXPECT_EQ(p.value().requires_grad(), branch) << p.key();
      EXPECT_EQ(p.value().scalar_type(), branch ? own : dtype) << p.key();
      EXPECT_FALSE(p.value().grad().defined()) << p.key();
    }
    // Kaiming's bound with a = sqrt(5) is 1 / sqrt(in).
    const Tensor a = net->named_parameters()["first.lora_A.weight"];
    EXPECT_EQ(a.sizes(), IntArrayRef({2, 6}));
    EXPECT_LE(a.abs().max().item<double>(), 1 / std::sqrt(6.0));
    EXPECT_GT(a.abs().min().item<double>(), 0);
    EXPECT_EQ(values(net->named_parameters()["first.lora_B.weight"]), std::vector<double>(20, 0));
  }
}

/// The layer's result and gradients by its formula, in float64.
void expect_formula(ScalarType base, ScalarType branch, double tolerance) {
  Linear m(5, 4);
  const NoGradGuard off;
  m->weight.copy_(matrix(4, 5, 0.9)), m->bias.copy_(sines(4));
  m->to(base);
  m->add_lora(LoRAOptions(2, 3));
  m->own_children()["lora_A"]->to(branch), m->own_children()["lora_B"]->to(branch);
  fill_branches(*m);
  const Tensor a = lora_parameters(m)[0], b = lora_parameters(m)[1];
  const Tensor x = matrix(3, 5, 0.4).to(base).set_requires_grad(true), g = matrix(3, 4).to(base);
  m->weight.set_requires_grad(false), m->bias.set_requires_grad(false);
  {
    const EnableGradGuard on;
    m(x).backward(g);
  }
  const Tensor w = m->weight.to(kDouble), xd = x.detach().to(kDouble), gd = g.to(kDouble),
               ad = a.detach().to(kDouble), bd = b.detach().to(kDouble);
  const double s = 1.5;
  const auto near = [&](const Tensor& got, const Tensor& want) {
    expect_values(got, values(want), tolerance);
  };
  near(m(x), matmul(xd, w.t()) + m->bias.to(kDouble) + s * matmul(matmul(xd, ad.t()), bd.t()));
  near(b.grad(), s * matmul(gd.t(), matmul(xd, ad.t())));
  near(a.grad(), s * matmul(matmul(gd, bd).t(), xd));
  near(x.grad(), matmul(gd, w) + s * matmul(matmul(gd, bd), ad));
  EXPECT_EQ(a.grad().scalar_type(), branch);
  EXPECT_FALSE(m->weight.grad().defined());
}

TEST(LoRA, GradientsAreThoseOfTheFormula) {
  expect_formula(kDouble, kDouble, 1e-13);
  expect_formula(kFloat, kFloat, 1e-6);
  expect_formula(kBFloat16, kFloat, 0x1p-7);
  expect_formula(kHalf, kFloat, 0x1p-10);
  expect_formula(kBFloat16, kBFloat16, 0x1p-5);
}

// In 16 bits only the layer's result and the input's gradient are rounded.
TEST(LoRA, BranchesOf16BitLayersComputeInFloat32) {
  Linear m(5, 4);
  m->to(kBFloat16);
  m->add_lora(LoRAOptions(2, 3));
  fill_branches(*m);
  const Tensor x = matrix(3, 5, 0.4).to(kBFloat16), g = matrix(3, 4).to(kBFloat16);
  m(x).backward(g);
  const Tensor a = lora_parameters(m)[0], b = lora_parameters(m)[1];
  const NoGradGuard off;
  const Tensor xd = x.to(kDouble), gd = g.to(kDouble), ad = a.to(kDouble), bd = b.to(kDouble);
  expect_values(b.grad(), values(1.5 * matmul(gd.t(), matmul(xd, ad.t()))), 1e-6);
  expect_values(a.grad(), values(1.5 * matmul(matmul(gd, bd).t(), xd)), 1e-6);
}

// All sums and products of these numbers are exact, up to the last rounding of a merged weight.
TEST(LoRA, MergingRoundsOnce) {
  for (const ScalarType dtype : {kFloat, kDouble, kBFloat16, kHalf}) {
    Linear m(16, 12);
    const NoGradGuard off;
    m->to(dtype);
    const Tensor w = (matrix(12, 16, 0.7) * 64).round() / 64 + 1;
    m->weight.copy_(w), m->bias.fill_(0.5);
    m->add_lora(LoRAOptions(2, 1));
    const Tensor a = lora_parameters(m)[0], b = lora_parameters(m)[1];
    a.copy_((matrix(2, 16, 0.3) * 5).round()), b.copy_((matrix(12, 2, 0.6) * 700).round() / 4096);
    ASSERT_GT(b.abs().min().item<double>(), 0);
    const Tensor used = m->weight.to(kDouble),
                 exact = used + 0.5 * matmul(b.to(kDouble), a.to(kDouble));
    const bool wide = dtype == kFloat || dtype == kDouble;
    EXPECT_EQ(same_bits(exact.to(dtype).to(kDouble), exact), wide) << "is there a rounding?";
    const Tensor x = eye(16, dtype), unmerged = m(x);
    const void* const memory = m->weight.data_ptr();
    EXPECT_EQ(merge_lora(m), (Names{""}));
    EXPECT_TRUE(same_bits(m->weight, exact.to(dtype)));
    EXPECT_EQ(m->weight.data_ptr(), memory);
    if (wide) { EXPECT_TRUE(same_bits(m(x), unmerged)); }
    EXPECT_TRUE(m->own_children().is_empty());
    EXPECT_EQ(text_of(m), "ramet::nn::Linear(in_features=16, out_features=12, bias=true)");
  }
}

TEST(LoRA, AMergedModelGivesTheSame) {
  for (const ScalarType dtype : {kFloat, kBFloat16}) {
    Net net;
    net->to(dtype);
    apply_lora(net, 3, 2);
    fill_branches(*net);
    const NoGradGuard off;
    const std::vector<double> before = values(net(words()));
    EXPECT_EQ(merge_lora(net), (Names{"first", "rest.0", "rest.2"}));
    expect_values(net(words()), before, dtype == kFloat ? 1e-5 : 0x1p-5);
    EXPECT_EQ(trainable(*net), 0);
    EXPECT_EQ(net->named_parameters().size(), 9u);
    EXPECT_ERROR_TEXT(merge_lora(net), "NetImpl: got no LoRA branch, expected one");
    EXPECT_EQ(apply_lora(net, 1, 1).size(), 3u) << "a merged model may have branches again";
  }
}

TEST(LoRA, TrainingLeavesTheBaseAlone) {
  for (const ScalarType dtype : {kFloat, kBFloat16}) {
    manual_seed(2);
    Net net;
    net->to(dtype);
    apply_lora(net, LoRAOptions(4, 8).dropout(0.1));
    const std::vector<double> base = state_of(*net, false), branches = state_of(*net, true);
    optim::AdamW adam(lora_parameters(net), optim::AdamWOptions(0.02));
    const double first = loss_of(net).item<double>();
    for (int step = 0; step < 150; ++step) {
      adam.zero_grad();
      loss_of(net).backward();
      adam.step();
    }
    net->eval();
    EXPECT_LT(loss_of(net).item<double>(), 0.5 * first) << dtype;
    EXPECT_EQ(state_of(*net, false), base);
    EXPECT_NE(state_of(*net, true), branches);
  }
}

TEST(LoRA, FiltersByName) {
  Net net;
  EXPECT_EQ(apply_lora(net, 2, 2, [](const std::string& n) { return n.rfind("rest", 0) == 0; }),
            (Names{"rest.0", "rest.2"}));
  EXPECT_FALSE(net->first->lora());
  // The matrices of a branch are no layers of the model, and those of the first call stay
  // trainable.
  Names seen;
  EXPECT_EQ(apply_lora(net, 5, 2,
                       [&](const std::string& n) {
                         seen.push_back(n);
                         return n == "first";
                       }),
            (Names{"first"}));
  EXPECT_EQ(seen, (Names{"first", "rest.0", "rest.2"}));
  EXPECT_EQ(trainable(*net), 5 * 16 + 2 * 17 + 2 * 15);
  EXPECT_EQ(text_of(*net->first),
            "ramet::nn::LoRALinear(in_features=6, out_features=10, bias=true, rank=5, alpha=2, "
            "dropout=0)(\n"
            "  (lora_A): ramet::nn::Linear(in_features=6, out_features=5, bias=false)\n"
            "  (lora_B): ramet::nn::Linear(in_features=5, out_features=10, bias=false)\n)");
}

TEST(LoRA, RefusesBeforeItChangesAnything) {
  Net net;
  const std::string before = text_of(net);
  EXPECT_ERROR_TEXT(apply_lora(net, 2, 1, [](const std::string&) { return false; }),
                    "NetImpl: got 3 Linear layers and a filter that accepts none");
  EXPECT_ERROR_TEXT(apply_lora(Sequential{Tanh()}, 1, 1), "got 0 Linear layers");
  EXPECT_ERROR_TEXT(apply_lora(net, 0, 1),
                    "[apply_lora] 'first': [add_lora] rank: got 0, expected");
  EXPECT_ERROR_TEXT(apply_lora(net, 7, 1), "rank: got 7, expected 1 to 6");
  EXPECT_ERROR_TEXT(apply_lora(net, 1, NAN), "alpha: got nan, expected a finite number");
  EXPECT_ERROR_TEXT(apply_lora(net, LoRAOptions(1, 1).dropout(1.5)), "but got 1.5");
  EXPECT_ERROR_TEXT(LoRALinear(3, 2, 4), "rank: got 4, expected 1 to 2");
  utils::weight_norm(net->rest->ptr<LinearImpl>(2));
  EXPECT_ERROR_TEXT(apply_lora(net, 2, 1), "'rest.2': [add_lora] got a Linear whose weight");
  utils::remove_weight_norm(net->rest->ptr<LinearImpl>(2));
  EXPECT_EQ(text_of(net), before);
  EXPECT_GT(trainable(*net), 100);
  apply_lora(net, 2, 1);
  EXPECT_ERROR_TEXT(apply_lora(net, 2, 1),
                    "'first': [add_lora] got a Linear that has a LoRA branch");
  net->first->replace_module("lora_A", Tanh());
  EXPECT_ERROR_TEXT(net(words()), "has no Linear 'lora_A' any more");
}

}  // namespace
}  // namespace ramet::nn
