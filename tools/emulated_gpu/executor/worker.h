// One host thread's part of the executor: the block that it runs and the fibers of that block.
//
// Note [Threads of a block]: A worker starts thread 0 of a block on a fiber. If the thread returns,
// the same fiber goes on with thread 1. So a kernel that never synchronises costs no switch. Only
// when a thread must wait does the worker take another fiber. It uses it for a thread that can run,
// or for the next thread that has not started.
//
// Note [Greedy]: Threads that a barrier has released run one warp after the other, each as far as
// possible. Warps drift as far from each other as the barriers allow, so a missing barrier gives
// wrong numbers in every run. A fair order keeps them nearly in step and hides it.
#pragma once
#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tools/emulated_gpu/executor/device_calls.h"
#include "tools/emulated_gpu/executor/fiber.h"
#include "tools/emulated_gpu/executor/hopper.h"

namespace ramet::emulated {

struct GridRun;

enum class ThreadState : uint8_t { Unstarted, Ready, Running, AtBarrier, AtWarp, AtPhase, Done };

/// One CUDA thread of the block.
struct CudaThread {
  ThreadState state;
  Fiber* fiber;
  uint3 index;
  // Where it waits, and for which lanes.
  uint32_t mask;
  void* argument;
  const char* file;
  int line;
};

/// Lanes of a warp that wait with one mask.
struct WarpGroup {
  uint32_t mask, arrived;
  WarpFunction function;
  const char* file;
  int line;
};

struct Warp {
  uint32_t live;
  int group_count;
  std::array<WarpGroup, 32> groups;
  uint32_t epoch;
};

struct BlockBarrier {
  unsigned arrived = 0;
  int votes = 0;
  // Of the first to arrive.
  const char* file = nullptr;
  int line = 0;
  // The last release leaves these for the threads that it released.
  unsigned released = 0;
  int released_votes = 0;
  uint32_t epoch = 0;
};

struct AsyncCopies {
  std::vector<AsyncCopy> open;
  std::deque<std::vector<AsyncCopy>> groups;
  size_t next = 0;
};

/// Of hopper.h: a copy on its way, and a thread's products with the sums that they write.
struct BulkCopy {
  void* target;
  uint64_t map[16];  // a copy of the kernel's map: its thread may have ended before the copy
                     // arrives
  int at[4];
  uint64_t* barrier;
};
struct ProductSums {
  float* d;
  std::vector<float> values;
};
struct Products {
  std::vector<WarpgroupProduct> open;
  std::vector<std::vector<WarpgroupProduct>> groups;
  std::vector<ProductSums> sums;
  bool fenced = false;
};

class Worker {
 public:
  /// The calling thread's worker, made at first use; or null where it has none yet.
  static Worker& get();
  static Worker* if_any();
  ~Worker();

  // run_block.cc
  void run_block(GridRun& run, uint64_t block);

  // What the functions of device_calls.h do on the running thread: barrier.cc, warp.cc.
  int wait_at_barrier(Vote vote, int predicate, const char* file, int line);
  void meet(uint32_t mask, void* argument, WarpFunction function, const char* file, int line);
  // hopper.cc
  void wait_for_phase(uint64_t* barrier, unsigned parity, const char* file, int line);
  void end_phase(uint64_t* barrier);
  void queue_copy(const BulkCopy& copy);
  void deliver(uint64_t* barrier);
  [[noreturn]] void abandon_block();
  void record_fault(Fault fault, const std::string& text);

  bool busy() const { return run_ != nullptr; }
  unsigned current() const { return current_; }
  uint32_t live_lanes() const { return warps_[current_ / 32].live; }
  unsigned char* dynamic_shared() const { return dynamic_; }
  uint32_t block_epoch() const { return barrier_.epoch; }
  uint32_t warp_epoch() const { return warps_[current_ / 32].epoch; }
  AsyncCopies& async_copies() { return async_copies_[current_]; }
  Products& products() { return products_[current_]; }

  // Counts of the whole process (executor_counts).
  uint64_t switches = 0, blocks = 0, threads = 0;

 private:
  Worker();
  static void fiber_main(Fiber* self);

  // run_block.cc
  void begin_block(GridRun& run, uint64_t block);
  void order_threads(uint64_t block);
  void end_block(GridRun& run);

  // schedule.cc: which fiber runs next.
  Fiber* take_fiber();
  void start_next_thread(Fiber* self);
  void finish_thread();
  void resume(unsigned rank);
  void wait_for_others();
  bool anyone_ready() const { return head_ != tail_; }
  unsigned pop_ready() { return ready_[head_++ % kMaxThreads]; }
  void push_ready(unsigned rank) {
    threads_[rank].state = ThreadState::Ready;
    ready_[tail_++ % kMaxThreads] = static_cast<uint16_t>(rank);
  }
  void push_ready_first(unsigned rank) {
    threads_[rank].state = ThreadState::Ready;
    ready_[--head_ % kMaxThreads] = static_cast<uint16_t>(rank);
  }

  void release_barrier();
  void complete_group(unsigned warp, int group, bool include_current);
  std::string describe_deadlock() const;

  Stack host_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
  Fiber* fiber_ = nullptr;  // the one that runs

  GridRun* run_ = nullptr;
  bool abandoned_ = false;
  unsigned current_ = 0, count_ = 0, started_ = 0, live_ = 0;
  // Ring buffer; the indices only grow (or shrink, for push_ready_first) and wrap.
  unsigned head_ = 0, tail_ = 0;
  std::array<uint16_t, kMaxThreads> ready_, order_;
  std::array<CudaThread, kMaxThreads> threads_;
  std::array<Warp, kMaxThreads / 32> warps_;
  std::array<AsyncCopies, kMaxThreads> async_copies_;
  std::array<Products, kMaxThreads> products_;
  std::vector<BulkCopy> bulk_copies_;
  BlockBarrier barrier_;
  unsigned char* dynamic_ = nullptr;
  // Addresses that TSan's orders are attached to.
  char block_token_ = 0, barrier_token_ = 0;
};

}  // namespace ramet::emulated
