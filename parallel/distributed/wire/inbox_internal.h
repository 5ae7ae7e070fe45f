// Where the first messages of a group's operations arrive.
#pragma once
#include <cstdint>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"
#include "parallel/distributed/wire/header_internal.h"

namespace ramet::distributed::detail {

/// The first messages that an operation's ranks send each other: the header, and behind it what the
/// first round has for that rank, where it is small. They are asked for an operation ahead: their
/// senders need not wait until the receiver asks, and a small operation is one message each way.
class Inbox {
 public:
  /// What the first round may put behind a header.
  static constexpr size_t kRoom = 4096;
  struct Messages {
    uint64_t tag = ~uint64_t{0};
    std::vector<std::vector<char>> memory;  // [rank]
    std::vector<TransferPtr> transfers;     // [rank]; ended before its memory
  };

  Inbox(Engine& engine, int rank, int size) : engine_(engine), rank_(rank), size_(size) {}
  /// Asks for everybody's message of this tag, where it has not been yet. Good until the one after
  /// the next is asked for. Throws what the engine throws.
  Messages& expect(uint64_t tag);

 private:
  Engine& engine_;
  const int rank_, size_;
  Messages two_[2];
  int oldest_ = 0;
};

}  // namespace ramet::distributed::detail
