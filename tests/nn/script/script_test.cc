// Models that PyTorch 2.15 wrote (goldens/make_goldens.py): what they compute, how they train, and
// what is saved of them.
#include "nn/script/script.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/optim/adam.h"
#include "nn/script/moved_internal.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

// One model's row of values.pt.
struct Row {
  explicit Row(const std::string& name)
      : row(values().toGenericDict().at(name).toGenericDict()), net(jit::load(file(name))) {}

  static const IValue& values() {
    static const IValue all = formats::load_pt(file("values"));
    return all;
  }
  std::vector<IValue> inputs(ScalarType dtype) const {
    std::vector<IValue> list;
    for (const IValue& v : row.at("inputs").toListRef())
      list.push_back(
          v.isTensor() && v.toTensor().is_floating_point() ? IValue(v.toTensor().to(dtype)) : v);
    return list;
  }
  Tensor weight(size_t i) const { return row.at("weights").toListRef()[i].toTensor(); }
  double limit(const std::string& kind, const IValue& key) const {
    const IValue& errors = row.at(kind);
    return key.isInt() ? errors.toListRef()[static_cast<size_t>(key.toInt())].toDouble()
                       : errors.toGenericDict().at(key).toDouble();
  }

  IValue::GenericDict row;
  jit::Module net;
};

void find_tensors(const IValue& value, std::vector<Tensor>& into) {
  if (value.isTensor()) into.push_back(value.toTensor());
  else if (value.isTuple())
    for (const IValue& v : value.toTupleRef().elements()) find_tensors(v, into);
  else if (value.isList())
    for (const IValue& v : value.toList()) find_tensors(v, into);
}
std::vector<Tensor> trained(const IValue& result) {
  std::vector<Tensor> all, some;
  find_tensors(result, all);
  for (const Tensor& t : all)
    if (t.requires_grad()) some.push_back(t);
  return some;
}

// The largest difference, relative to the largest element.
double difference(const Tensor& got, const Tensor& want) {
  EXPECT_EQ(got.sizes(), want.sizes());
  if (want.numel() == 0 || got.sizes() != want.sizes()) return 0;
  const double largest = want.abs().max().item<double>();
  return (got.to(kDouble) - want).abs().max().item<double>() / std::max(largest, 1e-300);
}

void expect_same_plain(const IValue& got, const IValue& want, const std::string& what) {
  if (want.isTensor()) {
    if (want.toTensor().is_floating_point())
      EXPECT_LE(difference(got.toTensor(), want.toTensor()), 1e-9) << what;
    else EXPECT_TRUE(got.toTensor().equal(want.toTensor())) << what;
  } else if (want.isTuple() || want.isList()) {
    const auto items = [](const IValue& v) {
      return v.isTuple() ? v.toTupleRef().elements() : v.toList().vec();
    };
    const std::vector<IValue> a = items(got), b = items(want);
    ASSERT_EQ(a.size(), b.size()) << what;
    for (size_t i = 0; i < a.size(); ++i)
      expect_same_plain(a[i], b[i], what + "[" + std::to_string(i) + "]");
  } else if (want.isGenericDict()) {
    ASSERT_EQ(got.toGenericDict().size(), want.toGenericDict().size()) << what;
    auto mine = got.toGenericDict().begin();
    for (const auto& entry : want.toGenericDict()) {
      expect_same_plain(mine->key(), entry.key(), what);
      expect_same_plain(mine->value(), entry.value(), what);
      ++mine;
    }
  } else if (want.isDouble()) {
    EXPECT_NEAR(got.toDouble(), want.toDouble(), 1e-9) << what;
  } else {
    EXPECT_TRUE(got.is(want)) << what << ": got " << got << ", expected " << want;
  }
}

void backward(const Row& row, const std::vector<Tensor>& outputs, ScalarType dtype) {
  Tensor loss;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor part = (outputs[i] * row.weight(i).to(dtype)).sum();
    loss = loss.defined() ? loss + part : part;
  }
  if (loss.defined()) loss.backward();
}

const std::vector<const char*> kModels = {
    "mlp_traced", "mlp_scripted", "cnn_traced",     "cnn_scripted", "tagger",
    "vit_traced", "gpt_scripted", "encoder_traced", "unet",         "beam",
    "types",      "forked",       "shared",         "hooked",       "blocks"};

class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, Float64IsPyTorchs) {
  Row row(GetParam());
  row.net.to(kDouble);
  const IValue result = row.net(row.inputs(kDouble));
  expect_same_plain(result, row.row.at("result"), "result");
  backward(row, trained(result), kDouble);
  const auto& grads = row.row.at("grads").toGenericDict();
  size_t compared = 0;
  for (const auto& p : row.net.named_parameters()) {
    const auto want = grads.find(p.name);
    if (want == grads.end()) continue;
    ASSERT_TRUE(p.value.grad().defined()) << p.name;
    EXPECT_LE(difference(p.value.grad(), want->value().toTensor()), 1e-9) << p.name;
    ++compared;
  }
  EXPECT_EQ(compared, grads.size());
}

