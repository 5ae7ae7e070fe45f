// script::Module by LibTorch's names, ScriptModule, and files that are refused.
#include <gtest/gtest.h>

#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/archive_entries.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

TEST(ScriptModuleApi, HasLibTorchsNames) {
  const jit::script::Module net = jit::load(file("mlp_scripted"));
  EXPECT_EQ(net.type_name(), "__torch__.___torch_mangle_8.Mlp");
  EXPECT_FALSE(net.is_training());
  std::vector<std::string> names;
  for (const auto& p : net.named_parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.2.weight",
                                             "layers.2.bias", "layers.4.weight", "layers.4.bias"}));
  EXPECT_EQ(net.parameters(/*recurse=*/false).size(), 0u);
  EXPECT_EQ(net.buffers().size(), 0u);
  ASSERT_EQ(net.named_children().size(), 1u);
  EXPECT_EQ(net.named_children()[0].name, "layers");
  EXPECT_EQ(net.children()[0].children().size(), 5u);
  EXPECT_EQ(net.modules().size(), 7u);
  EXPECT_TRUE(net.hasattr("layers") && net.hasattr("training") && !net.hasattr("nothing"));
  EXPECT_TRUE(net.attr("layers").isObject());
  EXPECT_EQ(net.attr("nothing", 3).toInt(), 3);
  EXPECT_TRUE(net.find_method("forward").has_value());
  EXPECT_FALSE(net.find_method("backward").has_value());
  const Tensor x = randn({2, 5});
  const Tensor y = net.forward({x}).toTensor();
  EXPECT_TRUE(net.run_method("forward", x).toTensor().equal(y));
  EXPECT_TRUE(net.get_method("forward")({x}).toTensor().equal(y));
  EXPECT_TRUE(net.get_method("forward")({}, {{"x", x}}).toTensor().equal(y));
  net.train();
  EXPECT_TRUE(net.is_training() && net.children()[0].is_training());
  net.eval();
  EXPECT_FALSE(net.is_training());
}

// What a value of a script is, by LibTorch's names.
TEST(ScriptModuleApi, ValuesAreModulesObjectsAndEnumerators) {
  const jit::Module net = jit::load(file("cnn_scripted"));
  const IValue value = net;
  ASSERT_TRUE(value.isModule());
  EXPECT_FALSE(value.isEnum() || value.isCustomClass());
  const jit::Module same = value.toModule();
  EXPECT_TRUE(same == net);
  net.eval();
  const Tensor x = randn({1, 3, 8, 8});
  EXPECT_TRUE(same.forward({x}).toTensor().equal(net.forward({x}).toTensor()));
  const jit::Module head = net.attr("head").toModule();
  EXPECT_EQ(head.forward({randn({2, 8})}).toTensor().size(1), 4);
  EXPECT_TRUE(head.attr("weight").toTensor().is_same(
      value.toObjectRef().getAttr("head").toObject()->getAttr("weight").toTensor()));
  EXPECT_EQ(value.toObject()->name(), net.type_name());
  EXPECT_ERROR_TEXT(IValue(1).toModule(), "got int, expected object");
  EXPECT_ERROR_TEXT(value.toObject()->getAttr("nothing"), "has no attribute 'nothing'");
  EXPECT_ERROR_TEXT(value.toObject()->setAttr("training", 3), "got Int, expected bool");
  value.toObject()->setAttr("training", true);
  EXPECT_TRUE(net.is_training());
  // A copy is one of all that the value holds.
  const jit::Module copy = value.deepcopy().toModule();
  EXPECT_FALSE(copy == net);
  EXPECT_FALSE(copy.attr("head").toModule() == head);
  const Tensor t = ones({2});
  const IValue pair = IValue(std::make_tuple(t, t)).deepcopy(Device(kCPU, 1));
  EXPECT_TRUE(pair.toTupleRef().elements()[0].is(pair.toTupleRef().elements()[1]));
  EXPECT_EQ(pair.toTupleRef().elements()[0].toTensor().device(), Device(kCPU, 1));
  // The module stays where the value does.
  IValue kept;
  {
    std::stringstream bytes;
    net.save(bytes);
    kept = jit::load(bytes).attr("head");
  }
  EXPECT_EQ(kept.toModule().get_methods().size(), 1u);
}

