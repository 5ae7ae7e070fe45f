// The checker of --config=check: races, uninitialised and out-of-bounds accesses of kernels, and
// unordered streams.
//
// Note [How the checker works]: Kernels are compiled with -fsanitize=thread, and with bounds and
// alignment, of which only the failures are called. But no program is linked with the sanitizer.
// The compiler inserts a call of __tsan_read4() or the like before each access.
// check_compiler_calls.cc defines these functions in place of the sanitizer.
//
// The checker ignores accesses to a thread's own stack, to the built-in variables and to the
// kernel's arguments. Every other access falls into a region: a device's memory, the block's
// dynamic shared memory, or static shared variables. Each four bytes of a region have a cell. It
// remembers the last write and the last read: instruction, thread, bytes, and between which
// barriers.
//
// Two accesses, of which one is a write, must be ordered. Different threads of a block need a
// __syncthreads() between them or, in one warp, a warp primitive. Different blocks of a launch need
// a fence and an atomic. Different operations need an order of their streams. Cells are never
// cleared: each block gets a number, and cells with older numbers are out of date.
//
// The checker misses some errors. Of many readers it remembers only the last two of different
// blocks, and of adjacent single bytes only the last one's reader. A warp primitive with a partial
// mask counts for the whole warp. Fence and atomic order whole blocks. All static shared variables
// of a program are one region: the compiler places them next to each other and does not report
// where one ends. So an overrun of one into another is found only as the race or the uninitialised
// read that it causes there. Where a library cuts tensors out of larger allocations, a whole
// allocation counts as one tensor; RAMET_CUDA_CACHING=0 avoids that
// (runtime/cuda/caching_allocator.h). The checker never reports correct code.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/emulated_gpu/checker/checks.h"

namespace ramet::emulated {

/// The last write to, or read of, four bytes.
struct LastAccess {
  uint64_t code : 47;  // the address after the access; 0 for a copy
  uint64_t rank : 10;
  uint64_t bytes : 4;  // which of the four
  uint64_t atomic : 1;
  uint64_t several : 1;       // several readers of this epoch; `rank` is the last one
  uint64_t across_warps : 1;  // and they are not of one warp
  uint16_t block_epoch, warp_epoch;
  uint32_t instance;  // the block's number; 0: never

