// What tests of files of other programs share: known and random tensors, and a folder that is
// removed.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "autograd/ops.h"
#include "nn/module/ordered_dict.h"
#include "tests/error_text.h"
#include "tests/nn/fuzz/fuzz_files.h"

namespace ramet {

using Tensors = OrderedDict<std::string, Tensor>;

inline const std::string kGoldens = "tests/nn/formats/goldens/";
inline const Device kHost(kCPU, 0);

// make_goldens.py's values.
inline Tensor known(ScalarType dtype, std::vector<int64_t> sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  Tensor t(TensorBase::empty({n}, kDouble, kHost));
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(i);
    t.data_ptr<double>()[i] = dtype == kBool       ? static_cast<double>(i % 2)
                              : dtype == kByte     ? 5 * x + 1
                              : is_floating(dtype) ? x / 2 - 1.25
                                                   : 7 * x - 5;
  }
  return t.to(dtype).view(sizes);
}
inline void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  EXPECT_TRUE(fuzz::same_bytes(got, expected)) << what << ": got " << describe(got) << '\n' << got;
}

class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base ? base : "/tmp") + "/formats_" + std::to_string(::getpid());
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline const std::vector<ScalarType>& dtypes() {
  static const std::vector<ScalarType> list = {kBool, kByte, kChar,  kShort,  kInt,
                                               kLong, kHalf, kFloat, kDouble, kBFloat16};
  return list;
}

// Random bytes, and so every kind of NaN too.
inline Tensor any(ScalarType dtype, const std::vector<int64_t>& sizes, uint32_t seed) {
  Tensor t(TensorBase::empty(sizes, dtype, kHost));
  auto* p = static_cast<unsigned char*>(t.data_ptr());
  for (size_t i = 0; i < t.nbytes(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = static_cast<unsigned char>(dtype == kBool ? seed >> 31 : seed >> 24);
  }
  return t;
}
// All dtypes, 0-dim, empty, dense and not.
inline Tensors every_kind(bool with_bfloat16) {
  Tensors all;
  for (const ScalarType dtype : dtypes()) {
    if (dtype == kBFloat16 && !with_bfloat16) continue;
    const std::string name = short_name_of(dtype);
    all.insert(name, any(dtype, {2, 3}, 1));
    all.insert(name + "_0d", any(dtype, {}, 2));
    all.insert(name + "_empty", any(dtype, {0, 3}, 3));
    all.insert(name + "_strided", any(dtype, {4, 5, 3}, 4).transpose(0, 2).slice(1, 0, 5, 2));
    all.insert(name + "_large", any(dtype, {301, 17}, 5));
  }
  return all;
}
inline void expect_all(const Tensors& got, const Tensors& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& item : expected) {
    const Tensor* t = got.find(item.key());
    ASSERT_TRUE(t) << item.key();
    expect_same(*t, item.value(), item.key());
  }
}

}  // namespace ramet
