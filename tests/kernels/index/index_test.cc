// Index kernels against loops over index tuples.
#include "kernels/index/index.h"

#include <algorithm>
#include <numeric>

#include "kernels/index/cumulative_sum.h"
#include "kernels/index/embedding_bag.h"
#include "kernels/index/mask.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
constexpr ScalarType kAll[] = {kBool, kByte, kChar,     kShort, kInt,
                               kLong, kHalf, kBFloat16, kFloat, kDouble};

constexpr int64_t kSkipNone = 1 << 20;  // no index of these tests

// Fills what does not depend on data. Extents and strides of dimensions as given; strides of index
// tensors too.
struct Loop {
  std::vector<int64_t> sizes, x_strides, y_strides;
  std::vector<std::vector<int64_t>> index_strides;
  std::vector<int64_t> index_size, index_step;
};

IndexArgs args(const Loop& l, Buffer& x, Buffer& y, std::vector<Buffer>& index, IndexMode mode,
               int64_t skipped = kSkipNone) {
  IndexArgs a{};
  a.x = x.data(), a.y = y.data(), a.dtype = x.dtype, a.y_dtype = y.dtype, a.mode = mode;
  a.skipped = skipped;
  a.rank = static_cast<int32_t>(l.sizes.size()), a.indices = static_cast<int32_t>(index.size());
  for (size_t d = 0; d < l.sizes.size(); ++d) {
    a.sizes[d] = l.sizes[d], a.x_strides[d] = l.x_strides[d], a.y_strides[d] = l.y_strides[d];
    for (size_t k = 0; k < index.size(); ++k) a.index_strides[k][d] = l.index_strides[k][d];
  }
  for (size_t k = 0; k < index.size(); ++k)
    a.index[k] = index[k].as<int64_t>(), a.index_size[k] = l.index_size[k],
    a.index_step[k] = l.index_step[k];
  return a;
}

void run(IndexArgs a) {
  std::vector<char> workspace(static_cast<size_t>(index_workspace(a, true)));
  a.workspace = workspace.data();
  index_elements(raw::kCpuStream, a);
}

// The definition in index.h, one tuple after the other.
void twin(const Loop& l, Buffer& x, Buffer& y, const std::vector<Buffer>& index, IndexMode mode,
          int64_t skipped = kSkipNone) {
  const int64_t n =
      std::accumulate(l.sizes.begin(), l.sizes.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < n; ++i) {
    const auto offset = [&](const std::vector<int64_t>& strides) {
      return raw::offset_of(i, static_cast<int>(l.sizes.size()), l.sizes.data(), strides.data());
    };
    int64_t px = offset(l.x_strides);
    const int64_t py = offset(l.y_strides);
    bool skip = false;
    for (size_t k = 0; k < index.size(); ++k) {
      const auto v = static_cast<int64_t>(index[k][offset(l.index_strides[k])]);
      if (k == 0 && v == skipped) skip = true;
      px += (v < 0 ? v + l.index_size[k] : v) * l.index_step[k];
    }
    if (skip) continue;
    if (mode == IndexMode::kGet) y.set(py, x[px]);
    else
      x.set(px, mode == IndexMode::kPut   ? y[py]
                : mode == IndexMode::kAdd ? x[px] + y[py]
                : mode == IndexMode::kMul ? x[px] * y[py]
                : mode == IndexMode::kMax ? std::max(x[px], y[py])
                                          : std::min(x[px], y[py]));
  }
}

// Multiples of 1/4 below 8: their sums are exact in every dtype the tests use.
void fill_exact(Buffer& b, raw::Values& v) {
  for (int64_t i = 0; i < b.size; ++i)
    b.set(i, is_floating(b.dtype) ? 0.25 * static_cast<double>(v.below(31) - 15)
                                  : static_cast<double>(v.below(3)));
}

