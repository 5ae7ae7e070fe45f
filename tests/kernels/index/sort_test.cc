#include "kernels/index/sort.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/index/order.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

struct Case {
  int64_t rows, n;
  int bits;
};

// Keys with many equal ones among them, in all bits that there are.
std::vector<uint64_t> keys_of(const Case& c) {
  raw::Values values(static_cast<uint64_t>(c.n * 65 + c.bits));
  std::vector<uint64_t> keys(static_cast<size_t>(c.rows * c.n));
  for (uint64_t& k : keys) {
    k = values.bits() >> (64 - c.bits);
    if (values.below(3) == 0) k &= ~uint64_t{0} << std::min(c.bits - 1, 60);
  }
  return keys;
}

TEST(Sort, IsStdStableSortOfEachRow) {
  for (const Case& c : std::vector<Case>{{1, 1, 64},
                                         {3, 2, 1},
                                         {9, 31, 12},
                                         {9, 32, 64},
                                         {9, 33, 12},
                                         {2, 1000, 9},
                                         {5, 333, 64},
                                         {1, 100000, 64},
                                         {1, 100000, 17},
                                         {0, 5, 8},
                                         {4, 0, 8}}) {
    SCOPED_TRACE(::testing::Message() << c.rows << " x " << c.n << ", " << c.bits << " bits");
    const std::vector<uint64_t> keys = keys_of(c);
    raw::for_each_variant([&](Variant) {
      for (int threads : {1, 3}) {
        set_num_threads(threads);
        std::vector<uint64_t> got = keys;
        std::vector<int64_t> order(keys.size(), -1);
        std::vector<char> workspace(static_cast<size_t>(sort_workspace(c.rows, c.n)));
        sort_pairs(raw::kCpuStream,
                   {got.data(), order.data(), c.rows, c.n, c.bits, workspace.data()});
        for (int64_t r = 0; r < c.rows; ++r) {
          const uint64_t* row = keys.data() + r * c.n;
          std::vector<int64_t> want(static_cast<size_t>(c.n));
          std::iota(want.begin(), want.end(), 0);
          std::stable_sort(want.begin(), want.end(),
                           [&](int64_t a, int64_t b) { return row[a] < row[b]; });
          for (int64_t i = 0; i < c.n; ++i) {
            const auto at = static_cast<size_t>(r * c.n + i);
            ASSERT_EQ(order[at], want[static_cast<size_t>(i)]) << "place " << i;
            ASSERT_EQ(got[at], row[want[static_cast<size_t>(i)]]);
          }
        }
      }
    });
    set_num_threads(2);
  }
}

// ---- order_lines --------------------------------------------------------------------------------

struct Block {
  ScalarType dtype;
  int64_t outer, n, inner;
  bool near = false;  // few different values
};
bool before(double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); }

raw::Buffer block_of(const Block& b) {
  raw::Values values(static_cast<uint64_t>(b.n + 7 * b.inner));
  raw::Buffer in(b.outer * b.n * b.inner, b.dtype);
  for (int64_t i = 0; i < in.size; ++i) {
    double v = values.signed_unit() * (b.near ? 3 : 1e4);
    if (b.near || !is_floating(b.dtype)) v = std::trunc(v);
    const int64_t kind = values.below(40);
    if (is_floating(b.dtype) && kind < 4)
      v = kind == 0 ? -0.0 : kind == 1 ? 0.0 : kind == 2 ? -INFINITY : NAN;
    in.set(i, v);
  }
  return in;
}

// What the definition says, by the standard library: the positions of a line's results.
std::vector<int64_t> right_places(const std::vector<double>& line, OrderPick pick, int64_t count,
                                  bool descending) {
  std::vector<int64_t> order(line.size());
  std::iota(order.begin(), order.end(), 0);
  const auto v = [&](int64_t i) { return line[static_cast<size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return descending ? before(v(b), v(a)) : before(v(a), v(b));
  });
  const auto n = static_cast<int64_t>(line.size()),
             nans = static_cast<int64_t>(
                 std::count_if(line.begin(), line.end(), [](double x) { return std::isnan(x); }));
  const auto at = [&](int64_t i) { return std::vector<int64_t>{order[static_cast<size_t>(i)]}; };
  switch (pick) {
    case OrderPick::kFirst: order.resize(static_cast<size_t>(count)); return order;
    case OrderPick::kOne: return at(count);
    case OrderPick::kMedian: return at(nans ? n - nans : (n - 1) / 2);
    case OrderPick::kNanMedian: return at(nans == n ? 0 : (n - nans - 1) / 2);
    case OrderPick::kMode: break;
  }
  int64_t best = 0, most = 0;
  for (int64_t i = 0; i < n; ++i) {
    int64_t same = 1;
    while (i + 1 < n && v(order[static_cast<size_t>(i)]) == v(order[static_cast<size_t>(i + 1)]))
      ++i, ++same;
    if (same > most) most = same, best = i;
  }
  return at(best);
}

