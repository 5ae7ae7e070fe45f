// Printing: the texts are LibTorch's, for all strides, streams and widths of a line. Each format
// has an example here; random tensors are those of tests/tools/print_golden_test.cc.
#include "runtime/tensor/print.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"

namespace ramet {
namespace {

const Device kHere(kCPU, 0);

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

template <class T> void put(void* p, double v) {
  const T value = static_cast<T>(v);
  std::memcpy(p, &value, sizeof value);
}
void store(void* p, ScalarType t, double v) {
  switch (t) {
    case kBool: return put<bool>(p, v);
    case kByte: return put<uint8_t>(p, v);
    case kChar: return put<int8_t>(p, v);
    case kShort: return put<int16_t>(p, v);
    case kInt: return put<int32_t>(p, v);
    case kLong: return v < 0x1p63 ? put<int64_t>(p, v) : void(std::memcpy(p, &kMost, sizeof kMost));
    case kHalf: return put<Half>(p, static_cast<float>(v));
    case kBFloat16: return put<BFloat16>(p, static_cast<float>(v));
    case kFloat: return put<float>(p, v);
    default: return put<double>(p, v);
  }
}
// The same elements in memory of other strides: dimensions in reverse order, every second place,
// with an offset.
TensorBase filled(ScalarType t, const std::vector<int64_t>& sizes,
                  const std::vector<double>& values, bool scrambled) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = scrambled ? 2 : 1, n = 1;
  for (const int64_t s : sizes) n *= s;
  if (scrambled)
    for (size_t d = 0; d < sizes.size(); ++d)
      strides[d] = step, step *= std::max<int64_t>(sizes[d], 1);
  else strides = contiguous_strides(sizes);
  TensorBase memory = TensorBase::empty({2 * n + 3}, t, kHere);
  std::memset(memory.ptr(), 0x11, memory.nbytes());
  TensorBase out(memory.view_impl(sizes, strides, scrambled ? 3 : 0));
  std::vector<int64_t> index(sizes.size(), 0);
  for (const double v : values) {
    int64_t at = 0;
    for (size_t d = 0; d < sizes.size(); ++d) at += index[d] * strides[d];
    store(static_cast<char*>(out.ptr()) + at * static_cast<int64_t>(item_size(t)), t, v);
    for (size_t d = sizes.size(); d-- > 0 && ++index[d] == sizes[d];) index[d] = 0;
  }
  return out;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();
struct Case {
  ScalarType dtype;
  std::vector<int64_t> sizes;
  std::vector<double> values;
  const char* text;
};
// What LibTorch 2.15 prints, line by line.
// clang-format off
const Case kCases[] = {
    {kFloat, {}, {3.14159265},
     "3.1415927410125732\n"
     "[ CPUFloatType{} ]"},
    {kFloat, {3}, {1, 2, 3},
     " 1\n"
     " 2\n"
     " 3\n"
     "[ CPUFloatType{3} ]"},
    {kFloat, {3}, {1.5, 2, 3},
     " 1.5000\n"
     " 2.0000\n"
     " 3.0000\n"
     "[ CPUFloatType{3} ]"},
    {kFloat, {3}, {0.001, 0.002, 0.003},
     "0.001 *\n"
     " 1.0000\n"
     " 2.0000\n"
     " 3.0000\n"
     "[ CPUFloatType{3} ]"},
    {kFloat, {3}, {1e-5, 2, 3},
     " 1.0000e-05\n"
     " 2.0000e+00\n"
     " 3.0000e+00\n"
     "[ CPUFloatType{3} ]"},
    {kLong, {3}, {-12345, 2, 3},
     "-12345\n"
     "     2\n"
     "     3\n"
     "[ CPULongType{3} ]"},
    {kFloat, {4}, {kNan, kInf, -kInf, 1.5},
     "    nan\n"
     "    inf\n"
     "   -inf\n"
     " 1.5000\n"
     "[ CPUFloatType{4} ]"},
    {kBool, {2}, {1, 0},
     " 1\n"
     " 0\n"
     "[ CPUBoolType{2} ]"},
    {kFloat, {0}, {}, "[ CPUFloatType{0} ]"},
    {kFloat, {2, 0, 3}, {}, "[ CPUFloatType{2,0,3} ]"},
    {kFloat, {2, 2}, {1, 2, 3, 4},
     " 1  2\n"
     " 3  4\n"
     "[ CPUFloatType{2,2} ]"},
    {kDouble, {2, 2}, {1e-120, 2e200, 3, 4},
     " 1.0000e-120  2.0000e+200\n"
     "  3.0000e+00   4.0000e+00\n"
     "[ CPUDoubleType{2,2} ]"},
    {kLong, {1, 30}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
     22, 23, 24, 25, 26, 27, 28, 29, 30},
     "Columns 1 to 20  1   2   3   4   5   6   7   8   9  10  11  12  13  14  15  16  17  18  19 "
     " 20\n"
     "\n"
     "Columns 21 to 30 21  22  23  24  25  26  27  28  29  30\n"
     "[ CPULongType{1,30} ]"},
    {kFloat, {2, 2, 2}, {0.001, 0.002, 0.003, 0.004, 0.005, 6, 7, 8},
     "(1,.,.) = \n"
     "0.001 *\n"
     "  1.0000  2.0000\n"
     "   3.0000  4.0000\n"
     "\n"
     "(2,.,.) = \n"
     " 0.0050  6.0000\n"
     "  7.0000  8.0000\n"
     "[ CPUFloatType{2,2,2} ]"},
    {kFloat, {1, 2}, {0.00001, 0.00002},
     "1e-05 *\n"
     " 1.0000  2.0000\n"
     "[ CPUFloatType{1,2} ]"},
    {kHalf, {2}, {0.1, 65504},
     " 9.9976e-02\n"
     " 6.5504e+04\n"
     "[ CPUHalfType{2} ]"},
    {kFloat, {1, 2}, {99999.5, 1},
     " 99999.5000      1.0000\n"
     "[ CPUFloatType{1,2} ]"},
    {kDouble, {}, {1e16},
     "1e+16\n"
     "[ CPUDoubleType{} ]"},
    {kDouble, {}, {-0.0},
     "-0\n"
     "[ CPUDoubleType{} ]"},
    {kFloat, {2}, {12345678, 1},
     "1.23457e+07\n"
     "        1\n"
     "[ CPUFloatType{2} ]"},
    {kDouble, {2, 14}, {0.082086, 0.080609, -0.079821, -0.074723, 0.06039, 0.042475, 0.030551,
     -0.034535, 0.01907, 0.019224, 0.014617, -0.061491, -0.012479, -0.019164, 0.040142, 0.089068,
     0.080891, 0.007952, -0.009926, -0.041717, -0.083534, -0.08506, -0.006319, -0.032676,
     -0.021597, 0.070522, 0.004635, 0.010892},
     "Columns 1 to 100.01 *\n"
     " 8.2086  8.0609 -7.9821 -7.4723  6.0390  4.2475  3.0551 -3.4535  1.9070  1.9224\n"
     "  4.0142  8.9068  8.0891  0.7952 -0.9926 -4.1717 -8.3534 -8.5060 -0.6319 -3.2676\n"
     "\n"
     "Columns 11 to 140.01 *\n"
     " 1.4617 -6.1491 -1.2479 -1.9164\n"
     " -2.1597  7.0522  0.4635  1.0892\n"
     "[ CPUDoubleType{2,14} ]"},
    {kDouble, {2, 2, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7},
     "(1,1,.,.) = \n"
     " 0  1\n"
     "\n"
     "(2,1,.,.) = \n"
     " 4  5\n"
     "\n"
     "(1,2,.,.) = \n"
     " 2  3\n"
     "\n"
     "(2,2,.,.) = \n"
     " 6  7\n"
     "[ CPUDoubleType{2,2,1,2} ]"},
    // The factor of the least denormal number is 0.
    {kDouble, {1}, {5e-324},
     "0 *\n"
     "    inf\n"
     "[ CPUDoubleType{1} ]"},
    {kLong, {2}, {-0x1p63, 0x1p63},  // the second: INT64_MAX
     "-9.2234e+18\n"
     " 9.2234e+18\n"
     "[ CPULongType{2} ]"},
    {kLong, {}, {-0x1p63},
     "-9.223372036854776e+18\n"
     "[ CPULongType{} ]"},
};
// clang-format on

TEST(Print, IsLibTorchs) {
  for (const Case& c : kCases)
    for (const bool scrambled : {false, true}) {
      std::ostringstream out;
      out << filled(c.dtype, c.sizes, c.values, scrambled);
      EXPECT_EQ(out.str(), c.text) << "scrambled: " << scrambled;
    }
}

TEST(Print, LineSize) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.push_back(i);
  std::ostringstream out;
  print(out, filled(kLong, {1, 20}, values, false), 40);
  EXPECT_EQ(out.str(),
            "Columns 1 to 10  0   1   2   3   4   5   6   7   8   9\n"
            "\n"
            "Columns 11 to 20 10  11  12  13  14  15  16  17  18  19\n"
            "[ CPULongType{1,20} ]");
  std::ostringstream narrow;  // narrower than a number: one column at a time
  print(narrow, filled(kLong, {1, 2}, {0, 1}, false), 1);
  EXPECT_EQ(narrow.str(), "Columns 1 to 1 0\n\nColumns 2 to 2 1\n[ CPULongType{1,2} ]");
}

