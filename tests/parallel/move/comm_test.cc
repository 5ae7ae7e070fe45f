// Ring 1: _out forms, memory formats, aliasing, versions, errors, adjacency.
#include "parallel/move/comm.h"

#include <gtest/gtest.h>

#include "autograd/graph/layout.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/counters.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace testing;
using namespace parallel;

TEST(Split, Weights) {
  EXPECT_EQ(Split::weights({1, 1, 2}).cut("t", 8, 3), (Shape{2, 2, 4}));
  // 7.5 and 2.5: the first of equal remainders
  EXPECT_EQ(Split::weights({3, 1}).cut("t", 10, 2), (Shape{8, 2}));
  EXPECT_EQ(Split::weights({0, 1}).cut("t", 3, 2), (Shape{0, 3}));
  EXPECT_ERROR_TEXT(Split::weights({1}).cut("t", 3, 2), "len(weights) = 1");
  EXPECT_ERROR_TEXT(Split::weights({0, 0}).cut("t", 3, 2), "more than 0");
  EXPECT_ERROR_TEXT(Split::weights({-1, 2}).cut("t", 3, 2), "0 or more");
}

TEST(Split, EmptyAndSizes) {
  EXPECT_EQ(Split::chunk().cut("t", 0, 3), Shape{0});
  EXPECT_EQ(Split::chunk().cut("t", 0, 3, Parity::upstream), (Shape{0, 0, 0}));
  EXPECT_EQ(Split::sizes({0, 3, 0}).cut("t", 3, 3), (Shape{0, 3, 0}));
  EXPECT_ERROR_TEXT(Split::sizes({4, -1}).cut("t", 3, 2), "0 or more");
}

TEST(ReduceOrder, Tree) {
  EXPECT_EQ(ReduceOrder::tree(4).leaves(), 4);
  EXPECT_ERROR_TEXT(ReduceOrder::tree(3), "power of two");
  EXPECT_ERROR_TEXT(ReduceOrder::tree(0), "power of two");
  EXPECT_ERROR_TEXT(ReduceOrder::tree(32), "at most 16");
}

TEST(Comm, BroadcastAliasesTheSourceOnce) {
  const Tensor t = counting({2, 3}, kFloat, d(0));
  const auto out = comm::broadcast(t, {d(0), d(1), d(0), kHost});
  EXPECT_TRUE(out[0].is_same(t));
  EXPECT_FALSE(out[2].is_same(t));
  EXPECT_NE(out[2]->data, t->data);
  for (const Tensor& o : out) EXPECT_EQ(values(o), values(t));
  EXPECT_EQ(out[3].device(), kHost);
  EXPECT_TRUE(comm::broadcast(t, ArrayRef<Device>()).empty());
  EXPECT_ERROR_TEXT(comm::broadcast(Tensor(), {d(0)}), "undefined");
}

TEST(Comm, BroadcastOut) {
  const Tensor t = counting({2, 2});
  std::vector<Tensor> out = {filled({2, 2}, 9, kFloat, d(0)), filled({2, 2}, 9, kFloat, d(1))};
  const uint32_t version = out[0].version();
  const Tensor held = out[0];
  EXPECT_EQ(&comm::broadcast_out(t, out), &out);
  EXPECT_TRUE(out[0].is_same(held));
  EXPECT_EQ(out[0].version(), version + 1);
  for (const Tensor& o : out) EXPECT_EQ(values(o), values(t));
  std::vector<Tensor> bad = {filled({2, 2}, 9), filled({4}, 9)};
  EXPECT_ERROR_TEXT(comm::broadcast_out(t, bad), "but output tensor at index 1 has shape [4]");
  EXPECT_EQ(values(bad[0]), Values(4, 9)) << "a check failed: nothing is written";
  bad[1] = filled({2, 2}, 9, kDouble);
  EXPECT_ERROR_TEXT(comm::broadcast_out(t, bad), "index 1 has dtype Double");
  bad[1] = filled({2, 2}, 9);
  bad[1].requires_grad_();
  EXPECT_ERROR_TEXT(comm::broadcast_out(t, bad), "automatic differentiation");
}

// N, H, W, C memory, shown to the user.
Tensor channels_last(Device device) {
  const auto fresh = [](Device where) {
    return Tensor(TensorBase::empty_strided({2, 3, 2, 2}, {12, 1, 6, 3}, kFloat, where));
  };
  const Tensor host = fresh(kHost), t = fresh(device);
  for (int i = 0; i < 24; ++i) static_cast<float*>(host.ptr())[i] = static_cast<float>(i);
  autograd::copy_values(t, host);
  return t;
}

