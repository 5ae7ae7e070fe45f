// Files of PyTorch and LibTorch: a part of the program formats_test.
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "nn/formats/pt.h"
#include "nn/formats/state_dict.h"
#include "nn/formats/zip_internal.h"
#include "nn/layers/activation.h"
#include "nn/layers/batchnorm.h"
#include "nn/layers/linear.h"
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
  save_pt(path, read);
  check(load_pt(path));
}

TEST(Pt, NothingButDataIsRead) {
  const auto refused = [](const std::string& file, const std::string& entry,
                          const std::string& part) {
    const std::string error = error_of([&] { load_pt(kGoldens + file + ".pt"); });
    expect_part(error, "[load_pt] \"" + kGoldens + file + ".pt\", " + entry + "offset ");
    expect_part(error, part);
  };
  const auto data = [](const std::string& stem) { return "entry \"" + stem + "/data.pkl\", "; };
  for (const char* global : {"refused_code", "refused_module", "refused_scalar", "refused_sparse"})
    refused(global, data(global), "got the global \"");
  refused("refused_code", data("refused_code"), "\"posix.system\", expected one that tensors");
  refused("refused_module", data("refused_module"), "\"torch.nn.modules.linear.Linear\"");
  refused("refused_old_code", "", "\"posix.system\"");
  refused("refused_complex", data("refused_complex"), "of type \"torch.ComplexFloatStorage\"");
  refused("refused_uint64", data("refused_uint64"), "the global \"torch.uint64\"");
  EXPECT_FALSE(std::filesystem::exists("ran_code"));
  EXPECT_ERROR_TEXT(load_pt(kGoldens + "v1.npy"), "neither a zip archive nor a pickle");
  EXPECT_ERROR_TEXT(load_pt(kGoldens + "arrays.npz"), "a zip archive without data.pkl");
  EXPECT_ERROR_TEXT(load_pt("", 0), "got an empty file");
  EXPECT_ERROR_TEXT(load_pt("\x80\x02K\x01.", 5), "without PyTorch's magic number");
}

// Pickles by hand, each in an archive whose storage "0" has 8 bytes.
using Entries = std::vector<std::pair<std::string, std::string>>;
std::string error_of_entries(const Entries& entries) {
  std::vector<formats::detail::ZipPart> parts;
  for (const auto& [name, text] : entries) parts.push_back({name, {{text.data(), text.size()}}});
  const std::vector<char> zip = formats::detail::zip_bytes("test", parts, /*deflate=*/false);
  return error_of([&] { load_pt(zip.data(), zip.size(), "f"); });
}
std::string error_of_pickle(const std::string& text, const std::string& more = "") {
  return error_of_entries(
      {{"a/data.pkl", "\x80\x02" + text}, {"a/data/0", "12345678"}, {"a/" + more, ""}});
}

