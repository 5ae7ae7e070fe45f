// Programs that torch.export wrote (goldens/make_exported.py): what they compute, how they train,
// what is saved of them, and which inputs they refuse.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/optim/adam.h"
#include "nn/script/exported/exported_internal.h"
#include "nn/script/script.h"
#include "tests/nn/script/exported_files.h"
#include "tests/nn/script/script_texts.h"

namespace ramet {
namespace {

using namespace exported_files;  // NOLINT

double far(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0 || got.sizes() != want.sizes()) return 0;
  const double largest = want.abs().max().item<double>();
  return (got.to(kDouble) - want).abs().max().item<double>() / std::max(largest, 1e-300);
}

void expect_alike(const IValue& got, const IValue& want, const std::string& what) {
  if (want.isTensor()) {
    ASSERT_TRUE(got.isTensor()) << what;
    EXPECT_EQ(got.toTensor().scalar_type(), want.toTensor().scalar_type()) << what;
    if (want.toTensor().is_floating_point())
      EXPECT_LE(far(got.toTensor(), want.toTensor()), 1e-9) << what;
    else EXPECT_TRUE(got.toTensor().equal(want.toTensor())) << what;
  } else if (want.isTuple() || want.isList()) {
    EXPECT_EQ(got.isTuple(), want.isTuple()) << what;
    const auto items = [](const IValue& v) {
      return v.isTuple() ? v.toTupleRef().elements() : v.toList().vec();
    };
    ASSERT_EQ(items(got).size(), items(want).size()) << what;
    for (size_t i = 0; i < items(got).size(); ++i)
      expect_alike(items(got)[i], items(want)[i], what + "[" + std::to_string(i) + "]");
  } else if (want.isGenericDict()) {
    ASSERT_TRUE(got.isGenericDict()) << what;
    ASSERT_EQ(got.toGenericDict().size(), want.toGenericDict().size()) << what;
    for (const auto& entry : want.toGenericDict())
      expect_alike(got.toGenericDict().at(entry.key()), entry.value(),
                   what + "[" + entry.key().toStringRef() + "]");
  } else {
    EXPECT_TRUE(got.is(want)) << what << ": got " << got << ", expected " << want;
  }
}

void find(const IValue& value, std::vector<Tensor>& into) {
  if (value.isTensor()) {
    if (value.toTensor().requires_grad()) into.push_back(value.toTensor());
  } else if (value.isTuple()) {
    for (const IValue& v : value.toTupleRef().elements()) find(v, into);
  } else if (value.isList()) {
    const auto list = value.toList();  // of tensors it is a new one
    for (const IValue& v : list.vec()) find(v, into);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) find(entry.value(), into);
  }
}

struct File {
  std::string name, version;
};
class ExportedFile : public testing::TestWithParam<File> {};

TEST_P(ExportedFile, ComputesWhatPyTorchDoes) {
  const Exported file(GetParam().name, GetParam().version);
  const IValue result = file.run(file.net);
  expect_alike(result, file.row.at("result"), "result");
  std::vector<Tensor> outputs;
  find(result, outputs);
  const std::vector<IValue> weights = file.row.at("weights").toList().vec();
  ASSERT_EQ(outputs.size(), weights.size());
  Tensor loss;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor part = (outputs[i] * weights[i].toTensor()).sum();
    loss = loss.defined() ? loss + part : part;
  }
  if (loss.defined()) loss.backward();
  const auto& grads = file.row.at("grads").toGenericDict();
  size_t compared = 0;
  for (const auto& p : file.net.named_parameters()) {
    const auto want = grads.find(p.name);
    if (want == grads.end()) continue;
    ASSERT_TRUE(p.value.grad().defined()) << p.name;
    EXPECT_LE(far(p.value.grad(), want->value().toTensor()), 1e-9) << p.name;
    ++compared;
  }
  EXPECT_EQ(compared, grads.size());
  const auto& buffers = file.row.at("buffers").toGenericDict();
  for (const auto& b : file.net.named_buffers()) {
    const auto want = buffers.find(b.name);
    if (want != buffers.end()) expect_alike(b.value, want->value(), b.name);
  }
}

TEST_P(ExportedFile, IsSavedAsTorchScript) {
  const Exported file(GetParam().name, GetParam().version);
  std::stringstream saved;
  file.net.save(saved);
  expect_alike(file.run(jit::load(saved)), file.row.at("result"), "result");
}

