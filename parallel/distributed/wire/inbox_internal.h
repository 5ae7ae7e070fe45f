// Where the first messages of a group's operations arrive.
#pragma once
#include <cstdint>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"
#include "parallel/distributed/wire/header_internal.h"

namespace ramet::distributed::detail {

/// Receives the first messages that an operation's ranks send each other. Such a message is the
/// header, followed by the first round's data for that rank if it is small. These receives are
/// posted one operation ahead. So their senders need not wait for the receiver, and a small
/// operation is one message in each direction.
class Inbox {
 public:
  /// The maximum size of the first round's data after a header.
  static constexpr size_t kRoom = 4096;
  struct Messages {
    uint64_t tag = ~uint64_t{0};
    std::vector<std::vector<char>> memory;  // [rank]
    std::vector<TransferPtr> transfers;     // [rank]; destroyed before its memory
  };

  Inbox(Engine& engine, int rank, int size) : engine_(engine), rank_(rank), size_(size) {}
  /// Posts receives for all ranks' messages of this tag, if that has not been done yet. The result
  /// is valid until the second next tag is expected. Throws what the engine throws.
  Messages& expect(uint64_t tag);

 private:
  Engine& engine_;
  const int rank_, size_;
  Messages two_[2];
  int oldest_ = 0;
};

}  // namespace ramet::distributed::detail
