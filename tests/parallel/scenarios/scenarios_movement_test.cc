// Movements between devices and their gradients. scenarios_movement_threads_test.cc has delays.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "autograd/graph/inplace.h"
#include "parallel/move/counters.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"
#include "runtime/base/logging.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace parallel;

std::vector<Tensor> scattered(const Tensor& t, int n, const Split& split) {
  ScatterOptions options;
  options.split = split;
  return scatter(t, many(n), options);
}
Shape rows(const std::vector<Tensor>& pieces) {
  Shape out;
  for (const Tensor& p : pieces) out.push_back(p.size(0));
  return out;
}

TEST(Scatter, TenRowsOverFourDevices) {
  const auto pieces = scattered(counting({10}), 4, Split::chunk());
  ASSERT_EQ(rows(pieces), (Shape{3, 3, 3, 1}));
  EXPECT_EQ(values(pieces[0]), (Values{0, 1, 2}));
  EXPECT_EQ(values(pieces[1]), (Values{3, 4, 5}));
  EXPECT_EQ(values(pieces[2]), (Values{6, 7, 8}));
  EXPECT_EQ(values(pieces[3]), (Values{9}));
  for (int k = 0; k < 4; ++k) EXPECT_EQ(pieces[static_cast<size_t>(k)].device(), d(k));
  EXPECT_EQ(rows(scattered(counting({10}), 4, Split::balanced())), (Shape{3, 3, 2, 2}));
}