TEST(ScriptModuleApi, EnumeratorsAndObjectsOfPlainClasses) {
  const IValue kind = jit::load(file("types")).attr("kind");
  ASSERT_TRUE(kind.isEnum() && !kind.isModule());
  EXPECT_EQ(kind.toEnumHolder()->name(), "MUL");
  EXPECT_EQ(kind.toEnumHolder()->value().toInt(), 2);
  EXPECT_EQ(kind.toEnumHolder()->qualifiedClassName(), "__torch__.Kind");
  EXPECT_EQ(kind.toEnumHolder()->unqualifiedClassName(), "Kind");
  EXPECT_ERROR_TEXT(kind.toObject()->setAttr("name", "x"), "cannot be changed");
  const IValue box = jit::load(file("language")).attr("box");
  ASSERT_TRUE(box.isObject() && !box.isModule() && !box.isEnum());
  box.toObject()->setAttr("size", 2.5);
  EXPECT_EQ(box.toObject()->getAttr("size").toDouble(), 2.5);
  EXPECT_ERROR_TEXT(box.toModule(),
                    "got an object of __torch__.make_goldens.Box, expected a module");
  EXPECT_ERROR_TEXT(box.toEnumHolder(), "got object, expected enumerator");
  EXPECT_FALSE(box.deepcopy().is(box));
}

TEST(ScriptModuleApi, AttributesKeepTheirTypes) {
  const jit::Module net = jit::load(file("types"));
  net.setattr("names", IValue::GenericList{"x"});
  EXPECT_EQ(net.attr("names").toListRef()[0].toStringRef(), "x");
  EXPECT_ERROR_TEXT(net.setattr("names", 3), "attribute 'names': got Int, expected List[str]");
  EXPECT_ERROR_TEXT(net.setattr("nothing", 3), "does not have a field with name 'nothing'");
  EXPECT_ERROR_TEXT(net.attr("nothing"), "does not have a field with name 'nothing'");
  EXPECT_ERROR_TEXT(net.get_method("nothing"),
                    "Method 'nothing' is not defined in __torch__.Types");
  EXPECT_ERROR_TEXT(jit::Module().forward({}), "got a module that holds nothing");
}

TEST(ScriptModuleApi, CopiesShareAndDeepCopiesDoNot) {
  const jit::Module net = jit::load(file("shared"));
  const jit::Module handle = net, copy = net.copy(), deep = net.deepcopy(), clone = net.clone();
  EXPECT_TRUE(handle == net);
  EXPECT_FALSE(copy == net);
  const auto weight = [](const jit::Module& m) { return m.attr("weight").toTensor(); };
  EXPECT_TRUE(weight(copy).is_same(weight(net)));
  EXPECT_FALSE(weight(deep).is_alias_of(weight(net)));
  EXPECT_FALSE(weight(clone).is_alias_of(weight(net)));
  EXPECT_TRUE(weight(deep).equal(weight(net)));
  EXPECT_TRUE(deep.attr("again").toTensor().is_same(weight(deep)));
  EXPECT_TRUE(weight(deep).requires_grad());
}

