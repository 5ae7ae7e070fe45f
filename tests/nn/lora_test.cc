// LoRA branches: numbers, training, merging, files. The matrix of modules has LoRALinear too
// (tests/modules).
#include "nn/utils/lora.h"

#include <cmath>
#include <filesystem>
#include <sstream>

#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "nn/utils/weight_norm.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

using Names = std::vector<std::string>;

/// A user's module: members of the type Linear that it calls in both ways, and no clone().
struct NetImpl : Module {
  explicit NetImpl(int64_t symbols = 8, int64_t width = 6) {
    symbol = register_module("symbol", Embedding(symbols, width));
    first = register_module("first", Linear(width, 10));
    norm = register_module("norm", LayerNorm(std::vector<int64_t>{10}));
    rest = register_module("rest", Sequential{Linear(10, 7), Tanh(), Linear(7, symbols)});
  }
  Tensor forward(const Tensor& x) { return rest->forward(norm(first->forward(symbol(x)).relu())); }
  Embedding symbol{nullptr};
  Linear first{nullptr};
  LayerNorm norm{nullptr};
  Sequential rest{nullptr};
};
RAMET_MODULE(Net);

Tensor words() { return (arange(24, kLong) * 5 % 8).view({4, 6}); }
Tensor matrix(int64_t rows, int64_t columns, double start = 0.11) {
  return sines(rows * columns, 0.37, start).view({rows, columns});
}
/// lora_B is no zero any more.
void fill_branches(Module& m) {
  const NoGradGuard off;
  double start = 0.2;
  for (const Tensor& p : lora_parameters(m))
    p.copy_(matrix(p.size(0), p.size(1), start += 0.3) * 0.5);
}
std::vector<double> state_of(Module& m, bool of_branches) {
  std::vector<double> out;
  for (const auto& p : m.named_parameters())
    if ((p.key().find("lora_") != std::string::npos) == of_branches)
      for (const double v : values(p.value())) out.push_back(v);
  return out;
}
int64_t trainable(const Module& m) {
  int64_t n = 0;
  for (const Tensor& p : m.parameters()) n += p.requires_grad() ? p.numel() : 0;
  return n;
}
Tensor loss_of(Net& net) {
  const Tensor x = words();
  return cross_entropy_loss(net(x).to(kFloat).flatten(0, 1), ((x + 3) % 8).flatten());
}

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
    Linear m(4, 3);
    const NoGradGuard off;
    m->to(dtype);
    const Tensor w = (matrix(3, 4, 0.7) * 64).round() / 64 + 1;
    m->weight.copy_(w), m->bias.fill_(0.5);
    m->add_lora(LoRAOptions(2, 1));
    const Tensor a = lora_parameters(m)[0], b = lora_parameters(m)[1];
    a.copy_((matrix(2, 4, 0.3) * 5).round()), b.copy_((matrix(3, 2, 0.6) * 700).round() / 4096);
    ASSERT_GT(b.abs().min().item<double>(), 0);
    const Tensor used = m->weight.to(kDouble),
                 exact = used + 0.5 * matmul(b.to(kDouble), a.to(kDouble));
    const bool wide = dtype == kFloat || dtype == kDouble;
    EXPECT_EQ(same_bits(exact.to(dtype).to(kDouble), exact), wide) << "is there a rounding?";
    const Tensor x = eye(4, dtype), unmerged = m(x);
    const void* const memory = m->weight.data_ptr();
    EXPECT_EQ(merge_lora(m), (Names{""}));
    EXPECT_TRUE(same_bits(m->weight, exact.to(dtype)));
    EXPECT_EQ(m->weight.data_ptr(), memory);
    if (wide) { EXPECT_TRUE(same_bits(m(x), unmerged)); }
    EXPECT_TRUE(m->own_children().is_empty());
    EXPECT_EQ(text_of(m), "ramet::nn::Linear(in_features=4, out_features=3, bias=true)");
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

