// A replica set follows the values of its source, by version, for all dtypes and layouts.
#include "parallel/replicas/replica_set.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "parallel/move/counters.h"
#include "tests/parallel/replicas/replica_set.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;

TEST(ReplicaSet, RefreshCopiesWhatChanged) {
  Stack m;
  const int64_t layer = 64 + 64;  // a bias occupies a whole unit of 64 bytes
  ReplicaSet set(m.ptr(), {kHost, d(0), d(1)}, buckets_of(layer));
  ASSERT_EQ(set.buckets().size(), 3u);
  auto refreshed = [&] {
    reset_counters();
    set.refresh();
    expect_equal_to_source(set);
    return counters();
  };
  EXPECT_EQ(refreshed().replica_refresh_bytes, 2u * 3 * (64 + 16)) << "everything, at first";
  EXPECT_EQ(refreshed().replica_refresh_bytes, 0u);
  {
    const NoGradGuard off;
    m->b->bias.add_(1);
  }
  const auto one = refreshed();
  EXPECT_EQ(one.replica_refresh_bytes, 2u * (64 + 16)) << "b's bucket, for two devices";
  EXPECT_EQ(one.comm_transfers, 2u) << "weight and bias are neighbours: one copy a device";
  EXPECT_EQ(one.comm_bytes[kHost.ordinal()][d(1).ordinal()], 64u + 16);
  EXPECT_EQ(one.comm_bytes[d(0).ordinal()][d(1).ordinal()], 0u) << "always from the source";
  {
    const NoGradGuard off;
    m->a->weight.mul_(2);
    m->c->weight.copy_(m->a->weight);
  }
  EXPECT_EQ(refreshed().replica_refresh_bytes, 2u * 2 * (64 + 16));
  EXPECT_EQ(refreshed().replica_refresh_bytes, 0u);
}

TEST(ReplicaSet, MarkDirtyForRawWrites) {
  Times m(1);
  ReplicaSet set(m.ptr(), many(1));
  set.refresh();
  static_cast<float*>(m->w.ptr())[0] = 5;
  set.refresh();
  EXPECT_EQ(values(set.replica<TimesImpl>(0).w), Values{1}) << "nobody could see that write";
  set.mark_dirty();
  set.refresh();
  EXPECT_EQ(values(set.replica<TimesImpl>(0).w), Values{5});
}

// Tensor::data() counts versions of its own.
TEST(ReplicaSet, WritesThroughDataAreSeen) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0), d(1)});
  set.refresh();
  for (int step = 0; step < 2; ++step) {
    for (const Tensor& p : m->parameters()) p.data().sub_(0.25);
    m->b->weight.data().slice(0, 1, 2).data().mul_(2);
    const auto version = m->b->weight._version();
    set.refresh();
    expect_equal_to_source(set);
    EXPECT_EQ(m->b->weight._version(), version);
    reset_counters();
    set.refresh();
    EXPECT_EQ(counters().replica_refresh_bytes, 0u);
  }
}

TEST(ReplicaSet, MovedMemoryIsFollowed) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  m->b->weight.set_data(filled({4, 4}, 7));
  reset_counters();
  set.refresh();
  EXPECT_EQ(counters().replica_rebuilds, 0u);
  expect_equal_to_source(set);
  EXPECT_EQ(set.replica<StackImpl>(0).b->weight->data, m->b->weight->data);
  {
    const NoGradGuard off;
    m->b->weight.add_(1);
  }
  set.refresh();
  expect_equal_to_source(set);
  EXPECT_EQ(set.replica<StackImpl>(1).b->weight.version(), m->b->weight.version());
}

TEST(ReplicaSet, FrozenAndThawed) {
  Stack m;
  DataParallel<Stack> dp(m, many(2));
  const Tensor x = varied({4, 4}, 1);
  auto step = [&] {
    m->zero_grad();
    dp(x).sum().backward();
  };
  step();
  ASSERT_TRUE(m->b->weight.grad().defined());
  m->b->weight.requires_grad_(false);
  reset_counters();
  step();
  EXPECT_EQ(counters().replica_rebuilds, 0u);
  EXPECT_FALSE(m->b->weight.grad().defined());
  EXPECT_TRUE(m->a->weight.grad().defined());
  for (int r = 0; r < 2; ++r) {
    const Tensor& w = dp.replicas().replica<StackImpl>(r).b->weight;
    EXPECT_FALSE(w.requires_grad());
    EXPECT_TRUE(w.is_leaf());
  }
  const Values frozen = all_gradients(*m);
  step();
  EXPECT_EQ(all_gradients(*m), frozen);
  m->b->weight.requires_grad_(true);
  step();
  Stack alone;
  {
    const NoGradGuard off;
    for (size_t i = 0; i < 6; ++i) alone->parameters()[i].copy_(m->parameters()[i]);
  }
  alone(x).sum().backward();
  expect_close(all_gradients(*m), all_gradients(*alone), 1e-5);
}

