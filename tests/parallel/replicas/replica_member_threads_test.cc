// Plain members of replicas: discarded, declared replica_state<T>, or shared<T>.
#include <gtest/gtest.h>

#include <numeric>

#include "parallel/move/counters.h"
#include "parallel/replicas/replica_state.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;

int64_t total(const std::vector<int64_t>& of_replicas) {
  return std::accumulate(of_replicas.begin(), of_replicas.end(), int64_t{0});
}

struct CountingPartImpl : nn::Cloneable<CountingPartImpl> {
  CountingPartImpl() { CountingPartImpl::reset(); }
  void reset() override {}
  Tensor forward(const Tensor& x) {
    seen->push_back(static_cast<double>(x.size(0)));
    return x;
  }
  replica_state<std::vector<double>> seen;
};
RAMET_MODULE(CountingPart);

struct MembersImpl : nn::Cloneable<MembersImpl> {
  MembersImpl() { MembersImpl::reset(); }
  void reset() override {
    w = register_parameter("w", make({}, {1}));
    part = register_module("part", CountingPart());
  }
  Tensor forward(const Tensor& x) {
    *rows += x.size(0);
    ++*inner.calls;
    log.lock()->push_back(x.size(0));
    if (write_plain) ++plain;
    if (*inner.calls == fail_at && replica_index() == 1) throw std::runtime_error("Badness!");
    return part(x) * w + static_cast<double>(plain);
  }
  bool write_plain = false;
  int plain = 0;
  int64_t fail_at = -1;
  struct {  // a struct in the object is found too
    int64_t padding = 0;
    replica_state<int64_t> calls;
  } inner;
  replica_state<int64_t> rows{0, total};
  shared<std::vector<int64_t>> log;
  Tensor w;
  CountingPart part{nullptr};
};
RAMET_MODULE(Members);

TEST(ReplicaMembers, ReplicaStatePersists) {
  Members m;
  DataParallel<Members> dp(m, many(3));
  reset_counters();
  const std::vector<int64_t> expected[] = {{3, 6, 9}, {3, 6, 9}, {2, 4, 6}};
  for (size_t step = 0; step < 3; ++step) {
    dp(counting({8, 2}));
    for (int r = 0; r < 3; ++r) {
      auto& replica = dp.replicas().replica<MembersImpl>(r);
      EXPECT_EQ(*replica.rows, expected[r][step]) << r;
      EXPECT_EQ(*replica.inner.calls, static_cast<int64_t>(step) + 1);
      EXPECT_EQ(replica.part->seen->size(), step + 1);
    }
    EXPECT_EQ(*m->rows, 8 * (static_cast<int64_t>(step) + 1));  // merged
    EXPECT_EQ(*m->inner.calls, 0);                              // not merged
    EXPECT_TRUE(m->part->seen->empty());
  }
  dp(counting({2, 2}));  // two replicas run; the third's is merged as it was
  EXPECT_EQ(*m->rows, 26);
  EXPECT_EQ(counters().replica_rebuilds, 0u) << "a write to declared state is no change";
  EXPECT_EQ(m->log.load().size(), 11u);
  EXPECT_EQ(total(m->log.load()), 26);
}

TEST(ReplicaMembers, ReplicaStateSurvivesARebuild) {
  Members m;
  DataParallel<Members> dp(m, {kHost, d(0), d(0)});
  dp(counting({9, 2}));
  reset_counters();
  m->plain = 5;
  dp(counting({9, 2}));
  EXPECT_EQ(counters().replica_rebuilds, 1u);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(*dp.replicas().replica<MembersImpl>(r).rows, 6);
    EXPECT_EQ(*dp.replicas().replica<MembersImpl>(r).part->seen, (Values{3, 3}));
  }
  EXPECT_EQ(*m->rows, 18);
  // Another module under the same name has its own state.
  m->part = m->replace_module("part", CountingPart());
  dp(counting({9, 2}));
  EXPECT_EQ(dp.replicas().replica<MembersImpl>(2).part->seen->size(), 1u);
  EXPECT_EQ(*dp.replicas().replica<MembersImpl>(2).inner.calls, 3);
  // Also at the old one's address.
  bool same = false;
  for (int tries = 0; tries < 100 && !same; ++tries) {
    dp(counting({9, 2}));
    const void* before = m->part.ptr().get();
    m->unregister_module("part");
    m->part = CountingPart(nullptr);
    m->part = m->register_module("part", CountingPart());
    same = before == m->part.ptr().get();
    dp(counting({9, 2}));
    EXPECT_EQ(dp.replicas().replica<MembersImpl>(2).part->seen->size(), 1u);
  }
  // Assigning a shared value makes all share the new one.
  m->log = shared<std::vector<int64_t>>();
  dp(counting({9, 2}));
  EXPECT_EQ(m->log.load().size(), 3u);
}