// A single rounding more than PyTorch's own error is allowed: that error may be 0.
TEST_P(Golden, Float32IsAtMostTwiceAsFarAsPyTorchs) {
  constexpr double kRounding = 1.2e-7;
  Row row(GetParam());
  const IValue result = row.net(row.inputs(kFloat));
  std::vector<Tensor> want;
  find_tensors(row.row.at("result"), want);
  const std::vector<Tensor> outputs = trained(result);
  std::vector<Tensor> all;
  find_tensors(result, all);
  ASSERT_EQ(all.size(), want.size());
  for (size_t i = 0, k = 0; i < all.size(); ++i) {
    if (!all[i].requires_grad()) continue;
    EXPECT_LE(difference(all[i], want[i]),
              2 * row.limit("errors", static_cast<int64_t>(k)) + kRounding);
    ++k;
  }
  backward(row, outputs, kFloat);
  for (const auto& p : row.net.named_parameters()) {
    const auto& grads = row.row.at("grads").toGenericDict();
    const auto known = grads.find(p.name);
    if (known == grads.end()) continue;
    EXPECT_LE(difference(p.value.grad(), known->value().toTensor()),
              2 * row.limit("grad_errors", p.name) + kRounding)
        << p.name;
  }
}

TEST_P(Golden, IsSavedAndLoadedAgain) {
  Row row(GetParam());
  std::stringstream first, second;
  row.net.save(first);
  jit::Module again = jit::load(first);
  again.save(second);
  EXPECT_EQ(first.str(), second.str());
  row.net.to(kDouble), again.to(kDouble);
  expect_same_plain(again(row.inputs(kDouble)), row.row.at("result"), "result");
  EXPECT_EQ(again.type_name(), row.net.type_name());
}

TEST_P(Golden, TrainsAsAModule) {
  const Row row(GetParam());
  const auto net = script::load(file(GetParam()));
  const std::vector<IValue> inputs = row.inputs(kFloat);
  if (trained(net->forward(inputs)).empty()) GTEST_SKIP() << "its outputs have no gradient";
  optim::Adam adam(net->parameters(), optim::AdamOptions(0.01));
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    adam.zero_grad();
    Tensor loss;
    for (const Tensor& t : trained(net->forward(inputs))) {
      const Tensor part = (t - 0.25).square().mean();
      loss = loss.defined() ? loss + part : part;
    }
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, first);
}

INSTANTIATE_TEST_SUITE_P(All, Golden, testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param); });

// PyTorch loads what is saved here, where python3 (RAMET_PYTHON) has it, and what it saves then is
// loaded here.
TEST(ScriptFiles, ArePyTorchs) {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::filesystem::path folder =
      std::filesystem::path(base ? base : "/tmp") / ("script_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  for (const char* name : kModels)
    jit::load(file(name)).save(folder / (std::string(name) + ".pt"), {{"note", "saved"}});
  const char* python = std::getenv("RAMET_PYTHON");
  const std::string command = std::string(python ? python : "python3") +
                              " tests/nn/script/goldens/round_trip.py " + folder.string();
  const int status = std::system(command.c_str());
  if (status == 127 << 8) GTEST_SKIP() << "no Python here (RAMET_PYTHON names one)";
  ASSERT_EQ(status, 0) << command;
  for (const char* name : kModels) {
    const std::filesystem::path back = folder / ("back_" + std::string(name) + ".pt");
    if (!std::filesystem::exists(back)) continue;
    Row row(name);
    row.net = jit::load(back);
    row.net.to(kDouble);
    expect_same_plain(row.net(row.inputs(kDouble)), row.row.at("result"), name);
  }
  std::filesystem::remove_all(folder);
}

// A text may name a GPU without its index. It follows its module, as one with the index does.
TEST(Script, DevicesWithoutAnIndexMove) {
  const auto moved = [](Device device, Device from, Device to) {
    const auto made = script::MovedConstants().get({IValue(device)}, {from, to});
    return made ? made->at(0).toDevice() : device;
  };
  const Device first(kCUDA, 0), second(kCUDA, 1), third(kCPU, 3), host(kCPU);
  EXPECT_EQ(moved(Device(kCUDA), first, second), second);
  EXPECT_EQ(moved(Device(kCUDA), first, third), third);
  EXPECT_EQ(moved(second, first, third), second);
  EXPECT_EQ(moved(host, first, second), host);
  EXPECT_EQ(moved(host, host, second), second);
  EXPECT_EQ(moved(Device(kCUDA), host, third), Device(kCUDA));
}

}  // namespace
}  // namespace ramet
