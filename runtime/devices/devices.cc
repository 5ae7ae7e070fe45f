#include "runtime/devices/devices.h"

#include <pthread.h>

#include <utility>

#include "runtime/base/float_modes_internal.h"
#include "runtime/base/threads_internal.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace devices {

constinit thread_local int t_worker = -1;
constinit thread_local uint64_t t_running = 0, t_origin = 0;
constinit thread_local bool t_ready = false;

namespace {

// Gives small numbers to threads. Never destroyed: threads may end after static objects.
struct Origins {
  std::mutex mutex;
  std::vector<uint16_t> back;  // numbers for reuse
  uint16_t most = 0;
  uint64_t given = 0;
};
Origins& origins() {
  static auto* o = new Origins;
  return *o;
}
struct OwnOrigin {
  uint64_t number;
  OwnOrigin() {
    Origins& all = origins();
    std::lock_guard lock(all.mutex);
    uint16_t small = all.most;
    if (all.back.empty()) ++all.most;
    else {
      small = all.back.back();
      all.back.pop_back();
    }
    number = ++all.given << 16 | small;
  }
  ~OwnOrigin() {
    Origins& all = origins();
    std::lock_guard lock(all.mutex);
    all.back.push_back(static_cast<uint16_t>(number & 0xffff));
  }
};

// Static destruction: no thread survives main. The exception is a task that has called exit(). It
// never ends, and neither do the tasks parked after it or waiting for it. So all of them go on
// until the process ends.
struct LastWord {
  Workers*& workers;
  ~LastWord() {
    Workers& all = *workers;
    for (const Worker& w : all.of)
      if (w.thread.get_id() == std::this_thread::get_id()) return;
    {
      std::unique_lock lock(all.mutex);
      all.finished.wait(lock, [&] { return all.parked.empty(); });
      all.stop = true;
    }
    for (Worker& w : all.of) {
      if (!w.thread.joinable()) continue;
      w.wake.notify_all();
      w.thread.join();
    }
  }
};

}  // namespace

Workers& workers() {
  static auto* w = new Workers;  // threads may outlive static objects
  static const LastWord last{w};
  // A child of fork() has none of the threads: it makes its own, and remembers the lost tasks.
  static const int forks = pthread_atfork(nullptr, nullptr, [] {
    Workers& before = *w;
    const bool quiet = before.mutex.try_lock();
    w = new Workers;  // neither is ever destroyed: the old one has threads and perhaps a held lock
    w->of_parent = &before;
    for (int d = 0; d < kMaxDevices; ++d) {
      Worker &now = w->of[d], &then = before.of[d];
      now.posted = now.finished = now.lost_until = then.posted.load();
      now.lost_before = then.finished.load();
      if (quiet) now.done_then = then.early;
    }
  });
  (void)forks;
  return *w;
}

void make_current(int ordinal) {
  const int of_gpu = ordinal - kMaxDevicesPerType;
  if (of_gpu < 0) tls.cpu_device = static_cast<uint8_t>(ordinal);
  else tls.cuda_device = static_cast<uint8_t>(of_gpu);
}

bool is_done(Workers& p, uint64_t ticket) {
  Worker& w = p.of[ticket >> 56];
  const uint64_t number = ticket & kNumber;
  return number <= w.finished.load(std::memory_order_acquire) || w.early.count(number);
}

namespace {

void enqueue(Workers& p, int device, Task task) {
  Worker& w = p.of[device];
  w.queue.push_back(std::move(task));
  w.wake.notify_one();
  if (w.waits_inside) p.finished.notify_all();
}

// After a task has ended: parked tasks that waited for it join their queues.
void release_parked(Workers& p) {
  if (p.parked.empty()) return;
  std::vector<Parked> still;
  for (Parked& t : p.parked) {
    while (!t.after.empty() && is_done(p, t.after.back())) t.after.pop_back();
    if (t.after.empty()) enqueue(p, t.device, std::move(t.task));
    else still.push_back(std::move(t));
  }
  p.parked = std::move(still);
}

}  // namespace

