// Archives, save() and load().
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "nn/serialize/archive.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/save.h"

namespace ramet {
namespace {

using serialize::InputArchive;
using serialize::OutputArchive;

Tensor floats(const std::vector<float>& values) {
  Tensor t(TensorBase::empty({static_cast<int64_t>(values.size())}, kFloat, Device(kCPU, 0)));
  std::memcpy(t.data_ptr(), values.data(), t.nbytes());
  return t;
}
std::vector<float> values_of(const Tensor& t) {
  return {t.data_ptr<float>(), t.data_ptr<float>() + t.numel()};
}
InputArchive reread(OutputArchive& out) {
  std::ostringstream text;
  out.save_to(text);
  std::istringstream in(text.str());
  InputArchive archive;
  archive.load_from(in);
  return archive;
}
template <class F> void expect_error(const F& f, const std::string& part) {
  try {
    f();
    ADD_FAILURE() << "expected an Error with: " << part;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(Archive, ValuesOfEveryKindComeBack) {
  OutputArchive out;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> doubles = {0.1, -0.0, 1e-310, 1.7976931348623157e308, 5.0, inf, -inf};
  for (size_t i = 0; i < doubles.size(); ++i)
    out.write("d" + std::to_string(i), IValue(doubles[i]));
  out.write("nan", IValue(std::nan("")));
  out.write("int", IValue(std::numeric_limits<int64_t>::min()));
  out.write("yes", IValue(true));
  out.write("text", IValue("a \"quoted\" \n line"));
  out.write("none", IValue());
  out.write("ints", IValue(std::vector<int64_t>{1, -2, 3}));
  out.write("doubles", IValue(std::vector<double>{0.5, -inf}));
  out.write("tensors", IValue(std::vector<Tensor>{floats({1}), floats({2, 3})}));
  out.write("tensor", IValue(floats({4})));
  InputArchive in = reread(out);
  const auto get = [&](const std::string& key) {
    IValue v;
    in.read(key, v);
    return v;
  };
  for (size_t i = 0; i < doubles.size(); ++i) {
    const double back = get("d" + std::to_string(i)).toDouble();
    EXPECT_EQ(std::memcmp(&back, &doubles[i], 8), 0) << doubles[i];
  }
  EXPECT_TRUE(std::isnan(get("nan").toDouble()));
  EXPECT_EQ(get("int").toInt(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(get("yes").toBool());
  EXPECT_EQ(get("text").toStringRef(), "a \"quoted\" \n line");
  EXPECT_TRUE(get("none").isNone());
  EXPECT_EQ(get("ints").toIntVector(), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_EQ(get("doubles").toDoubleVector(), (std::vector<double>{0.5, -inf}));
  EXPECT_EQ(values_of(get("tensors").toTensorVector().at(1)), (std::vector<float>{2, 3}));
  EXPECT_EQ(values_of(get("tensor").toTensor()), std::vector<float>{4});
}

TEST(Archive, NestsAndListsKeys) {
  OutputArchive out, child, grandchild, empty;
  grandchild.write("w", floats({1}));
  child.write("deep", grandchild);
  child.write("n", IValue(7));
  out.write("child", child);
  out.write("children", floats({9}));  // begins like "child"
  out.write("nothing", empty);
  InputArchive in = reread(out);
  EXPECT_EQ(in.keys(), (std::vector<std::string>{"child", "children", "nothing"}));
  InputArchive a, b, c;
  in.read("child", a);
  EXPECT_EQ(a.keys(), (std::vector<std::string>{"deep", "n"}));
  a.read("deep", b);
  Tensor w;
  b.read("w", w);
  EXPECT_EQ(values_of(w), std::vector<float>{1});
  EXPECT_TRUE(in.try_read("nothing", c));
  EXPECT_TRUE(c.keys().empty());
  EXPECT_FALSE(in.try_read("chil", c));
  EXPECT_FALSE(in.try_read("children", c));
  expect_error([&] { b.read("v", w); }, "no tensor under the key \"child.deep.v\" in \"stream\"");
  expect_error([&] { a.read("x", c); }, "no archive under the key \"child.x\"");
  IValue v;
  expect_error([&] { a.read("m", v); }, "no value under the key \"child.m\"");
}

TEST(Archive, WritingAgainReplaces) {
  OutputArchive out, child;
  child.write("w", floats({1}));
  out.write("a", child);
  out.write("ab", floats({5}));
  out.write("a", floats({2}));
  InputArchive in = reread(out);
  EXPECT_EQ(in.keys(), (std::vector<std::string>{"a", "ab"}));
  Tensor a;
  in.read("a", a);
  EXPECT_EQ(values_of(a), std::vector<float>{2});
}

TEST(Archive, ReadsInPlaceWhereSizesAgree) {
  OutputArchive out;
  out.write("x", floats({1, 2}));
  out.write("undefined", Tensor());
  InputArchive in = reread(out);
  Tensor x = floats({0, 0});
  x.requires_grad_(true);
  const void* memory = x.data_ptr();
  in.read("x", x);
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
  EXPECT_EQ(x.data_ptr(), memory);
  EXPECT_TRUE(x.requires_grad());
  EXPECT_TRUE(x.is_leaf());

  Tensor other = floats({0, 0, 0});  // LibTorch replaces the memory
  in.read("x", other);
  EXPECT_EQ(values_of(other), (std::vector<float>{1, 2}));
  expect_error(
      [&] {
        in.read_values("x", floats({0, 0, 0}));
      },
      "shape of \"x\": got float32[2] on cpu in \"stream\", expected float32[3] on cpu");

  Tensor first, second;
  in.read("x", first);
  in.read("x", second);
  first.data_ptr<float>()[0] = 50;
  EXPECT_EQ(values_of(second), (std::vector<float>{1, 2})) << "two readers do not share memory";

  Tensor gone = floats({1});
  in.read("undefined", gone);
  EXPECT_FALSE(gone.defined());
  expect_error([&] { in.read_values("undefined", floats({1})); },
               "got an undefined tensor in \"stream\", expected");
  Tensor integers(TensorBase::empty({2}, kLong, Device(kCPU, 0)));
  expect_error([&] { in.read("x", integers); },
               "dtype of \"x\": got float32[2] on cpu in \"stream\", expected int64[2]");
}

TEST(Archive, LoadsToADevice) {
  OutputArchive out;
  out.write("x", floats({1, 2}));
  std::ostringstream text;
  out.save_to(text);
  const std::string bytes = text.str();
  InputArchive in;
  in.load_from(bytes.data(), bytes.size(), Device("cpu:1"));
  Tensor x;
  in.read("x", x);
  EXPECT_EQ(x.device(), Device("cpu:1"));
  Tensor here = floats({0, 0});
  in.read("x", here);
  EXPECT_EQ(here.device(), Device("cpu:0"));
  EXPECT_EQ(values_of(here), (std::vector<float>{1, 2}));
}

TEST(Archive, ReadsThroughAFunction) {
  OutputArchive out;
  out.write("x", floats({1, 2}));
  std::string bytes;
  out.save_to(
      [&](const void* p, size_t n) { return bytes.append(static_cast<const char*>(p), n), n; });
  InputArchive in;
  in.load_from(
      [&](uint64_t at, void* to, size_t n) {  // in small pieces
        n = std::min(n, size_t{7});
        std::memcpy(to, bytes.data() + at, n);
        return n;
      },
      [&] { return bytes.size(); });
  Tensor x;
  in.read("x", x);
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2}));
}

TEST(Archive, FilesOfOtherProgramsAreTensors) {
  serialize::Safetensors foreign;
  foreign.tensors.emplace_back("layer.weight", floats({3}));
  foreign.metadata["format"] = "pt";
  std::string bytes;
  serialize::save_safetensors(
      [&](const void* p, size_t n) { return bytes.append(static_cast<const char*>(p), n), n; },
      foreign);
  InputArchive in, layer;
  in.load_from(bytes.data(), bytes.size());
  in.read("layer", layer);
  Tensor w;
  layer.read("weight", w);
  EXPECT_EQ(values_of(w), std::vector<float>{3});

  const auto refused = [&](const std::string& about, const std::string& what) {
    foreign.metadata["ramet"] = about;
    bytes.clear();
    serialize::save_safetensors(
        [&](const void* p, size_t n) { return bytes.append(static_cast<const char*>(p), n), n; },
        foreign);
    expect_error([&] { in.load_from(bytes.data(), bytes.size()); },
                 "metadata of \"memory\"" + what);
  };
  refused("{\"format\":", " is no valid JSON");
  refused("{\"form\": 1}", " is damaged");
  refused(R"({"format": 1, "format": 1})", ": got the key \"format\" twice");
  // A message that showed this text would call itself more often than a stack allows.
  refused("{\"format\": " + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}",
          ": got JSON nested deeper than 16");
}

TEST(Save, TensorsAndVectors) {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string path =
      std::string(base ? base : "/tmp") + "/archive_" + std::to_string(::getpid());
  save(floats({1, 2, 3}), path);
  Tensor x;
  load(x, path);
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2, 3}));

