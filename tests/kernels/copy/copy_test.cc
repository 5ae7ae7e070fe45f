#include "kernels/copy/copy.h"

#include <limits>

#include "kernels/copy/coalesce.h"
#include "kernels/copy/copy_tensors.h"
#include "kernels/copy/fill.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;

constexpr ScalarType kAll[] = {kBool, kByte, kChar,     kShort, kInt,
                               kLong, kHalf, kBFloat16, kFloat, kDouble};

void copy(const Buffer& in, Buffer& out) {
  copy_dense(raw::kCpuStream, {in.data(), out.data(), out.size, in.dtype, out.dtype});
}

// What LibTorch 2.15 prints on x86-64 for torch.tensor(x).to(type), x float32 or float64.
TEST(Copy, FloatingPointToIntegerAsLibTorch) {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const double x[] = {nan, inf, -inf, 300.7, -300.7, 3e9, -3e9, 1e19, -1e19, -1.5, 255.9, -129.0};
  const int64_t as_char[] = {0, 0, 0, 44, -44, 0, 0, 0, 0, -1, -1, 127};
  const int64_t as_byte[] = {0, 0, 0, 44, 212, 0, 0, 0, 0, 255, 255, 127};
  const int64_t as_short[] = {0, 0, 0, 300, -300, 0, 0, 0, 0, -1, 255, -129};
  const int64_t low = INT32_MIN, low64 = INT64_MIN;
  const int64_t as_int[] = {low, low, low, 300, -300, low, low, low, low, -1, 255, -129};
  const int64_t as_long[] = {low64,       low64, low64, 300, -300, 3000000000,
                             -3000000000, low64, low64, -1,  255,  -129};
  raw::for_each_variant([&](Variant) {
    for (ScalarType from : {kFloat, kDouble}) {
      Buffer in(120, from);  // long enough for vector code and a tail
      for (int i = 0; i < 120; ++i) in.set(i, x[i % 12]);
      for (const auto& [to, want] : {std::pair{kChar, as_char}, std::pair{kByte, as_byte},
                                     std::pair{kShort, as_short}, std::pair{kInt, as_int}}) {
        Buffer out(120, to);
        copy(in, out);
        for (int i = 0; i < 120; ++i)
          EXPECT_EQ(out[i], static_cast<double>(want[i % 12]))
              << x[i % 12] << " to " << short_name_of(to);
      }
      Buffer out(120, kLong), truth(120, kBool);
      copy(in, out), copy(in, truth);
      for (int i = 0; i < 120; ++i) {
        EXPECT_EQ(out.as<int64_t>()[i], as_long[i % 12]) << x[i % 12];
        EXPECT_EQ(truth[i], 1);
      }
    }
  });
}

TEST(Copy, EveryTypeToEveryTypeAndBack) {
  raw::for_each_variant([&](Variant) {
    for (ScalarType from : kAll)
      for (ScalarType to : kAll) {
        Buffer in(1300, from), out(1300, to), want(1300, to);
        Values v(9);
        in.fill(v, 100);
        for (int64_t i = 0; i < in.size; ++i) {
          if (is_integral(to, false)) want.set(i, std::trunc(in[i]));
          else if (to == kHalf || to == kBFloat16) want.set(i, static_cast<float>(in[i]));
          else want.set(i, in[i]);
        }
        copy(in, out);
        EXPECT_TRUE(out.same_bits(want)) << short_name_of(from) << " to " << short_name_of(to);
        EXPECT_TRUE(out.guards_intact());
      }
  });
}

TEST(Copy, SixteenBitFloatsAgreeWithTheStorageTypesForEveryPattern) {
  raw::for_each_variant([&](Variant) {
    Buffer half(65536, kHalf), bfloat(65536, kBFloat16), wide(65536, kFloat), back(65536, kHalf),
        bback(65536, kBFloat16);
    for (int i = 0; i < 65536; ++i)
      half.as<Half>()[i].bits = bfloat.as<BFloat16>()[i].bits = static_cast<uint16_t>(i);
    copy(half, wide), copy(wide, back);
    for (int i = 0; i < 65536; ++i) {
      const float x = static_cast<float>(half.as<Half>()[i]);
      ASSERT_TRUE(std::isnan(x) ? std::isnan(wide[i]) && std::isnan(back[i])
                                : x == wide.as<float>()[i] && back.as<Half>()[i].bits == i);
    }
    copy(bfloat, wide), copy(wide, bback);
    for (int i = 0; i < 65536; ++i) {
      const float x = static_cast<float>(bfloat.as<BFloat16>()[i]);
      ASSERT_TRUE(std::isnan(x) ? std::isnan(wide[i]) && std::isnan(bback[i])
                                : x == wide.as<float>()[i] && bback.as<BFloat16>()[i].bits == i);
    }
    for (int i = 0; i < 65536; ++i) {  // floats between and around the representable ones
      const uint32_t u = static_cast<uint32_t>(i) * 65537u;
      std::memcpy(wide.as<float>() + i, &u, 4);
    }
    copy(wide, back), copy(wide, bback);
    for (int i = 0; i < 65536; ++i) {
      const float x = wide.as<float>()[i];
      ASSERT_EQ(back.as<Half>()[i].bits, Half(x).bits) << x;
      ASSERT_EQ(bback.as<BFloat16>()[i].bits, BFloat16(x).bits) << x;
    }
  });
}

