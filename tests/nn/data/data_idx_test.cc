// IDX files: every element type, plain and gzipped, and every way in which a file can be wrong.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "nn/data/idx.h"
#include "nn/data/mnist.h"
#include "tests/error_text.h"

namespace ramet {
namespace {

using data::read_idx;

class Idx : public ::testing::Test {
 protected:
  Idx() {
    const char* base = std::getenv("TEST_TMPDIR");
    folder_ = std::string(base ? base : "/tmp") + "/idx_" + std::to_string(::getpid()) + "_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_EQ(std::system(("rm -rf '" + folder_ + "' && mkdir -p '" + folder_ + "'").c_str()), 0);
  }
  ~Idx() override { EXPECT_EQ(std::system(("rm -rf '" + folder_ + "'").c_str()), 0); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string zip(const std::string& name, const std::string& bytes) const {
    gzFile f = gzopen(path(name).c_str(), "wb");
    EXPECT_EQ(gzwrite(f, bytes.data(), static_cast<unsigned>(bytes.size())),
              static_cast<int>(bytes.size()));
    EXPECT_EQ(gzclose(f), Z_OK);
    return path(name);
  }
  static std::string error_of(const std::string& file) {
    try {
      read_idx(file);
    } catch (const Error& e) { return e.what(); }
    return "no error";
  }
  std::string folder_;
};

std::string bytes(std::initializer_list<int> list) {
  std::string s;
  for (int b : list) s.push_back(static_cast<char>(b));
  return s;
}

TEST_F(Idx, ReadsEveryElementType) {
  const Tensor u8 =
      read_idx(put("u8", bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 253, 254, 255})));
  ASSERT_EQ(u8.sizes(), IntArrayRef({2, 3}));
  ASSERT_EQ(u8.scalar_type(), kByte);
  EXPECT_EQ(u8.data_ptr<uint8_t>()[0], 1);
  EXPECT_EQ(u8.data_ptr<uint8_t>()[5], 255);
  const Tensor i8 = read_idx(put("i8", bytes({0, 0, 9, 1, 0, 0, 0, 2, 0x7f, 0x80})));
  ASSERT_EQ(i8.scalar_type(), kChar);
  EXPECT_EQ(i8.data_ptr<int8_t>()[1], -128);
  const Tensor i16 =
      read_idx(put("i16", bytes({0, 0, 0xb, 1, 0, 0, 0, 2, 0x12, 0x34, 0xff, 0xfe})));
  ASSERT_EQ(i16.scalar_type(), kShort);
  EXPECT_EQ(i16.data_ptr<int16_t>()[0], 0x1234);
  EXPECT_EQ(i16.data_ptr<int16_t>()[1], -2);
  const Tensor i32 =
      read_idx(put("i32", bytes({0, 0, 0xc, 1, 0, 0, 0, 1, 0x12, 0x34, 0x56, 0x78})));
  ASSERT_EQ(i32.scalar_type(), kInt);
  EXPECT_EQ(i32.data_ptr<int32_t>()[0], 0x12345678);
  const Tensor f32 =
      read_idx(put("f32", bytes({0, 0, 0xd, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0})));
  ASSERT_EQ(f32.scalar_type(), kFloat);
  EXPECT_EQ(f32.data_ptr<float>()[0], 1.0f);
  EXPECT_EQ(f32.data_ptr<float>()[1], -2.5f);
  const Tensor f64 =
      read_idx(put("f64", bytes({0, 0, 0xe, 1, 0, 0, 0, 1, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0})));
  ASSERT_EQ(f64.scalar_type(), kDouble);
  EXPECT_EQ(f64.data_ptr<double>()[0], -1.0);
}

TEST_F(Idx, GzippedIsFoundByContentNotByName) {
  const std::string content = bytes({0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9});
  for (const std::string& file :
       {zip("a.gz", content), zip("plain-name", content), put("b.gz", content)}) {
    const Tensor t = read_idx(file);
    ASSERT_EQ(t.numel(), 3) << file;
    EXPECT_EQ(t.data_ptr<uint8_t>()[2], 9) << file;
  }
}

TEST_F(Idx, ScalarAndEmpty) {
  EXPECT_EQ(read_idx(put("scalar", bytes({0, 0, 8, 0, 5}))).dim(), 0);
  const Tensor none = read_idx(put("none", bytes({0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 3})));
  EXPECT_EQ(none.sizes(), IntArrayRef({0, 3}));
}

TEST_F(Idx, WrittenIsRead) {
  for (ScalarType type : {kByte, kChar, kShort, kInt, kFloat, kDouble}) {
    Tensor t(TensorBase::empty({3, 5}, type, Device(kCPU, 0)));
    auto* p = static_cast<unsigned char*>(t.data_ptr());
    for (size_t i = 0; i < t.nbytes(); ++i) p[i] = static_cast<unsigned char>(i * 37 + 11);
    for (const char* name : {"x", "x.gz"}) {
      data::write_idx(path(name), t);
      const Tensor back = read_idx(path(name));
      ASSERT_EQ(back.scalar_type(), type);
      ASSERT_EQ(back.sizes(), t.sizes());
      EXPECT_EQ(std::memcmp(back.data_ptr(), t.data_ptr(), t.nbytes()), 0) << name << ' ' << type;
    }
  }
  // The ending decides about compression: 1f 8b is gzip's magic number.
  std::ifstream zipped(path("x.gz"), std::ios::binary);
  EXPECT_EQ(zipped.get(), 0x1f);
  std::ifstream plain(path("x"), std::ios::binary);
  EXPECT_EQ(plain.get(), 0);
}

TEST_F(Idx, ErrorsNameFileAndFault) {
  const std::string good = bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
  expect_part(error_of(path("absent")),
              "cannot open the file: got \"" + path("absent") + "\" (No such file or directory)");
  expect_part(error_of(folder_), "not a file");
  expect_part(error_of(put("empty", "")), "truncated: got \"" + path("empty") +
                                              "\" with 0 bytes, expected a header of at least 4");
  expect_part(error_of(put("magic", bytes({1, 0, 8, 1, 0, 0, 0, 1, 5}))),
              "not an IDX file: got \"" + path("magic") + "\" with first bytes 01 00 08 01");
  expect_part(error_of(put("png", "\x89PNG....")), "not an IDX file");
  expect_part(error_of(put("type", bytes({0, 0, 0x0a, 1, 0, 0, 0, 1, 5}))), "unknown element type");
  expect_part(error_of(put("rank", bytes({0, 0, 8, 200}))),
              "rank in \"" + path("rank") + "\": got 200, expected at most 64");
  expect_part(error_of(put("header", good.substr(0, 9))),
              "ending inside its header, expected 12 bytes of header");
  expect_part(error_of(put("short", good.substr(0, good.size() - 2))),
              "with 4 elements, expected 6 (uint8[2, 3])");
  expect_part(error_of(put("long", good + "x")),
              "too long: got \"" + path("long") + "\" with content after its 6 elements");
  // An absurd size is refused before memory is asked for.
  expect_part(error_of(put("huge", bytes({0,   0,   8,   4,   255, 255, 255, 255, 255, 255, 255,
                                          255, 255, 255, 255, 255, 255, 255, 255, 255, 1}))),
              "too short for the uint8[4294967295, 4294967295, 4294967295, 4294967295] its header "
              "announces");
  expect_part(error_of(put("large", bytes({0, 0, 8, 1, 255, 255, 255, 255, 1}))), "too short for");
}

TEST_F(Idx, DamagedCompressionIsAnError) {
  std::string content = bytes({0, 0, 8, 1, 0, 0, 0x40, 0});
  for (int i = 0; i < 0x4000; ++i) content.push_back(static_cast<char>((i * 7919) >> 3));
  const std::string file = zip("good.gz", content);
  ASSERT_EQ(read_idx(file).numel(), 0x4000);
  std::ifstream in(file, std::ios::binary);
  const std::string packed{std::istreambuf_iterator<char>(in), {}};
  for (size_t cut : {size_t{12}, packed.size() / 2, packed.size() - 9, packed.size() - 1}) {
    expect_part(error_of(put("cut.gz", packed.substr(0, cut))), "truncated");
  }
  std::string checksum = packed;
  checksum[packed.size() - 6] ^= 1;
  expect_part(error_of(put("crc.gz", checksum)), "compressed data is damaged");
  // Any flipped bit is either noticed or, inside gzip's header, without influence.
  for (size_t at = 0; at < packed.size(); at += 11) {
    std::string flipped = packed;
    flipped[at] ^= 0x10;
    const std::string text = error_of(put("flipped.gz", flipped));
    if (at >= 10) { EXPECT_NE(text, "no error") << "byte " << at; }
  }
}

TEST_F(Idx, FindsPlainThenGzipped) {
  zip("a.gz", "x");
  EXPECT_EQ(data::find_idx(folder_, "a"), path("a.gz"));
  put("a", "x");
  EXPECT_EQ(data::find_idx(folder_ + "/", "a"), path("a"));
  try {
    data::find_idx(folder_, "b");
    FAIL();
  } catch (const Error& e) {
    expect_part(e.what(), "got neither \"" + path("b") + "\" nor \"b.gz\" beside it");
  }
}

// ---- MNIST --------------------------------------------------------------------------------------

class Mnist : public Idx {
 protected:
  void write(const std::string& part, int64_t n, int64_t labels, ScalarType label_type = kByte) {
    Tensor images(TensorBase::empty({n, 4, 3}, kByte, Device(kCPU, 0)));
    for (int64_t i = 0; i < images.numel(); ++i)
      images.data_ptr<uint8_t>()[i] = static_cast<uint8_t>(i * 5);
    data::write_idx(path(part + "-images-idx3-ubyte"), images);
    Tensor targets(TensorBase::empty({labels}, label_type, Device(kCPU, 0)));
    std::memset(targets.data_ptr(), 0, targets.nbytes());
    auto* p = static_cast<unsigned char*>(targets.data_ptr());
    for (int64_t i = 0; i < labels; ++i)
      p[static_cast<size_t>(i) * targets.element_size()] = static_cast<uint8_t>(i % 10);
    data::write_idx(path(part + "-labels-idx1-ubyte.gz"), targets);
  }
};

TEST_F(Mnist, ExamplesAreScaledImagesAndInt64Labels) {
  write("train", 13, 13);
  write("t10k", 2, 2, kInt);
  data::datasets::MNIST set(folder_);
  EXPECT_TRUE(set.is_train());
  ASSERT_EQ(set.size().value(), 13u);
  EXPECT_EQ(set.raw_images().sizes(), IntArrayRef({13, 1, 4, 3}));
  const data::Example<> e = set.get(12);
  ASSERT_EQ(e.data.sizes(), IntArrayRef({1, 4, 3}));
  ASSERT_EQ(e.target.dim(), 0);
  EXPECT_EQ(*e.target.data_ptr<int64_t>(), 2);
  for (int i = 0; i < 12; ++i)
    EXPECT_EQ(e.data.data_ptr<float>()[i], static_cast<float>((12 * 12 + i) * 5 % 256) / 255.0f);
  ASSERT_EQ(set.images().sizes(), IntArrayRef({13, 1, 4, 3}));
  EXPECT_EQ(
      std::memcmp(set.images().data_ptr<float>() + 12 * 12, e.data.data_ptr(), 12 * sizeof(float)),
      0);
  EXPECT_EQ(set.targets().data_ptr<int64_t>()[10], 0);
  EXPECT_THROW(set.get(13), IndexError);

  data::datasets::MNIST moved = std::move(set);
  EXPECT_EQ(set.size().value(), 13u) << "programs ask the size of a dataset they moved from";
  const data::datasets::MNIST test(folder_, data::datasets::MNIST::Mode::kTest);
  EXPECT_FALSE(test.is_train());
  EXPECT_EQ(test.size().value(), 2u);
}

TEST_F(Mnist, MismatchesAreErrors) {
  const auto error = [&] {
    try {
      data::datasets::MNIST set(folder_);
    } catch (const Error& e) { return std::string(e.what()); }
    return std::string("no error");
  };
  expect_part(error(), "file not found");
  write("train", 5, 4);
  expect_part(error(), "got 4, expected 5, one for each image");
  write("train", 5, 5, kFloat);
  expect_part(error(), "got float32[5], expected integers of 1 dimension");
  write("train", 5, 5);
  data::write_idx(path("train-images-idx3-ubyte"),
                  Tensor(TensorBase::empty({5, 2}, kByte, Device(kCPU, 0))));
  expect_part(error(), "got uint8[5, 2], expected uint8 of 3 or 4 dimensions");
}

}  // namespace
}  // namespace ramet