TEST(ScriptModuleApi, DeepCopiesKeepViewsOfOneStorage) {
  const jit::Module net = jit::load(file("shared"));
  for (const jit::Module& made : {net.deepcopy(), net.deepcopy(Device(kCPU, 1)), net.clone()}) {
    const auto tensor = [&](const char* name) { return made.attr(name).toTensor(); };
    for (const char* name : {"whole", "part", "windows", "weight"}) {
      const Tensor was = net.attr(name).toTensor();
      EXPECT_TRUE(tensor(name).to(was.device()).equal(was)) << name;
      EXPECT_FALSE(tensor(name).is_alias_of(was)) << name;
    }
    EXPECT_TRUE(tensor("windows").is_alias_of(tensor("whole")));
    EXPECT_TRUE(tensor("part").is_alias_of(tensor("whole")));
    EXPECT_FALSE(tensor("weight").is_alias_of(tensor("whole")));
    EXPECT_EQ(tensor("windows").strides(), (IntArrayRef{2, 1}));
    const NoGradGuard off;
    tensor("whole")[3] = 7;
    EXPECT_EQ(tensor("part")[0][1].item<float>(), 7);
    EXPECT_EQ(tensor("windows")[1][1].item<float>(), 7);
  }
  EXPECT_NE(net.attr("part").toTensor()[0][1].item<float>(), 7);
}

// What is shown of a large storage is copied, and no more.
TEST(ScriptModuleApi, DeepCopiesHoldWhatTensorsShow) {
  const jit::Module net = jit::load(file("shared"));
  const Tensor large = arange(1000, kFloat);
  net.setattr("whole", large.narrow(0, 500, 12));
  net.setattr("part", large.narrow(0, 503, 6).view({2, 3}));
  net.setattr("windows", large.narrow(0, 100, 10).view({5, 2}));
  const jit::Module made = net.deepcopy();
  EXPECT_TRUE(made.attr("part").toTensor().is_alias_of(made.attr("whole").toTensor()));
  EXPECT_TRUE(made.attr("windows").toTensor().equal(net.attr("windows").toTensor()));
  EXPECT_TRUE(made.attr("part").toTensor().equal(net.attr("part").toTensor()));
  EXPECT_LE(made.attr("part").toTensor().storage_impl()->bytes, 4 * (512 - 96));
}

TEST(ScriptModuleApi, AliasesStridesAndDtypesAreKept) {
  jit::Module net = jit::load(file("shared"));
  for (int round = 0; round < 2; ++round) {
    const auto tensor = [&](const char* name) { return net.attr(name).toTensor(); };
    EXPECT_EQ(tensor("weight").strides(), (IntArrayRef{1, 3}));
    EXPECT_TRUE(tensor("again").is_same(tensor("weight")));
    EXPECT_EQ(tensor("windows").strides(), (IntArrayRef{2, 1}));
    EXPECT_TRUE(tensor("windows").is_alias_of(tensor("whole")));
    EXPECT_EQ(tensor("part").storage_offset(), 2);
    EXPECT_EQ(tensor("sixteen").scalar_type(), kBFloat16);
    EXPECT_EQ(tensor("calls").scalar_type(), kLong);
    const NoGradGuard off;
    tensor("whole")[3] = 7;
    EXPECT_EQ(tensor("part")[0][1].item<float>(), 7);
    EXPECT_EQ(tensor("windows")[1][1].item<float>(), 7);
    std::stringstream saved;
    net.save(saved);
    net = jit::load(saved);
  }
}

TEST(ScriptModuleApi, ExtraFilesGoBothWays) {
  jit::ExtraFilesMap extra = {{"about.txt", ""}, {"absent", "kept"}};
  const jit::Module net = jit::load(file("mlp_scripted"), std::nullopt, extra);
  EXPECT_EQ(extra["about.txt"], "an MLP");
  EXPECT_EQ(extra["absent"], "kept");
  std::stringstream out;
  net.save(out, {{"a/b", "text"}, {"c", std::string(3, '\0')}});
  jit::ExtraFilesMap again = {{"a/b", ""}, {"c", ""}};
  jit::load(out, std::nullopt, again);
  EXPECT_EQ(again["a/b"], "text");
  EXPECT_EQ(again["c"], std::string(3, '\0'));
}

