// Memory of large blocks: an arena for each CPU device, which keeps freed memory for later blocks.
//
// Note [Kept memory]
// Memory comes from the system in multiples of 2 MiB, with huge pages. The first touch of 43 MB
// costs 20 ms in pages of 4 KiB. A freed block joins the free memory before and after it; a request
// takes the smallest free range that holds it and leaves the rest. So a step's blocks are reused by
// the next step, for other sizes too. A steady state asks the system for nothing. If nothing fits,
// the largest free range grows to the required size, if the addresses next to it are free.
//
// The kept memory is bounded. Otherwise a container could be killed with little in use. After a
// free, and after a request to the system, whole huge pages of free ranges go back until all of
// this holds:
// - Free ranges and blocks in use are at most the recent maximum in use, plus a sixteenth of that
//   and 4 MiB. So the memory for a step's peak is kept for the next step. "Recent" is this period
//   of kPeriod requests and the last one.
// - Free ranges are no more than the blocks in use. If few are in use, an eighth of the memory that
//   the process may use is kept, and at most 4 GiB. So a destroyed model leaves little.
// - With the blocks of all arenas they are at most three quarters of the memory that the process
//   may use.
//
// The free ranges of all arenas go back if the system has no more memory. They also go back if the
// process's control group is close to its limit at a request.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace ramet {
namespace detail {

class Arena {
 public:
  /// `usable`: bytes of memory that the process may use.
  explicit Arena(size_t usable) : usable_(usable) {}
  /// No block may be in use.
  ~Arena() { release(0); }
  Arena(const Arena&) = delete;

  /// A block that starts at a multiple of 64 bytes; null where the system has no more.
  void* allocate(size_t bytes);
  /// With the same `bytes`, from any thread.
  void free(void* block, size_t bytes) noexcept;
  /// Gives free ranges back to the system until at most `keep` bytes of them are left.
  void release(size_t keep) noexcept;
  /// From now on blocks in use and free ranges are at most `bytes`, unless the blocks alone are
  /// more. 0: no such limit.
  void set_limit(size_t bytes) noexcept;

  /// Bytes, and the numbers of requests to the system and of returns.
  struct Counts {
    size_t used = 0, kept = 0, asked = 0, returned = 0;
  };
  Counts counts();

 private:
  static constexpr size_t kUnit = 16 << 10, kHuge = size_t{2} << 20;
  static constexpr uint32_t kPeriod = 1 << 14;

  // All REQUIRE the lock.
  void* take(size_t size);
  void add(char* at, size_t size) noexcept;
  bool grow(size_t size, bool extend);
  size_t allowed() const;
  void trim(size_t keep) noexcept;
  void remove(std::map<char*, size_t>::iterator range);

  const size_t usable_;
  std::mutex mutex_;
  std::map<char*, size_t> free_;              // ranges by address; no two touch
  std::set<std::pair<size_t, char*>> sizes_;  // the same by size
  size_t used_ = 0, kept_ = 0, limit_ = 0, asked_ = 0, returned_ = 0;
  std::array<size_t, 2> most_{};  // in use at once: in this period and in the last one
  uint32_t requests_ = 0;         // in this period
};

/// The arena of a CPU device. Made at its first use and never destroyed: storages of static objects
/// may be destroyed after it.
Arena& arena(int device_ordinal);
/// The same, or null where the device has none yet.
Arena* existing_arena(int device_ordinal);
/// Gives the free ranges of all arenas back. True: there were some.
bool release_arenas() noexcept;

}  // namespace detail
}  // namespace ramet