TEST(Comm, MemoryFormatIsKept) {
  const Tensor t = channels_last(d(0));
  const auto copies = comm::broadcast(t, {d(1)});
  EXPECT_EQ(copies[0].strides(), t.strides());
  EXPECT_EQ(values(copies[0]), values(t));
  const auto pieces = comm::scatter(t, {d(1), d(2)});
  EXPECT_TRUE(autograd::is_channels_last(pieces[0]));
  const Tensor whole = comm::gather(pieces, 0, d(3));
  EXPECT_TRUE(autograd::is_channels_last(whole));
  EXPECT_EQ(values(whole), values(t));
  const Tensor sum = comm::reduce_add({t, channels_last(d(1))}, kHost);
  EXPECT_EQ(sum.strides(), t.strides());
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(values(sum)[i], 2 * values(t)[i]);
  const auto row = comm::broadcast_coalesced({t, counting({3}, kFloat, d(0))}, {d(0), d(1)})[1];
  EXPECT_EQ(row[0].strides(), t.strides());
  EXPECT_EQ(values(row[0]), values(t));
}

TEST(Comm, ReduceAddOfMixedLayouts) {
  const Tensor a = channels_last(d(0));
  const Tensor b = make({2, 3, 2, 2}, values(a), kFloat, d(1));  // the same values, row-major
  for (const auto& in : {std::vector<Tensor>{a, b}, std::vector<Tensor>{b, a}}) {
    const Tensor sum = comm::reduce_add(in, kHost);
    for (size_t i = 0; i < 24; ++i) EXPECT_EQ(values(sum)[i], 2 * values(a)[i]);
  }
  const Tensor wide = make({2, 1}, {1, 2}, kFloat, d(0)).expand({2, 3});
  EXPECT_EQ(values(comm::reduce_add({wide, counting({2, 3})}, kHost)), (Values{1, 2, 3, 5, 6, 7}));
}

TEST(Comm, ReduceAddSingleInput) {
  const Tensor t = counting({3}, kFloat, d(0));
  EXPECT_NE(comm::reduce_add({t}, d(0))->data, t->data);
  ReduceOptions options;
  options.may_alias = true;
  EXPECT_TRUE(comm::reduce_add({t}, d(0), options).is_same(t));
  EXPECT_EQ(comm::reduce_add({t}, d(1), options).device(), d(1));
  EXPECT_EQ(comm::reduce_add({t}).device(), kGpus ? d(0) : kHost)
      << "by default the current device";
}

TEST(Comm, ReduceAddErrors) {
  const Tensor t = counting({3});
  EXPECT_ERROR_TEXT(comm::reduce_add(ArrayRef<Tensor>()), "expected at least one");
  EXPECT_ERROR_TEXT(comm::reduce_add({t, counting({3}, kDouble)}),
                    "input 1 has invalid dtype: got Double, but expected Float");
  EXPECT_ERROR_TEXT(comm::reduce_add({t, Tensor()}), "input 1 is undefined");
  EXPECT_ERROR_TEXT(comm::reduce_add(std::vector<Tensor>(17, t)), "at most 16");
  ReduceOptions options;
  options.order = ReduceOrder::tree(2);
  EXPECT_ERROR_TEXT(comm::reduce_add({t, t, t}, kHost, options), "leaves of the tree");
  EXPECT_ERROR_TEXT(comm::reduce_add({t, t}, Device(kCUDA, kGpus ? 7 : 0)), "cuda");
}

TEST(Comm, TreeWithFewerInputsThanLeaves) {
  // ((1e8 + 1) + -1e8) with the fourth leaf missing: the third goes up alone.
  ReduceOptions options;
  options.order = ReduceOrder::tree(4);
  EXPECT_EQ(values(comm::reduce_add({make({1e8}), make({1}), make({-1e8})}, kHost, options)),
            Values{0});
  EXPECT_EQ(values(comm::reduce_add({make({1e8}), make({-1e8}), make({1})}, kHost, options)),
            Values{1});
}