INSTANTIATE_TEST_SUITE_P(
    Exported, ExportedFile,
    testing::Values(File{"cnn", "2.15"}, File{"gpt", "2.15"}, File{"cnn_strict", "2.15"},
                    File{"cnn_core", "2.15"}, File{"cnn_core_eval", "2.15"},
                    File{"gpt_core", "2.15"}, File{"encoder", "2.15"}, File{"lstm", "2.15"},
                    File{"gru_core", "2.15"}, File{"control", "2.15"}, File{"nested", "2.15"},
                    File{"sizes", "2.15"}, File{"casts", "2.15"}, File{"loops", "2.15"},
                    File{"sums", "2.15"}, File{"guarded", "2.15"}, File{"fields", "2.15"},
                    File{"cnn", "2.5"}, File{"gpt", "2.5"}, File{"cnn", "2.7"}, File{"gpt", "2.7"},
                    File{"cnn", "2.9"}, File{"gpt", "2.9"}, File{"cnn", "2.12"},
                    File{"gpt", "2.12"}),
    [](const auto& info) {
      std::string name = info.param.name + "_" + info.param.version;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(ExportedInputs, SizesMayBeOthers) {
  const Exported gpt("gpt");
  const Tensor six = gpt.net({zeros({2, 6}, kLong)}).toTensor();
  EXPECT_EQ(six.sizes(), IntArrayRef({2, 6, 11}));
  const Exported sizes("sizes");
  const auto made =
      sizes.net({ones({3, 8}, kDouble), ones({2, 8}, kDouble), full({}, 7, TensorOptions(kLong))})
          .toTuple();
  EXPECT_EQ(made->elements()[0].toTensor().sizes(), IntArrayRef({5, 8}));
  EXPECT_EQ(made->elements()[1].toTensor().sizes(), IntArrayRef({3, 4}));
  EXPECT_EQ(made->elements()[2].toTensor().sizes(), IntArrayRef({7}));
  EXPECT_EQ(made->elements()[3].toTensor().sizes(), IntArrayRef({3}));
}

TEST(ExportedInputs, WrongOnesAreNamed) {
  const Exported gpt("gpt"), cnn("cnn"), sizes("sizes");
  expect_error([&] { gpt.net({zeros({2}, kLong)}); }, {"input 'ids'", "got the size [2]"});
  expect_error([&] { gpt.net({zeros({3, 5}, kLong)}); }, {"input 'ids'", "got the size [3, 5]"});
  expect_error([&] { gpt.net({zeros({2, 7}, kLong)}); }, {"input 'ids'", "got 7", "at most 6"});
  expect_error([&] { gpt.net({zeros({2, 5}, kFloat)}); }, {"input 'ids'", "integer"});
  expect_error([&] { cnn.net({zeros({3, 2, 6, 6}, kLong)}); }, {"input 'x'", "floating-point"});
  const Tensor n = full({}, 4, TensorOptions(kLong));
  expect_error([&] { sizes.net({ones({3, 7}, kDouble), ones({2, 7}, kDouble), n}); }, {"2*"});
  expect_error(
      [&] {
        sizes.net({ones({3, 8}, kDouble), ones({2, 6}, kDouble), n});
      },
      {"input 'y'", "[2, 6]"});
}

TEST(ExportedInputs, LogarithmsOfPowersOfTwoAreExact) {
  const auto text = script::number_call("torch._sym_log2", {"n"});
  ASSERT_TRUE(text);
  const std::string code = "def f(n: int) -> float:\n  return " + *text + "\n";
  for (int i = 0; i < 62; ++i) EXPECT_EQ(script::run_text(code, {int64_t{1} << i}).toDouble(), i);
  for (const int64_t n : {3, 1000, 123456789}) {
    const double want = std::log2(static_cast<double>(n));
    EXPECT_NEAR(script::run_text(code, {n}).toDouble(), want, 1e-15 * want);
  }
}

TEST(ExportedModule, RunsItsRegionsUnderAutocast) {
  const Exported casts("casts");
  const auto net = script::load(exported_file("casts"));
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.05));
  const Tensor x = casts.row.at("args").toList().vec()[0].toTensor();
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    adam.zero_grad();
    const auto made = net->forward(std::vector<IValue>{x}).toTuple();
    EXPECT_EQ(made->elements()[0].toTensor().scalar_type(), kFloat);
    EXPECT_EQ(made->elements()[1].toTensor().scalar_type(), kBFloat16);
    EXPECT_EQ(made->elements()[2].toTensor().scalar_type(), kFloat);
    const Tensor loss = made->elements()[0].toTensor().square().mean();
    loss.backward();
    adam.step();
    (i == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, 0.7 * first);
  EXPECT_EQ(linear(x, ones({4, 3})).scalar_type(), kFloat) << "autocast ends with the region";
}

TEST(ExportedModule, TrainsAsAnyModule) {
  const auto net = script::load(exported_file("cnn"));
  EXPECT_EQ(net->parameters().size(), 7u);
  EXPECT_TRUE(net->named_parameters().contains("features.0.weight"));
  EXPECT_TRUE(net->named_buffers().contains("features.1.running_mean"));
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.01));
  const Tensor x = randn({8, 2, 6, 6}, kDouble);
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    adam.zero_grad();
    const Tensor loss = -net->forward(x).select(1, 0).mean();
    loss.backward();
    adam.step();
    (i == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, 0.7 * first);
  const auto copy = std::dynamic_pointer_cast<script::ScriptModule>(net->clone());
  EXPECT_TRUE(copy->parameters()[0].equal(net->parameters()[0]));
  EXPECT_FALSE(copy->parameters()[0].is_same(net->parameters()[0]));
}

TEST(ExportedModule, TiedParametersStayOne) {
  const auto net = script::load(exported_file("gpt"));
  const auto named = net->named_parameters();
  const Tensor *words = named.find("words.weight"), *head = named.find("head.weight");
  if (words && head) { EXPECT_TRUE(words->is_same(*head)); }
  EXPECT_TRUE(words || head);
}

TEST(ExportedModule, StoragesStayShared) {
  const Exported file("nested");
  Tensor windows, part;
  for (const auto& b : file.net.named_buffers()) {
    if (b.name == "windows") windows = b.value;
    if (b.name == "part") part = b.value;
  }
  EXPECT_EQ(windows.strides(), IntArrayRef({2, 1}));
  EXPECT_EQ(part.storage_offset(), 2);
  part.fill_(7);
  EXPECT_EQ(windows[1][0].item<double>(), 7);
}

}  // namespace
}  // namespace ramet