TEST(Print, StreamSettingsAreNeitherUsedNorChanged) {
  std::ostringstream out;
  out << std::setprecision(3) << std::scientific << std::left << std::setfill('*');
  out << filled(kFloat, {2}, {1.5, 2.25}, false) << "\n" << 1.23456789;
  EXPECT_EQ(out.str(), " 1.5000\n 2.2500\n[ CPUFloatType{2} ]\n1.235e+00");
}

TEST(Print, TheWidthIsForWhatFollows) {
  for (const TensorBase& t : {filled(kFloat, {1}, {1.5}, false), TensorBase()}) {
    std::ostringstream out, plain;
    out << std::setfill('*') << std::setw(8) << t << 1.25;
    plain << t << "****1.25";
    EXPECT_EQ(out.str(), plain.str());
  }
}

TEST(Print, WithoutScientificNumbers) {  // LibTorch's texts
  const auto text = [](const std::vector<double>& v, const std::vector<int64_t>& sizes) {
    std::ostringstream out;
    out << filled(kDouble, sizes, v, false);
    return out.str();
  };
  set_printoption_sci_mode(false);
  EXPECT_EQ(text({1e10, 2}, {2}), "10000000000.0000\n     2.0000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(text({1e-10, 2.5}, {1, 2}), "     0.0000      2.5000\n[ CPUDoubleType{1,2} ]");
  EXPECT_EQ(text({1e-120, .5}, {2}), "      0.0000\n      0.5000\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(text({1e-20}, {1}), "1e-20 *\n 1.0000\n[ CPUDoubleType{1} ]");
  EXPECT_EQ(text({12345678, 1}, {2}), "1.23457e+07\n        1\n[ CPUDoubleType{2} ]");
  EXPECT_EQ(text({1e20}, {}), "1e+20\n[ CPUDoubleType{} ]");
  set_printoption_sci_mode(true);
  EXPECT_EQ(text({1e-10, 2.5}, {1, 2}), " 1.0000e-10  2.5000e+00\n[ CPUDoubleType{1,2} ]");
}

TEST(Print, UndefinedAndTypes) {
  std::ostringstream out;
  out << TensorBase();
  EXPECT_EQ(out.str(), "[ Tensor (undefined) ]");
  EXPECT_EQ(type_string(TensorBase::empty({}, kBFloat16, Device(kCPU, 3))), "CPUBFloat16Type");
}

TEST(Print, ToStandardOutput) {
  testing::internal::CaptureStdout();
  print(filled(kInt, {2}, {1, -2}, true));  // no newline, as LibTorch's
  EXPECT_EQ(testing::internal::GetCapturedStdout(), " 1\n-2\n[ CPUIntType{2} ]");
}

TEST(Print, ShortestText) {
  for (const double v : {0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789012345680.0, 1e22,
                         1e-4, 9.999e-5, 1234.5, -0.0625}) {
    EXPECT_EQ(std::strtod(shortest_text(v).c_str(), nullptr), v);
    EXPECT_LE(shortest_text(v).size(), 24u);
  }
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(shortest_text(9999999999999998), "9999999999999998");
}

TEST(Print, ReadsAnyStrides) {
  const std::vector<double> all = to_doubles(filled(kShort, {2, 3}, {1, 2, 3, 4, 5, 6}, true));
  EXPECT_EQ(all, (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(to_doubles(TensorBase::empty({0, 3}, kFloat, kHere)).empty());
  EXPECT_EQ(to_doubles(filled(kBool, {}, {1}, false)), std::vector<double>{1});
}

}  // namespace
}  // namespace ramet
