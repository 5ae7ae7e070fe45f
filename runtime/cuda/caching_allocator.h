// Memory of one cuda:k, kept when it is freed.
//
// Note [Caching memory of a GPU]
// cudaMalloc and cudaFree take from microseconds to milliseconds, and cudaFree waits for the
// device. So memory is asked for in segments, of which blocks are cut; a freed block joins its free
// neighbours and is given out again at once, without waiting: everything that uses memory is
// ordered with the compute stream (Note [Streams of a device]), so what the next owner queues comes
// after what the last one queued. Small requests (up to 1 MiB) are cut from segments of 2 MiB,
// larger ones from segments of 20 MiB, those of 10 MiB and more from one of their own, rounded to 2
// MiB. The smallest block that fits is taken (best fit), the lowest address among equals, so that
// the same program gets the same addresses again.
//
// Where a card has no more, segments that are wholly free go back. cudaFree() waits for all that
// the card was given, which may be a collective that waits for other ranks, threads of this process
// with cards of their own. So only what logical devices of the same card hold goes back; it is
// taken out of the books first, and no lock that anybody needs in order to go on is held while the
// driver waits, nor while cudaMalloc() does. A thread that makes a graph gives nothing back: it
// gets the error, and make_graph() begins again.
//
// With RAMET_CUDA_CACHING=0 every block is one of cudaMallocAsync(), of as many bytes as were asked
// for, and goes back by cudaFreeAsync(), both on the compute stream: behind all that uses it, as
// above, and nobody waits. Who looks after a kernel's accesses (the emulated GPUs' checker,
// compute-sanitizer) then sees where a tensor ends, that nobody has written it and that it is gone;
// within a segment all bytes look alike. A card without memory pools (cudaDevAttrMemoryPools-
// Supported) has cudaMalloc() and cudaFree(), which waits; the two pairs are never mixed.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "runtime/memory/allocator.h"

namespace ramet {
namespace cuda {

class RAMET_API CachingAllocator {
 public:
  explicit CachingAllocator(int device, bool caches = true) : device_(device), caches_(caches) {}
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;

  /// Where the card is full, segments that are wholly free go back (here and on the other logical
  /// devices of the card), and it tries once more; then an OutOfMemoryError names the request and
  /// the statistics. While the thread makes a graph nothing goes back.
  void* allocate(size_t bytes);
  void free(void* memory) noexcept;
  /// Waits for the device and gives back all segments that are wholly free; without a cache, waits
  /// until the driver has what was freed. An Error while the thread makes a graph.
  void empty_cache();
  MemoryStats stats();
  void reset_peak();
  void set_limit(size_t bytes);
  /// Bytes taken from the driver.
  size_t reserved();
  /// A turn of frees ends and another begins; its number, from 2 on. Whoever then puts a stream
  /// behind the compute stream has put it behind all kernels that used what was freed in earlier
  /// turns.
  uint64_t next_turn();
  /// The turn in which this memory, allocated since, was freed last; 0: never. Without a cache, the
  /// turn in which it was allocated: the compute stream has it from then on.
  uint64_t last_freed(void* memory);
  /// Kernels and copies of that card are to reach the memory here: pools want to be told.
  void open_to(int card);

 private:
  struct Block {
    size_t size;
    bool free;
    char* segment;       // the start of the segment it was cut from
    uint64_t freed = 0;  // in which turn, any part of it
  };
  struct BySize {
    size_t size;
    char* at;
    bool operator<(const BySize& o) const { return size != o.size ? size < o.size : at < o.at; }
  };
  static bool small(size_t bytes) { return bytes <= (size_t{1} << 20); }
  std::set<BySize>& free_list(size_t segment) { return free_[segment == kSmallSegment ? 0 : 1]; }
  void* take(size_t size);
  void* from_driver(size_t bytes);
  void to_driver(void* memory) noexcept;
  void free_kept();
  void add_segment(char* at, size_t size);
  void* allocate_block(size_t size, size_t bytes, std::unique_lock<std::mutex>& lock);
  bool pooled();
  void give_back_free_segments();
  void check_limit(size_t size, size_t bytes, std::unique_lock<std::mutex>& lock);
  void count(size_t size);
  [[noreturn]] void out_of_memory(size_t bytes, const char* why,
                                  std::unique_lock<std::mutex>& lock);

  static constexpr size_t kAlign = 512, kSmallSegment = size_t{2} << 20,
                          kSegment = size_t{20} << 20, kOwnSegment = size_t{10} << 20;
  const int device_;
  const bool caches_;
  std::mutex mutex_;                  // no call of CUDA's under it
  std::map<char*, Block> blocks_;     // all, by address
  std::map<char*, size_t> segments_;  // their sizes
  std::set<BySize> free_[2];          // of small and of other segments
  size_t current_ = 0, peak_ = 0, reserved_ = 0, limit_ = 0;
  int64_t allocations_ = 0;
  uint64_t turn_ = 1;
  // Without a cache: the stream of what was freed since somebody waited for it, or null.
  std::atomic<cudaStream_t> freed_{nullptr};
  enum class Pair : uint8_t { kNotTried, kPool, kPlain };
  std::atomic<Pair> pair_{Pair::kNotTried};  // of calls, without a cache
  std::vector<void*> kept_;  // for cudaFree(), which a thread that makes a graph does not call
};

/// That of cuda:k, made at need.
RAMET_API CachingAllocator& caching_allocator(int device);
/// Gives back what the logical devices of this one's card have cached.
RAMET_API void empty_caches_of_card(int device);
/// Gives back what all of them have cached: waits for all cards.
RAMET_API void empty_all_caches();
/// Destroys all of them. No block may be in use.
RAMET_API void destroy_allocators();

}  // namespace cuda
}  // namespace ramet
