// Products in bfloat16, compared bit by bit with a model in integers. Every variant is compared,
// and the variant that has an instruction for pairs also without it.
#include "kernels/matrix/matmul.h"
#include "tests/kernels/float_modes.h"
#include "tests/kernels/matrix/bfloat_model.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels::raw {
namespace {

enum class Draw { kOrdinary, kAnyBits, kTiny, kHuge, kSpecial };

uint16_t draw(Values& v, Draw kind) {
  const auto any = static_cast<uint16_t>(v.bits() >> 40);
  const auto with = [&](int64_t lowest, int64_t n) {
    return static_cast<uint16_t>((any & 0x807f) | (lowest + v.below(n)) << 7);
  };
  constexpr uint16_t kSpecials[] = {0,      0x8000, 0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81, 0x0080,
                                    0x8080, 0x007f, 0x8001, 0x7f7f, 0xff7f, 0x3f80, 0xbf80, 0x1f80};
  switch (kind) {
    case Draw::kOrdinary: return with(120, 10);
    case Draw::kAnyBits: return any;
    case Draw::kTiny: return v.below(20) ? with(55, 12) : with(0, 3);  // products near 2^-126
    case Draw::kHuge: return with(185, 7);                             // products near 2^127
    default: return kSpecials[v.below(16)];
  }
}

struct Pairs {
  int64_t m, n, k, batch = 1;
  bool ta = false, tb = false;
  int64_t pad = 0;
  std::vector<uint16_t> a = {},
                        b = {};     // a[batch][m][k], b[batch][k][n]: where nothing is transposed
  std::vector<uint32_t> sums = {};  // of the model

