// LoRA branches with the rest of the library: files, clones, attention, shared weights, captures,
// checkpoints, autocast.
#include <filesystem>
#include <sstream>

#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/graph/captured.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"
#include "tests/nn/lora_support.h"

namespace ramet::nn {
namespace {

using namespace lora_tests;

TEST(LoRAModules, FilesHaveTheBranchesAlone) {
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

TEST(LoRAModules, ArchivesHoldAllParameters) {
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

TEST(LoRAModules, ClonesAndMoves) {
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
TEST(LoRAModules, WorksInAttention) {
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
TEST(LoRAModules, MergesSharedWeights) {
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

TEST(LoRAModules, CapturedStepsFollow) {
  Net net;
  for (const Tensor& p : net->parameters()) p.set_requires_grad(false);
  Captured step([&](const Tensor& x) { return net(x); });
  const auto expect_same = [&](const char* when) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(step(words()), net(words()))) << when;
  };
  const NoGradGuard off;
  expect_same("plain");
  apply_lora(net, 2, 2);
  fill_branches(*net);
  expect_same("with branches");
  const std::vector<Tensor> kept = lora_parameters(net);  // as an optimizer keeps them
  merge_lora(net);
  expect_same("merged");
  EXPECT_EQ(step.counters().captures, 2u) << "the first capture serves the merged layers";
  EXPECT_EQ(step.counters().replays, 7u);
}

TEST(LoRAModules, RunsAgainInCheckpoints) {
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
TEST(LoRAModules, RunsUnderAutocast) {
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

TEST(LoRAModules, DropsOutInTrainingAlone) {
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
