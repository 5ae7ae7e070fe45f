// A replica set follows its source: values by version, structure by rebuilding, buffers by policy.
#include "parallel/replica_set.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/flat_store.h"
#include "parallel/counters.h"
#include "runtime/generator.h"
#include "runtime/logging.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;
using Values = std::vector<double>;

/// Three layers of 4 x 4 weights: 64 + 16 bytes each.
struct StackImpl : nn::Cloneable<StackImpl> {
  StackImpl() { StackImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    c = register_module("c", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) { return c(b(a(x).tanh()).tanh()); }
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
};
RAMET_MODULE(Stack);

ReplicaOptions buckets_of(int64_t bytes) {
  ReplicaOptions options;
  options.bucket_bytes = bytes;
  return options;
}
// Every replica's parameters and buffers hold the source's values, on the replica's device.
void expect_equal_to_source(const ReplicaSet& set) {
  for (int r = 0; r < set.size(); ++r) {
    const auto theirs = set.shell(r)->named_parameters();
    const auto ours = set.source()->named_parameters();
    ASSERT_EQ(theirs.keys(), ours.keys());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(values(theirs[i].value()), values(ours[i].value())) << r << ours[i].key();
      EXPECT_EQ(theirs[i].value().device(), set.device_of()[static_cast<size_t>(r)]);
    }
    EXPECT_EQ(all_values(set.shell(r)->buffers()), all_values(set.source()->buffers()));
  }
}

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

// What the log says when the shells are made again.
class RebuildLog {
 public:
  RebuildLog() {
    set_log_handler([this](LogLevel level, const std::string& text) {
      if (level == LogLevel::Info && has(text, "[replicate]")) texts.push_back(text);
    });
  }
  ~RebuildLog() { set_log_handler(nullptr); }
  std::vector<std::string> texts;
};

struct GrowingImpl : nn::Cloneable<GrowingImpl> {
  GrowingImpl() { GrowingImpl::reset(); }
  void reset() override {
    w = register_parameter("w", filled({width}, 2));
    if (extra) more = register_parameter("more", filled({1}, 10));
    fc = register_module("fc", nn::Linear(2, 2));
  }
  Tensor forward(const Tensor& x) { return extra ? x * w.sum() + more : x * w.sum(); }
  int64_t width = 1;
  bool extra = false;
  Tensor w, more;
  nn::Linear fc{nullptr};
};
RAMET_MODULE(Growing);

TEST(ReplicaSet, StructureChangesRebuild) {
  Growing m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  const RebuildLog log;
  reset_counters();
  uint64_t rebuilds = 0;
  auto expect_rebuilt = [&](const char* what) {
    set.refresh();
    EXPECT_EQ(counters().replica_rebuilds, ++rebuilds) << what;
    ASSERT_EQ(log.texts.size(), rebuilds) << what;
    EXPECT_TRUE(has(log.texts.back(), what)) << log.texts.back();
    expect_equal_to_source(set);
    set.refresh();
    EXPECT_EQ(counters().replica_rebuilds, rebuilds) << what << ": once";
  };
  set.refresh();
  m->extra = true;  // a late registration
  m->more = m->register_parameter("more", filled({1}, 20));
  expect_rebuilt("the module");
  m->width = 3;
  expect_rebuilt("a member of the module");
  m->w.set_data(filled({3}, 4));
  expect_rebuilt("shape, dtype or device of 'w'");
  m->fc->to(kDouble);
  expect_rebuilt("shape, dtype or device of 'fc.weight'");
  m->fc = m->replace_module("fc", nn::Linear(2, 2));
  expect_rebuilt("a child");
  m->to(d(1));
  expect_rebuilt("shape, dtype or device of 'w'");
  EXPECT_EQ(set.home(), d(1));
  EXPECT_EQ(set.replica<GrowingImpl>(1).w.device(), d(0));
  // Values, modes and flags are no structure.
  m->train(false);
  m->w.requires_grad_(false);
  set.refresh();
  EXPECT_EQ(counters().replica_rebuilds, rebuilds);
  EXPECT_FALSE(set.shell(1)->is_training());
}

