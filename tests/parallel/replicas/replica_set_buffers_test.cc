// What becomes of the buffers that replicas change: each policy, and a step that failed.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "tests/parallel/replicas/replica_set.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

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
      // For every policy: what the user writes reaches every replica.
      m->n.fill_(5);
      dp.replicas().refresh();
      expect_equal_to_source(dp.replicas());
    }
  }
}

struct NarrowImpl : nn::Cloneable<NarrowImpl> {
  NarrowImpl() { NarrowImpl::reset(); }
  void reset() override {
    n = register_buffer("n", full({2}, 40000, kHalf), nn::BufferPolicy::mean);
  }
  Tensor forward(const Tensor& x) {
    n.add_(x[0].to(kHalf));
    return x;
  }
  Tensor n;
};
RAMET_MODULE(Narrow);

// The sum of two is more than float16 can say, their mean is not.
TEST(ReplicaSet, TheMeanOfNarrowBuffersHasAWideSum) {
  const NoGradGuard off;
  Narrow m;
  DataParallel<Narrow> dp(m, {kHost, d(0)});
  dp(make({64, 128}));
  EXPECT_EQ(m->n.scalar_type(), kHalf);
  EXPECT_EQ(values(m->n.to(kFloat)), (Values{40096, 40096}));
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
  EXPECT_ERROR_TEXT(dp(make({1, 2})), "buffer 'n' of policy all_equal: replica 1 on device " +
                                          d(0).str() + " has another value");
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
    EXPECT_ERROR_TEXT(dp(make({1, 2})), "in replica 1 on device " + d(1).str());
    EXPECT_EQ(values(m->n), before);
    EXPECT_EQ(CountingImpl::merged, 0);
    *m->fails = false;
    dp.replicas().refresh();
    expect_equal_to_source(dp.replicas());  // replica 0's own addition is gone
  }
}

/// w x scale, where `scale` is raised first.
struct RaisedImpl : nn::Cloneable<RaisedImpl> {
  explicit RaisedImpl(nn::BufferPolicy policy) : policy(policy) { RaisedImpl::reset(); }
  void reset() override {
    w = register_parameter("w", make({3}));
    scale = register_buffer("scale", make({1}), policy);
  }
  Tensor forward(const Tensor& x, double by) {
    if (by != 0) {
      const NoGradGuard off;
      scale.add_(by);
    }
    return w * x * scale;
  }
  nn::BufferPolicy policy;
  Tensor w, scale;
};
RAMET_MODULE(Raised);

// What is made of the replicas' values, and what the replicas then get of it, leaves the graphs of
// the forward before alone.
TEST(ReplicaSet, TwoForwardsBeforeOneBackward) {
  const struct {
    nn::BufferPolicy policy;
    double agreed;
  } cases[] = {{nn::BufferPolicy::first, 2},
               {nn::BufferPolicy::mean, 2},
               {nn::BufferPolicy::sum, 4},
               {nn::BufferPolicy::max, 2},
               {nn::BufferPolicy::all_equal, 2}};
  for (const auto& c : cases) {
    for (const std::vector<Device>& on : {std::vector<Device>{kHost, d(0)}, many(2)}) {
      Raised m(c.policy);
      DataParallel<Raised> dp(m, on);
      const Tensor first = dp(make({1, 2}), 1.0).sum();   // each replica has 2
      const Tensor second = dp(make({5, 6}), 0.0).sum();  // and now what all of them agree about
      (first + second).backward();
      EXPECT_EQ(values(m->w.grad())[0], 2 * (1 + 2) + c.agreed * (5 + 6))
          << int(c.policy) << " on " << on[0];
      EXPECT_EQ(values(m->scale)[0], c.agreed);
    }
  }
}

/// Two buffers in one memory.
struct PartsImpl : nn::Cloneable<PartsImpl> {
  PartsImpl() { PartsImpl::reset(); }
  void reset() override {
    whole = register_buffer("whole", make({1, 2}), nn::BufferPolicy::mean);
    part = register_buffer("part", whole.slice(0, 1, 2), nn::BufferPolicy::mean);
  }
  Tensor forward(const Tensor& x) {
    const NoGradGuard off;
    whole.add_(1);
    return x;
  }
  Tensor whole, part;
};
RAMET_MODULE(Parts);

TEST(ReplicaSet, BuffersInOneMemoryStayThere) {
  for (const std::vector<Device>& on : {std::vector<Device>{kHost, d(0)}, many(2)}) {
    Parts m;
    DataParallel<Parts> dp(m, on);
    dp(make({1, 2}));
    EXPECT_EQ(values(m->whole)[0], 2);
    m->whole.fill_(9);
    EXPECT_EQ(values(m->part)[0], 9);
  }
}

}  // namespace
}  // namespace ramet
