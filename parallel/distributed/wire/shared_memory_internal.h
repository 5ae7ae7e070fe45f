// Memory that processes of one host see of each other.
//
// Note [Shared memory]
// A block is a memfd of its owner: no name in any file system, gone with the last process that maps
// it, however these end. The others open it through /proc/<pid>/fd, which the kernel grants to
// processes of one user. Whether they can is tried, not guessed: hosts, namespaces, users and
// limits of memory may be in the way. The file's name, and the first bytes in it, are a random
// number that its owner told by the connection; its size is sealed, so that no reader ever finds a
// page gone. The descriptors are closed as soon as all have mapped it.
//
// Readers are never waited for. A rank that shows its header of an operation has read all of the
// operations before; so blocks are written after headers() only. One that dies while it is read
// leaves its block as it was.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace ramet::distributed::detail {

class Channel;

/// Memory that is mapped as long as it lives.
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

/// Where a block is found. Sent as it is; bytes = 0: there is none.
struct BlockOffer {
  int32_t pid = 0, descriptor = -1;
  uint64_t bytes = 0;  // of the file
  uint64_t number[2] = {};
};

/// A block of this process's, which others may open while the object lives.
class OwnBlock {
 public:
  /// Of `bytes` to use; none where the system refuses, or the process's limit of file sizes is
  /// below it.
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
/// What its owner offered, to be read; empty where it is not found, or is something else.
std::optional<Mapping> open_block(const BlockOffer& offer);

/// A group's blocks, one of each rank. One operation at a time uses them.
class SharedMemory {
 public:
  /// What a rank's block may take.
  static constexpr size_t kMost = size_t{256} << 20;
  /// The number's page.
  static constexpr size_t kHead = 4096;

  /// `wanted` = false: as where nothing can be shared, on all ranks of the group.
  explicit SharedMemory(bool wanted) : wanted_(wanted) {}
  /// Blocks of at least that many bytes, on all ranks or (false) on none. All ranks call it with
  /// the same bytes, after headers().
  bool reserve(Channel& channel, size_t bytes);
  /// A rank's block: this one's to be written, another's to be read.
  char* of(int rank) const { return blocks_[static_cast<size_t>(rank)].at() + kHead; }

  /// What this rank put there for others.
  std::atomic<uint64_t> given{0};

 private:
  const bool wanted_;
  size_t capacity_ = 0, most_ = kMost;
  std::vector<Mapping> blocks_;  // [rank]
};

/// What RAMET_SHARED_MEMORY says: 0 or 1 (default). An Error for anything else.
bool shared_memory_wanted();

}  // namespace ramet::distributed::detail
