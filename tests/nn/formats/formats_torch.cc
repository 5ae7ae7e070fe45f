// Files of PyTorch and LibTorch: a part of the program formats_test.
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adam.h"
#include "nn/optim/adamax.h"
#include "nn/optim/asgd.h"
#include "nn/optim/lbfgs.h"
#include "nn/optim/muon.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/save.h"
#include "runtime/base/logging.h"
#include "tests/nn/formats/formats_support.h"

namespace ramet {
namespace {

using formats::load_pt;

// ---- PyTorch ------------------------------------------------------------------------------------

TEST(Pt, ReadsStateDicts) {
  for (const char* file : {"state.pt", "old.pt"}) {
    SCOPED_TRACE(file);
    const Tensors state = formats::state_dict(kGoldens + file);
    ASSERT_EQ(state.size(), 37u);
    for (const ScalarType dtype : dtypes()) {
      const std::string name = short_name_of(dtype);
      expect_same(state[name], known(dtype, {2, 3}), name);
      expect_same(state[name + "_0d"], known(dtype, {}), name + "_0d");
      expect_same(state[name + "_empty"], known(dtype, {0, 3}), name + "_empty");
    }
    const Tensor whole = known(kFloat, {4, 6});
    expect_same(state["whole"], whole, "whole");
    expect_same(state["tied"], whole, "tied");
    expect_same(state["transposed"], whole.t(), "transposed");
    expect_same(state["view"], whole.slice(0, 1, 3).slice(1, 0, 6, 2), "view");
    expect_same(state["expanded"], known(kFloat, {3, 1}).expand({3, 4}), "expanded");
    EXPECT_EQ(state["expanded"].strides(), IntArrayRef({1, 0}));
    EXPECT_EQ(state["view"].strides(), IntArrayRef({6, 2}));
    // One memory, as in the program that wrote it.
    state["tied"].fill_(3);
    EXPECT_EQ(state["view"].sum().item<float>(), 18);
    EXPECT_EQ(state["transposed"].sum().item<float>(), 72);
    EXPECT_TRUE(state["parameter"].requires_grad());
    EXPECT_FALSE(state["frozen"].requires_grad());
    expect_same(state["parameter"].detach(), known(kFloat, {3}), "parameter");
    EXPECT_EQ(state[0].key(), "bool");
  }
}

TEST(Pt, ReadsTreesOfEveryProtocol) {
  for (const char* file : {"checkpoint.pt", "protocol5.pt", "old_protocol4.pt"}) {
    SCOPED_TRACE(file);
    const IValue tree = load_pt(kGoldens + file);
    const auto& d = tree.toGenericDict();
    ASSERT_EQ(d.size(), 17u);
    EXPECT_EQ(d.at("epoch").toInt(), 3);
    EXPECT_EQ(d.at("big").toInt(), -(int64_t{1} << 62));
    EXPECT_EQ(d.at("loss").toDouble(), 0.1);
    EXPECT_EQ(d.at("best").toDouble(), INFINITY);
    EXPECT_TRUE(d.at("done").toBool());
    EXPECT_TRUE(d.at("nothing").isNone());
    EXPECT_EQ(d.at("name").toStringRef(), "caf\xc3\xa9 \xe6\xbc\xa2");
    EXPECT_EQ(d.at(7).toStringRef(), "seven");
    EXPECT_EQ(d.at("dtype").toStringRef(), "torch.bfloat16");
    EXPECT_EQ(d.at("device").toStringRef(), "cpu");
    EXPECT_EQ(d.at("bytes").toStringRef(), std::string("\0\xff", 2));
    EXPECT_EQ(d.at("list").toListRef()[3].toListRef().size(), 0u);
    EXPECT_EQ(d.at("tuple").toTuple()->elements()[1].toTupleRef().elements()[1].toStringRef(), "y");
    EXPECT_EQ(d.at("size").toTupleRef().elements()[1].toInt(), 3);
    const Tensors model = formats::tensors_of(tree, "model");
    ASSERT_EQ(model.size(), 2u);
    expect_same(model["fc.weight"], known(kFloat, {2, 3}), "fc.weight");
    expect_same(formats::tensors_of(tree)["many.1"], known(kLong, {3}), "many.1");
    EXPECT_ERROR_TEXT(formats::tensors_of(tree, "net"),
                      "below \"net\", expected some below one of: model, many");
  }
  expect_same(load_pt(kGoldens + "tensor.pt").toTensor(), known(kFloat, {2, 3}), "tensor");
  const Tensors big = formats::state_dict(kGoldens + "big.pt", "", Device(kCPU, 2));
  EXPECT_EQ(big["a"].device(), Device(kCPU, 2));
  expect_same(big["a"].to(kHost), known(kShort, {2, 3}), "a");
  expect_same(big["b"].to(kHost), known(kFloat, {4}), "b");
  expect_same(big["c"].to(kHost), known(kDouble, {2}), "c");
}

// PyTorch has no storages of these dtypes: bytes, and the dtype is named after them.
TEST(Pt, UnsignedIntegersComeAndGo) {
  const IValue read = load_pt(kGoldens + "unsigned.pt");
  const auto check = [](const IValue& value) {
    const Tensor a = value.toGenericDict().at("a").toTensor(),
                 b = value.toGenericDict().at("b").toTensor();
    EXPECT_EQ(a.scalar_type(), kUInt16);
    EXPECT_EQ(b.scalar_type(), kUInt32);
    EXPECT_TRUE(equal(a.to(kLong), tensor({1, 2, 65535})));
    EXPECT_TRUE(equal(b.to(kLong), tensor({{int64_t{0}, int64_t{4294967295}}})));
  };
  check(read);
  const std::string path = ::testing::TempDir() + "/unsigned.pt";
  formats::save_pt(path, read);
  check(load_pt(path));
}

TEST(Pt, WhatCannotBeReadIsANameAndTheRestIsRead) {
  const auto texts = [](const std::vector<std::pair<std::string, std::string>>& list) {
    std::map<std::string, std::string> found(list.begin(), list.end());
    EXPECT_EQ(found.size(), list.size());
    return found;
  };
  for (const char* file : {"mixed.pt", "mixed_protocol4.pt", "mixed_old.pt"}) {
    SCOPED_TRACE(file);
    const IValue tree = load_pt(kGoldens + file);
    const auto& d = tree.toGenericDict();
    EXPECT_EQ(d.size(), 15u);
    EXPECT_EQ(d.at("epoch").toInt(), 3);
    EXPECT_EQ(d.at("list").toListRef()[0].toInt(), 1);
    expect_same(d.at("list").toListRef()[2].toTensor(), known(kLong, {2}), "list.2");
    const std::string builtin =
        std::string(file) == "mixed_protocol4.pt" ? "builtins." : "__builtin__.";
    const std::map<std::string, std::string> expected = {
        {"model.spectrum", "torch.complex64[2]"},
        {"model.counts", "torch.uint64[4]"},
        {"model.small", "torch.float8_e5m2[2]"},
        {"model.sparse", "torch._utils._rebuild_sparse_tensor"},
        {"model.negated", "torch.float32 (neg)[1]"},
        {"model.quantized", "torch._utils._rebuild_qtensor"},
        {"args", "argparse.Namespace"},
        {"best", "numpy._core.multiarray.scalar"},
        {"seen", builtin + "set"},
        {"fixed", builtin + "frozenset"},
        {"array", "numpy._core.multiarray._reconstruct"},
        {"by_pair", "dictionary with a tuple as a key"},
        {"huge", "an integer of more than 64 bits"},
        {"class", "argparse.Namespace"},
        {"path", "pathlib.PurePosixPath"},
        {"counter", "collections.Counter"},
        {"default", "collections.defaultdict"},
        {"net", "torch.nn.modules.linear.Linear"},
        {"list.1", "argparse.Namespace"}};
    EXPECT_EQ(texts(formats::unread_of(tree)), expected);
    // An Error follows where one of them is asked for, and nowhere else.
    EXPECT_TRUE(d.at("args").isOpaque());
    EXPECT_FALSE(d.at("args").isNone());
    EXPECT_EQ(d.at("args").toOpaque().name, "argparse.Namespace");
    EXPECT_ERROR_TEXT(d.at("args").toGenericDict(),
                      "[IValue] got <argparse.Namespace>, which a file has and this library cannot "
                      "hold, expected dict");
    EXPECT_ERROR_TEXT(d.at("best").toDouble(), "got <numpy._core.multiarray.scalar>, which");
    EXPECT_ERROR_TEXT(d.at("epoch").toOpaque(), "got int, expected opaque");
    const Tensors model = formats::tensors_of(tree, "model");
    ASSERT_EQ(model.size(), 2u);
    expect_same(model["weight"], known(kFloat, {2, 3}), "weight");
    expect_same(model["bias"].detach(), known(kFloat, {2}), "bias");
    EXPECT_ERROR_TEXT(
        formats::tensors_of(tree, "net"),
        "[state_dict] got no tensors but \"net\" (torch.nn.modules.linear.Linear), "
        "which this library cannot hold, expected tensors: in Python, save them alone");
    EXPECT_ERROR_TEXT(formats::tensors_of(tree, "net.weight"), "got no tensors but \"net\" (");
    EXPECT_ERROR_TEXT(formats::tensors_of(tree, "other"), "expected some below one of: model");
    EXPECT_ERROR_TEXT(pickle_save(tree), "[pickle_save] got <");
    // As an archive: it reads what is there.
    serialize::InputArchive archive = formats::torch_archive(tree), net;
    Tensor weight, spectrum;
    archive.read("model", net);
    net.read("weight", weight);
    expect_same(weight, known(kFloat, {2, 3}), "weight");
    EXPECT_FALSE(net.try_read("spectrum", spectrum));
  }
  // state_dict() names what it leaves out, in a warning.
  static std::vector<std::string> said;
  const auto before = set_thread_log_listener([](LogLevel, const std::string& message) {
    said.push_back(message);
    return true;
  });
  EXPECT_EQ(formats::state_dict(kGoldens + "mixed.pt", "model").size(), 2u);
  formats::state_dict(kGoldens + "checkpoint.pt");
  set_thread_log_listener(before);
  ASSERT_EQ(said.size(), 1u);
  expect_part(said[0], "[state_dict] \"" + kGoldens +
                           "mixed.pt\": left out \"model.spectrum\" (torch.complex64[2]), "
                           "\"model.counts\" (torch.uint64[4]), ");
  // An optimizer needs all of its numbers.
  IValue::GenericDict group = {{"params", IValue::GenericList()},
                               {"lr", IValue::Opaque{"numpy.float64"}}};
  IValue::GenericList groups;
  groups.push_back(group);
  const IValue::GenericDict adam = {{"state", IValue::GenericDict()}, {"param_groups", groups}};
  EXPECT_ERROR_TEXT(formats::torch_archive(adam),
                    "optimizer's \"lr\": got numpy.float64, expected");
  serialize::OutputArchive out;
  EXPECT_ERROR_TEXT(out.write("a", IValue(IValue::Opaque{"numpy.float64"})),
                    "got a value that a file has and this library cannot hold");
}

TEST(Pt, NothingIsEverRun) {
  const auto x = [](const std::string& file) {
    return load_pt(kGoldens + file + ".pt").toGenericDict().at("x").toOpaque().name;
  };
  EXPECT_EQ(x("refused_code"), "posix.system");
  EXPECT_EQ(x("refused_old_code"), "posix.system");
  EXPECT_EQ(x("refused_complex"), "torch.complex64[2]");
  EXPECT_EQ(x("refused_uint64"), "torch.uint64[2]");
  EXPECT_EQ(x("refused_sparse"), "torch._utils._rebuild_sparse_tensor");
  EXPECT_EQ(x("refused_scalar"), "numpy._core.multiarray.scalar");
  EXPECT_FALSE(std::filesystem::exists("ran_code"));
  const std::string module = kGoldens + "refused_module.pt",
                    text = "torch.nn.modules.linear.Linear";
  EXPECT_EQ(load_pt(module).toOpaque().name, text);
  EXPECT_ERROR_TEXT(formats::state_dict(module), "got no tensors but \"0\" (" + text + ")");
  EXPECT_ERROR_TEXT(formats::torch_archive(module),
                    "[torch_archive] \"" + module + "\": got <" + text + ">, which this library");
  EXPECT_ERROR_TEXT(load_pt(kGoldens + "v1.npy"), "neither a zip archive nor a pickle");
  EXPECT_ERROR_TEXT(load_pt(kGoldens + "arrays.npz"), "a zip archive without data.pkl");
  EXPECT_ERROR_TEXT(load_pt("", 0), "got an empty file");
  EXPECT_ERROR_TEXT(load_pt("\x80\x02K\x01.", 5), "without PyTorch's magic number");
}

TEST(Pt, RoundTripsOfItsOwn) {
  const Folder folder;
  Tensors all = every_kind(/*with_bfloat16=*/true);
  const Tensor base = any(kFloat, {4, 6}, 7);
  all.insert("tied", base);
  all.insert("view", base.slice(1, 1, 6, 2));
  formats::save_pt(folder / "x.pt", all);
  const Tensors back = formats::state_dict(folder / "x.pt");
  expect_all(back, all);
  back["tied"].fill_(1);
  EXPECT_EQ(back["view"].sum().item<float>(), 12);
  // Numbers at the ends of what pickles write, and every container.
  IValue::GenericDict dict;
  IValue::GenericList list;
  for (const int64_t n : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, INT64_MAX, INT64_MIN,
                          int64_t{INT32_MAX}, int64_t{INT32_MIN} - 1})
    list.push_back(n);
  dict.insert("list", list);
  dict.insert("tuple", IValue::TuplePtr(std::make_shared<IValue::Tuple>(
                           std::vector<IValue>{true, IValue(), 1e-310, "t"})));
  dict.insert("ints", std::vector<int64_t>{1, 2});
  dict.insert("tensors", std::vector<Tensor>{base, base});
  dict.insert(-3, false);
  const IValue read = load_pt(pickle_save(dict).data(), pickle_save(dict).size());
  std::ostringstream got, expected;
  got << read, expected << IValue(dict);
  EXPECT_EQ(got.str(), expected.str());
  const IValue again = pickle_load(pickle_save(dict));
  EXPECT_EQ(again.toGenericDict().at("list").toListRef()[5].toInt(), INT64_MIN);
  IValue::GenericList deep;
  for (int i = 0; i < 300; ++i) {
    IValue::GenericList outer;
    outer.push_back(deep);
    deep = outer;
  }
  EXPECT_ERROR_TEXT(pickle_save(deep), "nested deeper than 256");
}

// ---- LibTorch -----------------------------------------------------------------------------------

struct NetImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d bn{nullptr};
  nn::Sequential body{nullptr};
  Tensor scale;
  NetImpl() {
    fc = register_module("fc", nn::Linear(3, 2));
    bn = register_module("bn", nn::BatchNorm1d(2));
    body = register_module("body", nn::Sequential(nn::Linear(2, 2), nn::ReLU()));
    scale = register_buffer("scale", ones({2}, kDouble));
  }
};

