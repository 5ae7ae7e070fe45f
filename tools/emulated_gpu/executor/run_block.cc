// Runs one block from its first thread to its end, and reports what stopped it.
#include <sys/mman.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/grid_run.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/executor/settings.h"
#include "tools/emulated_gpu/executor/worker.h"

#if defined(RAMET_EMULATED_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace ramet::emulated {
namespace {

// Around the dynamic shared memory, never accessible under ASan.
constexpr size_t kRedZone = 4096;

thread_local std::unique_ptr<Worker> own_worker;
// The same, without a test whether it exists already: every barrier reads it.
constinit thread_local Worker* this_worker = nullptr;

std::mutex counts_mutex;
std::vector<Worker*> all_workers;       // under counts_mutex
ExecutorCounts ended_workers{0, 0, 0};  // under counts_mutex

// The generator of random orders (SplitMix64): the same numbers for the same launch and block,
// whichever worker runs it.
class Shuffle {
 public:
  Shuffle(uint64_t seed, uint64_t launch, uint64_t block)
      : state_(seed * 0x9e3779b97f4a7c15ull + launch * 0xbf58476d1ce4e5b9ull + block) {}
  template <class T> void operator()(T* first, unsigned count) {
    for (unsigned i = count; i > 1; --i) std::swap(first[i - 1], first[next() % i]);
  }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  uint64_t state_;
};

uint3 index_in(uint3 extent, uint64_t linear) {
  return {unsigned(linear % extent.x), unsigned(linear / extent.x % extent.y),
          unsigned(linear / extent.x / extent.y)};
}

}  // namespace

Worker* Worker::if_any() { return this_worker; }

Worker& Worker::get() {
  if (!this_worker) {
    own_worker.reset(new Worker);
    this_worker = own_worker.get();
  }
  return *this_worker;
}

