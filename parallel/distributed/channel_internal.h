// One operation's messages, and what its failures are called.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/engine_internal.h"
#include "parallel/distributed/header_internal.h"

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

class Channel {
 public:
  /// `tell` ends the group. It is called while the messages under way and their memory are still
  /// there: what was half sent is finished, and the other ranks' notes come behind it.
  Channel(Engine& engine, int rank, int size, uint64_t first_tag, Deadline deadline,
          std::function<void(const Failure&)> tell)
      : engine_(engine),
        rank_(rank),
        size_(size),
        tag_(first_tag),
        deadline_(deadline),
        tell_(std::move(tell)) {}
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Shows `mine` to all (as `to_each(rank)` changes it) and returns everybody's, by rank. Throws a
  /// Failure where some do not come or differ.
  template <class F> std::vector<Header> show(const Header& mine, const F& to_each) {
    std::vector<Header> out(static_cast<size_t>(size_), mine);
    for (int i = 0; i < size_; ++i) to_each(i, out[static_cast<size_t>(i)]);
    return show_all(out);
  }
  /// One message each way and peer; those of no bytes are not sent. All have arrived, and all of
  /// ours were taken, when it returns. Every rank calls it equally often.
  void move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
            const char* who_is_late = "stopped in the middle");

 private:
  std::vector<Header> show_all(const std::vector<Header>& out);
  Engine& engine_;
  const int rank_, size_;
  uint64_t tag_;
  const Deadline deadline_;
  const std::function<void(const Failure&)> tell_;
};

/// "rank 3", "ranks 1, 3".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace ramet::distributed::detail
