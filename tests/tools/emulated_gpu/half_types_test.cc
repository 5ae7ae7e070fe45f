// 16-bit types against the compiler's own _Float16 and against a search over all values.
#include "tools/emulated_gpu/executor/half_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ramet::emulated {
namespace {

/// Floats of every exponent, ties between 16-bit neighbours, and the neighbours of those ties.
std::vector<float> interesting() {
  std::vector<float> list = {0.0f, -0.0f, INFINITY, -INFINITY, 65504.0f, 65519.0f, 65520.0f};
  for (uint32_t high = 0; high < 0x10000; high += 37)
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, 0x1000u, 0x2fffu})
      list.push_back(float_of(high << 16 | low));
  for (uint32_t half = 0; half < 0x7bff; ++half) {  // exactly between two halves
    const float middle = (half_to_float(uint16_t(half)) + half_to_float(uint16_t(half + 1))) / 2;
    list.insert(list.end(), {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)});
  }
  return list;
}

#if defined(__SSE2__) && defined(__GNUC__) && !defined(__clang__)

TEST(Half, DecodesAsTheCompilers) {
  for (uint32_t i = 0; i < 0x10000; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    _Float16 compilers;
    std::memcpy(&compilers, &bits, sizeof bits);
    const auto expected = static_cast<float>(compilers);
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(half_to_float(bits))) << i;
    else ASSERT_EQ(bits_of(half_to_float(bits)), bits_of(expected)) << i;
  }
}

TEST(Half, EncodesAsTheCompilers) {
  for (const float value : interesting()) {
    if (std::isnan(value)) continue;
    const auto compilers = static_cast<_Float16>(value);
    uint16_t expected;
    std::memcpy(&expected, &compilers, sizeof expected);
    ASSERT_EQ(float_to_half(value), expected) << value;
  }
}

TEST(Half, RoundsDoublesOnce) {
  // 1 + 2^-11 + 2^-40 is above the tie; rounded to float first it would be the tie, and go down.
  for (const double value : {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, -1 - 0x1p-11 - 0x1p-40,
                             65519.9999999, 65520.0, 0x1p-25 + 0x1p-60, 0x1p-25, 1e300, -1e-300}) {
    const auto compilers = static_cast<_Float16>(value);
    uint16_t expected;
    std::memcpy(&expected, &compilers, sizeof expected);
    EXPECT_EQ(__half(value).bits, expected) << value;
  }
}

#endif

TEST(Half, NaN) {
  EXPECT_EQ(float_to_half(NAN), 0x7fff);
  EXPECT_EQ(float_to_half(-NAN), 0x7fff);
  EXPECT_EQ(float_to_bfloat16(NAN), 0x7fff);
  EXPECT_EQ(float_to_bfloat16(float_of(0x7f800001)), 0x7fff);  // must not become infinity
  EXPECT_EQ(__half(double(NAN)).bits, 0x7fff);
}

// bfloat16 is the upper half of a float: the nearer of the two neighbours, or the even one.
TEST(BFloat16, RoundsToNearestEven) {
  for (const float value : interesting()) {
    if (std::isnan(value)) continue;
    const auto below = static_cast<uint16_t>(bits_of(value) >> 16);
    const auto above = static_cast<uint16_t>(below + 1);
    ASSERT_EQ(bits_of(bfloat16_to_float(below)), bits_of(value) & 0xffff0000u);
    const uint32_t rest = bits_of(value) & 0xffffu;
    const uint16_t expected = rest > 0x8000 || (rest == 0x8000 && (below & 1)) ? above : below;
    ASSERT_EQ(float_to_bfloat16(value), expected) << value;
  }
}

TEST(BFloat16, RoundsDoublesOnce) {
  EXPECT_EQ(__nv_bfloat16(1 + 0x1p-8 + 0x1p-40).bits, 0x3f81);
  EXPECT_EQ(__nv_bfloat16(1 + 0x1p-8).bits, 0x3f80);
  EXPECT_EQ(__nv_bfloat16(1 + 0x1p-8 - 0x1p-40).bits, 0x3f80);
}

TEST(Half, ComputesInFloat) {
  EXPECT_EQ(float(__half(1.0f) + __half(0x1p-11f)), 1.0f);  // a tie, to even
  EXPECT_EQ(float(__half(3) * __half(0.5)), 1.5f);
  __nv_bfloat16 x(2.0f);
  x += __nv_bfloat16(1.0f);
  x *= __nv_bfloat16(4.0f);
  EXPECT_EQ(float(x), 12.0f);
  EXPECT_EQ(float(-x / __nv_bfloat16(8)), -1.5f);
  EXPECT_EQ(__half22float2(__floats2half2_rn(1.5f, -2.0f)).y, -2.0f);
  EXPECT_EQ(__bfloat1622float2(__floats2bfloat162_rn(1.5f, -2.0f)).x, 1.5f);
}

}  // namespace
}  // namespace ramet::emulated