class Reader final : public jit::ReadAdapter {
 public:
  explicit Reader(std::string bytes, size_t most = SIZE_MAX)
      : bytes_(std::move(bytes)), most_(most) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t pos, void* buf, size_t n, const char*) const override {
    const size_t got = std::min(n, most_);
    std::copy_n(bytes_.data() + pos, got, static_cast<char*>(buf));
    return got;
  }

 private:
  std::string bytes_;
  size_t most_;
};

TEST(ScriptModuleApi, LoadsFromAnywhere) {
  const Tensor x = randn({2, 5});
  const Tensor y = jit::load(file("mlp_traced")).forward({x}).toTensor();
  const std::string bytes = bytes_of(file("mlp_traced"));
  std::istringstream in("four" + bytes);
  in.seekg(4);
  EXPECT_TRUE(jit::load(in).forward({x}).toTensor().equal(y));
  EXPECT_TRUE(jit::load(std::make_shared<Reader>(bytes)).forward({x}).toTensor().equal(y));
  EXPECT_ERROR_TEXT(jit::load(std::make_shared<Reader>(bytes, 10)), "ReadAdapter: got 10 bytes");
  EXPECT_ERROR_TEXT(jit::load("no/such/file.pt"), "no/such/file.pt");
}

TEST(ScriptModuleApi, TheDeviceOfLoadHoldsForTensorsAndCode) {
  const Device other(kCPU, 1);
  const jit::Module net = jit::load(file("gpt_scripted"), other);
  for (const Tensor& t : net.parameters()) EXPECT_EQ(t.device(), other);
  Entries entries("mlp_traced");
  replace(entries["code/__torch__.py"], "return ",
          "_0 = torch.add(_0, torch.zeros([3], dtype=6, layout=0, "
          "device=torch.device(\"cuda:0\")))\n    return ");
  std::istringstream in(entries.packed());
  const jit::Module traced = jit::load(in, other);
  EXPECT_EQ(traced.forward({randn({2, 5}).to(other)}).toTensor().device(), other);
}

// In a file with tensors of a GPU, the CPU in the code is the host.
TEST(ScriptModuleApi, TheHostOfAFileFromAGpuStaysTheHost) {
  const Device other(kCPU, 1);
  Entries entries("mlp_traced");
  replace(entries["code/__torch__.py"], "return ",
          "_0 = torch.zeros([3], dtype=6, layout=0, device=torch.device(\"cpu\"))\n    return ");
  const auto device = [&] {
    std::istringstream in(entries.packed());
    return jit::load(in, other).forward({randn({2, 5}).to(other)}).toTensor().device();
  };
  EXPECT_EQ(device(), other);
  const std::string name("X\3\0\0\0cpu", 8);
  replace(entries["data.pkl"], name, std::string("X\6\0\0\0cuda:0", 11));
  EXPECT_EQ(device(), Device(kCPU, 0));
}

TEST(ScriptModuleApi, SayWhatTheyDoNotDo) {
  EXPECT_ERROR_TEXT(jit::compile("def f(x): return x"), "[torch::jit::compile]");
  const jit::Module net = jit::load(file("mlp_scripted"));
  EXPECT_ERROR_TEXT(net.define("def f(self): pass"), "[torch::jit::compile]");
  net.train();
  EXPECT_ERROR_TEXT(net.register_buffer("more", ones({1})), "a class of a file gets no others");
}

// ---- as an nn::Module ---------------------------------------------------------------------------

TEST(ScriptNnModule, RegistersWhatTheFileHas) {
  const auto net = script::load(file("cnn_scripted"));
  EXPECT_TRUE(net->is_training());
  EXPECT_EQ(net->named_parameters().size(), 9u);
  EXPECT_TRUE(net->named_parameters().contains("norm1.weight"));
  EXPECT_EQ(net->named_buffers().size(), 6u);
  EXPECT_TRUE(net->named_children().contains("conv2"));
  const Tensor x = randn({2, 3, 8, 8});
  net->forward(x);
  EXPECT_EQ(net->named_buffers()["norm1.num_batches_tracked"].item<int64_t>(), 1);
  net->eval();
  const Tensor y = net->forward(x);
  EXPECT_TRUE(net->forward(x).equal(y));
  EXPECT_EQ(net->named_buffers()["norm1.num_batches_tracked"].item<int64_t>(), 1);
  net->to(kDouble);
  EXPECT_EQ(net->forward(x.to(kDouble)).scalar_type(), kDouble);
  net->to(Device(kCPU, 1));
  EXPECT_EQ(net->forward(x.to(kDouble).to(Device(kCPU, 1))).device(), Device(kCPU, 1));
}