Worker::Worker() {
  describe_host_thread(&host_);
  void* memory = mmap(nullptr, kMaxShared + 2 * kRedZone, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  dynamic_ = static_cast<unsigned char*>(memory) + kRedZone;
#if defined(RAMET_EMULATED_ASAN)
  ASAN_POISON_MEMORY_REGION(memory, kMaxShared + 2 * kRedZone);
#endif
  std::lock_guard<std::mutex> lock(counts_mutex);
  all_workers.push_back(this);
}

Worker::~Worker() {
  this_worker = nullptr;
#if defined(RAMET_EMULATED_ASAN)
  ASAN_UNPOISON_MEMORY_REGION(dynamic_ - kRedZone, kMaxShared + 2 * kRedZone);
#endif
  munmap(dynamic_ - kRedZone, kMaxShared + 2 * kRedZone);
  std::lock_guard<std::mutex> lock(counts_mutex);
  ended_workers.switches += switches;
  ended_workers.blocks += blocks;
  ended_workers.threads += threads;
  std::erase(all_workers, this);
}

ExecutorCounts executor_counts() {
  std::lock_guard<std::mutex> lock(counts_mutex);
  ExecutorCounts sum = ended_workers;
  for (const Worker* worker : all_workers) {
    sum.switches += worker->switches;
    sum.blocks += worker->blocks;
    sum.threads += worker->threads;
  }
  return sum;
}

void Worker::run_block(GridRun& run, uint64_t block) {
  begin_block(run, block);
  happens_before(&block_token_);
  fiber_ = take_fiber();
  ++switches;
  switch_stack(host_, *fiber_);
  happens_after(&block_token_);
  running_stack = {nullptr, 0};
  if (!abandoned_ && live_) record_fault(Fault::Deadlock, describe_deadlock());
  else if (!abandoned_ && !bulk_copies_.empty())
    record_fault(Fault::Resources,
                 "COPIES UNDER WAY to the shared memory of a block that has ended");
  bulk_copies_.clear();
  if (step_hooks) step_hooks->block_ended();
  end_block(run);
}

void Worker::begin_block(GridRun& run, uint64_t block) {
  run_ = &run;
  gridDim = run.grid.grid;
  blockDim = run.grid.block;
  blockIdx = index_in(gridDim, block);
  count_ = live_ = blockDim.x * blockDim.y * blockDim.z;
  started_ = head_ = tail_ = 0;
  abandoned_ = false;
  barrier_ = {};
  for (unsigned rank = 0; rank < count_; ++rank) {
    threads_[rank].state = ThreadState::Unstarted;
    threads_[rank].fiber = nullptr;
    threads_[rank].index = index_in(blockDim, rank);
  }
  for (unsigned first = 0; first < count_; first += 32) {
    Warp& warp = warps_[first / 32];
    const unsigned lanes = count_ - first;
    warp.live = lanes >= 32 ? 0xffffffffu : (1u << lanes) - 1;
    warp.group_count = 0;
    warp.epoch = 0;
  }
  order_threads(block);
  if (run.grid.shared_bytes) {
#if defined(RAMET_EMULATED_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(dynamic_, run.grid.shared_bytes);
#endif
    // NaN in every floating-point type: a block must not read memory that it has not written.
    std::memset(dynamic_, 0xff, run.grid.shared_bytes);
  }
  if (checks().block_begin) checks().block_begin(run.grid, dynamic_);
  if (step_hooks) step_hooks->block_begun(run.grid, block);
}

// Warps stay together, so that a warp that needs no barrier runs as one.
void Worker::order_threads(uint64_t block) {
  const ThreadOrder order = settings().threads;
  for (unsigned i = 0; i < count_; ++i)
    order_[i] = static_cast<uint16_t>(order == ThreadOrder::Reverse ? count_ - 1 - i : i);
  if (order != ThreadOrder::Random) return;
  Shuffle shuffle(settings().thread_seed, run_->grid.launch, block);
  std::array<uint8_t, kMaxThreads / 32> warps;
  const unsigned warp_count = (count_ + 31) / 32;
  for (unsigned i = 0; i < warp_count; ++i) warps[i] = static_cast<uint8_t>(i);
  shuffle(warps.data(), warp_count);
  unsigned placed = 0;
  for (unsigned i = 0; i < warp_count; ++i) {
    const unsigned first = placed, lowest = warps[i] * 32u;
    for (unsigned rank = lowest; rank < std::min(lowest + 32, count_); ++rank)
      order_[placed++] = static_cast<uint16_t>(rank);
    shuffle(&order_[first], placed - first);
  }
}

void Worker::end_block(GridRun& run) {
  if (live_) {  // fibers stopped in the middle of a kernel
    idle_.clear();
    for (const auto& fiber : fibers_) {
      fiber->rewind();
      idle_.push_back(fiber.get());
    }
    for (unsigned rank = 0; rank < count_; ++rank) {
      async_copies_[rank] = {};
      products_[rank] = {};
    }
  }
#if defined(RAMET_EMULATED_ASAN)
  if (run.grid.shared_bytes) ASAN_POISON_MEMORY_REGION(dynamic_, run.grid.shared_bytes);
#else
  (void)run;
#endif
  ++blocks;
  run_ = nullptr;
}

void Worker::record_fault(Fault fault, const std::string& text) {
  GridRun& run = *run_;
  const Grid& grid = run.grid;
  const std::string report =
      "[emulated CUDA] kernel " + function_name_of(grid.function) + " <<<" + text_of(grid.grid) +
      ", " + text_of(grid.block) + ", " + std::to_string(grid.shared_bytes) +
      ">>> on cuda:" + std::to_string(grid.device) + ", block " + text_of(blockIdx) + ": " + text;
  {
    std::lock_guard<std::mutex> lock(run.mutex);
    if (run.result.fault == Fault::None) run.result.fault = fault;
    run.result.report += run.result.report.empty() ? report : "\n" + report;
  }
  if (step_hooks) step_hooks->fault(text);
  run.failed.store(true, std::memory_order_relaxed);
  publish(report);
}

std::string Worker::describe_deadlock() const {
  std::map<std::string, std::vector<unsigned>> waiting;
  for (unsigned rank = 0; rank < count_; ++rank) {
    const CudaThread& thread = threads_[rank];
    std::string where = "the end of the kernel";
    if (thread.state == ThreadState::AtBarrier) {
      where = "__syncthreads() at " + place(thread.file, thread.line);
    } else if (thread.state == ThreadState::AtWarp) {
      char mask[16];
      std::snprintf(mask, sizeof mask, "0x%08x", thread.mask);
      where = "a warp primitive with mask " + std::string(mask) + " at " +
              place(thread.file, thread.line);
    } else if (thread.state == ThreadState::AtPhase) {
      where = "a barrier's phase at " + place(thread.file, thread.line);
    }
    waiting[where].push_back(rank);
  }
  std::string text = "DEADLOCK, no thread of the block can go on";
  for (const auto& [where, ranks] : waiting)
    text += "\n    " + std::to_string(ranks.size()) + " thread(s) at " + where + ", first " +
            text_of(threads_[ranks.front()].index) + ", last " +
            text_of(threads_[ranks.back()].index);
  return text;
}

uint3 index_of(unsigned rank) { return index_in(blockDim, rank); }

Position current_position() {
  const Worker* worker = Worker::if_any();
  if (!worker || !worker->busy()) return {};
  return {true, worker->current(), worker->block_epoch(), worker->warp_epoch()};
}

void device_warn(Fault fault, const std::string& text) { Worker::get().record_fault(fault, text); }

}  // namespace ramet::emulated
