#include "kernels/pointwise/nary_sum.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;

struct Leaf {
  bool there;
  float value;
};

// The definition: a balanced tree over positions, absent leaves pass through.
Leaf tree(const std::vector<Leaf>& v, size_t first, size_t count) {
  if (count == 1) return first < v.size() ? v[first] : Leaf{false, 0};
  const Leaf a = tree(v, first, count / 2), b = tree(v, first + count / 2, count / 2);
  return !a.there ? b : !b.there ? a : Leaf{true, a.value + b.value};
}
float expected(const std::vector<Leaf>& v, bool as_tree) {
  if (as_tree) {
    size_t positions = 1;
    while (positions < v.size()) positions *= 2;
    return tree(v, 0, positions).value;
  }
  Leaf s{false, 0};
  for (const Leaf& x : v)
    if (x.there) s = s.there ? Leaf{true, s.value + x.value} : x;
  return s.value;
}

NarySumArgs args(const std::vector<const Buffer*>& in, Buffer& out, bool as_tree) {
  NarySumArgs a{};
  for (size_t j = 0; j < in.size(); ++j) a.in[j] = in[j] ? in[j]->data() : nullptr;
  a.out = out.data(), a.n = out.size, a.leaves = static_cast<int32_t>(in.size()),
  a.dtype = out.dtype, a.tree = as_tree;
  return a;
}

TEST(NarySum, AnySetOfLeavesInBothOrders) {
  Values v(1);
  for (int leaves = 1; leaves <= 16; ++leaves)
    for (int pattern = 0; pattern < 12; ++pattern) {
      const int64_t n = 1 + v.below(700);
      std::vector<Buffer> data;
      std::vector<const Buffer*> in;
      for (int j = 0; j < leaves; ++j)
        data.emplace_back(n, kFloat), data.back().fill(v, std::exp(8 * v.unit()));
      for (int j = 0; j < leaves; ++j)
        in.push_back(pattern == 0 || v.below(3) ? &data[static_cast<size_t>(j)] : nullptr);
      in[static_cast<size_t>(v.below(leaves))] = &data[0];
      for (bool as_tree : {false, true})
        raw::for_each_variant([&](Variant) {
          Buffer out(n, kFloat);
          nary_sum(raw::kCpuStream, args(in, out, as_tree));
          ASSERT_TRUE(out.guards_intact());
          for (int64_t i = 0; i < n; ++i) {
            std::vector<Leaf> leaf;
            for (const Buffer* b : in)
              leaf.push_back(b ? Leaf{true, static_cast<float>((*b)[i])} : Leaf{false, 0});
            ASSERT_EQ(out.as<float>()[i], expected(leaf, as_tree))
                << leaves << " leaves, tree " << as_tree << ", element " << i;
          }
        });
    }
}

TEST(NarySum, TheOrderShows) {  // 1e8, 1, -1e8, 1: fixed gives 1, the tree 0
  Buffer a(1, kFloat), b(1, kFloat), c(1, kFloat), d(1, kFloat), out(1, kFloat);
  a.fill(1e8), b.fill(1), c.fill(-1e8), d.fill(1);
  nary_sum(raw::kCpuStream, args({&a, &b, &c, &d}, out, false));
  EXPECT_EQ(out[0], 1);
  nary_sum(raw::kCpuStream, args({&a, &b, &c, &d}, out, true));
  EXPECT_EQ(out[0], 0);
}

TEST(NarySum, EveryType) {
  raw::for_each_variant([](Variant) {
    for (ScalarType t :
         {kBool, kByte, kChar, kShort, kInt, kLong, kHalf, kBFloat16, kFloat, kDouble}) {
      Buffer a(600, t), b(600, t), c(600, t), out(600, t), want(600, t);
      Values v(static_cast<uint64_t>(t) + 2);
      a.fill(v), b.fill(v), c.fill(v);
      nary_sum(raw::kCpuStream, args({&a, nullptr, &b, &c}, out, false));
      for (int64_t i = 0; i < 600; ++i) {
        if (t == kDouble) want.set(i, a[i] + b[i] + c[i]);
        else if (is_floating(t))
          want.set(i,
                   static_cast<float>(a[i]) + static_cast<float>(b[i]) + static_cast<float>(c[i]));
        else want.set(i, t == kBool ? a[i] + b[i] + c[i] > 0 : a[i] + b[i] + c[i]);
      }
      EXPECT_TRUE(out.same_bits(want)) << short_name_of(t);
    }
    Buffer a(1, kChar), b(1, kChar), out(1, kChar);
    a.fill(100), b.fill(100);
    nary_sum(raw::kCpuStream, args({&a, &b}, out, true));
    EXPECT_EQ(out[0], -56);
  });
}

TEST(NarySum, IntoAnyOfItsLeaves) {
  for (int leaves : {2, 3, 4, 8})
    for (int which = 0; which < leaves; ++which)
      for (bool as_tree : {false, true}) {
        std::vector<Buffer> data;
        Values v(4);
        for (int j = 0; j < leaves; ++j) data.emplace_back(1000, kFloat), data.back().fill(v);
        std::vector<const Buffer*> in;
        for (const Buffer& b : data) in.push_back(&b);
        Buffer want(1000, kFloat);
        nary_sum(raw::kCpuStream, args(in, want, as_tree));
        nary_sum(raw::kCpuStream, args(in, data[static_cast<size_t>(which)], as_tree));
        EXPECT_TRUE(data[static_cast<size_t>(which)].same_bits(want));
      }
}

TEST(NarySum, SameBitsForAnyThreadsLengthAndVariant) {
  for (int leaves : {4, 5}) {
    std::vector<Buffer> data;
    Values v(4);
    for (int j = 0; j < leaves; ++j) data.emplace_back(100003, kFloat), data.back().fill(v, 1 + j);
    std::vector<const Buffer*> in;
    for (const Buffer& b : data) in.push_back(&b);
    Buffer all(100003, kFloat);
    raw::expect_same_bits(all, [&](Buffer& y) { nary_sum(raw::kCpuStream, args(in, y, true)); });
    for (int64_t begin = 0; begin < 16; ++begin)
      for (int64_t n = 1; n <= 67; ++n) {
        Buffer part(n, kFloat);
        NarySumArgs a = args(in, part, true);
        for (int j = 0; j < leaves; ++j) a.in[j] = static_cast<const float*>(a.in[j]) + begin;
        nary_sum(raw::kCpuStream, a);
        ASSERT_EQ(std::memcmp(part.data(), all.as<float>() + begin, static_cast<size_t>(n) * 4), 0);
      }
  }
}

// more than 8 Mi elements: the streamed stores and the tail after them
TEST(NarySum, StreamsPastTheCache) {
  const int64_t n = (int64_t{8} << 20) + 37;
  Buffer a(n, kFloat), b(n, kFloat), out(n, kFloat);
  Values v(2);
  a.fill(v), b.fill(v);
  nary_sum(raw::kCpuStream, args({&a, &b}, out, true));
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(out.as<float>()[i], a.as<float>()[i] + b.as<float>()[i]) << i;
  EXPECT_TRUE(out.guards_intact());
}

}  // namespace
}  // namespace ramet::kernels