TEST(ReplicaMembers, ReplicaStateOfAFailedStep) {
  Members m;
  DataParallel<Members> dp(m, many(2));
  dp(counting({4, 2}));
  m->fail_at = 2;
  EXPECT_ERROR_TEXT(dp(counting({4, 2})), "Badness!");
  EXPECT_EQ(*m->rows, 4) << "nothing is merged";
  EXPECT_EQ(*dp.replicas().replica<MembersImpl>(1).inner.calls, 2)
      << "what its forward wrote stays";
  dp(counting({4, 2}));
  EXPECT_EQ(*m->rows, 12);
}

TEST(ReplicaMembers, ReplicaStateOfACopyIsItsOwn) {
  Members m;
  *m->rows = 7;
  const auto copy = std::dynamic_pointer_cast<MembersImpl>(m->clone());
  *copy->rows = 9;
  EXPECT_EQ(*m->rows, 7);
  copy->log.lock()->push_back(1);
  EXPECT_EQ(m->log.load().size(), 1u) << "shared by all copies";
  DataParallel<Members> dp(m, many(2));
  dp(counting({4, 2}));
  EXPECT_EQ(*m->rows, 18) << "each replica began with the module's 7";
  replica_state<int64_t> a(1), b(2);
  a = b;
  *b = 3;
  EXPECT_EQ(*a, 2);
}

// What a replica's forward writes to plain members is discarded, on every device alike, and in
// every step.
TEST(ReplicaMembers, UndeclaredMembersAreDiscarded) {
  Members m;
  m->write_plain = true;
  DataParallel<Members> dp(m, {kHost, d(0)});
  for (int step = 0; step < 3; ++step)
    EXPECT_EQ(values(dp(make({2, 1}, {0, 10}))), (Values{1, 11})) << step;
  EXPECT_EQ(m->plain, 0);
  EXPECT_EQ(*m->rows, 6);
}

// Buffers of policy per_replica are kept like declared state.
struct KeepingImpl : nn::Cloneable<KeepingImpl> {
  KeepingImpl() { KeepingImpl::reset(); }
  void reset() override {
    seen = register_buffer("seen", make({}, {0}), nn::BufferPolicy::per_replica);
  }
  Tensor forward(const Tensor& x) {
    seen.add_(static_cast<double>(x.size(0)));
    return x + static_cast<double>(plain);
  }
  int plain = 0;
  Tensor seen;
};
RAMET_MODULE(Keeping);

TEST(ReplicaMembers, PerReplicaBuffersSurviveARebuild) {
  Keeping m;
  DataParallel<Keeping> dp(m, many(2));
  dp(counting({3}));
  m->plain = 1;
  EXPECT_EQ(values(dp(counting({3}))), (Values{1, 2, 3}));
  EXPECT_EQ(values(dp.replicas().replica<KeepingImpl>(0).seen), Values{4});
  EXPECT_EQ(values(dp.replicas().replica<KeepingImpl>(1).seen), Values{2});
}

TEST(ReplicaMembers, SourceOf) {
  nn::BatchNorm1d m(2);
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  for (int r = 0; r < 2; ++r) {
    auto& replica = set.replica<nn::BatchNorm1dImpl>(r);
    EXPECT_TRUE(set.source_of(replica.weight).is_same(m->weight));
    EXPECT_TRUE(set.source_of(replica.running_var).is_same(m->running_var));
  }
  EXPECT_FALSE(set.source_of(make({2}, {1, 2})).defined());
}

TEST(ReplicaMembers, OneForwardAtATime) {
  DataParallel<Call>* running = nullptr;
  Call m([&](const Tensor& x) { return replica_index() == 0 ? (*running)(x) : x; });
  DataParallel<Call> dp(m, many(2));
  running = &dp;
  for (int again = 0; again < 2; ++again)  // not left in that state
    EXPECT_ERROR_TEXT(dp(counting({4})), "a forward of this object is running already");
}

}  // namespace
}  // namespace ramet