TEST(Comm, ReduceAddCoalesced) {
  std::vector<std::vector<Tensor>> rows;
  for (int k = 0; k < 3; ++k)
    rows.push_back({filled({5}, k + 1, kFloat, d(k)), counting({2, 2}, kDouble, d(k)),
                    filled({3}, 10 * k, kFloat, d(k)), counting({0}, kFloat, d(k))});
  for (int64_t limit : {int64_t{1}, kDefaultBufferSize}) {
    const auto sums = comm::reduce_add_coalesced(rows, kHost, limit);
    ASSERT_EQ(sums.size(), 4u);
    EXPECT_EQ(values(sums[0]), Values(5, 6));
    EXPECT_EQ(values(sums[1]), (Values{0, 3, 6, 9}));
    EXPECT_EQ(values(sums[2]), Values(3, 30));
    EXPECT_EQ(sums[3].numel(), 0);
    const uint32_t v = sums[2].version();
    sums[0].zero_();
    EXPECT_EQ(sums[2].version(), v) << "a version counter each";
  }
  rows[1].pop_back();
  EXPECT_ERROR_TEXT(comm::reduce_add_coalesced(rows, kHost), "list 1 has 3 tensors, expected 4");
  rows[1].push_back(counting({0}, kFloat, d(2)));
  EXPECT_ERROR_TEXT(comm::reduce_add_coalesced(rows, kHost),
                    "tensor 3 of list 1 is on " + d(2).str() + ", expected " + d(1).str());
  // The first list is checked as well.
  rows[1][3] = counting({0}, kFloat, d(1));
  rows[0][1] = Tensor();
  EXPECT_ERROR_TEXT(comm::reduce_add_coalesced(rows, kHost), "tensor 1 of list 0 is undefined");
  rows[0][1] = counting({2, 2}, kDouble, d(3));
  EXPECT_ERROR_TEXT(comm::reduce_add_coalesced(rows, kHost),
                    "tensor 1 of list 0 is on " + d(3).str() + ", expected " + d(0).str());
}

TEST(Comm, NeighboursTravelTogether) {
  // What broadcast_coalesced made lies in one allocation: sums of three such rows are one kernel
  // call.
  const std::vector<Tensor> source = {counting({5}, kFloat, d(0)), counting({20}, kFloat, d(0)),
                                      counting({3, 3}, kFloat, d(0))};
  const auto rows = comm::broadcast_coalesced(source, {d(1), d(2), d(3)});
  reset_counters();
  const auto sums = comm::reduce_add_coalesced(rows, kHost);
  EXPECT_EQ(counters().comm_launches, 1u);
  for (size_t i = 0; i < 3; ++i)
    for (size_t e = 0; e < values(source[i]).size(); ++e)
      EXPECT_EQ(values(sums[i])[e], 3 * values(source[i])[e]);
  EXPECT_EQ(counters().moved(), 3u * (5 + 20 + 9) * 4) << "payload, without padding";
  reset_counters();
  const auto again = comm::broadcast_coalesced(rows[0], {d(1), kHost});
  EXPECT_EQ(counters().comm_transfers, 1u);
  EXPECT_EQ(values(again[1][2]), values(source[2]));
}

TEST(Comm, BroadcastCoalescedErrors) {
  const Tensor t = counting({3}, kFloat, d(0));
  EXPECT_ERROR_TEXT(comm::broadcast_coalesced({t, counting({3}, kFloat, d(1))}, many(2)),
                    "All tensors must be on one device: tensor at index 1");
  EXPECT_ERROR_TEXT(comm::broadcast_coalesced({t}, many(2), -1), "0 or more bytes");
  const auto empty = comm::broadcast_coalesced(ArrayRef<Tensor>(), many(3));
  ASSERT_EQ(empty.size(), 3u);
  for (const auto& row : empty) EXPECT_TRUE(row.empty());
}

