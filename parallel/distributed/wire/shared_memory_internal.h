// Memory that processes of one host share.
//
// Note [Shared memory]
// A block is a memfd of its owner. It has no name in any file system, and is gone with the last
// process that maps it, however these processes end. The others open it through /proc/<pid>/fd,
// which the kernel grants to processes of one user. The code tries whether they can open it, and
// does not guess: hosts, namespaces, users and memory limits may prevent it. The file's name, and
// the first bytes in it, are a random number that its owner sent over the connection. The file's
// size is sealed, so that no reader ever finds a page gone. The descriptors are closed as soon as
// all ranks have mapped it.
//
// The writer never waits for readers. A rank that shows its header of an operation has finished
// reading for all earlier operations, so blocks are written only after headers(). A process that
// dies while others read its block leaves the block unchanged.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ramet::distributed::detail {

class Channel;

/// Memory that is mapped while the object exists.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* at, size_t bytes) : at_(static_cast<char*>(at)), bytes_(bytes) {}
  Mapping(Mapping&& o) noexcept
      : at_(std::exchange(o.at_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  Mapping& operator=(Mapping&& o) noexcept {
    std::swap(at_, o.at_);
    std::swap(bytes_, o.bytes_);
    return *this;
  }
  ~Mapping();
  char* at() const { return at_; }

 private:
  char* at_ = nullptr;
  size_t bytes_ = 0;
};

/// Where to find a block. Sent as raw bytes; bytes = 0: there is none.
struct BlockOffer {
  int32_t pid = 0, descriptor = -1;
  uint64_t bytes = 0;  // of the file
  uint64_t number[2] = {};
};

/// A block of this process, which others may open while the object exists.
class OwnBlock {
 public:
  /// Makes a block with `bytes` usable bytes. Nothing if the system refuses, or if the process's
  /// limit of file sizes is lower.
  static std::optional<OwnBlock> make(size_t bytes);
  OwnBlock(OwnBlock&& o) noexcept
      : offer(o.offer),
        memory(std::move(o.memory)),
        descriptor_(std::exchange(o.descriptor_, -1)) {}
  ~OwnBlock();
  BlockOffer offer;
  Mapping memory;

 private:
  OwnBlock() = default;
  int descriptor_ = -1;
};
/// Maps a block that its owner offered, for reading. Empty if it is not found, or is something
/// else.
std::optional<Mapping> open_block(const BlockOffer& offer);

/// A group's blocks, one for each rank. One operation at a time uses them.
class SharedMemory {
 public:
  /// The maximum size of a rank's block.
  static constexpr size_t kMost = size_t{256} << 20;
  /// The page of the random number.
  static constexpr size_t kHead = 4096;

  /// `wanted` = false: all ranks of the group behave as if nothing could be shared.
  explicit SharedMemory(bool wanted) : wanted_(wanted) {}
  /// Provides blocks of at least that many bytes on all ranks, or returns false and provides them
  /// on none. All ranks call it with the same bytes, after headers().
  bool reserve(Channel& channel, size_t bytes);
  /// A rank's block: this rank writes its own and reads the others'.
  char* of(int rank) const { return blocks_[static_cast<size_t>(rank)].at() + kHead; }

  /// How many bytes this rank put there for others.
  std::atomic<uint64_t> given{0};

 private:
  const bool wanted_;
  size_t capacity_ = 0, most_ = kMost;
  std::vector<Mapping> blocks_;  // [rank]
};

/// The value of RAMET_SHARED_MEMORY: 0 or 1 (default). An Error for anything else.
bool shared_memory_wanted();

}  // namespace ramet::distributed::detail