void check(const Loop& l, int64_t x_size, int64_t y_size, const std::vector<int64_t>& index_count,
           int64_t skipped = kSkipNone) {
  for (ScalarType t : kAll)
    for (IndexMode mode : {IndexMode::kGet, IndexMode::kPut, IndexMode::kAdd, IndexMode::kMul,
                           IndexMode::kMax, IndexMode::kMin}) {
      // Products of many are more than the other types hold.
      if (mode == IndexMode::kMul && t != kFloat && t != kDouble) continue;
      SCOPED_TRACE(std::string(name_of(t)) + " mode " + std::to_string(static_cast<int>(mode)));
      raw::Values values(static_cast<uint64_t>(x_size + y_size));
      std::vector<Buffer> index;
      for (size_t k = 0; k < index_count.size(); ++k) {
        index.emplace_back(index_count[k], kLong);
        for (int64_t i = 0; i < index_count[k]; ++i) {
          const int64_t v = values.below(l.index_size[k]);
          index.back().set(i,
                           static_cast<double>(k == 0 && skipped != kSkipNone
                                                   ? v
                                                   : v - (values.below(2) ? l.index_size[k] : 0)));
        }
      }
      Buffer x(x_size, t), y(y_size, t);
      fill_exact(x, values), fill_exact(y, values);
      Buffer want_x = x, want_y = y;
      twin(l, want_x, want_y, index, mode, skipped);
      const bool get = mode == IndexMode::kGet;
      raw::expect_same_bits(get ? y : x, [&](Buffer& o) {
        Buffer other = get ? x : y;
        IndexArgs a =
            get ? args(l, other, o, index, mode, skipped) : args(l, o, other, index, mode, skipped);
        run(a);
      });
      EXPECT_TRUE(get ? y.same_bits(want_y) : x.same_bits(want_x));
    }
}

TEST(Index, GatherAndScatter) {
  // x [7][11][9], index and y [5][6][9] or smaller, along each dimension.
  const std::vector<int64_t> x{99, 9, 1}, y{54, 9, 1}, size{7, 11, 9};
  for (size_t d = 0; d < 3; ++d) {
    Loop l{{5, 6, 9}, x, y, {y}, {size[d]}, {x[d]}};
    l.x_strides[d] = 0;
    check(l, 7 * 99, 5 * 54, {5 * 54});
  }
  Loop wide{{3, 200, 70}, {210, 0, 1}, {14000, 70, 1}, {{14000, 70, 1}}, {3}, {70}};
  check(wide, 3 * 210, 3 * 14000, {3 * 14000});
}

TEST(Index, RowsAndColumns) {
  // index_select and index_add along 0 (rows of 130), along the last, and embedding with a skipped
  // row.
  check({{50, 130}, {0, 1}, {130, 1}, {{1, 0}}, {7}, {130}}, 7 * 130, 50 * 130, {50});
  check({{8, 40}, {9, 0}, {40, 1}, {{0, 1}}, {9}, {1}}, 72, 320, {40});
  check({{500, 3}, {0, 1}, {3, 1}, {{1, 0}}, {4}, {3}}, 12, 1500, {500}, 2);
  check({{4, 300, 35}, {350, 0, 1}, {10500, 35, 1}, {{0, 1, 0}}, {10}, {35}}, 1400, 42000, {300},
        7);
  check({{40}, {0}, {1}, {{1}}, {5}, {1}}, 5, 40, {40}, 3);
  // Strided x and y.
  check({{30, 20}, {0, 2}, {41, 2}, {{1, 0}}, {6}, {40}}, 240, 30 * 41, {30});
  // A row with tasks longer than what is converted at a time, dense or every second element.
  for (int64_t sx : {1, 2})
    for (int64_t sy : {1, 2})
      check({{1, 4000}, {0, sx}, {0, sy}, {{1, 0}}, {3}, {4000 * sx}}, 12000 * sx, 4000 * sy, {1});
}