TEST(Comm, ScatterOut) {
  const Tensor t = counting({6, 2});
  std::vector<Tensor> out = {filled({4, 2}, 9, kFloat, d(0)), filled({2, 2}, 9, kFloat, d(1))};
  EXPECT_EQ(&comm::scatter_out(t, out), &out);
  EXPECT_EQ(values(out[0]), (Values{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(values(out[1]), (Values{8, 9, 10, 11}));
  std::vector<Tensor> columns = {filled({6, 1}, 9), filled({6, 1}, 9, kFloat, d(1))};
  comm::scatter_out(t, columns, -1);
  EXPECT_EQ(values(columns[1]), (Values{1, 3, 5, 7, 9, 11}));
  std::vector<Tensor> none;
  EXPECT_ERROR_TEXT(comm::scatter_out(t, none),
                    "Expected at least one output tensor to scatter to");
  std::vector<Tensor> bad = {filled({4, 2}, 9), filled({1, 2}, 9)};
  EXPECT_ERROR_TEXT(comm::scatter_out(t, bad), "Expected 6, but got total size 5");
  EXPECT_EQ(values(bad[0]), Values(8, 9));
  bad[1] = filled({2, 3}, 9);
  EXPECT_ERROR_TEXT(comm::scatter_out(t, bad),
                    "Output tensor at index 1 has incorrect shape: [2, 3]");
  reset_counters();
  std::vector<Tensor> same = {t.narrow(0, 0, 4), t.narrow(0, 4, 2)};
  comm::scatter_out(t, same);
  EXPECT_EQ(counters().comm_transfers, 0u) << "already there";
}

TEST(Comm, GatherOut) {
  const std::vector<Tensor> in = {counting({2, 2}, kFloat, d(0)), filled({1, 2}, 7, kFloat, d(1))};
  Tensor out = filled({3, 2}, 9, kFloat, d(2));
  EXPECT_EQ(&comm::gather_out(in, out), &out);
  EXPECT_EQ(values(out), (Values{0, 1, 2, 3, 7, 7}));
  Tensor bad = filled({4, 2}, 9);
  EXPECT_ERROR_TEXT(comm::gather_out(in, bad),
                    "Expected out tensor to have shape [3, 2], but got [4, 2]");
  Tensor wrong = filled({3, 2}, 9, kDouble);
  EXPECT_ERROR_TEXT(comm::gather_out(in, wrong), "dtype Float, but got Double");
}

TEST(Comm, GatherRules) {
  const Tensor f = counting({2}, kFloat, d(0)), g = counting({2}, kDouble, d(1));
  EXPECT_ERROR_TEXT(comm::gather({f, g}), "index 1 has Double, expected Float");
  const Tensor p = comm::gather({f, g}, 0, kHost, /*promote=*/true);
  EXPECT_EQ(p.scalar_type(), kDouble);
  EXPECT_EQ(values(p), (Values{0, 1, 0, 1}));
  EXPECT_ERROR_TEXT(comm::gather({f, filled({}, 1)}), "0-dim at [1]");
  EXPECT_ERROR_TEXT(comm::gather({filled({}, 1), filled({}, 1)}, 1), "expected 0");
  EXPECT_ERROR_TEXT(comm::gather({f}, 1), "out of range");
  EXPECT_EQ(shape(comm::gather({counting({0, 2}), counting({3, 2})}, 0, d(1))), (Shape{3, 2}));
  EXPECT_EQ(values(comm::gather({counting({2}, kBool), counting({1}, kBool)}, 0, d(1))),
            (Values{0, 1, 0}));
}

TEST(Comm, ScatterAliases) {
  const Tensor t = counting({4, 2}, kFloat, d(0));
  const auto pieces = comm::scatter(t, {d(0), d(1)});
  EXPECT_EQ(pieces[0]->data, t->data) << "a view until somebody writes";
  ScatterOptions options;
  options.alias = Alias::copy;
  EXPECT_NE(comm::scatter(t, {d(0), d(1)}, options)[0]->data, t->data);
  for (const Tensor& p : pieces) p.zero_();
  EXPECT_EQ(values(pieces[0]), Values(4, 0));
  EXPECT_EQ(values(pieces[1]), Values(4, 0));
  EXPECT_EQ(values(t), values(counting({4, 2})))
      << "in-place changes of a piece never reach the batch";
  const auto more = comm::scatter(t, {d(0), d(1)});
  const Tensor view = more[0].view({-1});
  EXPECT_ERROR_TEXT(view.zero_(), "has views of its own");
  more[0].data().zero_();
  EXPECT_EQ(values(t), values(counting({4, 2})));
  const auto seen = comm::scatter(t, {d(0), d(1)});
  seen[0].data().zero_();
  EXPECT_EQ(values(seen[0]), Values(4, 0));
  EXPECT_EQ(values(t), values(counting({4, 2})));
}

TEST(Comm, RankAboveInline) {
  const Shape sizes = {2, 1, 1, 1, 1, 1, 1, 1, 3};
  const Tensor t = counting(sizes, kFloat, d(0));
  const auto pieces = comm::scatter(t, {d(1), d(2)});
  EXPECT_EQ(values(pieces[1]), (Values{3, 4, 5}));
  EXPECT_EQ(values(comm::gather(pieces, 0, kHost)), values(t));
  EXPECT_EQ(shape(comm::reduce_add(pieces, kHost)), (Shape{1, 1, 1, 1, 1, 1, 1, 1, 3}));
}

}  // namespace
}  // namespace ramet