TEST(Pt, PicklesThatLie) {
  using namespace std::string_literals;
  const auto refused = [](const std::string& pickle, const std::string& part) {
    const std::string error = error_of_pickle(pickle);
    expect_part(error, "[load_pt] \"f\", entry \"a/data.pkl\", offset ");
    expect_part(error, part);
  };
  const auto text = [](const std::string& s) { return "\x8c"s + static_cast<char>(s.size()) + s; };
  const auto storage = [&](const std::string& key, const std::string& count,
                           const std::string& type = "Float") {
    return "(" + text("storage") + "ctorch\n" + type + "Storage\n" + text(key) + text("cpu") +
           count + "tQ";
  };
  const auto tensor = [&](const std::string& of, const std::string& offset,
                          const std::string& sizes, const std::string& strides,
                          const std::string& metadata = "") {
    return "ctorch._utils\n_rebuild_tensor_v2\n(" + of + offset + sizes + strides + "\x89}" +
           metadata + "tR";
  };
  const std::string zero = "K\0"s, one = "K\x01", two = "K\x02", three = "K\x03",
                    most = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", minus = "J\xff\xff\xff\xff",
                    size1 = "\x85", size2 = "\x86", good = storage("0", two);
  EXPECT_EQ(error_of_pickle(tensor(good, zero, two + size1, one + size1) + "."), "no error");
  EXPECT_EQ(error_of_pickle(tensor(good, one, most + size1, zero + size1) + "."),
            "[load_pt] \"f\", entry \"a/data.pkl\", offset 97: got a tensor of sizes "
            "[9223372036854775807], strides [0] and offset 1, expected one inside the 8 bytes of "
            "storage \"0\"");
  // What PyTorch says of a view that is negated when it is read.
  const auto described = [&](const std::string& metadata) {
    return tensor(good, zero, two + size1, one + size1, metadata) + ".";
  };
  EXPECT_EQ(error_of_pickle(described("}")), "no error");
  EXPECT_EQ(error_of_pickle(described("N")), "no error");
  refused(described("}" + text("neg") + "\x88s"), "values are not as they are stored (\"neg\")");
  refused(described("]"), "got a list as metadata");
  const std::string inside = "expected one inside the 8 bytes of storage \"0\"";
  refused(tensor(good, zero, three + size1, one + size1) + ".", inside);
  refused(tensor(good, one, two + size1, one + size1) + ".", inside);
  refused(tensor(good, most, one + size1, one + size1) + ".", inside);
  refused(tensor(good, zero, two + size1, most + size1) + ".", inside);
  refused(tensor(good, zero, two + two + size2, one + one + size2) + ".", inside);
  refused(tensor(good, three, zero + size1, one + size1) + ".", inside);
  refused(tensor(good, minus, one + size1, one + size1) + ".", "a tensor of a storage from -1");
  refused(tensor(good, zero, minus + size1, one + size1) + ".", "got -1 among a tensor's sizes");
  refused(tensor(good, zero, one + size1, minus + size1) + ".", "got -1 among a tensor's strides");
  refused(tensor(good, zero, one + size1, one + one + size2) + ".", "got 1 sizes and 2 strides");
  refused(tensor(one, zero, one + size1, one + size1) + ".", "got a tensor of an integer");
  refused(storage("0", three) + ".", "got 8 bytes in entry \"a/data/0\", expected 12");
  refused(storage("0", most, "Long") + ".", "more than this machine has");
  refused(storage("0", minus) + ".", "expected its type, key, location and number of elements");
  refused(storage("9", two) + ".", "got no entry \"a/data/9\"");
  refused("(" + good + storage("0", one) + "t.", "got storage \"0\" of 4 bytes, expected 8");
  refused(good + ".", "got a storage as a value, expected data");
  refused("(" + text("module") + "NNNNtQ.", "got a persistent \"module\", expected a storage");
  refused("NQ.", "got None, expected a storage");
  // Trees that are none, or never end.
  refused("]q\0h\0a."s, "got a list that holds itself");
  refused("}q\0X\1\0\0\0ah\0s."s, "got a dictionary that holds itself");
  refused(std::string(300, ']') + std::string(299, 'a') + ".", "nested deeper than 256");
  std::string doubled = "]q\0"s;
  for (int i = 0; i < 40; ++i) {
    const char from = static_cast<char>(i), to = static_cast<char>(i + 1);
    doubled += "](h"s + from + "h" + from + "eq" + to;
  }
  refused("(" + doubled + "t.", "the same values very many times");
  std::string long_text = "X\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\0("s;
  for (int i = 0; i < 40; ++i) long_text += "h\0"s;
  refused(long_text + "t\x86.", "the same long texts many times");
  // What is not there.
  refused("h\5.", "got number 5 of the memo, which was not stored");
  refused("N", "the pickle ends in the middle");
  refused(".", "got nothing on the stack");
  refused("NN.", "got more than one value at the end");
  refused("t.", "got no mark on the stack");
  refused(
      "X\xff\xff\xff\x7f"
      "a.",
      "got a text of 2147483647 bytes, expected at most the 2 that");
  refused("\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "got a text of 18446744073709551615 bytes");
  refused("\x95\xff\0\0\0\0\0\0\0N."s, "got a frame of 255 bytes");
  refused("X\1\0\0\0\xff."s, "no valid UTF-8");
  refused("NNNs.", "got None, expected a dictionary to put items into");
  refused("NNa.", "got None, expected a list to append to");
  refused("}]Ns.", "got a list as a key");
  refused("\x8a\x09\1\2\3\4\5\6\7\1\1.", "got an integer of more than 64 bits as a value");
  // What would run, or make objects of any class.
  refused("cos\nsystem\n.", "got the global \"os.system\"");
  refused(text("builtins") + text("eval") + "\x93.", "got the global \"builtins.eval\"");
  refused("(ios\nsystem\n.", "got the opcode 0x69 (INST or OBJ, which make objects of any class)");
  refused("\x82\1.", "got the opcode 0x82 (EXT, which names a class by a number)");
  refused("\x8f.", "got the opcode 0x8f (a set)");
  refused("V1\n.",
          "got the opcode 0x56 (an opcode of protocol 0, in which PyTorch writes nothing)");
  refused("ctorch\nSize\n.", "got the global \"torch.Size\" as a value");
  refused("ctorch\nFloatStorage\n)R.", "\"torch.FloatStorage\", which is no function here");
  refused("N)R.", "got a call (REDUCE) of None with a tuple");
  refused("ccollections\nOrderedDict\n)RNb.", "got None, expected a dictionary of attributes");
  refused("]}b.", "got attributes (BUILD) for a list");
  // TorchScript's classes, in archives that have its constants.
  const std::string object = "c__torch__\nModule\n)\x81}X\1\0\0\0aK\1sb."s;
  refused(object, "got the global \"__torch__.Module\"");
  EXPECT_EQ(error_of_pickle(object, "constants.pkl"), "no error");
  // The archive around it.
  const Entries entries = {{"a/data.pkl", "\x80\x02N."}};
  const auto with = [&](const std::string& name, const std::string& content) {
    Entries more = entries;
    more.emplace_back(name, content);
    return error_of_entries(more);
  };
  EXPECT_EQ(error_of_entries(entries), "no error");
  expect_part(with("a/version", "11\n"), "entry \"a/version\": got \"11\", expected at most 10");
  expect_part(with("a/byteorder", "middle"), "got \"middle\", expected little or big");
  expect_part(with("b/data.pkl", "N."), "got \"b/data.pkl\" besides \"a/data.pkl\"");
  expect_part(error_of_entries({{"a/data.pkl", "\x80\x02N.N"}}), "got 1 bytes behind the pickle's");
  expect_part(error_of_entries({{"a/data.pkl", "\x80\x06N."}}), "got a pickle of protocol 6");
}

// Small files whose reading would cost gigabytes.
TEST(Pt, WhatIsNamedOnceIsNotCopiedForEver) {
  const auto archive = [](const std::string& pickle, bool deflate) {
    const std::string storage(256, '\1'), none = "\x80\x02).";
    return formats::detail::zip_bytes("test",
                                      {{"a/data.pkl", {{pickle.data(), pickle.size()}}},
                                       {"a/constants.pkl", {{none.data(), none.size()}}},
                                       {"a/data/0", {{storage.data(), storage.size()}}}},
                                      deflate);
  };
  const auto text = [](const std::string& s) {
    std::string made = "X";
    for (int i = 0; i < 4; ++i) made += static_cast<char>(s.size() >> (8 * i));
    return made + s;
  };
  const auto times = [](int n, const std::string& s) {
    std::string made;
    for (int i = 0; i < n; ++i) made += s;
    return made;
  };
  const auto error = [&](const std::string& pickle, bool deflate = false) {
    const auto bytes = archive("\x80\x02" + pickle + ".", deflate);
    return error_of([&] { formats::tensors_of(load_pt(bytes.data(), bytes.size(), "f")); });
  };
  const std::string much(100000, 'a'), call = "h\1h\2R0", again = "calls with the same long";
  // One list of pairs, made a dictionary again and again; one text; one class's name.
  const std::string pair = "K\1K\2\x86q\3", ordered = "ccollections\nOrderedDict\nq\1";
  const auto dicts = [&](int pairs, int calls) {
    return ordered + "](" + pair + times(pairs, "h\3") + "e\x85q\2" + "00" + times(calls, call) +
           "N";
  };
  expect_part(error(dicts(20000, 200)), again);
  EXPECT_EQ(error(dicts(20000, 2)), "no error");
  expect_part(error("c_codecs\nencode\nq\1" + text(much) + text("latin1") + "\x86q\2" + "00" +
                    times(300, call) + "N"),
              again);
  expect_part(error(text("__torch__") + "q\1" + text(much) + "q\2" + "00" +
                    times(300, "h\1h\2\x93" + std::string("0")) + "N"),
              again);
  // Each tensor of a dictionary has the names above it.
  const auto tensor = [&](const char* how, const char* type, const std::string& count) {
    return std::string("ctorch._utils\n_rebuild_tensor_") + how + "\n((" + text("storage") + type +
           text("0") + text("cpu") + count + "tQK" + std::string(1, '\0') + "K\1\x85K\1\x85\x89" +
           ordered + ")R";
  };
  const std::string floats = tensor("v2", "ctorch\nFloatStorage\n", "K@") + "tR";
  const auto below = [&](size_t name) {
    return "}" + text(std::string(name, 'a')) + "}" + text("b") + floats + "ss";
  };
  EXPECT_EQ(error(below(1000)), "no error");
  expect_part(error(below(5000)), "name of a tensor: got one of 5000 bytes");
  const auto long_name = archive("\x80\x02" + below(5000) + ".", false);
  const IValue tree = load_pt(long_name.data(), long_name.size(), "f");
  EXPECT_ERROR_TEXT(formats::torch_archive(tree), "name of a value: got one of 5001 bytes");
  // Floats' bytes that are said to be bools as well.
  const std::string bools =
      tensor("v3", "ctorch.storage\nUntypedStorage\n", {'M', '\0', '\1'}) + "ctorch\nbool\ntR";
  EXPECT_EQ(error(bools), "no error");
  expect_part(error(bools + floats + "\x86"), "with bools and elements of other sizes");
  // A pickle that is nothing but marks, deflated.
  expect_part(error(std::string(8 << 20, '(') + "N", true),
              "entry \"a/data.pkl\": got 8388612 bytes, expected at most ");
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