  std::vector<Tensor> list;
  for (int i = 0; i < 12; ++i) list.push_back(floats({static_cast<float>(i)}));
  save(list, path);
  std::vector<Tensor> back;
  load(back, path);
  ASSERT_EQ(back.size(), 12u);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(values_of(back[static_cast<size_t>(i)]), std::vector<float>{static_cast<float>(i)});
  ::unlink(path.c_str());
  expect_error([&] { load(x, path); }, "cannot open the file: got \"" + path + "\"");
}

// A zip archive's beginning and end as far as load() reads them: the first entry's name, and the
// list of all names.
std::string zip_of(const std::vector<std::string>& names) {
  std::string bytes("PK\x03\x04\0\0\x08\x08", 8);
  bytes += std::string(22, '\0') + names.front() + std::string(80000, 'x');
  for (const std::string& name : names) bytes += "PK\x01\x02" + std::string(42, '\0') + name;
  return bytes + "PK\x05\x06" + std::string(18, '\0');
}

TEST(Save, FilesOfLibTorchAreRefusedByName) {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string folder = base ? base : "/tmp";
  const std::string path = folder + "/model_" + std::to_string(::getpid()) + ".pt";
  const auto refused = [&](const std::string& content, const std::string& what) {
    std::ofstream(path, std::ios::binary) << content;
    Tensor x;
    expect_error([&] { load(x, path); }, what);
    EXPECT_FALSE(x.defined());
    std::istringstream stream(content);
    expect_error([&] { load(x, stream); }, what.substr(what.find("got ")));
  };
  const std::string got = "[load] \"" + path + "\": got ";
  refused(zip_of({"m/data/0", "m/data.pkl", "m/code/__torch__.py", "m/constants.pkl"}),
          got + "an archive that LibTorch wrote (torch::save in C++, or TorchScript)");
  std::ofstream(path, std::ios::binary) << zip_of({"m/data/0", "m/data.pkl", "m/constants.pkl"});
  Tensor x;
  expect_error([&] { load(x, path); },
               "safetensors.torch.save_file(torch.jit.load(\"" + path + "\").state_dict(), ");
  expect_error([&] { load(x, path); }, "ramet::formats::load_torch(value, \"" + path +
                                           "\") of \"nn/formats/pytorch/pt.h\"");
  refused(zip_of({"archive/data.pkl", "archive/data/0", "archive/version"}),
          got + "an archive that PyTorch or LibTorch wrote (torch.save)");
  refused(zip_of({"archive/data.pkl"}).substr(0, 200), got + "an archive that PyTorch");
  refused(std::string("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M", 18),
          got + "a pickle, as old versions of PyTorch wrote it");
  refused(zip_of({"x.npy", "y.npy"}), got + "an archive that NumPy wrote (.npz)");
  refused(std::string("\x93NUMPY\x01\0v\0{'descr'", 18), got + "an array that NumPy wrote");
  refused(zip_of({"readme.txt"}), got + "a zip archive, expected");
  refused("", "is empty: got 0 bytes");
  refused("1234", "is truncated: got 4 bytes");
  refused("these are no weights", "is no safetensors file: got ");
  ::unlink(path.c_str());
  expect_error([&] { load(x, folder); }, "not a file: got the folder \"" + folder);
  std::ifstream missing(path);
  expect_error([&] { load(x, missing); }, "(was the file opened?)");
  std::ofstream nowhere(folder + "/no/such/folder");
  expect_error([&] { save(floats({1}), nowhere); }, "(was the file opened?)");
}