TEST(Scatter, ChunkAndBalancedLengths) {
  const std::vector<Device> eight = {kHost, d(0), d(1), d(2), d(3), d(4), d(5), d(6)};
  ScatterOptions options;
  EXPECT_EQ(rows(scatter(counting({9, 2}), eight, options)), (Shape{2, 2, 2, 2, 1}));
  options.split = Split::balanced();
  EXPECT_EQ(rows(scatter(counting({9, 2}), eight, options)), (Shape{2, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(rows(scattered(counting({36}), 7, Split::chunk())), (Shape{6, 6, 6, 6, 6, 6}));
}

TEST(Scatter, PiecesOfGivenSizes) {
  const Tensor t = counting({6, 4});
  const auto pieces = scatter(t, many(2), Shape{2, 4});
  EXPECT_EQ(shape(pieces[0]), (Shape{2, 4}));
  EXPECT_EQ(shape(pieces[1]), (Shape{4, 4}));
  EXPECT_EQ(values(pieces[1])[0], 8);
  reset_counters();
  EXPECT_ERROR_TEXT(scatter(t, many(2), Shape{2, 3}), "sum exactly");
  EXPECT_ERROR_TEXT(scatter(t, many(3), Shape{INT64_MAX, INT64_MAX, 8}), "sum of chunk_sizes");
  EXPECT_ERROR_TEXT(scatter(t, many(2), Shape{2, 2, 2}),
                    "Expected devices and chunk_sizes to be of same length");
  EXPECT_EQ(counters().comm_transfers, 0u);
}

TEST(Scatter, ScalarAndEmptyTensor) {
  EXPECT_ERROR_TEXT(scatter(filled({}, 1), many(2)), "at least a 1-dimensional tensor");
  const auto ours = scatter(counting({0, 3}), many(4));
  ASSERT_EQ(ours.size(), 1u);
  EXPECT_EQ(shape(ours[0]), (Shape{0, 3}));
  EXPECT_EQ(ours[0].device(), d(0));
  ScatterOptions options;
  options.parity = Parity::upstream;
  const auto theirs = scatter(counting({0, 3}), many(4), options);
  ASSERT_EQ(theirs.size(), 4u);
  for (const Tensor& p : theirs) EXPECT_EQ(shape(p), (Shape{0, 3}));
}

TEST(Gather, AlongAnyDimension) {
  const Tensor a = counting({2, 5}, kFloat, d(0)), b = filled({2, 5}, 0.1f, kFloat, d(1));
  Values down = values(a), across;
  for (double v : values(b)) down.push_back(v);
  for (size_t row = 0; row < 2; ++row) {
    for (size_t c = 0; c < 5; ++c) across.push_back(values(a)[row * 5 + c]);
    for (size_t c = 0; c < 5; ++c) across.push_back(values(b)[row * 5 + c]);
  }
  for (Device to : {d(2), kHost}) {
    const Tensor rows = gather({a, b}, 0, to);
    EXPECT_EQ(rows.device(), to);
    EXPECT_EQ(shape(rows), (Shape{4, 5}));
    EXPECT_EQ(values(rows), down);
    for (int64_t dim : {1, -1}) {
      const Tensor columns = gather({a, b}, dim, to);
      EXPECT_EQ(columns.device(), to);
      EXPECT_EQ(shape(columns), (Shape{2, 10}));
      EXPECT_EQ(values(columns), across);
    }
  }
}

TEST(Gather, RefusesShapesThatDoNotFit) {
  EXPECT_ERROR_TEXT(gather(ArrayRef<Tensor>()), "Expected at least one tensor to gather from");
  const Tensor a = counting({2, 5}, kFloat, d(0));
  EXPECT_ERROR_TEXT(gather({a, counting({2, 4}, kFloat, d(1))}),
                    "Input tensor at index 1 has invalid shape");
  EXPECT_ERROR_TEXT(gather({a, counting({1, 2, 5}, kFloat, d(1))}), "same number of dimensions");
  const Tensor wide = filled({1}, 1, kFloat, d(0)).expand({int64_t{1} << 62});
  EXPECT_ERROR_TEXT(gather({wide, wide}), "sum of extents");
  EXPECT_ERROR_TEXT(gather({a, a}, INT64_MIN), "Dimension out of range");
}

TEST(Gather, ScalarsBecomeAVector) {
  std::vector<std::string> warnings;
  set_log_handler([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::Warning) warnings.push_back(text);
  });
  const Tensor a = filled({}, 1.5, kFloat, d(0)), b = filled({}, 2.5, kFloat, d(1));
  a.requires_grad_();
  b.requires_grad_();
  const Tensor g = gather({a, b}, 0, kHost);
  EXPECT_EQ(shape(g), Shape{2});
  EXPECT_EQ(values(g), (Values{1.5, 2.5}));
  g.backward(make({3, 4}));
  EXPECT_EQ(values(a.grad()), Values{3});
  EXPECT_EQ(values(b.grad()), Values{4});
  EXPECT_EQ(a.grad().dim(), 0);
  EXPECT_EQ(a.grad().device(), d(0));
  EXPECT_EQ(b.grad().device(), d(1));
  gather({a, b}, 0, kHost);
  set_log_handler(nullptr);
  ASSERT_EQ(warnings.size(), 1u);
  expect_part(warnings[0], "will instead unsqueeze and return a vector");
}

TEST(MovementGradients, OfScatterAndGather) {
  const Tensor input = filled({10}, 1);
  input.requires_grad_();
  const auto out = scatter(input, many(2));
  const Tensor s = out[0].to(d(1)) + out[1];
  s.backward(filled({5}, 1, kFloat, d(1)));
  EXPECT_EQ(input.grad().device(), kHost);
  EXPECT_EQ(values(input.grad()), Values(10, 1.0));

  const Tensor x = make({5, 2}, {.1, .9, -.3, .5, .7, -.2, .4, .8, -.6, .35}, kDouble);
  x.requires_grad_();
  const auto cut = [](const std::vector<Tensor>& in) {
    std::vector<Tensor> pieces = scatter(in[0], many(3));
    for (Tensor& p : pieces) p = (p * p * p).to(kHost);
    return pieces;
  };
  EXPECT_TRUE(autograd::gradcheck(cut, {x}));
  EXPECT_TRUE(autograd::gradgradcheck(cut, {x}));
  const Tensor y = make({2, 2}, {.2, -.4, .6, .1}, kDouble);
  y.requires_grad_();
  const auto join = [](const std::vector<Tensor>& in) {
    const Tensor g = gather({in[0].to(d(0)), in[1].to(d(1))}, 0, kHost);
    return std::vector<Tensor>{g * g * g};
  };
  EXPECT_TRUE(autograd::gradcheck(join, {x, y}));
  EXPECT_TRUE(autograd::gradgradcheck(join, {x, y}));
}

TEST(BroadcastCoalesced, GroupsBySize) {
  const std::vector<BucketItem> five(5, {12, kFloat});
  using Groups = std::vector<std::vector<size_t>>;
  EXPECT_EQ(plan_buckets(five, int64_t{20}), (Groups{{0}, {1}, {2}, {3}, {4}}));
  EXPECT_EQ(plan_buckets(five, int64_t{20}, GroupRule::upstream), (Groups{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(plan_buckets(five, int64_t{24}).size(), 3u);
  EXPECT_EQ(plan_buckets(five, int64_t{24}, GroupRule::upstream).size(), 3u);

  std::vector<Tensor> ts;
  for (int i = 0; i < 5; ++i) ts.push_back(filled({3}, i, kFloat, d(0)));
  // each group is one allocation on the other device
  const auto groups_made = [&](GroupRule rule, int64_t limit) {
    const auto row = broadcast_coalesced(ts, many(2), limit, rule)[1];
    std::vector<const StorageImpl*> roots;
    for (const Tensor& t : row)
      if (roots.empty() || roots.back() != t.storage_impl()->memory_of)
        roots.push_back(t.storage_impl()->memory_of);
    return roots.size();
  };
  EXPECT_EQ(groups_made(GroupRule::ours, 20), 5u);
  EXPECT_EQ(groups_made(GroupRule::upstream, 20), 3u);
  EXPECT_EQ(groups_made(GroupRule::ours, 24), 3u);
  EXPECT_EQ(groups_made(GroupRule::upstream, 24), 3u);
}

TEST(BroadcastCoalesced, KeepsDtypesAndVersions) {
  const std::vector<Tensor> ts = {counting({5}, kLong, d(0)), counting({5}, kFloat, d(0)),
                                  counting({5}, kDouble, d(0)), counting({0}, kByte, d(0))};
  const auto out = broadcast_coalesced(ts, many(3));
  ASSERT_EQ(out.size(), 3u);
  for (size_t row = 0; row < 3; ++row) {
    ASSERT_EQ(out[row].size(), 4u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(out[row][i].scalar_type(), ts[i].scalar_type());
      EXPECT_EQ(values(out[row][i]), values(ts[i]));
      EXPECT_EQ(out[row][i].is_same(ts[i]), row == 0);
      EXPECT_EQ(out[row][i].device(), d(static_cast<int>(row)));
    }
  }
  std::vector<uint32_t> before;
  for (const auto& row : out)
    for (const Tensor& t : row) before.push_back(t.version());
  out[1][1].zero_();
  size_t k = 0;
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i < 4; ++i, ++k)
      EXPECT_EQ(out[row][i].version(), before[k] + (row == 1 && i == 1 ? 1 : 0));
  EXPECT_EQ(values(out[0][1]), values(counting({5})));
}

TEST(ReduceAdd, SumsOnAnyDevice) {
  const std::vector<Tensor> in = {make({1, 2}, kFloat, d(0)), make({10, 20}, kFloat, d(1)),
                                  make({100, 200}, kFloat, d(2))};
  for (Device to : {d(1), d(3), kHost}) {
    const Tensor sum = reduce_add(in, to);
    EXPECT_EQ(sum.device(), to);
    EXPECT_EQ(values(sum), (Values{111, 222}));
  }
  EXPECT_ERROR_TEXT(reduce_add({make({1, 2}), make({1, 2, 3})}), "input 1 has invalid size");
}

TEST(ReduceAdd, OrderDecidesTheBits) {
  std::vector<Tensor> in;
  const double v[] = {1e8, 1, -1e8, 1};
  for (int k = 0; k < 4; ++k) in.push_back(make({v[k]}, kFloat, d(k)));
  for (Device to : {kHost, d(0), d(1), d(2), d(3), Device(kCPU, 7)}) {
    ReduceOptions o;
    EXPECT_EQ(values(reduce_add(in, to, o)), Values{1});
    o.order = ReduceOrder::tree(4);
    EXPECT_EQ(values(reduce_add(in, to, o)), Values{0});
    o.wide = true;
    EXPECT_EQ(values(reduce_add(in, to, o)), Values{2});
    o.order = ReduceOrder::fixed();
    EXPECT_EQ(values(reduce_add(in, to, o)), Values{2});
  }
}

TEST(ReduceAdd, HalfAccumulatesInFloat) {
  EXPECT_EQ(values(reduce_add(
                {make({2048}, kHalf, d(0)), make({1}, kHalf, d(1)), make({1}, kHalf, d(2))})),
            Values{2050});
}

TEST(ReduceAdd, IntegersAndBool) {
  const Tensor sum =
      reduce_add({make({1 << 30, -5}, kInt, d(0)), make({(1 << 30) - 1, 7}, kInt, d(1))}, kHost);
  EXPECT_EQ(sum.scalar_type(), kInt);
  EXPECT_EQ(values(sum), (Values{2147483647.0, 2}));
  const Tensor any =
      reduce_add({make({0, 1, 0, 1}, kBool, d(0)), make({0, 0, 1, 1}, kBool, d(1))}, kHost);
  EXPECT_EQ(any.scalar_type(), kBool);
  EXPECT_EQ(values(any), (Values{0, 1, 1, 1}));
  for (const Tensor& t : {sum, any}) {
    EXPECT_FALSE(t.requires_grad());
    EXPECT_FALSE(t.grad_fn());
  }
}

TEST(Add, RefusesOperandsOnTwoDevices) {
  const Tensor a = make({1, 2}, kFloat, d(0)), b = make({1, 2}, kFloat, d(1));
  const std::string text = error_of([&] { (void)(a + b); });
  expect_part(text, "[add]");
  EXPECT_TRUE(contains(text, d(0).str()) && contains(text, d(1).str())) << text;
}

}  // namespace
}  // namespace ramet