  void fill(Values& v, Draw kind) {
    a.resize(static_cast<size_t>(batch * m * k)), b.resize(static_cast<size_t>(batch * k * n));
    // Few special numbers in the second operand, so that not everything is NaN.
    for (uint16_t& x : a) x = draw(v, kind);
    for (uint16_t& x : b)
      x = draw(v, kind == Draw::kSpecial && v.below(4) ? Draw::kOrdinary : kind);
    sums.assign(static_cast<size_t>(batch * m * n), 0);
    for (int64_t s = 0; s < batch; ++s)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          sums[static_cast<size_t>((s * m + i) * n + j)] = model_chain(
              0, k, [&](int64_t q) { return a[static_cast<size_t>((s * m + i) * k + q)]; },
              [&](int64_t q) { return b[static_cast<size_t>((s * k + q) * n + j)]; });
  }
  // C, [batch][m][n + pad], from `c`; bias may be null.
  Buffer run(Buffer c, double alpha = 1, double beta = 0, const Buffer* bias = nullptr,
             bool relu = false) const {
    MatmulArgs g{};
    const int64_t lda = (ta ? m : k) + pad, ldb = (tb ? k : n) + pad;
    Buffer x(batch * (ta ? k : m) * lda, kBFloat16), y(batch * (tb ? n : k) * ldb, kBFloat16);
    g.a_row = ta ? 1 : lda, g.a_col = ta ? lda : 1, g.a_batch = (ta ? k : m) * lda;
    g.b_row = tb ? 1 : ldb, g.b_col = tb ? ldb : 1, g.b_batch = (tb ? n : k) * ldb;
    for (int64_t s = 0; s < batch; ++s) {
      for (int64_t i = 0; i < m * k; ++i)
        x.as<uint16_t>()[s * g.a_batch + i / k * g.a_row + i % k * g.a_col] =
            a[static_cast<size_t>(s * m * k + i)];
      for (int64_t i = 0; i < k * n; ++i)
        y.as<uint16_t>()[s * g.b_batch + i / n * g.b_row + i % n * g.b_col] =
            b[static_cast<size_t>(s * k * n + i)];
    }
    g.a = x.data(), g.b = y.data(), g.c = c.data(), g.bias = bias ? bias->data() : nullptr;
    g.batch = batch, g.m = m, g.n = n, g.k = k, g.c_row = n + pad, g.c_batch = m * (n + pad);
    g.alpha = alpha, g.beta = beta, g.dtype = kBFloat16, g.relu = relu;
    Buffer work(matmul_workspace(g, max_parallel_slots()), kByte);
    g.workspace = work.data();
    matmul(kCpuStream, g);
    EXPECT_TRUE(work.guards_intact()) << "a write outside the workspace";
    EXPECT_TRUE(c.guards_intact()) << "a write outside the result";
    return c;
  }
  Buffer empty() const { return Buffer(batch * m * (n + pad), kBFloat16); }
  uint16_t at(const Buffer& c, int64_t i) const {
    return static_cast<const uint16_t*>(c.data())[i / n * (n + pad) + i % n];
  }
  int64_t elements() const { return batch * m * n; }
  std::string text() const {
    return detail::join(batch, " of ", m, " x ", n, " x ", k, " ta ", ta, " tb ", tb);
  }
};

// Compares the sums: their first eight bits, and the next ones by a product that is added to the
// first ones with the other sign.
void expect_model(const Pairs& p) {
  const Buffer c = p.run(p.empty());
  const Buffer rest = p.run(c, 1, -1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < p.elements(); ++i) {
    const uint32_t sum = p.sums[static_cast<size_t>(i)];
    const uint16_t first = to_bfloat(sum);
    const uint16_t second = to_bfloat(as_bits(as_float(sum) - widened(first)));
    if (p.at(c, i) != first || p.at(rest, i) != second)
      if (++wrong < 4)
        ADD_FAILURE() << p.text() << ", element " << i << std::hex << ": got " << p.at(c, i)
                      << " and " << p.at(rest, i) << ", expected " << first << " and " << second;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(GemmBfloat, IsTheModelInEveryVariantAndLayout) {
  struct Shape {
    int64_t m, n, k, batch = 1;
  };
  const Shape shapes[] = {
      {1, 1, 1},     {3, 5, 0},      {1, 1, 2},     {3, 5, 7},     {14, 32, 16},    {15, 33, 17},
      {29, 65, 31},  {40, 1, 50},    {1, 300, 80},  {4, 17, 600},  {230, 20, 33},   {3, 2060, 5},
      {20, 40, 513}, {13, 31, 1030}, {33, 31, 255}, {5, 9, 12, 7}, {9, 40, 300, 3}, {2, 3, 257}};
  Values v(1);
  for (const Shape& s : shapes)
    for (int layout = 0; layout < 4; ++layout) {
      Pairs p{s.m, s.n, s.k, s.batch, (layout & 1) != 0, (layout & 2) != 0, v.below(3)};
      p.fill(v, Draw::kOrdinary);
      for_each_way([&] { expect_model(p); });
    }
}

TEST(GemmBfloat, IsTheModelForNumbersThatAreNotOrdinary) {
  Values v(2);
  for (Draw kind : {Draw::kAnyBits, Draw::kTiny, Draw::kHuge, Draw::kSpecial})
    for (int round = 0; round < 40; ++round) {
      Pairs p{1 + v.below(20), 1 + v.below(40), 1 + v.below(kind == Draw::kTiny ? 40 : 6)};
      p.ta = v.below(2), p.tb = v.below(2);
      p.fill(v, kind);
      for_each_way([&] { expect_model(p); });
    }
}

// The even element is added after the odd one, and a sum that is rounded up to the smallest normal
// number is not subnormal.
TEST(GemmBfloat, OrderAndTheSmallestNormal) {
  struct Case {
    uint16_t odd[2], even[2], expected;
  };
  const Case cases[] = {
      {{0x2000, 0x2000}, {0x9980, 0x1980}, 0x0080},  // 2^-126 - 2^-152 rounds to 2^-126
      {{0x2000, 0x2000}, {0x9a80, 0x1f00}, 0x0000},  // 2^-126 - 2^-139 is subnormal
      {{0x0080, 0x3f80}, {0x8080, 0x3f00}, 0x0000},  // 2^-126 - 2^-127 is subnormal
      {{0x0080, 0x3f00}, {0x0080, 0x3f00}, 0x0000},  // 2^-127 becomes 0 before 2^-127 is added
      {{0x0040, 0x7f00}, {0x3f80, 0x8080}, 0x8080},  // a subnormal operand is 0
      {{0x0040, 0x7f80}, {0x3f80, 0x3f80}, 0xffc0},  // and 0 times infinity is NaN
      {{0x7f7f, 0x4000}, {0xff80, 0x3f80}, 0xffc0},  // an infinite sum, minus infinity
      {{0x7f7f, 0x4000}, {0xff7f, 0x4000}, 0x7f80},  // rounded after the odd element
      {{0x7fa5, 0x3f80}, {0x3f80, 0x3f80}, 0xffc0},
  };
  for (const Case& c : cases) {
    Pairs p{1, 1, 2};
    Values v(3);
    p.fill(v, Draw::kOrdinary);
    p.a = {c.even[0], c.odd[0]}, p.b = {c.even[1], c.odd[1]};
    uint32_t sum = model_step(0, c.odd[0], c.odd[1]);
    sum = model_step(sum, c.even[0], c.even[1]);
    EXPECT_EQ(to_bfloat(sum), c.expected);
    for_each_way([&] { EXPECT_EQ(p.at(p.run(p.empty()), 0), c.expected); });
  }
}

TEST(GemmBfloat, ScalesAddsAndRoundsOnce) {
  Values v(4);
  for (int64_t k : {0, 9, 700})
    for (bool relu : {false, true}) {
      Pairs p{17, 37, k};
      p.pad = 2;
      p.fill(v, Draw::kOrdinary);
      Buffer c = p.empty(), bias(p.n, kBFloat16);
      c.fill(v), bias.fill(v);
      const double alpha = 0.7, beta = -1.3;
      for_each_way([&] {
        const Buffer got = p.run(c, alpha, beta, &bias, relu);
        for (int64_t i = 0; i < p.elements(); ++i) {
          // Each operation in a statement of its own: one rounding each.
          volatile float x = static_cast<float>(alpha) * as_float(p.sums[static_cast<size_t>(i)]);
          volatile float y = static_cast<float>(beta) * widened(p.at(c, i));
          x = x + y;
          x = x + static_cast<float>(bias[i % p.n]);
          ASSERT_EQ(p.at(got, i), to_bfloat(as_bits(relu && x < 0 ? 0.0f : x))) << "element " << i;
        }
        for (int64_t i = 0; i < p.m; ++i)
          for (int64_t j = p.n; j < p.n + p.pad; ++j)
            ASSERT_EQ(got[i * (p.n + p.pad) + j], c[i * (p.n + p.pad) + j]);
      });
    }
}

TEST(GemmBfloat, SameBitsForEveryVariantAndThreadCount) {
  const Pairs shapes[] = {{130, 100, 1100}, {33, 700, 300},  {700, 1, 900},    {1, 700, 900},
                          {40, 2100, 300},  {260, 80, 2048}, {30, 40, 20, 24}, {90, 70, 80, 9}};
  const int threads = get_num_threads();
  Values v(5);
  for (Pairs p : shapes) {
    SCOPED_TRACE(p.text());
    // The model would take long here.
    p.a.resize(static_cast<size_t>(p.batch * p.m * p.k));
    p.b.resize(static_cast<size_t>(p.batch * p.k * p.n));
    for (uint16_t& x : p.a) x = draw(v, Draw::kOrdinary);
    for (uint16_t& x : p.b) x = draw(v, Draw::kOrdinary);
    Buffer want = p.empty();
    bool first = true;
    for (int layout = 0; layout < 4; ++layout)
      for_each_way([&] {
        for (int n : {1, 2, 4}) {
          set_num_threads(n);
          p.ta = (layout & 1) != 0, p.tb = (layout & 2) != 0;
          const Buffer got = p.run(p.empty());
          if (first) want = got, first = false;
          EXPECT_TRUE(got.same_bits(want)) << n << " threads, layout " << layout;
        }
      });
  }
  set_num_threads(threads);
}

TEST(GemmBfloat, TheFloatingPointModeCountsForNothingAndStays) {
  const uint64_t before = ramet::detail::float_modes();
  Values v(6);
  for (Draw kind : {Draw::kOrdinary, Draw::kTiny, Draw::kHuge}) {
    Pairs p{20, 40, kind == Draw::kOrdinary ? 601 : 5};
    p.fill(v, kind);
    for (uint64_t mode : modes_to_try())
      for_each_way([&] {
        ramet::detail::set_float_modes(mode);
        const Buffer c = p.run(p.empty());
        const uint64_t after = ramet::detail::float_modes();
        ramet::detail::set_float_modes(before);
        EXPECT_EQ(after, mode);
        for (int64_t i = 0; i < p.elements(); ++i)
          ASSERT_EQ(p.at(c, i), to_bfloat(p.sums[static_cast<size_t>(i)])) << "mode " << mode;
      });
  }
}

}  // namespace
}  // namespace ramet::kernels::raw