TEST(Index, SeveralIndexTensors) {
  // x [6][5][4][8]: x[i0, :, i1] with i0 [3][1], i1 [1][10] -> [3][10][5][8]
  check({{3, 10, 5, 8},
         {0, 0, 32, 1},
         {400, 40, 8, 1},
         {{1, 0, 0, 0}, {0, 1, 0, 0}},
         {6, 4},
         {160, 8}},
        960, 1200, {3, 10});
  // All dimensions indexed, one index repeated along the last: sums into one place.
  check({{6, 50}, {0, 0}, {50, 1}, {{1, 0}, {1, 0}}, {3, 4}, {4, 1}}, 12, 300, {6, 6});
  // x [4][3], one element per tuple
  check({{700}, {0}, {1}, {{1}, {1}}, {4, 3}, {3, 1}}, 12, 700, {700, 700});
}

TEST(Index, NothingToDo) {
  check({{0, 5}, {0, 1}, {5, 1}, {{1, 0}}, {3}, {5}}, 15, 1, {1});
  Buffer x(3, kFloat), y(1, kFloat);
  x.set(0, 7), y.set(0, 5);
  std::vector<Buffer> none;
  IndexArgs a = args({{1}, {1}, {1}, {}, {}, {}}, x, y, none, IndexMode::kGet);
  index_elements(raw::kCpuStream, a);
  EXPECT_EQ(y[0], 7);
}

TEST(Index, FloatSumsAreInOrder) {  // 1e8 + 1 - 1e8, in this order only, is 0
  Buffer x(2, kFloat), y(3, kFloat);
  x.fill(0);
  y.set(0, 1e8), y.set(1, 1), y.set(2, -1e8);
  std::vector<Buffer> index(1, Buffer(3, kLong));
  index[0].fill(1);
  index_elements(raw::kCpuStream,
                 args({{3}, {0}, {1}, {{1}}, {2}, {1}}, x, y, index, IndexMode::kAdd));
  EXPECT_EQ(x[1], 0);
  EXPECT_EQ(x[0], 0);
}

// 300 numbers 1 + 2^-7 are added in one element: bfloat16 sums stop at 256.
TEST(Index, NarrowSumsAreRoundedOnce) {
  Buffer x(4, kBFloat16), y(600, kBFloat16);
  x.fill(0);
  for (int64_t i = 0; i < y.size; ++i) y.set(i, 1.0078125);
  std::vector<Buffer> index(1, Buffer(300, kLong));
  for (int64_t i = 0; i < 300; ++i) index[0].set(i, static_cast<double>(i == 7));
  raw::expect_same_bits(x, [&](Buffer& o) {
    o.fill(0);
    run(args({{300, 2}, {0, 1}, {2, 1}, {{1, 0}}, {2}, {2}}, o, y, index, IndexMode::kAdd));
  });
  EXPECT_EQ(x[0], 302);  // 301.3359375
  EXPECT_EQ(x[1], 302);
  EXPECT_EQ(x[2], 1.0078125);
  // The same numbers added to float ones.
  Buffer sum(4, kFloat);
  sum.fill(0);
  run(args({{300, 2}, {0, 1}, {2, 1}, {{1, 0}}, {2}, {2}}, sum, y, index, IndexMode::kAdd));
  EXPECT_EQ(sum[0], 299 * 1.0078125);
  run(args({{600}, {0}, {1}, {{0}}, {2}, {1}}, sum, y, index, IndexMode::kAdd));
  EXPECT_EQ(sum[0], 899 * 1.0078125);
}

