// The safetensors format against files written by hand from its description.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>

#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

using serialize::load_safetensors;
using serialize::Safetensors;
using serialize::save_safetensors;

std::string temporary(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base ? base : "/tmp") + "/safetensors_" + std::to_string(::getpid()) + "_" +
         name;
}
std::string file_of(const std::string& header, const std::string& data) {
  std::string s;
  for (int i = 0; i < 8; ++i)
    s.push_back(static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i)));
  return s + header + data;
}
std::string error_of(const std::string& bytes) {
  try {
    load_safetensors(bytes.data(), bytes.size(), "f");
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

template <class T> Tensor of(const std::vector<T>& values, const std::vector<int64_t>& sizes) {
  Tensor t(TensorBase::empty(sizes, ScalarTypeOf<T>::value, Device(kCPU, 0)));
  std::memcpy(t.data_ptr(), values.data(), t.nbytes());
  return t;
}
std::string written(const Safetensors& content) {
  std::string bytes;
  save_safetensors(
      [&](const void* p, size_t n) { return bytes.append(static_cast<const char*>(p), n), n; },
      content);
  return bytes;
}

TEST(Safetensors, ReadsAFileWrittenByHand) {
  const std::string data = std::string("\x00\x00\x80\x3f\x00\x00\x20\xc0", 8) +
                           std::string("\x01\x00\x07", 3) +
                           std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  const std::string header =
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"made by":"hand"},)"
      R"("b":{"dtype":"BOOL","shape":[1,2],"data_offsets":[8,10]},"u":{"dtype":"U8","shape":[],"data_offsets":[10,11]},)"
      R"("empty":{"dtype":"F64","shape":[0,3],"data_offsets":[11,11]},"l":{"dtype":"I64","shape":[1],"data_offsets":[11,19]}}   )";
  const std::string bytes = file_of(header, data);
  const Safetensors in = load_safetensors(bytes.data(), bytes.size());
  ASSERT_EQ(in.tensors.size(), 5u);
  EXPECT_EQ(in.metadata.at("made by"), "hand");
  ASSERT_NE(in.find("w"), nullptr);
  EXPECT_EQ(in.find("none"), nullptr);
  EXPECT_EQ(in.find("w")->data_ptr<float>()[1], -2.5f);
  EXPECT_EQ(in.find("b")->sizes(), IntArrayRef({1, 2}));
  EXPECT_TRUE(in.find("b")->data_ptr<bool>()[0]);
  EXPECT_EQ(in.find("u")->dim(), 0);
  EXPECT_EQ(*in.find("u")->data_ptr<uint8_t>(), 7);
  EXPECT_EQ(in.find("empty")->sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(*in.find("l")->data_ptr<int64_t>(), -1);
}

TEST(Safetensors, WritesExactlyThis) {
  Safetensors out;
  out.tensors.emplace_back("small", of<uint8_t>({1, 2, 3}, {3}));
  out.tensors.emplace_back("b", of<float>({1.0f}, {1, 1}));
  out.tensors.emplace_back("a", of<float>({-2.5f, 0.0f}, {2}));
  out.metadata["k"] = "v";
  // The checksum is that of an implementation in Python.
  const std::string header =
      R"({"__metadata__":{"k":"v","xxh64":"0f85cb604c70d5b5"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},"small":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string data =
      std::string("\x00\x00\x20\xc0\x00\x00\x00\x00\x00\x00\x80\x3f", 12) + "\x01\x02\x03";
  EXPECT_EQ(written(out), file_of(padded, data));
  const Safetensors in = load_safetensors(written(out).data(), written(out).size());
  EXPECT_EQ(in.metadata, out.metadata) << "the checksum belongs to the file, not to its content";
}

TEST(Safetensors, EveryTypeAndLayoutComesBack) {
  Safetensors out;
  for (int i = 0; i < kScalarTypes; ++i) {
    Tensor t(TensorBase::empty({3, 4}, static_cast<ScalarType>(i), Device(kCPU, 0)));
    auto* p = static_cast<unsigned char*>(t.data_ptr());
    for (size_t k = 0; k < t.nbytes(); ++k)
      p[k] = static_cast<unsigned char>(t.scalar_type() == kBool ? k % 2 : k * 53 + 7);
    out.tensors.emplace_back("t" + std::to_string(i), t);
  }
  const Tensor base = out.tensors.back().second;  // float64
  out.tensors.emplace_back("transposed", base.t());
  out.tensors.emplace_back("part", base.slice(0, 1, 3));
  const std::string bytes = written(out);
  const Safetensors in = load_safetensors(bytes.data(), bytes.size());
  for (const auto& [name, t] : out.tensors) {
    const Tensor* back = in.find(name);
    ASSERT_NE(back, nullptr) << name;
    ASSERT_EQ(back->scalar_type(), t.scalar_type());
    ASSERT_EQ(back->sizes(), t.sizes());
    const Tensor dense = t.contiguous();
    EXPECT_EQ(std::memcmp(back->data_ptr(), dense.data_ptr(), dense.nbytes()), 0) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(back->data_ptr()) % back->element_size(), 0u);
  }
}

