// How many messages operations are, and what comes with the header.
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "autograd/ops.h"
#include "parallel/distributed/wire/channel_internal.h"
#include "parallel/distributed/wire/inproc_engine_internal.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed::detail {
namespace {

// An engine that notes what is sent.
class Counting final : public Engine {
 public:
  explicit Counting(std::unique_ptr<Engine> inner) : inner_(std::move(inner)) {}
  const char* backend() const override { return inner_->backend(); }
  TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) override {
    sent.push_back(bytes);
    return inner_->send(to, tag, data, bytes);
  }
  TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) override {
    ++asked[tag];
    return inner_->recv(from, tag, data, bytes);
  }
  void abort(const AbortNote& note, bool wait) override { inner_->abort(note, wait); }
  void probe(int rank) override { inner_->probe(rank); }
  std::optional<AbortNote> ended() const override { return inner_->ended(); }

  std::vector<size_t> sent;
  std::map<uint64_t, int> asked;  // by tag

 private:
  std::unique_ptr<Engine> inner_;
};

uint64_t tag_of(uint64_t operation) { return operation << kRoundBits; }

// Ranks that run operations as a group does, each with an engine that counts.
struct Rank {
  Counting engine;
  int rank, size;
  StagingPool pool{};
  Inbox inbox{engine, rank, size};
  uint64_t operations = 0;

  Rank(std::unique_ptr<Engine> e, int r, int n) : engine(std::move(e)), rank(r), size(n) {}

  template <class F> void run(Header h, const F& body) {
    h.sequence = ++operations;
    h.rank = rank;
    Channel channel(engine, pool, rank, size, tag_of(operations),
                    deadline_in(std::chrono::seconds(60)), [](const Failure&) {});
    channel.show(h, inbox, tag_of(operations + 1), [](int, Header&) {});
    body(channel);
    channel.headers();
  }
  // Every rank's bytes, in one round.
  std::vector<std::string> exchange(size_t bytes) {
    const std::string mine(bytes, static_cast<char>('a' + rank));
    std::vector<std::string> all(static_cast<size_t>(size), std::string(bytes, '?'));
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int i = 0; i < size; ++i) {
      if (i == rank) continue;
      out.push_back({i, mine.data(), bytes});
      in.push_back({i, all[static_cast<size_t>(i)].data(), bytes});
    }
    run({}, [&](Channel& c) { c.move(out, in); });
    all[static_cast<size_t>(rank)] = mine;
    return all;
  }
};

void with_ranks(int n, const std::function<void(Rank&)>& body) {
  auto engines = inproc_engines(n);
  as_ranks(n, [&](int r) {
    Rank rank(std::move(engines[static_cast<size_t>(r)]), r, n);
    body(rank);
    rank.run({}, [](Channel&) {});  // no rank leaves before all have what they need
  });
}

TEST(Channel, SmallDataComesWithTheHeader) {
  for (const int n : {2, 3})
    with_ranks(n, [n](Rank& r) {
      const auto others = static_cast<size_t>(n - 1);
      for (const size_t bytes : {size_t{1}, size_t{64}, Inbox::kRoom}) {
        r.engine.sent.clear();
        const auto all = r.exchange(bytes);
        for (int i = 0; i < n; ++i)
          EXPECT_EQ(all[static_cast<size_t>(i)], std::string(bytes, static_cast<char>('a' + i)));
        EXPECT_EQ(r.engine.sent, std::vector(others, sizeof(Header) + bytes));
      }
      r.engine.sent.clear();
      const size_t large = Inbox::kRoom + 1;
      const auto all = r.exchange(large);
      for (int i = 0; i < n; ++i)
        EXPECT_EQ(all[static_cast<size_t>(i)], std::string(large, static_cast<char>('a' + i)));
      std::vector<size_t> expected(others, sizeof(Header));
      expected.insert(expected.end(), others, large);
      EXPECT_EQ(r.engine.sent, expected);
    });
}

// A rank ends silently while this one waits for its GPU, not for a message.
TEST(Channel, WhoIsGoneIsSeenWhileACardWorks) {
  auto engines = inproc_engines(3);
  engines[2].reset();
  StagingPool pool;
  Channel channel(*engines[1], pool, 1, 3, tag_of(1), deadline_in(std::chrono::seconds(60)),
                  [](const Failure&) {});
  try {
    channel.wait_until([] { return false; }, "late");
    ADD_FAILURE() << "no error";
  } catch (const Failure& f) {
    EXPECT_EQ(f.kind, CommError::Kind::lost);
    EXPECT_EQ(f.ranks, std::vector<int>{2});
    EXPECT_NE(f.what.find("rank 2 is gone"), std::string::npos) << f.what;
  }
}

// Only the first round is known when the header is sent. The receive for the next operation is
// posted one operation ahead, and is not posted again.
TEST(Channel, TheNextHeaderIsExpectedAnOperationAhead) {
  with_ranks(2, [](Rank& r) {
    const int other = 1 - r.rank;
    for (int i = 0; i < 5; ++i) {
      int theirs[2] = {-1, -1};
      const int mine[2] = {10 * i + r.rank, 10 * i + r.rank + 100};
      r.engine.sent.clear();
      r.run({}, [&](Channel& c) {
        for (int k = 0; k < 2; ++k)
          c.move({{other, &mine[k], sizeof(int)}}, {{other, &theirs[k], sizeof(int)}});
      });
      EXPECT_EQ(theirs[0], 10 * i + other);
      EXPECT_EQ(theirs[1], 10 * i + other + 100);
      EXPECT_EQ(r.engine.sent, (std::vector{sizeof(Header) + sizeof(int), sizeof(int)}));
      EXPECT_EQ(r.engine.asked[tag_of(r.operations + 1)], 1);
    }
    for (uint64_t k = 1; k <= r.operations; ++k) EXPECT_EQ(r.engine.asked[tag_of(k)], 1);
  });
}

// What came with a header that disagrees stays where it is.
TEST(Channel, NothingOfAnotherOperationIsWritten) {
  with_ranks(2, [](Rank& r) {
    const int other = 1 - r.rank, mine = r.rank;
    int theirs = -1;
    Header h;
    h.elements = static_cast<uint64_t>(r.rank);
    bool failed = false;
    try {
      r.run(h, [&](Channel& c) {
        c.move({{other, &mine, sizeof(int)}}, {{other, &theirs, sizeof(int)}});
      });
    } catch (const Failure& f) {
      failed = true;
      EXPECT_EQ(f.kind, CommError::Kind::mismatch);
      EXPECT_EQ(f.ranks, (std::vector{0, 1}));
    }
    EXPECT_TRUE(failed);
    EXPECT_EQ(theirs, -1);
  });
}

}  // namespace
}  // namespace ramet::distributed::detail
