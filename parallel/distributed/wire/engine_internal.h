// What carries bytes between the ranks of one group: point to point, with deadlines. All
// collectives are built on it once (collectives.cc), so every engine adds in the same order.
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

/// What the rank that notices a failure tells the others. Sent as it is.
struct AbortNote {
  uint32_t kind = 0;  // CommError::Kind
  int32_t origin = -1;
  uint64_t ranks = 0;  // a bit each, of the first 64
  char text[1008] = {};

  void set_text(const std::string& s) {
    const size_t n = std::min(s.size(), sizeof(text) - 1);
    std::memcpy(text, s.data(), n);
    text[n] = 0;
  }
};
static_assert(sizeof(AbortNote) == 1024);

/// Somebody, perhaps this rank, has ended the group.
struct GroupEnded {
  AbortNote note;
};
/// The connection to a peer is broken.
struct PeerLost {
  int rank;
  std::string why;
};

/// A send or receive under way. Destroying it gives it up: memory is not touched from then on. The
/// engine may then be unable to go on with that peer; it is closed soon after.
class Transfer {
 public:
  virtual ~Transfer() = default;
  /// False at the deadline. Throws GroupEnded or PeerLost.
  virtual bool wait(Deadline deadline) = 0;
};
using TransferPtr = std::unique_ptr<Transfer>;

/// Thread safety: all of it. A tag names one message of a pair of ranks: not used again.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const char* backend() const = 0;
  virtual TransferPtr send(int to, uint64_t tag, const void* data, size_t bytes) = 0;
  /// A message of at most that many bytes.
  virtual TransferPtr recv(int from, uint64_t tag, void* data, size_t bytes) = 0;
  /// Ends the group: every wait on every rank that can be reached throws GroupEnded. Only the first
  /// note counts. Returns within telling_takes(), when the others have taken the note: what was
  /// half sent before it has to be there until then. With `wait` false, within 100 ms: those that
  /// have not taken it are told beside the caller.
  virtual void abort(const AbortNote& note, bool wait) = 0;
  /// Some rank may be out of reach.
  virtual Milliseconds telling_takes() const { return Milliseconds(0); }
  /// Throws GroupEnded or PeerLost where it is known that the rank cannot be reached any more.
  virtual void probe(int rank) = 0;
  virtual std::optional<AbortNote> ended() const = 0;
};

}  // namespace ramet::distributed::detail
