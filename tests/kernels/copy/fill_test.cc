#include "kernels/copy/fill.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

uint64_t bits_of_value(double x, ScalarType t) {
  uint64_t bits = 0;
  raw::write(&bits, t, 0, x);
  return bits;
}

TEST(Fill, EveryTypeAnyLength) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t :
         {kBool, kByte, kChar, kShort, kInt, kLong, kHalf, kBFloat16, kFloat, kDouble})
      for (int64_t n : {0, 1, 3, 17, 67, 50000}) {
        Buffer out(n, t);
        fill_dense(raw::kCpuStream,
                   {out.data(), n, bits_of_value(1, t), static_cast<int32_t>(item_size(t))});
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], 1);
        ASSERT_TRUE(out.guards_intact());
      }
  });
}

TEST(Fill, StridedTouchesOnlyItsElements) {
  Buffer out(6 * 50, kFloat);
  out.fill(-1);
  fill_strided(raw::kCpuStream,
               {out.as<float>() + 1, bits_of_value(7, kFloat), 4, 2, {6, 10}, {50, 3}});
  for (int64_t i = 0; i < 6; ++i)
    for (int64_t j = 0; j < 50; ++j)
      EXPECT_EQ(out[i * 50 + j], j >= 1 && j <= 28 && (j - 1) % 3 == 0 ? 7 : -1);
  fill_strided(raw::kCpuStream, {out.data(), bits_of_value(9, kFloat), 4, 0, {}, {}});
  EXPECT_EQ(out[0], 9);
  Buffer wide(1000 * 64, kHalf);
  raw::expect_same_bits(wide, [](Buffer& y) {
    fill_strided(raw::kCpuStream, {y.data(), bits_of_value(2, kHalf), 2, 2, {1000, 32}, {64, 2}});
  });
}

TEST(Fill, ArangeFromTheIndexAlone) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t : {kFloat, kDouble, kHalf}) {
      Buffer out(1500, t), want(1500, t);
      arange(raw::kCpuStream, {out.data(), 1500, 0.5, 0.1, 0, 0, t});
      for (int64_t i = 0; i < 1500; ++i)
        want.set(i, t == kHalf ? static_cast<float>(0.5 + static_cast<double>(i) * 0.1)
                               : 0.5 + static_cast<double>(i) * 0.1);
      EXPECT_TRUE(out.same_bits(want));
    }
    Buffer whole(1500, kInt), byte(300, kByte);
    arange(raw::kCpuStream, {whole.data(), 1500, 0, 0, 10, -3, kInt});
    for (int64_t i = 0; i < 1500; ++i) ASSERT_EQ(whole[i], static_cast<double>(10 - 3 * i));
    arange(raw::kCpuStream, {byte.data(), 300, 0, 0, 0, 1, kByte});
    EXPECT_EQ(byte[299], 299 - 256);
  });
  Buffer out(100001, kFloat);
  raw::expect_same_bits(out, [](Buffer& y) {
    arange(raw::kCpuStream, {y.data(), y.size, -1, 1.0 / 3, 0, 0, kFloat});
  });
}

TEST(Fill, LinspaceHasBothEnds) {
  for (int64_t n : {1, 2, 5, 101, 50001}) {
    Buffer out(n, kFloat);
    linspace(raw::kCpuStream, {out.data(), n, -1.3, 2.7, kFloat});
    EXPECT_EQ(out[0], -1.3f);
    EXPECT_EQ(out[n - 1], n > 1 ? 2.7f : -1.3f);
    for (int64_t i = 0; i < n && n > 1; ++i)
      ASSERT_NEAR(out[i], -1.3 + 4.0 * static_cast<double>(i) / static_cast<double>(n - 1), 3e-7);
  }
  Buffer whole(5, kLong);
  linspace(raw::kCpuStream, {whole.data(), 5, 0, 10, kLong});  // 0, 2.5, 5, 7.5, 10 truncated
  EXPECT_EQ(whole[1], 2);
  EXPECT_EQ(whole[3], 7);
}

}  // namespace
}  // namespace ramet::kernels
