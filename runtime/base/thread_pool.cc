#include "runtime/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/base/device.h"
#include "runtime/base/float_modes_internal.h"
#include "runtime/base/machine_internal.h"
#include "runtime/base/parallel_regions_internal.h"
#include "runtime/base/threads_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace {

constexpr int kMaxThreads = 256;

int64_t number_from_environment(const char* name, int64_t fallback, int64_t low, int64_t high) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  RAMET_CHECK(*end == 0 && value >= low && value <= high, name, "got \"", text,
              "\", expected a number from ", low, " to ", high);
  return value;
}

// The setting of other libraries of the process: the first number of "4" and "4,2" (nested levels).
// OpenMP itself complains about anything else.
int threads_of_openmp() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (!text) return 0;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || value < 1) return 0;
  while (*end == ' ' || *end == '\t') ++end;
  return *end == 0 || *end == ',' ? static_cast<int>(std::min<long>(value, kMaxThreads)) : 0;
}

std::atomic<int> g_threads{0};  // 0: not asked yet

// The helpers of one device. Tasks are claimed from one 64-bit ticket (generation, tasks left) by
// compare-exchange. So a late helper can never run a stale task. The caller waits for claimed tasks
// only, so a parked helper never delays it.
class Team {
 public:
  explicit Team() = default;
  ~Team() {
    stop_ = true;
    generation_.fetch_add(1);
    generation_.notify_all();
    for (std::thread& h : helpers_) h.join();
  }

  std::mutex busy;            // one region at a time; tried, not taken
  Team* forgotten = nullptr;  // the parent process's, kept for leak checkers

  void run(int64_t tasks, int width, void (*fn)(void*, int64_t, int), void* context) {
    while (static_cast<int>(helpers_.size()) < width - 1) {
      const int slot = static_cast<int>(helpers_.size()) + 1;
      try {
        helpers_.emplace_back([this, slot] { serve(slot); });
        // the system gives no more threads: the existing ones do the work
      } catch (const std::exception&) { break; }
    }
    fn_ = fn;
    context_ = context;
    tasks_ = tasks;
    modes_ = detail::float_modes();
    done_.store(0, std::memory_order_relaxed);
    width_.store(width, std::memory_order_relaxed);
    const uint32_t g = generation_.load(std::memory_order_relaxed) + 1;
    ticket_.store(static_cast<uint64_t>(g) << 32 | static_cast<uint32_t>(tasks),
                  std::memory_order_release);
    generation_.store(g, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst)) generation_.notify_all();
    work(g, 0);
    while (done_.load(std::memory_order_acquire) != tasks) std::this_thread::yield();
    if (RAMET_UNLIKELY(error_ != nullptr)) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work(uint32_t g, int slot) {
    uint64_t t = ticket_.load(std::memory_order_acquire);
    for (;;) {
      if (static_cast<uint32_t>(t >> 32) != g || static_cast<uint32_t>(t) == 0) return;
      if (!ticket_.compare_exchange_weak(t, t - 1, std::memory_order_acq_rel)) continue;
      // a claimed task keeps these alive
      detail::set_float_modes(modes_);
      const int64_t task = tasks_ - static_cast<int64_t>(static_cast<uint32_t>(t));
      try {
        fn_(context_, task, slot);
      } catch (...) { failed(task); }
      done_.fetch_add(1, std::memory_order_acq_rel);
      t = ticket_.load(std::memory_order_acquire);
    }
  }

  void failed(int64_t task) {
    const std::lock_guard lock(error_mutex_);
    if (error_ && error_of_ < task) return;
    error_ = std::current_exception();
    error_of_ = task;
  }