/// The same tensor under two names, in two modules, and one module under two names.
struct SharingImpl : nn::Cloneable<SharingImpl> {
  SharingImpl() { SharingImpl::reset(); }
  void reset() override {
    in = register_module("in", Times(3));
    out = register_module("out", Times(5));
    again = register_parameter("again", in->w);
    twice = register_module("twice", out);
  }
  Tensor forward(const Tensor& x) { return twice(out(in(x))) * again; }
  Times in{nullptr}, out{nullptr}, twice{nullptr};
  Tensor again;
};
RAMET_MODULE(Sharing);

TEST(ReplicaSet, TiedParametersStayTied) {
  Sharing m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  for (int r = 0; r < 2; ++r) {
    auto& replica = set.replica<SharingImpl>(r);
    EXPECT_EQ(replica.again->data, replica.in->w->data);
    EXPECT_EQ(replica.again->node, replica.in->w->node);
    EXPECT_EQ(replica.again->slot, replica.in->w->slot);
    EXPECT_EQ(replica.out->w->data, replica.twice->w->data);
    EXPECT_EQ(replica.named_parameters().keys(), m->named_parameters().keys());
  }
  std::vector<Tensor> y(2);
  set.apply([&](int r) {
    y[static_cast<size_t>(r)] =
        set.replica<SharingImpl>(r).forward(make({1, 2}, kFloat, set.device_of()[size_t(r)]));
  });
  EXPECT_EQ(values(y[1]), (Values{225, 450}));
  (y[0].sum() + y[1].to(kHost).sum()).backward();
  EXPECT_EQ(values(m->in->w.grad()), Values{900});   // d(25 w^2 x)/dw = 150 x, x sums to 6
  EXPECT_EQ(values(m->out->w.grad()), Values{540});  // d(9 v^2 x)/dv = 90 x
  {
    const NoGradGuard off;
    m->in->w.fill_(1);
  }
  set.refresh();
  EXPECT_EQ(values(set.replica<SharingImpl>(1).again), Values{1});
}

struct BorrowerImpl : nn::Cloneable<BorrowerImpl> {
  BorrowerImpl() { BorrowerImpl::reset(); }
  void reset() override { own = register_parameter("own", make({1})); }
  Tensor forward(const Tensor& x) { return x * own; }
  Tensor own, borrowed;
};
RAMET_MODULE(Borrower);
struct LenderImpl : nn::Cloneable<LenderImpl> {
  LenderImpl() { LenderImpl::reset(); }
  void reset() override {
    w = register_parameter("w", make({3}));
    child = register_module("child", Borrower());
  }
  Tensor w;
  Borrower child{nullptr};
};
RAMET_MODULE(Lender);

