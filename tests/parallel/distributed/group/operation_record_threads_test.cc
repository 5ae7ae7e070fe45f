// What a group remembers of its operations, and the report after a failure.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using State = OperationRecord::State;

void expect_ended(const OperationRecord& r, State state) {
  EXPECT_EQ(r.state, state) << r.text;
  ASSERT_TRUE(r.began && r.ended) << r.text;
  EXPECT_LE(0, r.called);
  EXPECT_LE(r.called, *r.began);
  EXPECT_LE(*r.began, *r.ended);
}

TEST(OperationRecords, TheLastOnes) {
  with_groups_of(1, [](const Group& group) {
    EXPECT_TRUE(group->recent_operations().empty());
    for (int i = 0; i < 1100; ++i) group->barrier().wait();
    const auto records = group->recent_operations();
    ASSERT_EQ(records.size(), kRecordedOperations);
    for (size_t i = 0; i < records.size(); ++i) {
      ASSERT_EQ(records[i].number, 1100 - kRecordedOperations + 1 + i);
      ASSERT_NO_FATAL_FAILURE(expect_ended(records[i], State::done));
      if (i > 0) { ASSERT_LE(*records[i - 1].ended, *records[i].ended); }
    }
    EXPECT_EQ(records.back().text, "barrier(operation 1100)");
    EXPECT_EQ(records.back().peer, -1);
  });
}

TEST(OperationRecords, WhatTheyWere) {
  with_groups_of(2, [](const Group& group) {
    Tensor t = full({4, 2}, 1.0);
    CollectiveOptions o("bucket 3");
    o.order = ReduceOrder::tree(4);
    group->all_reduce(t, o).wait();
    if (group->rank() == 0) group->send(t, 1, 7).wait();
    else group->recv(t, 0, 7).wait();
    const auto records = group->recent_operations();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].text, "all_reduce(operation 1, \"bucket 3\", float32[4, 2], sum, tree:4)");
    EXPECT_EQ(records[1].text, "send(operation 1, float32[4, 2])");
    EXPECT_EQ(records[1].peer, 1 - group->rank());
    EXPECT_EQ(records[1].sends, group->rank() == 0);
    for (const OperationRecord& r : records) expect_ended(r, State::done);
  });
}

// Also asked while operations hang.
TEST(OperationRecords, States) {
  with_groups_of(2, [](const Group& group) {
    if (group->rank() == 0) {
      const Work first = group->barrier("first"), second = group->barrier("second");
      std::vector<OperationRecord> now;
      do {
        std::this_thread::yield();
        now = group->recent_operations();
        ASSERT_EQ(now.size(), 2u);
      } while (now[0].state == State::queued);
      EXPECT_EQ(now[0].state, State::running);
      EXPECT_TRUE(now[0].began && !now[0].ended);
      EXPECT_EQ(now[1].state, State::queued);
      EXPECT_FALSE(now[1].began || now[1].ended);
      group->send(full({1}, 1.0), 1).wait();  // while the others wait
      first.wait();
      second.wait();
    } else {
      Tensor go = full({1}, 0.0);
      group->recv(go, 0).wait();
      group->barrier("first").wait();
      group->barrier("second").wait();
    }
    for (const OperationRecord& r : group->recent_operations()) expect_ended(r, State::done);
  });
}

// The rank that was missing asks too: the others learn where it was.
TEST(OperationRecords, ReportOfARankThatDidNotCome) {
  with_groups(3, Milliseconds(500), [](const Group& group) {
    group->barrier().wait();
    EXPECT_ERROR_TEXT((void)group->report(), "the group 'world' has not failed");
    Tensor t = full({2}, 1.0);
    if (group->rank() == 2) {
      EXPECT_THROW(for (;;) group->check(), CommTimeout);
    } else {
      EXPECT_THROW(group->all_reduce(t, "bucket 1").wait(), CommTimeout);
      EXPECT_EQ(group->recent_operations().back().state, State::failed);
    }
    EXPECT_ERROR_TEXT((void)group->report(Milliseconds(-1)), "patience: got -1 ms");
    const std::string text = group->report(std::chrono::seconds(30));
    for (const char* part :
         {"group 'world' of 3 ranks failed: ", "rank 2 did not take part",
          "\n  ranks 0, 1: done up to operation 1, then all_reduce(operation 2, \"bucket 1\", "
          "float32[2], sum, fixed)\n",
          "\n  rank 2: done up to operation 1, called nothing after it\n",
          "\n  the last of rank 2:\n    done    at ", "barrier(operation 1)\n",
          "\n  the last of rank 1:\n", "    failed  at "})
      expect_part(text, part);
    EXPECT_FALSE(contains(text, "told nothing")) << text;
  });
}

TEST(OperationRecords, ReportOfAMismatchAndOfARankThatIsGone) {
  with_groups(3, std::chrono::seconds(30), [](const Group& group) {
    Tensor t = full({2}, 1.0);
    if (group->rank() == 2) {
      EXPECT_THROW(group->broadcast(t, 0, "weights").wait(), CommMismatch);
      return;  // and asks for no report
    }
    EXPECT_THROW(group->all_reduce(t, "bucket 1").wait(), CommMismatch);
    const std::string text = group->report(Milliseconds(200));
    for (const char* part : {"ranks 0, 1: nothing done, then all_reduce(operation 1, \"bucket 1\"",
                             "rank 2: told nothing (ended, stuck elsewhere"})
      expect_part(text, part);
    EXPECT_FALSE(contains(text, "the last of rank 2")) << text;
    expect_part(group->report(Milliseconds(0)), "of 3 ranks failed: ");  // does not wait
  });
}

// A store that can be taken away.
class Leaving final : public Store {
 public:
  void set(const std::string& key, const std::string& value) override { there().set(key, value); }
  std::optional<std::string> find(const std::string& key, Deadline deadline) override {
    return there().find(key, deadline);
  }
  int64_t add(const std::string& key, int64_t n) override { return there().add(key, n); }
  std::optional<std::string> compare_set(const std::string& key,
                                         const std::optional<std::string>& expected,
                                         const std::string& value) override {
    return there().compare_set(key, expected, value);
  }
  bool erase(const std::string& key) override { return there().erase(key); }
  size_t size() override { return there().size(); }
  void fail_all(const std::string& why) override { there().fail_all(why); }
  std::string where() const override { return "gone://"; }
  std::atomic<bool> gone{false};

 private:
  MemoryStore& there() {
    RAMET_CHECK(!gone, "store", "gone:// cannot be reached");
    return memory_;
  }
  MemoryStore memory_;
};

TEST(OperationRecords, ReportWithoutAStore) {
  const auto store = std::make_shared<Leaving>();
  as_ranks(2, [&](int rank) {
    Rendezvous r;
    r.store = store;
    r.rank = rank;
    r.world_size = 2;
    r.threads = true;
    const Group group = make_group(r);
    group->barrier("here").wait();
    store->gone = true;
    if (rank == 0) group->abort("enough");
    EXPECT_THROW(for (;;) group->check(), CommAborted);
    const std::string text = group->report();
    const std::string me = "rank " + std::to_string(rank);
    for (const std::string& part :
         {std::string("enough"), me + ": done up to operation 1, called nothing after it",
          "rank " + std::to_string(1 - rank) + ": told nothing",
          std::string("(the store cannot be asked for more: [store] gone:// cannot be reached)"),
          "the last of " + me + ":\n    done    at "})
      expect_part(text, part);
  });
}

}  // namespace
}  // namespace ramet::distributed