TEST(Copy, StridesAgreeWithALoop) {
  Values v(4);
  for (int round = 0; round < 400; ++round) {
    const int rank = static_cast<int>(v.below(5));
    int64_t sizes[kMaxTensorRank], strides[2][kMaxTensorRank], extent[2];
    for (int d = 0; d < rank; ++d) sizes[d] = v.below(3) == 0 ? 20 + v.below(60) : 1 + v.below(4);
    for (int o = 0; o < 2; ++o) extent[o] = raw::random_strides(v, rank, sizes, o == 1, strides[o]);
    const ScalarType to = kAll[v.below(10)], from = v.below(3) ? to : kAll[v.below(10)];
    Buffer in(extent[1], from), out(extent[0], to);
    in.fill(v, 50), out.fill(v, 50);
    Buffer want = out;
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    for (int64_t i = 0; i < count; ++i) {
      const double x = in[raw::offset_of(i, rank, sizes, strides[1])];
      want.set(raw::offset_of(i, rank, sizes, strides[0]),
               is_integral(to, false) ? std::trunc(x) : x);
    }
    CopyStridedArgs k{};
    k.in = in.data(), k.out = out.data(), k.in_type = from, k.out_type = to;
    k.rank = v.below(2) ? coalesce<2>(rank, sizes, strides) : rank;
    for (int d = 0; d < k.rank; ++d)
      k.sizes[d] = sizes[d], k.out_strides[d] = strides[0][d], k.in_strides[d] = strides[1][d];
    const auto& variants = testing::variants_here();
    set_variant(variants[static_cast<size_t>(round) % variants.size()]);
    copy_strided(raw::kCpuStream, k);
    ASSERT_TRUE(out.guards_intact());
    ASSERT_TRUE(out.same_bits(want))
        << "round " << round << ", " << short_name_of(from) << " to " << short_name_of(to);
  }
}

TEST(Copy, TransposesOfEveryElementSize) {
  for (ScalarType t : {kByte, kShort, kFloat, kDouble})
    for (int64_t m : {1, 7, 16, 33, 260})
      for (int64_t n : {1, 9, 32, 131}) {
        Buffer in(2 * m * n, t), out(2 * m * n, t);
        Values v(6);
        in.fill(v);
        raw::expect_same_bits(out, [&](Buffer& y) {  // two matrices
          copy_strided(raw::kCpuStream,
                       {in.data(), y.data(), t, t, 3, {2, m, n}, {m * n, 1, m}, {m * n, n, 1}});
        });
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
              ASSERT_EQ(out[b * m * n + i * n + j], in[b * m * n + j * m + i]);
      }
}

TEST(Copy, LongRunsDoNotDependOnThreads) {
  Buffer in(100003, kFloat), out(100003, kHalf);
  Values v(8);
  in.fill(v);
  raw::expect_same_bits(out, [&](Buffer& y) { copy(in, y); });
  Buffer same(100003, kFloat);
  raw::expect_same_bits(same, [&](Buffer& y) { copy(in, y); });
  EXPECT_TRUE(same.same_bits(in));
}

TEST(Copy, NothingToCopy) {
  Buffer in(0, kFloat), out(0, kLong);
  copy(in, out);
  copy_strided(raw::kCpuStream, {in.data(), out.data(), kFloat, kLong, 2, {0, 3}, {3, 1}, {3, 1}});
  EXPECT_TRUE(out.guards_intact());
}

// Tensors of all sizes one after the other in one buffer, and back: every byte where it belongs.
TEST(CopyTensors, PackAndUnpack) {
  Values v(1);
  for (const int count : {1, 2, 7, kCopiedTensors}) {
    std::vector<Buffer> in, back;
    std::vector<int64_t> at;
    int64_t total = 0;
    for (int t = 0; t < count; ++t) {
      const int64_t n = t % 5 == 3 ? 0 : t % 7 == 1 ? 70'000 + v.below(9) : 1 + v.below(300);
      in.emplace_back(n, kByte), in.back().fill(v);
      back.emplace_back(n, kByte), back.back().fill(0.);
      at.push_back(total);
      total += n + v.below(3);
    }
    Buffer flat(total, kByte);
    raw::expect_same_bits(flat, [&](Buffer& out) {
      CopyTensorsArgs a{};
      a.count = count;
      for (int t = 0; t < count; ++t) {
        const auto i = static_cast<size_t>(t);
        a.tensors[t] = {in[i].data(), out.as<char>() + at[i], in[i].size};
      }
      copy_tensors(raw::kCpuStream, a);
    });
    CopyTensorsArgs a{};
    a.count = count;
    for (int t = 0; t < count; ++t) {
      const auto i = static_cast<size_t>(t);
      for (int64_t k = 0; k < in[i].size; ++k) ASSERT_EQ(flat[at[i] + k], in[i][k]) << t;
      a.tensors[t] = {flat.as<char>() + at[i], back[i].data(), in[i].size};
    }
    copy_tensors(raw::kCpuStream, a);
    for (size_t i = 0; i < in.size(); ++i) {
      EXPECT_TRUE(back[i].same_bits(in[i])) << i;
      EXPECT_TRUE(back[i].guards_intact()) << i;
    }
  }
}

TEST(CopyTensors, NothingAtAll) {
  CopyTensorsArgs a{};
  copy_tensors(raw::kCpuStream, a);
  a.count = 2;  // empty ones
  copy_tensors(raw::kCpuStream, a);
}

// ---- fills
// ---------------------------------------------------------------------------------------

uint64_t bits_of_value(double x, ScalarType t) {
  uint64_t bits = 0;
  raw::write(&bits, t, 0, x);
  return bits;
}

TEST(Fill, EveryTypeAnyLength) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t : kAll)
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
