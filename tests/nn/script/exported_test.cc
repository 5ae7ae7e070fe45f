// Programs that torch.export wrote (goldens/make_exported.py): what they compute, how they train,
// what is saved of them, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/optim/adam.h"
#include "nn/script/script.h"

namespace ramet {
namespace {

const std::string kFolder = "tests/nn/script/goldens/exported/";

std::string exported_file(const std::string& name, const std::string& version = "2.15") {
  return kFolder + name + "_" + version + ".pt2";
}

// A program, and what PyTorch computes with it.
struct Exported {
  explicit Exported(const std::string& name, const std::string& version = "2.15")
      : net(jit::load(exported_file(name, version))),
        row(formats::load_pt(kFolder + "values_" + version + ".pt")
                .toGenericDict()
                .at(name)
                .toGenericDict()) {}

  // Copies: a program may write its inputs.
  static IValue copied(const IValue& value) {
    if (value.isTensor()) return value.toTensor().clone();
    if (value.isTuple()) {
      std::vector<IValue> items;
      for (const IValue& v : value.toTupleRef().elements()) items.push_back(copied(v));
      return IValue::Tuple::create(std::move(items));
    }
    if (value.isList()) {
      std::vector<IValue> items = value.toList().vec();
      bool tensors = !items.empty();
      for (IValue& v : items) v = copied(v), tensors = tensors && v.isTensor();
      if (!tensors) return IValue::GenericList(items);
      std::vector<Tensor> list;
      for (const IValue& v : items) list.push_back(v.toTensor());
      return list;
    }
    if (value.isGenericDict()) {
      IValue::GenericDict dict;
      for (const auto& entry : value.toGenericDict())
        dict.insert_or_assign(entry.key(), copied(entry.value()));
      return dict;
    }
    return value;
  }
  IValue run(const jit::Module& module) const {
    std::vector<IValue> arguments;
    for (const IValue& v : row.at("args").toList().vec()) arguments.push_back(copied(v));
    jit::Kwargs by_name;
    for (const auto& entry : row.at("kwargs").toGenericDict())
      by_name[entry.key().toStringRef()] = entry.value();
    return module(arguments, by_name);
  }

  jit::Module net;
  IValue::GenericDict row;
};

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
    for (const IValue& v : value.toList().vec()) find(v, into);
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

INSTANTIATE_TEST_SUITE_P(Exported, ExportedFile,
                         testing::Values(File{"cnn", "2.15"}, File{"gpt", "2.15"},
                                         File{"cnn_strict", "2.15"}, File{"cnn_core", "2.15"},
                                         File{"cnn_core_eval", "2.15"}, File{"gpt_core", "2.15"},
                                         File{"encoder", "2.15"}, File{"lstm", "2.15"},
                                         File{"gru_core", "2.15"}, File{"control", "2.15"},
                                         File{"nested", "2.15"}, File{"sizes", "2.15"},
                                         File{"cnn", "2.5"}, File{"gpt", "2.5"}, File{"cnn", "2.7"},
                                         File{"gpt", "2.7"}, File{"cnn", "2.9"}, File{"gpt", "2.9"},
                                         File{"cnn", "2.12"}, File{"gpt", "2.12"}),
                         [](const auto& info) {
                           std::string name = info.param.name + "_" + info.param.version;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) { return error.what(); }
  return "";
}
void expect_error(const std::function<void()>& run, const std::vector<std::string>& parts) {
  const std::string error = error_of(run);
  for (const std::string& part : parts)
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

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

// A golden with one entry changed.
std::string changed(const std::string& name, const std::string& entry,
                    const std::function<void(std::string&)>& change) {
  formats::detail::ZipReader zip("test", exported_file(name));
  std::vector<std::string> texts;
  texts.reserve(zip.entries().size());
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& e : zip.entries()) {
    texts.push_back(zip.text(e));
    if (e.name.find(entry) != std::string::npos) change(texts.back());
    parts.push_back({e.name, {{texts.back().data(), texts.back().size()}}});
  }
  const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  return {bytes.begin(), bytes.end()};
}
void replace_all(std::string& text, const std::string& from, const std::string& to) {
  ASSERT_NE(text.find(from), std::string::npos) << from;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}
std::string error_with(const std::string& name, const std::string& entry, const std::string& from,
                       const std::string& to) {
  return error_of([&] {
    std::istringstream in(changed(name, entry, [&](std::string& t) { replace_all(t, from, to); }));
    jit::load(in);
  });
}

TEST(ExportedRefused, AllProblemsAreOneErrorWithPythonsLines) {
  const std::string error = error_of([] {
    std::istringstream in(changed("cnn", "models/", [](std::string& text) {
      replace_all(text, "torch.ops.aten.conv2d.default", "torch.ops.aten.conv9d.default");
      replace_all(text, "torch.ops.aten.silu.default", "torch.ops.mine.silu.default");
    }));
    jit::load(in);
  });
  for (const char* part : {"aten::conv9d: no such operation", "mine::silu: no such operation",
                           "make_exported.py:", "node \"conv2d\"", "node \"silu\""})
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
}

TEST(ExportedRefused, WrongFiles) {
  const auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << part << " is not in: " << error;
  };
  expect(error_with("cnn", "models/", "\"major\": 8", "\"major\": 99"), "version 99");
  expect(error_with("cnn", "models/", "\"as_ints\"", "\"as_dreams\""), "as_dreams");
  expect(error_with("cnn", "models/", "\"outputs\": [{\"as_tensor\": {\"name\": \"conv2d\"",
                    "\"outputs\": [{\"as_tensor\": {\"name\": \"conv_\""),
         "\"conv2d\", expected the name");
  expect(error_with("cnn", "models/", "Symbol(", "Lambda("), "expected Add, Mul");
  expect(error_with("cnn", "model_weights_config", "\"as_int\": 18", "\"as_int\": 1800000"),
         "expected a part of a storage");
  expect(error_with("cnn", "model_weights_config", "weight_0", "weight_x"), "got no entry");
  expect(error_with("cnn", "model_weights_config", "conv.bias", "conv.other"), "conv.bias");
}

}  // namespace
}  // namespace ramet