TEST(Index, Check) {
  Buffer index(5000, kLong);
  index.fill(3);
  const auto first_bad = [&](int64_t low, int64_t high, std::optional<int64_t> ignored = {},
                             int64_t n = 5000, int64_t stride = 1) {
    int64_t bad = 77;
    check_index(raw::kCpuStream, {index.as<int64_t>(), n, stride, low, high, ignored.value_or(0),
                                  ignored.has_value(), &bad, nullptr, 0});
    return bad;
  };
  EXPECT_EQ(first_bad(0, 4), -1);
  EXPECT_EQ(first_bad(0, 3), 0);
  EXPECT_EQ(first_bad(4, 9), 0);
  index.set(4100, -1), index.set(4700, 9);
  EXPECT_EQ(first_bad(0, 4), 4100);
  EXPECT_EQ(first_bad(-4, 4), 4700);
  EXPECT_EQ(first_bad(-4, 4, 9), -1);
  EXPECT_EQ(first_bad(0, 4, {}, 4100), -1);
  EXPECT_EQ(first_bad(0, 4, {}, 2500, 2), 2050);
  EXPECT_EQ(first_bad(0, 4, {}, 0), -1);
  for (int64_t most : {INT64_MIN, INT64_MAX, int64_t{0}}) {  // any number, if it is out of range
    index.fill(1);
    index.as<int64_t>()[300] = most;
    EXPECT_EQ(first_bad(1, 2), 300) << most;
    EXPECT_EQ(first_bad(1, 2, most), -1) << most;
    EXPECT_EQ(first_bad(1, 2, 5), 300) << most;
  }
  // The first one of several, whichever thread finds one first.
  Buffer many(200000, kLong), found(1, kLong);
  many.fill(3);
  for (int64_t i : {199999, 150000, 90123, 90122}) many.set(i, 4);
  raw::expect_same_bits(found, [&](Buffer& o) {
    check_index(raw::kCpuStream,
                {many.as<int64_t>(), many.size, 1, 0, 4, 0, false, o.as<int64_t>(), nullptr, 0});
  });
  EXPECT_EQ(found[0], 90122);
}

TEST(Index, Masks) {
  for (int64_t n : {0, 1, 100, 4096, 4097, 100000})
    for (ScalarType t : {kBool, kShort, kFloat, kDouble}) {
      raw::Values values(static_cast<uint64_t>(n + 1));
      Buffer mask(n, kBool), x(n, t), offsets(mask_offsets(n), kLong);
      x.fill(values);
      for (int64_t i = 0; i < n; ++i) mask.set(i, values.below(3) == 0);
      raw::expect_same_bits(offsets, [&](Buffer& o) {
        mask_count(raw::kCpuStream, {mask.data(), n, o.as<int64_t>()});
      });
      const auto total = static_cast<int64_t>(offsets[offsets.size - 1]);
      Buffer packed(total, t), back(n, t), want(n, t), positions(total * 2, kLong);
      const auto bytes = static_cast<int64_t>(item_size(t));
      raw::expect_same_bits(packed, [&](Buffer& o) {
        mask_move(raw::kCpuStream,
                  {mask.data(), offsets.as<int64_t>(), x.data(), o.data(), n, bytes, false});
      });
      back.fill(0), want.fill(0);
      raw::expect_same_bits(back, [&](Buffer& o) {
        mask_move(raw::kCpuStream,
                  {mask.data(), offsets.as<int64_t>(), o.data(), packed.data(), n, bytes, true});
      });
      int64_t k = 0;
      for (int64_t i = 0; i < n; ++i)
        if (mask[i] != 0) {
          ASSERT_EQ(packed[k++], x[i]);
          want.set(i, x[i]);
        }
      EXPECT_EQ(k, total);
      EXPECT_TRUE(back.same_bits(want));
      if (n % 4 != 0) continue;
      NonzeroArgs a{mask.data(), offsets.as<int64_t>(), nullptr, 2, {n / 4, 4}};
      raw::expect_same_bits(positions, [&](Buffer& o) {
        a.out = o.as<int64_t>();
        nonzero_positions(raw::kCpuStream, a);
      });
      k = 0;
      for (int64_t i = 0; i < n; ++i)
        if (mask[i] != 0) {
          ASSERT_EQ(positions[2 * k], static_cast<double>(i / 4));
          ASSERT_EQ(positions[2 * k + 1], static_cast<double>(i % 4));
          ++k;
        }
    }
}