// Tracing keeps devices and tensors as constants of the code.
TEST(ScriptNnModule, ConstantsOfTheCodeFollowTheModule) {
  const Device other(kCPU, 1);
  const Tensor x = randn({2, 3});
  for (const bool given : {false, true}) {
    script::LoadOptions options;
    if (given) options.device = Device(kCPU, 0);
    const auto net = script::load(file("placed"), options);
    const Tensor y = net->forward(x).detach();
    const auto copy = std::dynamic_pointer_cast<script::ScriptModule>(net->clone(other));
    const Tensor there = copy->forward(x.to(other));
    EXPECT_EQ(there.device(), other);
    EXPECT_TRUE(there.to(kCPU).equal(y));
    EXPECT_EQ(copy->run_method("device", {}).toDevice(), other);
    EXPECT_EQ(copy->run_method("attribute", {}).toDevice(), other);
    const auto again = std::dynamic_pointer_cast<script::ScriptModule>(copy->clone());
    again->to(Device(kCPU, 2));
    EXPECT_EQ(again->run_method("attribute", {}).toDevice(), Device(kCPU, 2));
    EXPECT_TRUE(net->forward(x).equal(y));
    net->to(other);
    EXPECT_TRUE(net->forward(x.to(other)).to(kCPU).equal(y));
    net->to(kCPU);
    EXPECT_TRUE(net->forward(x).equal(y));
    // As in LibTorch, the code of a jit::Module means what it says.
    const jit::Module plain = jit::load(file("placed"));
    plain.to(other);
    EXPECT_EQ(plain.run_method("device").toDevice(), Device(kCPU, 0));
  }
}

TEST(ScriptNnModule, FollowsBuffersThatTheCodeAssigns) {
  const auto net = script::load(file("shared"));
  const Tensor x = randn({2, 3});
  for (int64_t call = 1; call <= 3; ++call) {
    net->forward(x);
    EXPECT_EQ(net->named_buffers()["calls"].item<int64_t>(), call);
  }
  // The other way round: what is registered is what the code finds.
  net->set_own_buffer("calls", full({}, 10, kLong));
  net->forward(x);
  EXPECT_EQ(net->named_buffers()["calls"].item<int64_t>(), 11);
  EXPECT_EQ(net->script().attr("calls").toTensor().item<int64_t>(), 11);
}

TEST(ScriptNnModule, ClonesHaveTheirOwnTensors) {
  const auto net = script::load(file("gpt_scripted"));
  const auto copy = std::dynamic_pointer_cast<script::ScriptModule>(net->clone());
  ASSERT_TRUE(copy);
  const Tensor ids = arange(6, kLong).view({1, 6});
  const Tensor y = net->forward(ids);
  EXPECT_TRUE(copy->forward(ids).equal(y));
  EXPECT_EQ(copy->parameters().size(), net->parameters().size());  // the tied one is one
  {
    const NoGradGuard off;
    for (const Tensor& p : copy->parameters()) p.zero_();
  }
  EXPECT_TRUE(net->forward(ids).equal(y));
  EXPECT_FALSE(copy->forward(ids).equal(y));
  copy->forward(ids).sum().backward();
  for (const Tensor& p : net->parameters()) EXPECT_FALSE(p.grad().defined());
  EXPECT_ERROR_TEXT(script::load(file("types"))->forward(randn({3, 2})),
                    "result of forward(): got Tuple, expected Tensor");
}

}  // namespace
}  // namespace ramet
