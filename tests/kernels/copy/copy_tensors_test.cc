#include "kernels/copy/copy_tensors.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;

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

}  // namespace
}  // namespace ramet::kernels
