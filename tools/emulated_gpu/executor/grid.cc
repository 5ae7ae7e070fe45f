// The pool of workers that share the blocks of a grid.
#include "tools/emulated_gpu/executor/grid.h"

#include <deque>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/base/machine_internal.h"
#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/executor/grid_run.h"
#include "tools/emulated_gpu/executor/settings.h"
#include "tools/emulated_gpu/executor/worker.h"

namespace ramet::emulated {
namespace {

/// The index of the block that runs as number `turn`, in the order of the settings.
uint64_t block_at(const GridRun& run, uint64_t turn) {
  switch (settings().threads) {
    case ThreadOrder::Forward: return turn;
    case ThreadOrder::Reverse: return run.total - 1 - turn;
    case ThreadOrder::Random: break;
  }
  // turn * a + b modulo the count, with a that has no divisor in common with it: a permutation
  // without a table.
  const uint64_t seed = settings().thread_seed * 0x9e3779b97f4a7c15ull + run.grid.launch;
  uint64_t a = (seed >> 32) % run.total | 1;
  while (std::gcd(a, run.total) != 1) a += 2;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(turn) * a + seed % run.total) %
                               run.total);
}

void work_on(GridRun& run) {
  Worker& worker = Worker::get();
  for (;;) {
    const uint64_t turn = run.next.fetch_add(1);
    if (turn >= run.total) return;
    if (!run.failed.load(std::memory_order_relaxed)) worker.run_block(run, block_at(run, turn));
    if (run.done.fetch_add(1) + 1 == run.total) {
      std::lock_guard<std::mutex> lock(run.mutex);
      run.all_done.notify_all();
    }
  }
}

/// Static shared variables exist once in the program under ASan (types.h), and the checker follows
/// one block at a time.
bool one_block_at_a_time() {
#if defined(RAMET_EMULATED_ASAN)
  return true;
#else
  return checks().grid_begin != nullptr;
#endif
}

class Pool {
 public:
  /// Never destroyed: a program may end while a worker still waits for a grid.
  static Pool& get() {
    static Pool* pool = new Pool;
    return *pool;
  }

  void run(const std::shared_ptr<GridRun>& run) {
    if (run->total > 1) offer(run);
    work_on(*run);
    std::unique_lock<std::mutex> lock(run->mutex);
    run->all_done.wait(lock, [&] { return run->done.load() == run->total; });
  }

  void stop() {
    std::vector<std::thread> ending;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      ending.swap(threads_);
      wake_.notify_all();
    }
    for (std::thread& thread : ending) thread.join();
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = false;
    grids_.clear();
  }

 private:
  void offer(const std::shared_ptr<GridRun>& run) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int wanted = settings().workers ? settings().workers : ramet::detail::usable_threads();
    if (wanted < 2) return;
    while (static_cast<int>(threads_.size()) < wanted - 1)  // the caller is one, too
      threads_.emplace_back([this] { loop(); });
    grids_.push_back(run);
    wake_.notify_all();
  }

  void loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stopping_ || !grids_.empty(); });
      if (stopping_) return;
      const std::shared_ptr<GridRun> run = grids_.front();
      if (run->next.load() >= run->total) {
        grids_.pop_front();
        continue;
      }
      lock.unlock();
      work_on(*run);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<GridRun>> grids_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

}  // namespace

GridResult run_grid(const Grid& grid) {
  const auto run = std::make_shared<GridRun>(grid);
  if (!one_block_at_a_time()) {
    Pool::get().run(run);
    return run->result;
  }
  static std::mutex turn;
  std::lock_guard<std::mutex> lock(turn);
  if (checks().grid_begin) checks().grid_begin(grid);
  work_on(*run);
  if (checks().grid_end) checks().grid_end();
  return run->result;
}

void stop_workers() { Pool::get().stop(); }

}  // namespace ramet::emulated
