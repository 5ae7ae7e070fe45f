// Names of a file's tensors as names of a module: a part of the program formats_test.
#include "nn/formats/pytorch/state_dict.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/module/sequential.h"
#include "tests/nn/formats/formats_support.h"

namespace ramet {
namespace {

using formats::NameMap;
using Kind = formats::LoadReport::Kind;

TEST(StateDict, NamesAreMappedAndReported) {
  nn::Sequential net(nn::Linear(3, 2), nn::Linear(2, 1));
  Tensors file;
  file.insert("module.dense/kernel", known(kDouble, {3, 2}));
  file.insert("module.dense/bias", known(kFloat, {2}));
  file.insert("module.out.weight", known(kFloat, {1, 2}));
  file.insert("module.out.bias", known(kFloat, {1}));
  file.insert("module.step", known(kLong, {}));
  const NameMap names = NameMap()
                            .rename_prefix("module.", "")
                            .rename_regex("^dense/(.*)$", "0.$1")
                            .rename("0.kernel", "0.weight")
                            .rename_regex("^out\\.", "1.")
                            .transpose("0\\.weight")
                            .ignore("step");
  const formats::LoadReport report = formats::load_state_dict(*net, file, names);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.loaded, 4u);
  expect_same(net->named_parameters()["0.weight"].detach(), known(kFloat, {3, 2}).t(), "0.weight");
  EXPECT_EQ(report.table(),
            "4 tensors loaded:\n"
            "what     name      in the file          got            expected       note\n"
            "loaded   0.weight  module.dense/kernel  float64[2, 3]  float32[2, 3]  permuted [1, "
            "0], converted\n"
            "loaded   0.bias    module.dense/bias    float32[2]     float32[2]\n"
            "loaded   1.weight  module.out.weight    float32[1, 2]  float32[1, 2]\n"
            "loaded   1.bias    module.out.bias      float32[1]     float32[1]\n"
            "ignored  step      module.step          int64[]\n");
}

TEST(StateDict, NothingIsHalfLoaded) {
  nn::Sequential net(nn::Linear(3, 2), nn::Linear(2, 1));
  const Tensors before = formats::state_dict(*net);
  Tensors old;
  for (const auto& item : before) old.insert(item.key(), item.value().clone());
  Tensors file;
  file.insert("0.weight", known(kFloat, {2, 3}));
  file.insert("0.bias", known(kFloat, {3}));
  file.insert("extra", known(kHalf, {1}));
  file.insert("1.weight", known(kFloat, {1, 2}));
  file.insert("second", known(kFloat, {1, 2}));
  const NameMap names = NameMap().rename("second", "1.weight").transpose("extra");
  const std::string error = error_of([&] { formats::load_state_dict(*net, file, names); });
  expect_part(error,
              "[load_state_dict] got 1 missing, 1 unexpected, 1 mis-shaped and 2 doubled tensors, "
              "expected none; nothing was changed, 0 tensors loaded:\n");
  expect_part(error, "\nmisshaped   0.bias                 float32[3]     float32[2]\n");
  expect_part(error, "\nmissing     1.bias                                float32[1]\n");
  expect_part(error, "\ntwice       1.weight  second       float32[1, 2]  float32[1, 2]\n");
  expect_part(error, "not permuted [1, 0]: another rank\n");
  expect_all(formats::state_dict(*net), old);
  EXPECT_ERROR_TEXT(formats::load_state_dict(*net, file, names, /*strict=*/false),
                    "expected none of the last two");
  expect_all(formats::state_dict(*net), old);
  // Not strict: it takes the names that are there.
  Tensors part;
  part.insert("0.weight", known(kFloat, {2, 3}));
  part.insert("extra", known(kHalf, {1}));
  EXPECT_ERROR_TEXT(formats::load_state_dict(*net, part), "got 3 missing, 1 unexpected");
  const formats::LoadReport report =
      formats::load_state_dict(*net, part, NameMap(), /*strict=*/false);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(report.names(Kind::kMissing),
            (std::vector<std::string>{"0.bias", "1.weight", "1.bias"}));
  EXPECT_EQ(report.names(Kind::kUnexpected), std::vector<std::string>{"extra"});
  expect_same(before["0.weight"], known(kFloat, {2, 3}), "0.weight");
  expect_same(before["1.weight"], old["1.weight"], "1.weight");
  EXPECT_ERROR_TEXT(NameMap().rename_regex("(", ""), "got \"(\"");
  EXPECT_ERROR_TEXT(NameMap().permute("a", {0, 2}), "expected each from 0 to 1 once");
}

// The projections of an attention are three Linears in one file, and one weight in another.
TEST(StateDict, TensorsAreJoinedAndSplit) {
  struct ApartImpl : nn::Module {
    nn::Linear q{nullptr}, k{nullptr}, v{nullptr};
    ApartImpl() {
      q = register_module("q_proj", nn::Linear(4, 4));
      k = register_module("k_proj", nn::Linear(4, 4));
      v = register_module("v_proj", nn::Linear(4, 4));
    }
  };
  struct StackImpl : nn::Module {
    std::vector<nn::MultiheadAttention> layers;
    StackImpl() {
      for (const char* name : {"0", "1"})
        layers.push_back(register_module(name, nn::MultiheadAttention(4, 2)));
    }
  };
  struct ApartStackImpl : nn::Module {
    std::vector<std::shared_ptr<ApartImpl>> layers;
    ApartStackImpl() {
      for (const char* name : {"0", "1"})
        layers.push_back(register_module(name, std::make_shared<ApartImpl>()));
    }
  };
  // Two layers, the parts in an order that is not the result's.
  Tensors apart;
  for (const char* layer : {"0.", "1."}) {
    uint32_t seed = layer[0] == '0' ? 10 : 20;
    for (const char* part : {"v_proj.", "q_proj.", "k_proj."}) {
      apart.insert(std::string(layer) + part + "weight", randn({4, 4}));
      apart.insert(std::string(layer) + part + "bias", known(kDouble, {4}) * (++seed));
    }
  }
  const NameMap join =
      NameMap()
          .join({"(.*)q_proj\\.(.*)", "(.*)k_proj\\.(.*)", "(.*)v_proj\\.(.*)"}, "$1in_proj_$2")
          .rename_regex("none", "");
  StackImpl stack;
  formats::LoadReport report = formats::load_state_dict(stack, apart, join, /*strict=*/false);
  EXPECT_EQ(report.loaded, 4u);
  EXPECT_EQ(report.names(Kind::kMissing),
            (std::vector<std::string>{"0.out_proj.weight", "0.out_proj.bias", "1.out_proj.weight",
                                      "1.out_proj.bias"}));
  EXPECT_TRUE(report.names(Kind::kUnexpected).empty());
  expect_part(report.table(),
              "loaded   0.in_proj_weight   0.q_proj.weight, 0.k_proj.weight, 0.v_proj.weight  "
              "float32[12, 4]  float32[12, 4]  joined along 0\n");
  expect_part(report.table(), "float64[12]     float32[12]     joined along 0, converted\n");
  for (int64_t layer = 0; layer < 2; ++layer) {
    const Tensor& weight = stack.layers[static_cast<size_t>(layer)]->in_proj_weight;
    for (int64_t i = 0; i < 12; ++i) {
      for (int64_t j = 0; j < 4; ++j) {
        const char* part = i < 4 ? "q" : i < 8 ? "k" : "v";
        const Tensor from = apart[std::to_string(layer) + "." + part + "_proj.weight"];
        EXPECT_EQ(weight[i][j].item<float>(), from[i % 4][j].item<float>()) << i << ' ' << j;
      }
    }
  }
  // And the reverse gives the parts back.
  const Tensors whole = formats::state_dict(stack);
  ApartStackImpl back;
  report = formats::load_state_dict(
      back, whole,
      NameMap()
          .ignore(".*out_proj.*")
          .split("(.*)in_proj_(.*)", {"$1q_proj.$2", "$1k_proj.$2", "$1v_proj.$2"}));
  EXPECT_TRUE(report.ok()) << report;
  EXPECT_EQ(report.loaded, 12u);
  expect_part(report.table(), "part 3 of 3 along 0");
  for (const auto& item : back.named_parameters())
    expect_same(item.value().detach(), apart[item.key()].to(kFloat), item.key());
  // Along the last dimension, after a transposition: GPT-2's c_attn.
  Tensors packed;
  packed.insert("c_attn.weight", known(kFloat, {4, 12}));
  packed.insert("c_attn.bias", known(kFloat, {12}));
  nn::Sequential three(nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4));
  report = formats::load_state_dict(
      *three, packed,
      NameMap().split("c_attn\\.(.*)", {"0.$1", "1.$1", "2.$1"}, -1).transpose("\\d\\.weight"));
  EXPECT_TRUE(report.ok()) << report;
  expect_same(three->named_parameters()["1.weight"].detach(),
              known(kFloat, {4, 12}).slice(1, 4, 8).t(), "1.weight");
  // What does not fit stays as it is, and the report says why.
  Tensors some;
  some.insert("0.q_proj.weight", known(kFloat, {4, 4}));
  some.insert("0.k_proj.weight", known(kFloat, {4, 4}));
  some.insert("1.q_proj.weight", known(kFloat, {4, 4}));
  some.insert("1.k_proj.weight", known(kFloat, {4, 3}));
  some.insert("1.v_proj.weight", known(kFloat, {2, 4}));
  report = formats::load_state_dict(stack, some, join, /*strict=*/false);
  EXPECT_EQ(report.loaded, 0u);
  EXPECT_EQ(report.names(Kind::kUnexpected).size(), 5u);
  expect_part(report.table(), "not joined: got 0 of part 3 of 3\n");
  expect_part(report.table(), "not joined: \"1.k_proj.weight\" does not fit \"1.q_proj.weight\"\n");
  for (const auto& item : formats::state_dict(stack))
    expect_same(item.value(), whole[item.key()], item.key());
  some.clear();
  some.insert("0.in_proj_weight", known(kFloat, {11, 4}));
  some.insert("1.in_proj_weight", known(kFloat, {}));
  report = formats::load_state_dict(
      back, some, NameMap().split("(.*)in_proj_(.*)", {"$1q_proj.$2", "$1k_proj.$2"}), false);
  EXPECT_EQ(report.names(Kind::kUnexpected).size(), 2u);
  expect_part(report.table(), "not split along 0 into 2 equal parts\n");
  // Two for one part.
  some.clear();
  for (const char* name : {"a.q", "b.q", "k"}) some.insert(name, known(kFloat, {2}));
  report = formats::load_state_dict(back, some, NameMap().join({".*q", "k"}, "all"), false);
  expect_part(report.table(), "not joined: got 2 of part 1 of 2\n");
  EXPECT_ERROR_TEXT(NameMap().join({"a"}, "b"), "join: got 1 names for the parts, expected 2");
  EXPECT_ERROR_TEXT(NameMap().split("a", {}), "split: got 0 names for the parts");
  EXPECT_ERROR_TEXT(NameMap().join({"a", "("}, "b"), "got \"(\"");
}

}  // namespace
}  // namespace ramet