TEST(Safetensors, FilesAreWholeOrAbsent) {
  const std::string path = temporary("whole");
  Safetensors first, second;
  first.tensors.emplace_back("x", of<float>({1, 2, 3}, {3}));
  second.tensors.emplace_back("x", Tensor());
  save_safetensors(path, first);
  EXPECT_THROW(save_safetensors(path, second), Error);  // an undefined tensor: the old file stays
  EXPECT_EQ(load_safetensors(path).find("x")->data_ptr<float>()[2], 3.0f);
  EXPECT_THROW(save_safetensors("/nonexistent-folder/x", first), Error);
  ::unlink(path.c_str());
  EXPECT_THROW(load_safetensors(path), Error);
}

TEST(Safetensors, SavingRefuses) {
  const auto error = [](const Safetensors& s) {
    try {
      written(s);
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string("no error");
  };
  const Tensor t = of<float>({1}, {1});
  Safetensors s;
  s.tensors = {{"a", t}, {"a", t}};
  expect_part(error(s), "got \"a\" twice");
  s.tensors = {{"__metadata__", t}};
  expect_part(error(s), "reserves");
  s.tensors = {{"\xff", t}};
  expect_part(error(s), "UTF-8");
  s.tensors = {{"a", t}};
  s.metadata["xxh64"] = "mine";
  expect_part(error(s), "reserved for the checksum");
  EXPECT_THROW(save_safetensors([](const void*, size_t) { return size_t{1}; }, Safetensors()),
               Error);
}

TEST(Safetensors, StrictAboutTheHeader) {
  const auto header_error = [](const std::string& header, size_t data) {
    return error_of(file_of(header, std::string(data, '\0')));
  };
  const std::string good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(header_error(good, 4), "no error");
  EXPECT_EQ(header_error("{}", 0), "no error");
  expect_part(error_of("abc"), "truncated: got 3 bytes, expected at least 8");
  expect_part(error_of(file_of(good, "0123").substr(0, 30)),
              "truncated: got 30 bytes, expected a header of 54");
  expect_part(error_of(std::string(8, '\xff') + good),
              "is no safetensors file: got a header of 18446744073709551615 bytes");
  expect_part(header_error("", 0), "expected its header to begin with {");
  expect_part(header_error("[1]", 0), "expected its header to begin with {");
  expect_part(header_error("{\"a\":", 0), "no valid JSON");
  expect_part(header_error("{} x", 0), "no valid JSON");
  const std::string long_text = header_error("{\"" + std::string(5000, 'a') + "\\q\":1}", 0);
  expect_part(long_text, "no valid JSON");
  EXPECT_LT(long_text.size(), 300u) << "one line that can be read";
  expect_part(
      header_error(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          8),
      "got the key \"a\" twice");
  expect_part(
      header_error(R"({"a":{"dtype":"F32","dtype":"I32","shape":[1],"data_offsets":[0,4]}})", 4),
      "got the key \"dtype\" twice");
  // Which a message that showed it would call itself for.
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  expect_part(header_error(R"({"a":{"dtype":)" + deep + "}}", 0), "nested deeper than 16");
  expect_part(header_error(R"({"a":3})", 0),
              "entry \"a\" of \"f\": got JSON of type number, expected an object");
  expect_part(header_error(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "got no \"data_offsets\"");
  expect_part(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
              "got 4 members");
  expect_part(header_error(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1),
              "dtype: got \"F8_E4M3\"");
  expect_part(header_error(R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4),
              "dtype: got 7");
  for (const char* shape : {"[-1]", "[1.0]", "[\"1\"]", "{}", "3", "[9223372036854775808]"}) {
    expect_part(header_error(R"({"a":{"dtype":"F32","shape":)" + std::string(shape) +
                                 R"(,"data_offsets":[0,4]}})",
                             4),
                "shape: got ");
  }
  expect_part(
      header_error(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})",
                   4),
      "too large");
  for (const char* offsets : {"[0]", "[0,4,8]", "[-4,0]", "[0.5,4]", "null"}) {
    expect_part(
        header_error(
            R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + std::string(offsets) + "}}", 4),
        "data_offsets: got ");
  }
  expect_part(header_error(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
              "expected a range inside the 4 bytes");
  expect_part(header_error(good, 3), "expected a range inside the 3 bytes");
  expect_part(header_error(good, 5), "got 5 bytes of data, expected 4");
  expect_part(header_error(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              "got 4 bytes, expected 8 for F32 of shape [2]");
  const std::string two =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":)";
  EXPECT_EQ(header_error(two + "[4,8]}}", 8), "no error");
  expect_part(header_error(two + "[3,7]}}", 7),
              "entry \"b\" of \"f\" overlaps another: got begin 3, expected 4");
  expect_part(header_error(two + "[5,9]}}", 9),
              "gap before entry \"b\" of \"f\": got begin 5, expected 4");
  expect_part(header_error(R"({"__metadata__":{"a":1}})", 0), "expected a text");
  expect_part(header_error(R"({"__metadata__":"a"})", 0), "expected an object");
  expect_part(
      error_of(file_of(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\x02")),
      "got a bool of byte 2");
}

// For files of any writer: the header's spaces and the order of its entries do not count.
TEST(Safetensors, ChecksumsOfOtherWriters) {
  const auto file = [](const std::string& checksum) {
    return file_of(
        R"({ "small": {"shape": [3], "data_offsets": [12, 15], "dtype": "U8"},)"
        R"( "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},)"
        R"( "b": {"dtype": "F32", "shape": [1, 1], "data_offsets": [8, 12]},)"
        R"( "__metadata__": {)" +
            checksum + R"("k": "v"} })",
        std::string("\x00\x00\x20\xc0\x00\x00\x00\x00\x00\x00\x80\x3f", 12) + "\x01\x02\x03");
  };
  EXPECT_EQ(error_of(file(R"("xxh64": "0f85cb604c70d5b5", )")), "no error");
  EXPECT_EQ(error_of(file("")), "no error") << "other programs write none";
  expect_part(error_of(file(R"("xxh64": "0f85cb604c70d5b6", )")),
              "\"f\" is damaged: got content with the checksum 0f85cb604c70d5b5, expected "
              "0f85cb604c70d5b6");
  expect_part(error_of(file(R"("xxh64": "", )")), "is damaged");
}

// No byte of a file may be lost, added or changed without an error. (A damaged name of the checksum
// makes it a file of another program; then all else must be as it was.)
TEST(Safetensors, DamagedFilesAreRefused) {
  Safetensors out;
  out.tensors.emplace_back("weight", of<float>({1, 2, 3, 4}, {2, 2}));
  out.tensors.emplace_back("count", of<int64_t>({5}, {}));
  out.metadata["k"] = "v";
  const std::string good = written(out);
  for (size_t n = 0; n < good.size(); ++n) EXPECT_NE(error_of(good.substr(0, n)), "no error") << n;
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      if (error_of(bad) != "no error") continue;
      const Safetensors in = load_safetensors(bad.data(), bad.size());
      EXPECT_EQ(in.metadata.at("k"), "v") << at;
      ASSERT_EQ(in.tensors.size(), 2u) << at;
      EXPECT_EQ(*in.find("count")->data_ptr<int64_t>(), 5) << at;
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(in.find("weight")->data_ptr<float>()[i], static_cast<float>(i + 1)) << at;
    }
  }
}

}  // namespace
}  // namespace ramet