TEST(LoRA, FilesHaveTheBranchesAlone) {
  Net net, other;
  apply_lora(net, 2, 4);
  apply_lora(other, 2, 4);
  fill_branches(*net);
  const auto state = lora_state_dict(net, "base_model.model.");
  ASSERT_EQ(state.size(), 6u);
  EXPECT_EQ(state[2].first, "base_model.model.rest.0.lora_A.weight");
  const std::string path =
      (std::filesystem::temp_directory_path() / "lora_test.safetensors").string();
  serialize::save_safetensors(path, {state, {}});
  const auto read = serialize::load_safetensors(path).tensors;
  std::filesystem::remove(path);
  const std::vector<double> base = state_of(*other, false);
  load_lora_state_dict(other, read);
  EXPECT_EQ(state_of(*other, true), state_of(*net, true));
  EXPECT_EQ(state_of(*other, false), base);
  load_lora_state_dict(other, lora_state_dict(net));

  const std::vector<double> before = state_of(*other, true);
  const auto changed = [&](const auto& change) {
    auto given = lora_state_dict(net);
    for (auto& [name, tensor] : given) tensor = tensor + 1;
    change(given);
    const std::string text = error_of([&] { load_lora_state_dict(other, given); });
    EXPECT_EQ(state_of(*other, true), before) << text;
    return text;
  };
  expect_part(changed([](auto& s) { s.pop_back(); }), "'rest.2.lora_B.weight' is missing: got 5");
  expect_part(changed([](auto& s) { s.emplace_back("x.lora_A.weight", ones({2})); }),
              "'x.lora_A.weight' is no matrix of a LoRA branch");
  expect_part(changed([](auto& s) {
                s.back().second = ones({8, 3});
              }),
              "'rest.2.lora_B.weight': got float32[8, 3]");
  expect_part(changed([](auto& s) { s.push_back(s[0]); }), "got 'first.lora_A.weight' twice");
  expect_part(changed([](auto& s) { s[1].second = Tensor(); }), "'first.lora_B.weight': got");
  Net plain;
  EXPECT_ERROR_TEXT(load_lora_state_dict(plain, state), "call apply_lora first");
  EXPECT_TRUE(lora_state_dict(plain).empty());
}

TEST(LoRA, ArchivesHoldAllParameters) {
  Net net, other;
  apply_lora(net, 2, 4);
  apply_lora(other, 2, 4);
  fill_branches(*net);
  std::stringstream file;
  save(net, file);
  load(other, file);
  EXPECT_EQ(values(other(words())), values(net(words())));
}

/// With clone().
struct PairImpl : Cloneable<PairImpl> {
  PairImpl() { PairImpl::reset(); }
  void reset() override {
    first = register_module("first", Linear(4, 5));
    second = register_module("second", LoRALinear(5, 3, 2));
  }
  Tensor forward(const Tensor& x) { return second->forward(first->forward(x)); }
  Linear first{nullptr};
  LoRALinear second{nullptr};
};
RAMET_MODULE(Pair);

TEST(LoRA, ClonesAndMoves) {
  Pair net;
  apply_lora(net, LoRAOptions(3, 2).dropout(0.5),
             [](const std::string& name) { return name == "first"; });
  fill_branches(*net);
  net->eval();
  const Tensor x = matrix(3, 4).to(kFloat);
  const std::vector<double> y = values(net(x));
  Pair copy(std::dynamic_pointer_cast<PairImpl>(net->clone(Device(kCPU, 1))));
  EXPECT_EQ(values(copy(x.to(Device(kCPU, 1)))), y);
  EXPECT_EQ(trainable(*copy), trainable(*net));
  EXPECT_EQ(text_of(copy), text_of(net));
  EXPECT_EQ(lora_parameters(copy).size(), 4u);
  for (const Tensor& p : lora_parameters(copy)) p.detach().fill_(0);
  merge_lora(copy);
  EXPECT_EQ(values(net(x)), y) << "the clone has its own";
  copy->to(Device(kCPU, 0));
  const auto again = std::dynamic_pointer_cast<PairImpl>(copy->clone());
  EXPECT_EQ(values(again->forward(x)), values(copy(x)));
  EXPECT_EQ(again->first->lora(), nullptr);
  EXPECT_NE(dynamic_cast<LoRALinearImpl*>(again->children()[1].get()), nullptr);
  net->to(kDouble);
  expect_values(net(x.to(kDouble)), y, 1e-6);
}

// Its forward reads the weight of out_proj.
TEST(LoRA, WorksInAttention) {
  TransformerEncoderLayer layer(
      TransformerEncoderLayerOptions(8, 2).dim_feedforward(12).dropout(0));
  EXPECT_ERROR_TEXT(apply_lora(layer, LoRAOptions(2, 2).dropout(0.1)),
                    "'self_attn.out_proj' of a MultiheadAttention: got dropout 0.1, expected 0");
  const Tensor x = matrix(6, 8).to(kFloat).view({3, 2, 8});
  const std::vector<double> before = values(layer(x));
  EXPECT_EQ(apply_lora(layer, 2, 2), (Names{"self_attn.out_proj", "linear1", "linear2"}));
  EXPECT_EQ(values(layer(x)), before);
  layer(x).square().sum().backward();
  for (const auto& [name, t] : lora_state_dict(layer)) {
    const Tensor gradient = layer->named_parameters()[name].grad();
    ASSERT_TRUE(gradient.defined()) << name;
    const bool b = name.find("lora_B") != std::string::npos;
    EXPECT_EQ(gradient.abs().sum().item<double>() > 0, b) << name << ": lora_B is zero at first";
  }
  fill_branches(*layer);
  const std::vector<double> trained = values(layer(x));
  EXPECT_NE(trained, before);
  merge_lora(layer);
  expect_values(layer(x), trained, 1e-5);
}