TEST(Index, CumulativeSum) {
  struct Shape {
    int64_t outer, n, inner;
  };
  for (Shape s : {Shape{3, 50, 1}, Shape{1, 2000, 1}, Shape{2, 30, 70}, Shape{2, 5, 65},
                  Shape{0, 3, 2}, Shape{4, 1, 3}, Shape{37, 500, 1}})
    for (ScalarType t : {kFloat, kDouble, kBFloat16, kInt, kLong, kBool})
      for (bool reverse : {false, true}) {
        raw::Values values(6);
        Buffer x(s.outer * s.n * s.inner, t), y(x.size, is_floating(t) ? t : kLong);
        x.fill(values);
        raw::expect_same_bits(y, [&](Buffer& o) {
          cumulative_sum(raw::kCpuStream,
                         {x.data(), o.data(), s.outer, s.n, s.inner, t, o.dtype, reverse, nullptr});
        });
        for (int64_t o = 0; o < s.outer; ++o)
          for (int64_t i = 0; i < s.inner; ++i) {
            double sum = 0;
            for (int64_t k = 0; k < s.n; ++k) {
              const int64_t p = (o * s.n + (reverse ? s.n - 1 - k : k)) * s.inner + i;
              sum += x[p];
              ASSERT_NEAR(y[p], sum, (t == kBFloat16 ? 0.01 : 1e-6) * (1 + std::fabs(sum)));
            }
          }
      }
}

// Bags of every width against sums in double; nothing is written after the last.
TEST(EmbeddingBag, AgainstTwin) {
  const std::vector<double> indices{4, 1, 6, 6, 2, 0, 5, 3, 3, 1, 4, 2, 5}, offsets{0, 1, 1, 4, 11};
  const int64_t rows = 7, bags = 5, total = 13, padding = 2;
  for (const ScalarType t : {kFloat, kDouble})
    for (const BagMode mode : {BagMode::kSum, BagMode::kMean, BagMode::kMax})
      for (const int64_t cols : {1, 15, 16, 17, 31, 64, 79, 80}) {
        SCOPED_TRACE(cols);
        raw::Values values(static_cast<uint64_t>(cols));
        Buffer weight(rows * cols, t), at(total, kLong), from(bags, kLong), y(bags * cols, t),
            places(bags * cols, kLong), counts(bags, kLong);
        weight.fill(values, 4);
        for (int64_t c = 0; c < cols; ++c)  // a maximum below 0, of the first
          weight.set(4 * cols + c, -1 - std::fabs(weight[4 * cols + c]));
        for (int64_t i = 0; i < total; ++i) at.set(i, indices[static_cast<size_t>(i)]);
        for (int64_t i = 0; i < bags; ++i) from.set(i, offsets[static_cast<size_t>(i)]);
        const bool max = mode == BagMode::kMax;
        embedding_bag(raw::kCpuStream,
                      {weight.data(), at.as<int64_t>(), from.as<int64_t>(), nullptr, y.data(),
                       max ? places.as<int64_t>() : nullptr, counts.as<int64_t>(), rows, cols, bags,
                       bags, total, padding, mode, t});
        EXPECT_TRUE(y.guards_intact() && places.guards_intact() && counts.guards_intact());
        for (int64_t b = 0; b < bags; ++b)
          for (int64_t c = 0; c < cols; ++c) {
            double want = 0, row = 0;
            int64_t n = 0;
            for (int64_t k = static_cast<int64_t>(from[b]);
                 k < (b + 1 < bags ? static_cast<int64_t>(from[b + 1]) : total); ++k) {
              if (static_cast<int64_t>(at[k]) == padding) continue;
              const double x = weight[static_cast<int64_t>(at[k]) * cols + c];
              if (++n == 1 || !max || x > want) want = max ? x : want + x, row = at[k];
            }
            if (mode == BagMode::kMean && n > 1) want /= static_cast<double>(n);
            EXPECT_NEAR(y[b * cols + c], want, t == kFloat ? 1e-5 : 1e-13);
            EXPECT_EQ(counts[b], static_cast<double>(n));
            if (max) { EXPECT_EQ(places[b * cols + c], row); }
          }
      }
}

}  // namespace
}  // namespace ramet::kernels