void expect_golden_net(const NetImpl& net) {
  for (const auto& p : net.named_parameters()) {
    expect_same(p.value().detach(), known(kFloat, p.value().sizes().vec()), p.key());
    EXPECT_TRUE(p.value().requires_grad());
  }
  expect_same(net.bn->running_mean, known(kFloat, {2}), "running_mean");
  expect_same(net.scale, full({2}, 0.1, kDouble), "scale");
}

TEST(LibTorch, ModulesTensorsLists) {
  auto net = std::make_shared<NetImpl>();
  formats::load_torch(net, kGoldens + "libtorch_module.pt");
  expect_golden_net(*net);
  NetImpl other;
  const formats::LoadReport report =
      formats::load_state_dict(other, formats::state_dict(kGoldens + "libtorch_module.pt"));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.table(), "10 tensors loaded\n");
  expect_golden_net(other);
  Tensor tensor;
  formats::load_torch(tensor, kGoldens + "libtorch_tensor.pt");
  expect_same(tensor, known(kFloat, {2, 3}), "tensor");
  std::vector<Tensor> several;
  formats::load_torch(several, kGoldens + "libtorch_list.pt");
  ASSERT_EQ(several.size(), 2u);
  expect_same(several[1], arange(3), "the second");
  const Tensors list = formats::state_dict(kGoldens + "libtorch_list.pt");
  expect_same(list["0"], known(kFloat, {2}), "0");
  expect_same(list["1"], arange(3), "1");
  const std::string file = kGoldens + "libtorch_pickle.pt";
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
  const auto weights = pickle_load(bytes).toGenericDict();
  std::vector<std::string> names;
  for (const auto& w : weights) names.push_back(w.key().toStringRef());
  EXPECT_EQ(names, (std::vector<std::string>{"w", "v"}));
  expect_same(weights.at("w").toTensor(), known(kFloat, {2, 2}), "w");
  expect_same(weights.at("v").toTensor(), known(kHalf, {3}), "v");
  std::ostringstream text;
  text << load_pt(kGoldens + "libtorch_values.pt");
  EXPECT_EQ(text.str(), "[3, [0.5, 2.], text, True, None]");
  const auto back = [](const IValue& value) { return pickle_load(pickle_save(value)); };
  EXPECT_EQ(back(std::vector<int64_t>{3, 4}).toIntList().vec(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(back(std::vector<double>{0.5}).toDoubleList().vec(), std::vector<double>{0.5});
  expect_same(back(std::vector<Tensor>{arange(3)}).toTensorList().vec().at(0), arange(3), "back");
  EXPECT_EQ(back(std::vector<Tensor>()).toTensorList().size(), 0u);
  EXPECT_ERROR_TEXT(back(std::vector<double>{0.5}).toIntList(), "got double, expected int");
}

// Two steps there, one more there and here, from the parameters `before`.
template <class Optimizer, class Options>
void goes_on(const char* name, std::vector<Tensor> before, const std::vector<Tensor>& after,
             serialize::InputArchive state) {
  for (Tensor& p : before) p = p.clone().requires_grad_();
  Optimizer optimizer(before, Options(0.5));  // the file's options are taken
  state >> optimizer;
  for (Tensor& p : before) p.mutable_grad() = known(kFloat, p.sizes().vec());
  optimizer.step();
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(allclose(before[i].detach(), after[i], 1e-6, 1e-6)) << name << ' ' << i;
}
template <class Optimizer, class Options> void goes_on_cpp(const char* name) {
  const Tensors p = formats::state_dict(kGoldens + "libtorch_" + name + "_steps.pt");
  goes_on<Optimizer, Options>(
      name, {p["0"], p["1"]}, {p["2"], p["3"]},
      formats::torch_archive((kGoldens + "libtorch_" + name + ".pt").c_str()));
}
template <class Optimizer, class Options> void goes_on_python(const char* name, const IValue& all) {
  const auto& found = all.toGenericDict().at(name).toGenericDict();
  const auto steps = found.at("steps").toList();
  goes_on<Optimizer, Options>(name, {steps.get(0).toTensor()}, {steps.get(1).toTensor()},
                              formats::torch_archive(found.at("optimizer"), name));
}

TEST(LibTorch, OptimizersGoOn) {
  goes_on_cpp<optim::Adam, optim::AdamOptions>("adam");
  goes_on_cpp<optim::SGD, optim::SGDOptions>("sgd");
  const IValue all = load_pt(kGoldens + "optimizers.pt");
  goes_on_python<optim::Adam, optim::AdamOptions>("Adam", all);
  goes_on_python<optim::AdamW, optim::AdamWOptions>("AdamW", all);
  goes_on_python<optim::SGD, optim::SGDOptions>("SGD", all);
  goes_on_python<optim::RMSprop, optim::RMSpropOptions>("RMSprop", all);
  goes_on_python<optim::Adagrad, optim::AdagradOptions>("Adagrad", all);
  goes_on_python<optim::Adadelta, optim::AdadeltaOptions>("Adadelta", all);
  goes_on_python<optim::Adamax, optim::AdamaxOptions>("Adamax", all);
  goes_on_python<optim::NAdam, optim::NAdamOptions>("NAdam", all);
  goes_on_python<optim::RAdam, optim::RAdamOptions>("RAdam", all);
  goes_on_python<optim::Rprop, optim::RpropOptions>("Rprop", all);
  goes_on_python<optim::ASGD, optim::ASGDOptions>("ASGD", all);
  goes_on_python<optim::Adam, optim::AdamOptions>("Adam of tensors", all);
  goes_on_python<optim::Muon, optim::MuonOptions>("Muon", all);
}

// PyTorch's states have the dtype of a 16-bit parameter, without a master. Here they go on in
// float32, and the master begins at the parameter.
TEST(LibTorch, StatesOfSixteenBitsGoOnInFloat32) {
  const IValue all = load_pt(kGoldens + "optimizers.pt");
  const auto& found = all.toGenericDict().at("Adam").toGenericDict();
  const Tensor p =
      found.at("steps").toList().get(0).toTensor().to(kBFloat16).detach().requires_grad_();
  for (const auto& entry : found.at("optimizer").toGenericDict().at("state").toGenericDict())
    for (const char* name : {"exp_avg", "exp_avg_sq"}) {
      const auto& of = entry.value().toGenericDict();
      of.insert_or_assign(name, of.at(name).toTensor().to(kBFloat16));
    }
  optim::Adam adam({p}, optim::AdamOptions(0.5));
  auto file = formats::torch_archive(found.at("optimizer"));
  file >> adam;
  const auto& state = static_cast<const optim::AdamParamState&>(*adam.state().at(p.impl()));
  EXPECT_EQ(state.exp_avg_sq().scalar_type(), kFloat);
  EXPECT_FALSE(state.master_param().defined());
  const int64_t before = state.step();
  p.mutable_grad() = ones(p.sizes(), kBFloat16);
  adam.step();
  EXPECT_EQ(state.step(), before + 1);
  EXPECT_TRUE(p.equal(state.master_param().to(kBFloat16)));
  EXPECT_FALSE(p.to(kFloat).equal(state.master_param()));
}

TEST(LibTorch, LbfgsGoesOn) {
  const IValue all = load_pt(kGoldens + "lbfgs.pt");
  const auto steps = all.toGenericDict().at("steps").toList();
  Tensor p = steps.get(0).toTensor().clone().requires_grad_();
  optim::LBFGS lbfgs({p}, optim::LBFGSOptions(0.5).max_iter(7));
  auto state = formats::torch_archive(all.toGenericDict().at("optimizer"), "lbfgs.pt");
  state >> lbfgs;
  lbfgs.step([&] {
    lbfgs.zero_grad();
    Tensor loss = (arange(1, 7, kFloat).view({2, 3}) * (p - 1).pow(2)).sum();
    loss.backward();
    return loss;
  });
  EXPECT_TRUE(allclose(p.detach(), steps.get(1).toTensor(), 1e-6, 1e-6)) << p;
  // After its first step it has no differences yet.
  const auto& first = all.toGenericDict().at("optimizer").toGenericDict();
  for (const char* name : {"old_dirs", "old_stps", "ro"})
    first.at("state").toGenericDict().begin()->value().toGenericDict().insert_or_assign(
        name, IValue::GenericList(std::vector<IValue>()));
  auto early = formats::torch_archive(first, "lbfgs.pt");
  early >> lbfgs;
  EXPECT_FALSE(allclose(steps.get(0).toTensor(), steps.get(1).toTensor(), 1e-3, 1e-3));
  optim::SGD sgd({p}, optim::SGDOptions(0.5));
  auto other = formats::torch_archive(all.toGenericDict().at("optimizer"), "lbfgs.pt");
  EXPECT_ERROR_TEXT(other >> sgd, "got ramet::optim::LBFGSOptions, expected");
}

TEST(LibTorch, AnotherOptimizersStateIsRefused) {
  Tensor p = zeros({2, 3}).requires_grad_();
  optim::Adam adam({p}, optim::AdamOptions(0.5));
  EXPECT_ERROR_TEXT(formats::load_torch(adam, kGoldens + "libtorch_adam.pt"), "got 2, expected 1");
  const IValue all = load_pt(kGoldens + "optimizers.pt");
  const auto state = [&](const char* name) {
    return all.toGenericDict().at(name).toGenericDict().at("optimizer");
  };
  auto other = formats::torch_archive(state("AdamW"));
  EXPECT_ERROR_TEXT(other >> adam, "got ramet::optim::AdamWOptions, expected");
  const auto& group = state("Adam").toGenericDict().at("param_groups").toListRef()[0];
  group.toGenericDict().insert_or_assign("maximize", true);
  EXPECT_ERROR_TEXT(formats::torch_archive(state("Adam"), "adam.pt"),
                    "\"adam.pt\", optimizer's \"maximize\": got true");
  EXPECT_EQ(adam.param_groups()[0].options().get_lr(), 0.5);
  group.toGenericDict().insert_or_assign("maximize", false);
  group.toGenericDict().insert_or_assign("lr", zeros({2}));
  EXPECT_ERROR_TEXT(formats::torch_archive(state("Adam"), "adam.pt"),
                    "\"adam.pt\", optimizer's \"lr\": got no number");
}

}  // namespace
}  // namespace ramet