// A header may be as long as another format's first bytes say.
TEST(Save, LengthsThatLookLikeOtherFormatsAreRead) {
  serialize::Safetensors file;
  file.tensors.emplace_back("0", floats({1, 2, 3}));
  std::string bytes;
  const auto write = [&](const void* p, size_t n) {
    bytes.append(static_cast<const char*>(p), n);
    return n;
  };
  serialize::save_safetensors(write, file);
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  bytes.insert(8 + length, 0x0280 - length, ' ');  // 80 02: a pickle's beginning
  length = 0x0280;
  std::memcpy(bytes.data(), &length, 8);
  ASSERT_EQ(bytes.substr(0, 2), "\x80\x02");
  Tensor x;
  load(x, bytes.data(), bytes.size());
  EXPECT_EQ(values_of(x), (std::vector<float>{1, 2, 3}));
}

TEST(Archive, ValuesUnderLibTorchsNames) {
  const IValue text("a"), none, number(int64_t{3}), list(std::vector<double>{1, 2});
  EXPECT_EQ(text.toString()->string(), "a");
  EXPECT_EQ(number.to<int>(), 3);
  EXPECT_EQ(number.toOptional<int64_t>(), 3);
  EXPECT_EQ(none.toOptional<double>(), std::nullopt);
  EXPECT_EQ(number.toScalar().toLong(), 3);
  EXPECT_EQ(list.toDoubleList().size(), 2u);
  EXPECT_TRUE(list.isList() && number.isScalar() && !number.isList() && !text.isScalar());
  expect_error([&] { text.to<double>(); }, "got string, expected double");
}