struct MixedImpl : nn::Cloneable<MixedImpl> {
  MixedImpl() { MixedImpl::reset(); }
  void reset() override {
    f = register_parameter("f", make({1, 2, 3}));
    i = register_parameter("i", make({5, 6}, kLong), /*requires_grad=*/false);
    g = register_parameter("g", make({.5}, kDouble));
    none = register_parameter("none", zeros({0, 3}));
    h = register_parameter("h", make({2}, kHalf));
    k = register_parameter("k", make({4}));
  }
  Tensor forward(const Tensor& x) { return (x * f).to(kDouble) * g * k.to(kDouble) + none.sum(); }
  Tensor f, i, g, none, h, k;
};
RAMET_MODULE(Mixed);

TEST(ReplicaSet, MixedDtypes) {
  Mixed m;
  DataParallel<Mixed> dp(m, {kHost, d(0)});
  const Tensor x = make({2, 3}, {1, 1, 1, 2, 2, 2});
  dp(x).sum().backward();
  EXPECT_EQ(values(m->f.grad()), (Values{6, 6, 6}));
  EXPECT_EQ(values(m->g.grad()), Values{72});
  EXPECT_EQ(values(m->k.grad()), Values{9});
  EXPECT_EQ(shape(m->none.grad()), (std::vector<int64_t>{0, 3}));
  EXPECT_FALSE(m->h.grad().defined());
  for (const auto& bucket : dp.replicas().buckets())
    for (const auto* node : bucket->members())
      EXPECT_EQ(bucket->members()[0]->full_name() == "g", node->full_name() == "g");
  {
    const NoGradGuard off;
    m->i.add_(1);
    m->h.add_(1);
  }
  reset_counters();
  dp.replicas().refresh();
  expect_equal_to_source(dp.replicas());
  EXPECT_EQ(counters().replica_refresh_bytes, 16u + 2);
  EXPECT_FALSE(dp.replicas().replica<MixedImpl>(1).i.requires_grad());
}

TEST(ReplicaSet, LayoutsAreKept) {
  nn::Conv2d m(3, 5, 2);
  const Values before = values(m->weight);
  m->weight.set_data(m->weight.detach().contiguous(MemoryFormat::ChannelsLast));
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  EXPECT_EQ(set.shell(1)->parameters()[0].raw_strides(), m->weight.raw_strides());
  EXPECT_EQ(values(set.shell(1)->parameters()[0]), before);
  m->weight.set_data(m->weight.detach().contiguous());  // same sizes: no rebuild, another layout
  set.refresh();
  EXPECT_EQ(values(set.shell(1)->parameters()[0]), before);
  m->weight.set_data(filled({5, 1, 1, 1}, 3).expand({5, 3, 2, 2}));  // not even dense
  set.refresh();
  EXPECT_EQ(values(set.shell(1)->parameters()[0]), Values(60, 3));
}

TEST(ReplicaSet, ModulesWithoutParameters) {
  Call m([](const Tensor& x) { return x * 2; });
  ReplicaSet set(m.ptr(), many(3));
  EXPECT_EQ(set.home(), d(0));
  EXPECT_TRUE(set.buckets().empty());
  reset_counters();
  set.refresh();
  EXPECT_EQ(counters().replica_refresh_bytes, 0u);
  std::atomic<int> runs{0};
  set.apply([&](int) { ++runs; });
  EXPECT_EQ(runs, 3);
}

