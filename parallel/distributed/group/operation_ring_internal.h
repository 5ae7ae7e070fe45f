// The memory from which recent_operations() answers.
#pragma once
#include <chrono>
#include <optional>
#include <vector>

#include "parallel/distributed/group/operation_record.h"
#include "parallel/distributed/wire/header_internal.h"

namespace ramet::distributed::detail {

/// The last operations of a group on this rank. Not thread-safe: the caller holds the group's lock.
class OperationRing {
 public:
  using State = OperationRecord::State;
  /// Records an operation that was called now, and returns a ticket for it. `peer`: the other rank
  /// of a message, else -1.
  uint64_t on_called(const Header& header, int peer = -1, bool sends = false);
  /// These do nothing if later operations have overwritten the record.
  void on_began(uint64_t ticket);
  void on_ended(uint64_t ticket, bool well);
  /// The oldest first.
  std::vector<OperationRecord> records() const;
  /// Seconds since this ring was made; needs no lock.
  double age() const { return seconds(Clock::now()); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Shown what;
    int peer;
    bool sends;
    State state;
    Clock::time_point called;
    std::optional<Clock::time_point> began, ended;
  };
  Entry* find(uint64_t ticket);
  double seconds(Clock::time_point t) const {
    return std::chrono::duration<double>(t - made_).count();
  }

  std::vector<Entry> entries_;
  uint64_t next_ = 0;  // ticket
  const Clock::time_point made_ = Clock::now();
};

}  // namespace ramet::distributed::detail