void run_one(Workers& p, Worker& w, std::unique_lock<std::mutex>& lock) {
  Task task = std::move(w.queue.front());
  const uint64_t number = task.number;
  w.queue.pop_front();
  lock.unlock();
  const uint64_t outer = std::exchange(t_running, static_cast<uint64_t>(&w - p.of) << 56 | number);
  const uint64_t outer_origin = std::exchange(t_origin, task.origin);
  const uint64_t outer_modes = ramet::detail::float_modes();
  ramet::detail::set_float_modes(task.modes);
  std::exception_ptr error;
  try {
    task.run();
  } catch (...) { error = std::current_exception(); }
  task.run = nullptr;  // its captures die before any thread learns that it is done
  ramet::detail::set_float_modes(outer_modes);
  t_running = outer;
  t_origin = outer_origin;
  lock.lock();
  if (RAMET_UNLIKELY(error != nullptr)) {
    p.failed.emplace(static_cast<uint64_t>(&w - p.of) << 56 | number, std::move(error));
    p.any_failed = true;
  }
  uint64_t last = w.finished.load();
  w.early.insert(number);
  while (!w.early.empty() && *w.early.begin() == last + 1) {
    ++last;
    w.early.erase(w.early.begin());
  }
  w.finished.store(last, std::memory_order_release);
  release_parked(p);
  p.finished.notify_all();
}

void run_here(Workers& p, Worker& w, std::unique_lock<std::mutex>& lock) {
  const FreshTask fresh;
  const int device = static_cast<int>(&w - p.of), outer = std::exchange(t_worker, device);
  const bool outer_ready = std::exchange(t_ready, false), nested = std::exchange(w.runs_here, true);
  make_current(device);
  run_one(p, w, lock);
  w.runs_here = nested;
  t_ready = outer_ready;
  t_worker = outer;
}

namespace {

void serve(int ordinal) {
  Workers& p = workers();
  Worker& w = p.of[ordinal];
  t_worker = ordinal;
  make_current(ordinal);
  std::unique_lock lock(p.mutex);
  for (uint64_t seen = 0;; seen = w.posted.load()) {
    while (!w.queue.empty()) run_one(p, w, lock);
    if (p.stop) return;
    if (p.may_spin()) {
      lock.unlock();
      spin([&] { return w.posted.load(std::memory_order_acquire) != seen; });
      lock.lock();
    }
    w.wake.wait(lock, [&] { return p.stop || !w.queue.empty(); });
  }
}

// Without threads: all queues, in order. A task that a running one has posted to its own device
// waits for the end of that one.
void run_queues(Workers& p, std::unique_lock<std::mutex>& lock) {
  for (bool ran = true; ran;) {
    ran = false;
    for (Worker& w : p.of) {
      if (w.queue.empty() || w.runs_here) continue;
      run_here(p, w, lock);
      ran = true;
    }
  }
}

// A capture records the work of the workers, in an order in which they might do it. The caller has
// already done everything that the task waits for.
[[gnu::cold]] void run_captured(int d, const std::function<void()>& task) {
  const FreshTask fresh;
  tls.capturing = 1;
  make_current(d);
  task();
}

}  // namespace

uint64_t post(Device device, std::function<void()> task) {
  return post_after(device, {}, std::move(task));
}

uint64_t post_after(Device device, std::vector<uint64_t> after, std::function<void()> task) {
  const int d = device.ordinal();
  if (RAMET_UNLIKELY(capture::active())) {
    run_captured(d, task);
    return static_cast<uint64_t>(d) << 56;  // task number 0: done
  }
  Workers& p = workers();
  Worker& w = p.of[d];
  std::unique_lock lock(p.mutex);
  // First of all: if the system gives no thread, nothing has changed yet.
  if (ramet::detail::has_threads() && !w.thread.joinable()) {
    w.thread = std::thread(serve, d);
    ++p.started;
  }
  while (!after.empty() && is_done(p, after.back())) after.pop_back();
  const uint64_t number = w.posted.load() + 1;
  w.posted.store(number, std::memory_order_release);
  Task made{number, origin(), ramet::detail::float_modes(), std::move(task)};
  if (after.empty()) enqueue(p, d, std::move(made));
  else p.parked.push_back({d, std::move(after), std::move(made)});
  if (!ramet::detail::has_threads()) run_queues(p, lock);
  return static_cast<uint64_t>(d) << 56 | number;
}

OperandsReady::OperandsReady() : before_(std::exchange(t_ready, true)) {}
OperandsReady::~OperandsReady() { t_ready = before_; }

int worker() { return t_worker; }

uint64_t origin() {
  if (t_origin) return t_origin;
  thread_local const OwnOrigin own;
  return own.number;
}

}  // namespace devices

DeviceGuard::DeviceGuard(Device device)
    : cpu_(tls.cpu_device), cuda_(tls.cuda_device), type_(device.type()) {
  device = resolve(device);
  (device.is_cpu() ? tls.cpu_device : tls.cuda_device) = static_cast<uint8_t>(device.index());
}
DeviceGuard::~DeviceGuard() {
  tls.cpu_device = cpu_;
  tls.cuda_device = cuda_;
}
Device DeviceGuard::current_device() const { return resolve(Device(type_)); }

Device current_device() { return Device(kCPU, static_cast<DeviceIndex>(tls.cpu_device)); }

}  // namespace ramet