  void serve(int slot) {
    tls.in_parallel = true;
    uint32_t seen = 0;
    for (;;) {
      uint32_t g = generation_.load(std::memory_order_acquire);
      // Yields and does not pause. On a free core that costs a microsecond. On a shared core a
      // pausing waiter would keep the thread that it waits for off the processor.
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
      while (g == seen) {
        for (int i = 0; i < 8 && g == seen; ++i) {
          std::this_thread::yield();
          g = generation_.load(std::memory_order_acquire);
        }
        if (g == seen && std::chrono::steady_clock::now() >= until) {
          parked_.fetch_add(1, std::memory_order_seq_cst);
          generation_.wait(seen, std::memory_order_seq_cst);
          parked_.fetch_sub(1, std::memory_order_seq_cst);
          g = generation_.load(std::memory_order_acquire);
        }
      }
      if (stop_.load(std::memory_order_acquire)) return;
      seen = g;
      if (slot < width_.load(std::memory_order_relaxed)) work(g, slot);
    }
  }

  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<int64_t> done_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int> parked_{0}, width_{1};
  std::atomic<bool> stop_{false};
  void (*fn_)(void*, int64_t, int) = nullptr;
  void* context_ = nullptr;
  int64_t tasks_ = 0;
  uint64_t modes_ = 0;  // of the caller
  std::mutex error_mutex_;
  std::exception_ptr error_;  // of the first task, by number, that threw
  int64_t error_of_ = 0;
  std::vector<std::thread> helpers_;
};

// Made by the first parallel region of a device, joined by static destruction: no thread survives
// main. After that regions run on their caller: destructors of static objects may still compute.
constinit std::atomic<Team*> g_known[kMaxDevicesPerType];
constinit std::atomic<bool> g_gone{false};
struct Teams {
  std::mutex mutex;
  std::unique_ptr<Team> of[kMaxDevicesPerType];
  ~Teams() {
    g_gone = true;
    for (auto& known : g_known) known = nullptr;
  }
};
Teams& teams() {
  static Teams t;
  // A child of fork() has none of the helpers, and a join would never end: it makes new ones.
  static const int forks = pthread_atfork(nullptr, nullptr, [] {
    new (&t.mutex) std::mutex;
    for (auto& known : g_known) known = nullptr;
    static Team* forgotten = nullptr;
    for (std::unique_ptr<Team>& team : t.of)
      if (team) {
        team->forgotten = forgotten;
        forgotten = team.release();
      }
  });
  (void)forks;
  return t;
}
Team* team_of(int device) {  // null during static destruction
  Team* t = g_known[device].load(std::memory_order_acquire);
  if (RAMET_LIKELY(t != nullptr)) return t;
  if (g_gone) return nullptr;
  Teams& all = teams();
  std::lock_guard lock(all.mutex);
  if (!all.of[device]) all.of[device] = std::make_unique<Team>();
  g_known[device].store(all.of[device].get(), std::memory_order_release);
  return all.of[device].get();
}

__thread uint64_t regions = 0;  // of this thread, only shared ones

int width_here() {
  if (tls.in_parallel || !detail::has_threads()) return 1;
  const int all = get_num_threads();
  return tls.share ? std::min<int>(tls.share, all) : all;
}

}  // namespace

int get_num_threads() {
  int n = g_threads.load(std::memory_order_relaxed);
  if (RAMET_LIKELY(n != 0)) return n;
  n = threads_of_openmp();
  if (n == 0) n = std::min(detail::usable_threads(), kMaxThreads);
  n = static_cast<int>(number_from_environment("RAMET_NUM_THREADS", n, 1, kMaxThreads));
  g_threads.store(n, std::memory_order_relaxed);
  return n;
}

void set_num_threads(int threads) {
  RAMET_CHECK(threads >= 1 && threads <= kMaxThreads, "set_num_threads", "got ", threads,
              ", expected 1 to ", kMaxThreads);
  g_threads.store(threads, std::memory_order_relaxed);
}

int max_parallel_slots() { return width_here(); }

int64_t parallel_grain() {
  static const int64_t grain =
      number_from_environment("RAMET_PAR_GRAIN", 32 << 10, 0, int64_t{1} << 40);
  return grain;
}

namespace detail {

uint64_t shared_regions() { return regions; }

void parallel_run(int64_t tasks, void (*fn)(void*, int64_t, int), void* context) {
  constexpr int64_t kMost = (int64_t{1} << 32) - 1;
  const int width = static_cast<int>(std::min<int64_t>(width_here(), tasks));
  if (width > 1 && tasks <= kMost) {
    if (Team* team = team_of(tls.cpu_device)) {
      std::unique_lock lock(team->busy, std::try_to_lock);
      if (lock) {
        ScopedValue<bool> inside(tls.in_parallel, true);
        ++regions;
        return team->run(tasks, width, fn, context);
      }
    }
  }
  for (int64_t i = 0; i < tasks; ++i) fn(context, i, 0);
}

}  // namespace detail
}  // namespace ramet