void check_order(const Block& b, OrderPick pick, int64_t count, bool descending) {
  const raw::Buffer in = block_of(b);
  OrderArgs a{in.data(), nullptr, nullptr, b.outer,    b.n, b.inner,
              count,     b.dtype, pick,    descending, 0,   nullptr};
  const int64_t results = order_results(a), all = b.outer * results * b.inner;
  const size_t size = item_size(b.dtype);
  const auto* from = static_cast<const char*>(in.data());
  std::vector<int64_t> want(static_cast<size_t>(all)), source(want);  // positions in lines, in all
  for (int64_t o = 0; o < b.outer; ++o)
    for (int64_t i = 0; i < b.inner; ++i) {
      std::vector<double> line;
      for (int64_t k = 0; k < b.n; ++k) line.push_back(in[(o * b.n + k) * b.inner + i]);
      const std::vector<int64_t> right = right_places(line, pick, count, descending);
      for (int64_t k = 0; k < results; ++k) {
        const auto to = static_cast<size_t>((o * results + k) * b.inner + i);
        want[to] = right[static_cast<size_t>(k)];
        source[to] = (o * b.n + want[to]) * b.inner + i;
      }
    }
  raw::for_each_variant([&](Variant) {
    for (int threads : {1, 3}) {
      set_num_threads(threads);
      a.slots = max_parallel_slots();
      raw::Buffer values(all, b.dtype), places(all, kLong);
      raw::Buffer workspace(order_workspace(a, true), kByte);
      a.values = values.data(), a.positions = places.as<int64_t>(), a.workspace = workspace.data();
      order_lines(raw::kCpuStream, a);
      EXPECT_TRUE(values.guards_intact() && places.guards_intact() && workspace.guards_intact());
      for (int64_t i = 0; i < all; ++i) {
        const auto at = static_cast<size_t>(i);
        ASSERT_EQ(places.as<int64_t>()[i], want[at]) << "result " << i;
        ASSERT_EQ(std::memcmp(values.as<char>() + at * size,
                              from + static_cast<size_t>(source[at]) * size, size),
                  0)
            << "other bits";
      }
    }
  });
  set_num_threads(2);
}

TEST(Order, IsStdStableSortOfEachLine) {
  for (const Block& b : std::vector<Block>{{kFloat, 3, 20, 1},
                                           {kFloat, 1, 4000, 1},
                                           {kFloat, 2, 300, 3},
                                           {kFloat, 1, 3000, 1, true},
                                           {kDouble, 1, 1200, 2},
                                           {kDouble, 1, 900, 1, true},
                                           {kLong, 1, 1200, 1},
                                           {kInt, 60, 70, 2},
                                           {kShort, 1, 1000, 1, true},
                                           {kByte, 1, 2000, 1},
                                           {kBFloat16, 2, 2000, 1},
                                           {kHalf, 2, 100, 5, true}}) {
    SCOPED_TRACE(::testing::Message()
                 << name_of(b.dtype) << ", " << b.outer << " x " << b.n << " x " << b.inner);
    for (bool descending : {false, true}) {
      for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{7}, b.n / 2, b.n})
        check_order(b, OrderPick::kFirst, count, descending);
      for (int64_t place : {b.n / 3, b.n - 1}) check_order(b, OrderPick::kOne, place, descending);
    }
    for (OrderPick pick : {OrderPick::kMedian, OrderPick::kNanMedian, OrderPick::kMode})
      check_order(b, pick, 0, false);
  }
}

// Those that pass what was found so far come last, each time: the worst order for a choice of few.
TEST(Order, ChoosesFromElementsThatGetBetterAndBetter) {
  constexpr int64_t kN = 20000, kCount = 9;
  std::vector<int32_t> in(kN), values(kCount);
  std::vector<int64_t> places(kCount);
  for (int64_t i = 0; i < kN; ++i) in[static_cast<size_t>(i)] = static_cast<int32_t>(-i);
  OrderArgs a{in.data(), values.data(), places.data(),     1,     kN, 1,
              kCount,    kInt,          OrderPick::kFirst, false, 1,  nullptr};
  std::vector<char> workspace(static_cast<size_t>(order_workspace(a, true)));
  a.workspace = workspace.data();
  raw::for_each_variant([&](Variant) {
    order_lines(raw::kCpuStream, a);
    for (int64_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(places[static_cast<size_t>(i)], kN - 1 - i);
      EXPECT_EQ(values[static_cast<size_t>(i)], -(kN - 1 - i));
    }
  });
}

}  // namespace
}  // namespace ramet::kernels