// The other owner of a shared weight keeps its values.
TEST(LoRA, MergesSharedWeights) {
  struct TiedImpl : Module {
    TiedImpl() {
      symbol = register_module("symbol", Embedding(6, 4));
      out = register_module("out", Linear(LinearOptions(4, 6).bias(false)));
      out->weight = symbol->weight;
      out->set_own_parameter("weight", symbol->weight);
      also = register_module("also", out);
    }
    Tensor forward(const Tensor& x) { return out(symbol(x)); }
    Embedding symbol{nullptr};
    Linear out{nullptr}, also{nullptr};
  };
  const auto net = std::make_shared<TiedImpl>();
  EXPECT_EQ(apply_lora(net, 2, 1), (Names{"out"})) << "each layer once";
  fill_branches(*net);
  const Tensor x = arange(6, kLong);
  const std::vector<double> y = values(net->forward(x)), table = values(net->symbol->weight);
  merge_lora(net);
  expect_values(net->forward(x), y, 1e-5);
  EXPECT_EQ(values(net->symbol->weight), table);
  EXPECT_FALSE(net->out->weight.is_same(net->symbol->weight));
  EXPECT_TRUE(net->own_children()["also"]->named_parameters()["weight"].is_same(net->out->weight));
}

TEST(LoRA, CapturedStepsFollow) {
  Net net;
  Captured step([&](const Tensor& x) { return net(x); });
  const auto expect_same = [&](const char* when) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(step(words()), net(words()))) << when;
  };
  const NoGradGuard off;
  expect_same("plain");
  apply_lora(net, 2, 2);
  fill_branches(*net);
  expect_same("with branches");
  fill_branches(*net);
  merge_lora(net);
  expect_same("merged");
  EXPECT_EQ(step.counters().captures, 3u);
  EXPECT_EQ(step.counters().replays, 6u);
}

TEST(LoRA, RunsAgainInCheckpoints) {
  manual_seed(3);
  Net net;
  apply_lora(net, LoRAOptions(2, 2).dropout(0.5));
  fill_branches(*net);
  const auto gradients = [&](bool again) {
    manual_seed(7);
    net->zero_grad();
    const Tensor x = net->symbol(words()).detach().set_requires_grad(true);
    const auto part = [&](const Tensor& t) { return net->rest(net->norm(net->first(t))); };
    (again ? autograd::checkpoint(part, x) : part(x)).square().sum().backward();
    std::vector<double> out = values(x.grad());
    for (const Tensor& p : lora_parameters(net))
      for (const double v : values(p.grad())) out.push_back(v);
    return out;
  };
  EXPECT_EQ(gradients(true), gradients(false));
}

// A layer's result has the dtype that it has without a branch.
TEST(LoRA, RunsUnderAutocast) {
  Net net;
  net->eval();
  apply_lora(net, 2, 2);
  fill_branches(*net);
  const Tensor expected = net(words());
  Tensor y;
  {
    const AutocastGuard autocast(kCPU, kBFloat16);
    y = net(words());
    EXPECT_EQ(y.scalar_type(), kBFloat16);
    EXPECT_TRUE(same_bits(net->first->merged_weight(),
                          [&] {
                            const AutocastGuard none(kCPU, std::nullopt, false);
                            return net->first->merged_weight();
                          }()))
        << "merging computes in float32 in any case";
  }
  expect_values(y, values(expected), 0x1p-4);
  y.to(kFloat).square().sum().backward();
  for (const Tensor& p : lora_parameters(net)) EXPECT_EQ(p.grad().scalar_type(), kFloat);
}

TEST(LoRA, DropsOutInTrainingAlone) {
  manual_seed(5);
  LoRALinear m(LoRALinearOptions(40, 3, 2).alpha(2).dropout(0.5));
  fill_branches(*m);
  const Tensor x = matrix(2, 40).to(kFloat);
  EXPECT_FALSE(same_bits(m(x), m(x)));
  m->eval();
  EXPECT_TRUE(same_bits(m(x), m(x)));
  const Tensor y = m(x);
  merge_lora(m);
  expect_values(m(x), values(y), 1e-5);
}

}  // namespace
}  // namespace ramet::nn
