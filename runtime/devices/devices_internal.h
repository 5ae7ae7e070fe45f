// The workers of devices.h: devices.cc runs them, devices_wait.cc waits for them.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"

namespace ramet {
namespace devices {

constexpr uint64_t kNumber = (uint64_t{1} << 56) - 1;

struct Task {
  uint64_t number, origin;
  uint64_t modes;  // of the thread that posted it
  std::function<void()> run;
};
struct Worker {
  std::deque<Task> queue;
  std::condition_variable wake;
  // tasks that finished before an older one: by nesting, or while the older one was parked
  std::set<uint64_t> early;
  std::atomic<uint64_t> posted{0}, finished{0};  // all tasks up to `finished` are done
  // In a child of fork(): tasks that were not done at the fork count as done. They are those in
  // (before, until] that are not in done_then.
  uint64_t lost_before = 0, lost_until = 0;
  std::set<uint64_t> done_then;
  bool waits_inside = false;
  bool runs_here = false;  // without threads: a task of it runs on the only thread
  std::thread thread;
};

// Of this thread. t_worker: the device for which it is the worker. t_running: the innermost task
// that it runs. t_ready: OperandsReady. t_origin: the origin of that task; 0: it runs none.
extern constinit thread_local int t_worker;
extern constinit thread_local uint64_t t_running, t_origin;
extern constinit thread_local bool t_ready;

struct Parked {  // a task that waits for its predecessors
  int device;
  std::vector<uint64_t> after;
  Task task;
};

struct Workers {
  std::mutex mutex;
  std::condition_variable finished;
  Worker of[kMaxDevices];
  std::vector<Parked> parked;                     // in order of posting
  std::map<uint64_t, std::exception_ptr> failed;  // what tasks threw, by their tickets
  std::atomic<bool> any_failed{false};
  bool stop = false;
  const Workers* of_parent = nullptr;  // the parent's in a child of fork(), for leak checkers
  // Spinning pays while every worker can have its own core. With more workers it takes time from
  // those that compute.
  std::atomic<int> started{0};
  bool may_spin() const { return started.load(std::memory_order_relaxed) < get_num_threads(); }
};

/// Made by the first parallel operation.
Workers& workers();
/// Under the lock.
bool is_done(Workers& workers, uint64_t ticket);
/// Runs the next task of `w`, without the lock.
void run_one(Workers& workers, Worker& w, std::unique_lock<std::mutex>& lock);
/// Without threads: the calling thread runs the next task of `w` as its worker would.
void run_here(Workers& workers, Worker& w, std::unique_lock<std::mutex>& lock);
/// Objects that are made without a device are made on this device.
void make_current(int ordinal);

// While it lives the thread has a new task's state. State of the thread itself is unchanged.
class FreshTask {
 public:
  FreshTask() : outer_(ramet::detail::tls) {
    ramet::detail::tls = Context();
    keep(outer_);
  }
  ~FreshTask() {
    const Context inner = ramet::detail::tls;
    ramet::detail::tls = outer_;
    keep(inner);
  }
  FreshTask(const FreshTask&) = delete;
  FreshTask& operator=(const FreshTask&) = delete;

 private:
  static void keep(const Context& from) {
    ramet::detail::tls.heap = from.heap;
    ramet::detail::tls.heap_gone = from.heap_gone;
    ramet::detail::tls.draining = from.draining;
    ramet::detail::tls.dead = from.dead;
  }
  const Context outer_;
};

// Yields and does not pause. On a free core that costs a microsecond. But the scheduler may have
// put both threads on one core (one busy neighbour is enough). There a pausing waiter keeps the
// thread that it waits for off the processor: 120 us instead of 16.
template <class Done> void spin(Done&& is_done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (!is_done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

}  // namespace devices
}  // namespace ramet