  const char* where() const { return reinterpret_cast<const char*>(uintptr_t(code)); }
};
static_assert(sizeof(LastAccess) == 16);

struct Cell {
  LastAccess write;
  // Of the lower and the upper two bytes: neighbouring 16-bit elements belong to different threads.
  LastAccess read[2];
  // By another block or operation than `read`. A thread that reads and then writes, as x += 1 does,
  // must not hide the reader before it.
  LastAccess earlier_read;
};

/// Zeroed memory that takes physical memory only for pages that are touched.
template <class T> class Shadow {
 public:
  explicit Shadow(size_t count = 0) : count_(count), data_(map(count * sizeof(T))) {}
  Shadow(Shadow&& other) noexcept : count_(other.count_), data_(other.data_) {
    other.data_ = nullptr;
  }
  Shadow& operator=(Shadow&& other) noexcept {
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Shadow() { unmap(data_, count_ * sizeof(T)); }
  T& operator[](size_t i) { return static_cast<T*>(data_)[i]; }

 private:
  size_t count_;
  void* data_;
  static void* map(size_t bytes);
  static void unmap(void* data, size_t bytes);
};
void* map_shadow(size_t bytes);
void unmap_shadow(void* data, size_t bytes);
template <class T> void* Shadow<T>::map(size_t bytes) { return map_shadow(bytes); }
template <class T> void Shadow<T>::unmap(void* data, size_t bytes) { unmap_shadow(data, bytes); }

enum class RegionKind : uint8_t { Device, DynamicShared, StaticShared };

struct Region {
  RegionKind kind;
  uintptr_t low, high;
  int device = 0;
  std::string module;  // of static shared variables, for their names
  Shadow<Cell> cells;
  // Which of each four bytes belong to an allocation (Device), and which have been written: for
  // shared memory by the block of instance `written_by`. kTouched: the cell is of this allocation,
  // not of an earlier one at the same address, which it has nothing to do with.
  static constexpr uint8_t kTouched = 16;
  Shadow<uint8_t> owned, written;
  Shadow<uint32_t> written_by;

  bool holds(uintptr_t address) const { return address >= low && address < high; }
  size_t cell_of(uintptr_t address) const { return (address - low) >> 2; }
};

/// One operation of a stream: the blocks of a launch, or a copy, which counts as one block.
struct CheckedOperation {
  uint32_t first_instance;
  uint32_t stream;
  uint64_t number;
  const char* what;
  const void* kernel = nullptr;  // of a launch: finding its name is slow (report.h)

  std::string name() const;
};

/// What is running: one operation at a time and one block at a time, so nothing here needs a lock.
struct CheckState {
  Grid grid;
  uint32_t instance = 0;         // of the running block
  uint32_t launch_first = 1;     // of the running launch's first block
  uint32_t operation_first = 1;  // of the running operation
  std::vector<CheckedOperation> operations;
  VectorClock clock;  // of the running operation
  // The pattern "write, fence, atomic" gives a block's writes to blocks that make an atomic access
  // later.
  std::vector<bool> released;
  bool fenced = false, acquired = false;
  uintptr_t dynamic_shared = 0;
  size_t static_shared = 0;  // bytes that the running block has touched
};
// There before any code runs, and for ever: each access asks several times.
union CheckStateForEver {
  CheckState state;
  constexpr CheckStateForEver() : state() {}
  ~CheckStateForEver() {}
};
inline constinit CheckStateForEver the_check_state;
inline CheckState& check_state() { return the_check_state.state; }

/// An access of the running kernel, or (code null) of a copy.
struct Access {
  uintptr_t address;  // of the cell
  unsigned bytes;     // which of its four
  bool write, atomic;
  Position position;
  const void* code;
};

// check_regions.cc
void find_thread_regions();
void find_dynamic_shared(unsigned char* memory);
void add_device_region(void* base, size_t bytes, int device);
void remove_device_region(void* base);
void mark_allocation(void* memory, size_t bytes, bool owned);
void mark_pinned(void* memory, size_t bytes, bool on);
Region* region_of(uintptr_t address);
/// Whether kernels may read it although it is in no region: module data, pinned host memory.
bool readable_from_kernels(uintptr_t address);
/// "dynamic shared memory + 8", "__shared__ tile + 64", "device memory 0x... of cuda:0".
std::string describe(const Region& region, uintptr_t address);

// check_access.cc
void check_access(const void* memory, size_t bytes, bool write, bool atomic, const void* code);
void note_atomic();
void track(Region& region, const Access& access, bool check_initialised);
/// Checks that the running operation, which frees the memory, is ordered after all uses of it.
void check_free(Region& region, uintptr_t address, size_t bytes);

// check_reports.cc
/// Each pair of instructions is reported once an operation.
void forget_reports();
void report_uninitialised(const Region& region, const Access& access);
void report_race(const Region& region, const Access& access, const LastAccess& earlier,
                 bool earlier_write);
void report_unordered(const Region& region, const Access& access, const LastAccess& earlier,
                      bool earlier_write, const CheckedOperation& operation);
/// An access outside kernels to what no allocation holds.
void report_unowned(const Region& region, uintptr_t address, bool write);
/// A value of a type at an address that its alignment does not allow.
void report_misaligned(const void* memory, const char* type, size_t alignment, const void* code);
/// The block has touched more static shared memory than the launch left next to the dynamic one.
[[noreturn]] void report_too_much_shared(const Access& access);
/// Ends the block, as the hardware would.
void report_illegal(const Access& access, const std::string& what);

}  // namespace ramet::emulated