TEST(Archive, ContainersOfAnyValues) {
  IValue::GenericDict dict;
  dict.insert("b", 1);
  dict.insert(2, IValue::GenericList({1.5, "x", IValue()}));
  EXPECT_FALSE(dict.insert("b", 5).second);
  dict.insert_or_assign("b", true);
  dict.insert(2.0, "another key");
  const IValue value(dict);  // another handle
  dict.insert(IValue(), std::vector<int64_t>{1});
  std::ostringstream text;
  text << value << ' ' << IValue(std::make_shared<const IValue::Tuple>(std::vector<IValue>{false}));
  EXPECT_EQ(text.str(), "{b: True, 2: [1.5, x, None], 2.: another key, None: [1]} (False,)");
  EXPECT_EQ(value.toGenericDict().at(2).toList().size(), 3u);
  EXPECT_EQ(value.toGenericDict().at(IValue()).toList().get(0).toInt(), 1);
  EXPECT_EQ(dict.erase(2), 1u);
  EXPECT_EQ(dict.at(2.0).toStringRef(), "another key");
  EXPECT_EQ(dict.find(IValue())->value().toIntVector().size(), 1u);
  EXPECT_TRUE(dict.contains("b") && !dict.contains("c") && !dict.contains(1));
  EXPECT_THROW(dict.at("c"), IndexError);
  EXPECT_THROW(value.toGenericDict().at(IValue()).toList().get(1), IndexError);
  expect_error([&] { dict.insert(floats({1}), 1); }, "[Dict] key: got");
  expect_error([&] { value.toList(); }, "got dict, expected list");
  OutputArchive out;
  expect_error([&] { out.write("k", value); }, "value under \"k\": got a dictionary");
  expect_error([&] { out.write("k", IValue(IValue::GenericList())); }, "got a list of any values");
}

}  // namespace
}  // namespace ramet
