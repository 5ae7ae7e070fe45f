// One operation's messages, and what its failures are called.
#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/engine_internal.h"
#include "parallel/distributed/header_internal.h"
#include "parallel/distributed/staging_internal.h"

namespace ramet::distributed::detail {

/// Why an operation failed, as this rank saw it.
struct Failure {
  CommError::Kind kind;
  std::vector<int> ranks;
  std::string what;
};

struct Outgoing {
  int to;
  const void* data;
  size_t bytes;
};
struct Incoming {
  int from;
  void* data;
  size_t bytes;
};

/// Messages under way; the first `receives` of them come to us.
struct Round {
  struct Started {
    int peer;
    TransferPtr transfer;
  };
  std::vector<Started> started;
  size_t receives = 0;
};

class Channel {
 public:
  /// `tell` ends the group. It is called while the messages under way and their memory are still
  /// there: what was half sent is finished, and the other ranks' notes come behind it. `sent`
  /// counts the bytes of begin() and move().
  Channel(Engine& engine, StagingPool& pool, int rank, int size, uint64_t first_tag,
          Deadline deadline, std::function<void(const Failure&)> tell,
          std::atomic<uint64_t>* sent = nullptr)
      : engine_(engine),
        pool_(pool),
        rank_(rank),
        size_(size),
        tag_(first_tag),
        deadline_(deadline),
        tell_(std::move(tell)),
        sent_(sent) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  Staging staging(size_t bytes) const { return Staging(pool_, bytes); }

  /// Begins to show `mine` to all, as `to_each(rank)` changes it.
  template <class F> void show(const Header& mine, const F& to_each) {
    shown_.assign(static_cast<size_t>(size_), mine);
    for (int i = 0; i < size_; ++i) to_each(i, shown_[static_cast<size_t>(i)]);
    begin_to_show();
  }
  /// Everybody's, by rank. Throws a Failure where some do not come or differ.
  const std::vector<Header>& headers();
  /// One message each way and peer; those of no bytes are not sent. All have arrived, all of ours
  /// were taken, and all headers are known to agree, when it returns. Every rank calls it equally
  /// often. The first one begins before the headers have come: its messages carry a hash of the
  /// header, so that ranks which are about to do different things do not take each other's.
  void move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
            const char* who_is_late = "stopped in the middle");
  /// move() in two halves: several rounds may be under way.
  Round begin(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);
  void end(const Round& round, const char* who_is_late = "stopped in the middle");
  /// Rounds that an operation may have.
  static constexpr int kMaxRounds = (1 << kRoundBits) - 2;

 private:
  void begin_to_show();
  void start(Round& round, uint64_t tag, const std::vector<Outgoing>& out,
             const std::vector<Incoming>& in);
  void finish(const Round& round, const char* who_is_late);
  void compare_headers();
  [[noreturn]] void fail(const Failure& failure) const;
  [[noreturn]] void lost(const PeerLost& lost) const;

  Engine& engine_;
  StagingPool& pool_;
  const int rank_, size_;
  uint64_t tag_;
  const Deadline deadline_;
  const std::function<void(const Failure&)> tell_;
  std::atomic<uint64_t>* const sent_;
  std::vector<Header> shown_, all_;
  Round showing_;  // after what it writes into
  bool compared_ = true;
};

/// "rank 3", "ranks 1, 3".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace ramet::distributed::detail
