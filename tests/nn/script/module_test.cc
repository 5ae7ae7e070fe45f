// script::Module by LibTorch's names, ScriptModule, and files that are refused.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT
using formats::detail::ZipPart;

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The entries of an archive, to be changed and packed again.
struct Entries {
  std::vector<std::pair<std::string, std::string>> list;

  explicit Entries(const std::string& name) {
    formats::detail::ZipReader zip("test", file(name));
    for (const auto& e : zip.entries()) list.emplace_back(e.name, zip.text(e));
  }
  std::string& operator[](const std::string& name) {
    for (auto& [entry, text] : list)
      if (entry.substr(entry.find('/') + 1) == name) return text;
    list.emplace_back(list[0].first.substr(0, list[0].first.find('/') + 1) + name, "");
    return list.back().second;
  }
  std::string packed() const {
    std::vector<ZipPart> parts;
    for (const auto& [name, text] : list) parts.push_back({name, {{text.data(), text.size()}}});
    const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, false);
    return {bytes.begin(), bytes.end()};
  }
  std::string load_error(const script::LoadOptions& options = {}) const {
    std::istringstream in(packed());
    return error_of([&] { jit::load(in, options); });
  }
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

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

// ---- what is refused ----------------------------------------------------------------------------

TEST(ScriptFiles, OtherFormatsAreRefusedByName) {
  Entries old("mlp_traced");
  old["model.json"] = "{}";
  EXPECT_TRUE(contains(old.load_error(), "format 1 or 2"));
  EXPECT_ERROR_TEXT(jit::load(file("old_1_5")),
                    "got format \"2\", expected 3 to 10: load and save it with PyTorch 1.6");
  Entries mobile("mlp_traced");
  mobile["bytecode.pkl"] = "";
  EXPECT_TRUE(contains(mobile.load_error(), ".ptl"));
  for (const char* version : {"2", "11", "x", ""}) {
    Entries entries("mlp_traced");
    entries["version"] = version;
    EXPECT_TRUE(contains(entries.load_error(), "expected 3 to 10")) << version;
  }
  Entries script("mlp_traced");
  script["code/__torch__.py"] = "class Mlp(Module):\n  __parameters__ = [\n";
  EXPECT_TRUE(contains(script.load_error(), "code/__torch__.py"));
  EXPECT_ERROR_TEXT(jit::load(file("values")), "expected one of torch.jit.save()");
}

// A pickle of one object of class `name` with this state.
std::string pickle(const std::string& name, const std::string& state) {
  const size_t dot = name.rfind('.');
  return "\x80\x02" + ("c" + name.substr(0, dot) + "\n" + name.substr(dot + 1) + "\n") + ")\x81" +
         state + "b.";
}

TEST(ScriptFiles, HostilePicklesAreRefused) {
  const auto error = [](const std::string& data, const script::LoadOptions& options = {}) {
    Entries entries("mlp_traced");
    entries["data.pkl"] = data;
    return entries.load_error(options);
  };
  expect_part(error(pickle("__torch__.torch.classes.quantized.LinearPackedParamsBase", "}")),
              "C++ class torch.classes.quantized");
  expect_part(error(pickle("__torch__.Nothing", "}")), "Nothing");
  expect_part(error(pickle("os.system", "}")), "os.system");
  expect_part(error(pickle("__torch__.Mlp", "}")), "got no attribute __torch__.Mlp.training");
  expect_part(error(pickle("__torch__.Mlp", std::string("}X\x04\0\0\0"
                                                        "abcdNs",
                                                        12))),
              "which does not have it");
  expect_part(error("\x80\x02}."), "expected a module");
  // A module that holds itself: the memo's 0 is an attribute of what it names.
  std::string written =
      "\x80\x02"
      "c__torch__\nMlp\n)\x81q";
  written += '\0';
  written += "}X";
  written += std::string("\x06\0\0\0", 4) + "layersh";
  written += '\0';
  written += "sb.";
  expect_part(error(written), "that holds itself");
  // Nested deeper than the limit.
  std::string deep = "\x80\x02";
  for (int i = 0; i < 300; ++i) deep += ']';
  for (int i = 1; i < 300; ++i) deep += 'a';
  expect_part(error(deep + "."), "nested deeper than 200");
}

// They would load, and the module could not be saved again.
TEST(ScriptFiles, NamesThatNoZipCanHaveAreRefused) {
  for (const std::string& bad :
       {std::string(1, '\1'), std::string(1, '\x1f'), std::string("\xff")}) {
    Entries entries("mlp_traced");
    entries["code/?.txt"] = "text";
    std::string bytes = entries.packed();
    for (size_t at = bytes.find("code/?"); at != bytes.npos; at = bytes.find("code/?", at))
      bytes.replace(at + 5, 1, bad);
    std::istringstream in(bytes);
    EXPECT_ERROR_TEXT(jit::load(in), "an entry of code: got a name of 10 bytes, expected UTF-8");
  }
  Entries entries("mlp_traced");
  entries["code/" + std::string(5000, 'a')] = "text";
  EXPECT_NE(entries.load_error().find("got a name of 5005 bytes"), std::string::npos);
  // Names that the program gives.
  const jit::Module net = jit::load(file("mlp_scripted"));
  std::ostringstream out;
  for (const char* name : {"a\1", "\xff"})
    EXPECT_ERROR_TEXT(net.save(out, {{name, "text"}}), "name of an entry: got \"archive/extra/");
  for (const char* name : {"a/", ""})
    EXPECT_ERROR_TEXT(net.save(out, {{name, "text"}}), "name of an extra file: got \"");
}

TEST(ScriptFiles, SizesAreCompared) {
  script::LoadOptions options;
  options.unpacked_bytes = 100;
  expect_part(Entries("mlp_traced").load_error(options), "more than 100 bytes unpacked");
  Entries shorter("mlp_traced");
  shorter["data/0"].resize(3);
  expect_part(shorter.load_error(), "got 3 bytes in entry");
  Entries missing("mlp_traced");
  missing["data/0"].clear();
  EXPECT_NE(missing.load_error(), "no error");
  // Cut anywhere, a file is an Error and nothing else.
  const std::string whole = bytes_of(file("mlp_traced"));
  for (size_t n = 0; n < whole.size(); n += 97) {
    std::istringstream in(whole.substr(0, n));
    EXPECT_NE(error_of([&] { jit::load(in); }), "no error") << n;
  }
}

TEST(ScriptFiles, UnknownOperationsAreListedTogether) {
  Entries entries("mlp_traced");
  replace(entries["code/__torch__.py"], "return ",
          "a = torch.no_such_operation(x)\n    b = torch.nor_this_one(x)\n    "
          "c = ops.torchvision.nms(x, x, 0.5)\n    return ");
  const std::string error = entries.load_error();
  expect_part(error, "torchvision::nms: no such operation");
  expect_part(error, "no_such_operation");
  expect_part(error, "nor_this_one");
}

}  // namespace
}  // namespace ramet
