// Memory of one cuda:k, kept when it is freed.
//
// Note [Caching memory of a GPU]
// cudaMalloc and cudaFree take from microseconds to milliseconds, and cudaFree waits for the
// device. So the allocator asks the driver for segments and cuts them into blocks. A freed block
// joins its free neighbours and can be given out again at once, without a wait. That is safe
// because all work that uses memory is ordered with the compute stream (Note [Streams of a
// device]). The work of the next owner comes after the work of the last one. Small requests (up to
// 1 MiB) are cut from segments of 2 MiB, larger ones from segments of 20 MiB. A request of 10 MiB
// or more gets its own segment, rounded up to 2 MiB. The smallest block that fits is taken (best
// fit), the lowest address among equals. So the same program gets the same addresses again.
//
// When a GPU has no more memory, segments that are wholly free go back to the driver. cudaFree()
// waits for all work of the GPU. That may be a collective that waits for other ranks, which are
// threads of this process with their own GPUs. So only segments that logical devices of the same
// GPU hold go back. The allocator first removes such a segment from its records. While the driver
// waits, and during cudaMalloc(), the thread holds no lock that another thread needs to go on. A
// thread that makes a graph gives nothing back. It gets the error, and make_graph() begins again.
//
// With RAMET_CUDA_CACHING=0 every block comes from cudaMallocAsync(), with exactly the bytes of the
// request. It goes back by cudaFreeAsync(). Both are on the compute stream, so the block goes back
// after all work that uses it, and no thread waits. Tools that check a kernel's accesses (the
// emulated GPUs' checker, compute-sanitizer) then see where a tensor ends. They also see that it is
// uninitialised or freed. Within a segment all bytes are the same to them. A GPU without memory
// pools (cudaDevAttrMemoryPoolsSupported) uses cudaMalloc() and cudaFree(), which waits. The two
// pairs are never mixed.
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

  /// If the GPU is full, it gives back segments that are wholly free and tries once more. These
  /// include segments of the other logical devices of the GPU. If that fails, an OutOfMemoryError
  /// names the request and the statistics. While the thread makes a graph, nothing goes back.
  void* allocate(size_t bytes);
  void free(void* memory) noexcept;
  /// Waits for the device and gives back all segments that are wholly free. Without a cache, waits
  /// until the driver has all freed memory. An Error while the thread makes a graph.
  void empty_cache();
  MemoryStats stats();
  void reset_peak();
  void set_limit(size_t bytes);
  /// Bytes taken from the driver.
  size_t reserved();
  /// Ends a turn of frees and begins the next one. Returns its number, from 2 on. A caller that
  /// then orders a stream after the compute stream has ordered it after all kernels that used
  /// memory freed in earlier turns.
  uint64_t next_turn();
  /// The last turn in which this memory was freed before it was allocated; 0: never. Without a
  /// cache, the turn of the allocation: the compute stream owns it from then on.
  uint64_t last_freed(void* memory);
  /// Lets kernels and copies of that GPU reach the memory here. Memory pools need an explicit call.
  void open_to(int card);

 private:
  struct Block {
    size_t size;
    bool free;
    char* segment;       // the start of the segment it was cut from
    uint64_t freed = 0;  // the last turn in which a part of it was freed
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
  // Without a cache: the stream of memory that was freed since the last wait for it, or null.
  std::atomic<cudaStream_t> freed_{nullptr};
  enum class Pair : uint8_t { kNotTried, kPool, kPlain };
  std::atomic<Pair> pair_{Pair::kNotTried};  // of calls, without a cache
  std::vector<void*> kept_;  // for cudaFree(), which a thread that makes a graph does not call
};

/// The allocator of cuda:k. The first call makes it.
RAMET_API CachingAllocator& caching_allocator(int device);
/// Gives back the cached memory of all logical devices of this one's GPU.
RAMET_API void empty_caches_of_card(int device);
/// Gives back all cached memory. Waits for all GPUs.
RAMET_API void empty_all_caches();
/// Destroys all of them. No block may be in use.
RAMET_API void destroy_allocators();

}  // namespace cuda
}  // namespace ramet