TEST(ReplicaSet, TiesThatTheRegistryDoesNotKnowAreRefused) {
  Lender m;
  m->child->borrowed = m->w;
  EXPECT_ERROR(ReplicaSet(m.ptr(), many(2)),
               "module 'child' holds parameter 'w' in a member that does not follow in its clone");
  m->child->borrowed = Tensor();
  ReplicaSet set(m.ptr(), many(2));
  set.refresh();
  expect_equal_to_source(set);
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

/// Each forward adds the sum of its input to `n`, in place.
struct CountingImpl : nn::Cloneable<CountingImpl> {
  explicit CountingImpl(nn::BufferPolicy policy) : policy(policy) { CountingImpl::reset(); }
  void reset() override { n = register_buffer("n", make({100, 7}), policy); }
  Tensor forward(const Tensor& x) {
    n.select(0, 0).add_(x.sum());
    if (fails && *fails && replica_index() == 1) throw std::runtime_error("Badness!");
    return x;
  }
  void merge_replicas(ArrayRef<nn::Module*> replicas) override {
    merged = static_cast<int>(replicas.size());
  }
  nn::BufferPolicy policy;
  std::shared_ptr<bool> fails;
  static int merged;
  Tensor n;
};
int CountingImpl::merged = 0;
RAMET_MODULE(Counting);

TEST(ReplicaSet, BufferPolicies) {
  const Tensor x = make({1, 2});  // replica 0 adds 1, replica 1 adds 2
  const NoGradGuard off;
  const struct {
    nn::BufferPolicy policy;
    double once, twice;
  } cases[] = {{nn::BufferPolicy::first, 101, 102},      {nn::BufferPolicy::mean, 101.5, 103},
               {nn::BufferPolicy::sum, 203, 409},        {nn::BufferPolicy::max, 102, 104},
               {nn::BufferPolicy::sync, 101, 102},       {nn::BufferPolicy::per_replica, 100, 100},
               {nn::BufferPolicy::merge_stats, 100, 100}};
  for (const auto& c : cases) {
    for (const std::vector<Device>& on : {std::vector<Device>{kHost, d(0)}, many(2)}) {
      Counting m(c.policy);
      DataParallel<Counting> dp(m, on);
      dp(x);
      EXPECT_EQ(values(m->n)[0], c.once) << int(c.policy) << " on " << on[0];
      EXPECT_EQ(values(m->n)[1], c.policy == nn::BufferPolicy::sum ? 14 : 7);
      dp(x);
      EXPECT_EQ(values(m->n)[0], c.twice) << int(c.policy) << " on " << on[0];
      EXPECT_EQ(CountingImpl::merged, 2);
      // Whatever the policy: what the user writes reaches every replica.
      m->n.fill_(5);
      dp.replicas().refresh();
      expect_equal_to_source(dp.replicas());
    }
  }
}

TEST(ReplicaSet, PerReplicaBuffersPersist) {
  Counting m(nn::BufferPolicy::per_replica);
  DataParallel<Counting> dp(m, {kHost, d(0)});
  for (int step = 1; step <= 3; ++step) {
    dp(make({1, 2}));
    EXPECT_EQ(values(dp.replicas().replica<CountingImpl>(0).n)[0], 100 + step);
    EXPECT_EQ(values(dp.replicas().replica<CountingImpl>(1).n)[0], 100 + 2 * step);
  }
  EXPECT_EQ(values(m->n)[0], 100);
}

TEST(ReplicaSet, AllEqualIsChecked) {
  Counting m(nn::BufferPolicy::all_equal);
  DataParallel<Counting> dp(m, {kHost, d(0)});
  dp(make({3, 3}));
  EXPECT_EQ(values(m->n)[0], 103);
  EXPECT_ERROR(dp(make({1, 2})),
               "buffer 'n' of policy all_equal: replica 1 on device cpu:1 has another value");
  m->n.fill_(0);
  dp(make({4, 4}));
  EXPECT_EQ(values(m->n), (Values{4, 0 + 0}));
}

TEST(ReplicaSet, FailedStepTakesNothingOver) {
  for (const nn::BufferPolicy policy :
       {nn::BufferPolicy::first, nn::BufferPolicy::sum, nn::BufferPolicy::mean}) {
    Counting m(policy);
    m->fails = std::make_shared<bool>(false);
    DataParallel<Counting> dp(m, many(2));  // no replica shares the source's memory
    dp(make({1, 2}));
    const Values before = values(m->n);
    *m->fails = true;
    CountingImpl::merged = 0;
    EXPECT_ERROR(dp(make({1, 2})), "in replica 1 on device cpu:2");
    EXPECT_EQ(values(m->n), before);
    EXPECT_EQ(CountingImpl::merged, 0);
    *m->fails = false;
    dp.replicas().refresh();
    expect_equal_to_source(dp.replicas());  // replica 0's own addition is gone
  }
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

struct OwnCloneImpl : nn::Module {
  OwnCloneImpl() { w = register_parameter("w", make({1})); }
  std::shared_ptr<nn::Module> clone(const std::optional<Device>& device) const override {
    auto copy = std::make_shared<OwnCloneImpl>();
    copy->factor = factor;
    copy->w.set_data(device ? w.detach().to(*device, false, true) : w.detach().clone());
    copy->copy_flags_from(*this);
    return copy;
  }
  Tensor forward(const Tensor& x) { return x * w * factor; }
  double factor = 1;
  Tensor w;
};

TEST(ReplicaSet, MembersBehindTheModulesBackNeedRebuild) {
  auto m = std::make_shared<OwnCloneImpl>();  // says nothing about its bytes
  ReplicaSet set(m, many(1));
  m->factor = 3;
  set.refresh();
  EXPECT_EQ(set.replica<OwnCloneImpl>(0).factor, 1);
  set.rebuild();
  set.refresh();
  EXPECT_EQ(set.replica<OwnCloneImpl>(0).factor, 3);
  expect_equal_to_source(set);
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
  EXPECT_ERROR(w.add_(1), "b.weight");
  EXPECT_ERROR(w.add_(1), "a replica's parameter is being used in an in-place operation");
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
  EXPECT_ERROR(set.apply([](int) {}, 4), "replicas to run: got 4, expected 1 to 3");
  EXPECT_ERROR(set.apply([](int) {}, 0), "replicas to run: got 0");
  EXPECT_ERROR(set.shell(3), "replica: got 3, expected 0 to 2");
}

struct NoCloneImpl : nn::Module {};
struct OtherTypeImpl : StackImpl {
  std::shared_ptr<nn::Module> clone(const std::optional<Device>& device) const override {
    return StackImpl::clone(device);
  }
};
struct SelfCloneImpl : nn::Module {
  std::shared_ptr<nn::Module> clone(const std::optional<Device>&) const override { return nullptr; }
};

TEST(ReplicaSet, Errors) {
  Stack m;
  EXPECT_ERROR(ReplicaSet(m.ptr(), {}), "at least one device is required");
  EXPECT_ERROR(ReplicaSet(nullptr, many(1)), "module: got an empty pointer");
  EXPECT_ERROR(ReplicaSet(m.ptr(), std::vector<Device>(17, kHost)),
               "replicas: got 17, expected at most 16");
  ReplicaOptions tree;
  tree.order = ReduceOrder::tree(4);
  EXPECT_ERROR(ReplicaSet(m.ptr(), many(3), tree), "got V = 4 and 3 devices");
  EXPECT_ERROR(ReplicaSet(std::make_shared<NoCloneImpl>(), many(1)),
               "clone() has not been implemented for");
  EXPECT_ERROR(ReplicaSet(std::make_shared<OtherTypeImpl>(), many(1)), "is of another type");
  EXPECT_ERROR(ReplicaSet(std::make_shared<SelfCloneImpl>(), many(1)), "got an empty pointer");
  ReplicaSet two(m.ptr(), many(2));
  EXPECT_ERROR(two.apply([](int) {}, 0), "replicas to run: got 0, expected 1 to 2");
  EXPECT_ERROR(two.apply([](int) {}, 3), "replicas to run: got 3, expected 1 to 2");
  m->b->weight.set_data(m->b->weight.to(d(2)));
  EXPECT_ERROR(ReplicaSet(m.ptr(), many(1)), "found one of them on device: cpu:3 ('b.weight')");
}

TEST(ReplicaSet, FailedRebuildLeavesTheSetUsable) {
  Stack m;
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  set.refresh();
  const Tensor before = m->b->weight.detach();
  m->b->weight.set_data(before.to(d(2)));
  EXPECT_ERROR(set.refresh(), "found one of them on device");
  m->b->weight.set_data(before);
  set.refresh();
  expect_equal_to_source(set);
}

}  // namespace
}  // namespace ramet
