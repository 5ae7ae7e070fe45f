// Carries bytes between the ranks of one group: point to point, with deadlines. All collectives are
// built on it once (collectives.cc), so every engine adds in the same order.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parallel/distributed/meet/store.h"
#include "parallel/distributed/wire/comm_error.h"

namespace ramet::distributed::detail {

/// The note that a rank sends to the others when it detects a failure. Sent as raw bytes.
struct AbortNote {
  uint32_t kind = 0;  // CommError::Kind
  int32_t origin = -1;
  uint64_t ranks = 0;  // one bit for each of the first 64 ranks
  char text[1008] = {};

  void set_text(const std::string& s) {
    const size_t n = std::min(s.size(), sizeof(text) - 1);
    std::memcpy(text, s.data(), n);
    text[n] = 0;
  }
};
static_assert(sizeof(AbortNote) == 1024);

/// Thrown when some rank, perhaps this one, has ended the group.
struct GroupEnded {
  AbortNote note;
};
/// Thrown when the connection to a peer is broken.
struct PeerLost {
  int rank;
  std::string why;
};

/// A send or receive under way. Its destructor abandons it: then the memory is not accessed any
/// more. After that, the engine may be unable to continue with that peer; it is closed soon.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// Returns false at the deadline. Throws GroupEnded or PeerLost.
  virtual bool wait(Deadline deadline) = 0;
};
using TransferPtr = std::unique_ptr<Transfer>;

/// Thread-safe. A tag names one message of a pair of ranks, and is never used again.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* backend() const = 0;
  virtual TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) = 0;
  /// Receives a message of at most that many bytes.
  virtual TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) = 0;
  /// Ends the group: every wait on every rank that can be reached throws GroupEnded. Only the first
  /// note counts. Returns within telling_takes(), when the others have taken the note. Half-sent
  /// messages before the note must arrive by then. With `wait` false it returns within 100 ms;
  /// ranks that have not taken the note are then notified concurrently.
  virtual void abort(const AbortNote& note, bool wait) = 0;
  /// How long abort() may take: some rank may be out of reach.
  virtual Milliseconds telling_takes() const { return Milliseconds(0); }
  /// Throws GroupEnded or PeerLost if the rank is known to be out of reach.
  virtual void probe(int rank) = 0;
  virtual std::optional<AbortNote> ended() const = 0;
};

}  // namespace ramet::distributed::detail
