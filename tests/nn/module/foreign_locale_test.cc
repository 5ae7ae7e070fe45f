// What the library prints and parses does not depend on the program's locale.
#include "tests/runtime/foreign_locale.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/ivalue.h"
#include "autograd/ops.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/module/sequential.h"
#include "nn/serialize/safetensors.h"
#include "tests/error_text.h"
#include "tests/modules.h"

namespace ramet {
namespace {

using testing::shown;

TEST(ForeignLocale, EveryModulePrintsAsEver) {
  std::vector<std::string> before;
  for (const testing::ModuleRow& row : testing::all_modules()) before.push_back(shown(*row.make()));
  const ForeignLocale locale;
  size_t i = 0;
  for (const testing::ModuleRow& row : testing::all_modules())
    EXPECT_EQ(shown(*row.make()), before[i++]) << row.name;
}

TEST(ForeignLocale, LargeNumbersAndFractions) {
  const ForeignLocale locale;
  EXPECT_EQ(shown(nn::Dropout(0.25)), "ramet::nn::Dropout(p=0.25, inplace=false)");
  EXPECT_EQ(shown(nn::Sequential(nn::Linear(1234, 5678))),
            "ramet::nn::Sequential(\n"
            "  (0): ramet::nn::Linear(in_features=1234, out_features=5678, bias=true)\n)");
  EXPECT_EQ(shown(nn::Conv2d(nn::Conv2dOptions(1024, 2, 3).padding(1000))),
            "ramet::nn::Conv2d(1024, 2, kernel_size=[3, 3], stride=[1, 1], padding=[1000, 1000])");
}

TEST(ForeignLocale, ErrorsIndicesAndValues) {
  const ForeignLocale locale;
  EXPECT_ERROR_TEXT(zeros({2, 3}).mm(zeros({12345, 2})), "[12345, 2]");
  using indexing::Slice, indexing::TensorIndex;
  EXPECT_EQ(shown(TensorIndex(Slice(1000, 2000, 2))), "1000:2000:2");
  EXPECT_EQ(shown(TensorIndex(12345)), "12345");
  EXPECT_EQ(shown(IValue(std::vector<double>{0.5, 1234567})), "[0.5, 1234567.]");
  EXPECT_EQ(shown(IValue(int64_t{1234567})), "1234567");
  EXPECT_EQ(shown(full({2}, 1234.5)), " 1234.5000\n 1234.5000\n[ CPUFloatType{2} ]");
}

TEST(ForeignLocale, FilesAreTheSame) {
  const auto written = [] {
    std::string bytes;
    serialize::save_safetensors(
        [&](const void* data, size_t n) {
          bytes.append(static_cast<const char*>(data), n);
          return n;
        },
        {{{"x", arange(2048).view({2, 1024})}}, {{"step", "1"}}});
    return bytes;
  };
  const std::string before = written();
  EXPECT_GT(before.size(), 8192u);
  const ForeignLocale locale;
  EXPECT_EQ(written(), before);
  EXPECT_EQ(serialize::load_safetensors(before.data(), before.size()).tensors.size(), 1u);
}

}  // namespace
}  // namespace ramet