TEST(ReplicaSet, GradModeDecidesAboutEdges) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  for (const bool on : {false, true, false, true}) {
    const AutoGradMode mode(on);
    reset_counters();
    set.refresh();
    EXPECT_EQ(counters().replica_rebuilds, 0u);
    for (int r = 0; r < 2; ++r) {
      for (const Tensor& p : set.shell(r)->parameters()) {
        EXPECT_EQ(p.requires_grad(), on);
        EXPECT_EQ(p.is_leaf(), !on);
      }
    }
  }
  EXPECT_EQ(set.shell(0)->parameters().size(), 6u);
  const NoGradGuard off;
  for (const Stack& r : replicate(m, many(2)))
    for (const Tensor& p : r->parameters()) EXPECT_FALSE(p.requires_grad());
}

TEST(ReplicaSet, ReplicasOfReplicas) {
  Times m(3);
  const auto first = replicate(m, {kHost, d(0)});
  const auto second = replicate(first[1], {d(0), d(1)});
  EXPECT_TRUE(second[1]->is_replica());
  const Tensor y = second[0](make({1}, kFloat, d(0))).to(kHost) +
                   second[1](make({10}, kFloat, d(1))).to(kHost) + first[0](make({100}));
  EXPECT_EQ(values(y), Values{333});
  y.backward();
  EXPECT_EQ(values(m->w.grad()), Values{111});

  // A clone of a replica is a module of its own.
  const auto clone = std::dynamic_pointer_cast<TimesImpl>(first[1]->clone());
  EXPECT_FALSE(clone->is_replica());
  EXPECT_TRUE(clone->w.is_leaf());
  EXPECT_TRUE(clone->w.requires_grad());
  EXPECT_NE(clone->w->data, first[1]->w->data);
  m->zero_grad();
  clone->forward(make({7}, kFloat, d(0))).backward();
  EXPECT_EQ(values(clone->w.grad()), Values{7});
  EXPECT_FALSE(m->w.grad().defined());
}

TEST(ReplicaSet, ReplicaParametersAreWrittenUnderNoGradOnly) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0)}, buckets_of(128));
  set.refresh();
  Tensor& w = set.replica<StackImpl>(1).b->weight;
  EXPECT_ERROR_TEXT(w.add_(1), "b.weight");
  EXPECT_ERROR_TEXT(w.add_(1), "a replica's parameter is being used in an in-place operation");
  const NoGradGuard off;
  w.add_(1);
  reset_counters();
  set.refresh();  // the write made the bucket dirty: the source wins
  EXPECT_EQ(counters().replica_refresh_bytes, 64u + 16);
  expect_equal_to_source(set);
}

TEST(ReplicaSet, HooksOnReplicasLastOneStep) {
  Times m(2);
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  std::vector<Tensor> y(2);
  auto step = [&] {
    set.apply([&](int r) {
      y[static_cast<size_t>(r)] =
          set.replica<TimesImpl>(r).forward(make({1}, kFloat, set.device_of()[size_t(r)]));
    });
    (y[0] + y[1].to(kHost)).backward();
  };
  set.refresh();
  int calls = 0, whole = 0;
  m->w.register_hook([&](const Tensor& g) {
    ++whole;
    EXPECT_EQ(values(g).size(), 1u);
  });
  set.apply([&](int r) {
    auto& replica = set.replica<TimesImpl>(r);
    if (r == 1) replica.w.register_hook([&](const Tensor& g) { return ++calls, g * 10; });
    y[static_cast<size_t>(r)] = replica.forward(make({1}, kFloat, set.device_of()[size_t(r)]));
  });
  (y[0] + y[1].to(kHost)).backward();
  EXPECT_EQ(values(m->w.grad()), Values{11}) << "before the sum";
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(whole, 1) << "the source's hook sees the sum once";
  m->zero_grad();
  step();
  EXPECT_EQ(values(m->w.grad()), Values{2});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(whole, 2);
}

TEST(ReplicaSet, FewerReplicasThanDevices) {
  Times m(2);
  ReplicaSet set(m.ptr(), many(3));
  std::atomic<int> ran{0};
  set.apply([&](int r) { ran += 1 << r; }, 2);
  EXPECT_EQ(ran, 3);
  expect_equal_to_source(set);  // the third device too
  EXPECT_ERROR_TEXT(set.apply([](int) {}, 4), "replicas to run: got 4, expected 1 to 3");
  EXPECT_ERROR_TEXT(set.apply([](int) {}, 0), "replicas to run: got 0");
  EXPECT_ERROR_TEXT(set.shell(3), "replica: got 3, expected 0 to 2");
}

}  // namespace
}  // namespace ramet
