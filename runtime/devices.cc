#include "runtime/devices.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "runtime/absent_storage.h"
#include "runtime/capture.h"
#include "runtime/context.h"
#include "runtime/float_modes_internal.h"
#include "runtime/gpu.h"
#include "runtime/pinned.h"
#include "runtime/thread_pool.h"

using ramet::detail::tls;

namespace ramet {
namespace devices {
namespace {

constexpr uint64_t kNumber = (uint64_t{1} << 56) - 1;

struct Task {
  uint64_t number, origin;
  uint64_t modes;  // of whoever posted it
  std::function<void()> run;
};
struct Worker {
  std::deque<Task> queue;
  std::condition_variable wake;
  // finished before an older one: by nesting, or while that one is parked
  std::set<uint64_t> early;
  std::atomic<uint64_t> posted{0}, finished{0};  // all tasks up to `finished` are done
  // in a child of fork(): tasks that were not done then, and count as done, are in (before, until]
  // and not in done_then
  uint64_t lost_before = 0, lost_until = 0;
  std::set<uint64_t> done_then;
  bool waits_inside = false;
  std::thread thread;
};

thread_local int t_worker = -1;       // which device's worker this thread is
thread_local uint64_t t_running = 0;  // the innermost task that runs on this thread
thread_local bool t_ready = false;    // OperandsReady
thread_local uint64_t t_origin = 0;   // of the task that runs here; 0: none does

// Small numbers of threads. Never destroyed: threads may end after static objects.
struct Origins {
  std::mutex mutex;
  std::vector<uint16_t> back;  // given back
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

struct Parked {  // a task whose predecessors are not all done
  int device;
  std::vector<uint64_t> after;
  Task task;
};

struct Workers {
  std::mutex mutex;
  std::condition_variable finished;
  Worker of[kMaxDevices];
  std::vector<Parked> parked;  // in order of posting
  bool stop = false;
  const Workers* of_parent = nullptr;  // in a child of fork(), for leak checkers
  // Spinning pays while every worker can have a core of its own; beyond that it steals from the
  // ones that compute.
  std::atomic<int> started{0};
  bool may_spin() const { return started.load(std::memory_order_relaxed) < get_num_threads(); }
};

// Static destruction: no thread survives main. But where a task has called exit(): it never ends,
// nor what is parked behind it or waits for it, so all of them go on until the process ends.
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
Workers& workers() {             // made by the first parallel operation
  static auto* w = new Workers;  // threads may outlive static objects
  static const LastWord last{w};
  // A child of fork() has none of the threads: it makes its own, and remembers what is lost.
  static const int forks = pthread_atfork(nullptr, nullptr, [] {
    Workers& before = *w;
    const bool quiet = before.mutex.try_lock();
    w = new Workers;  // never destroyed, nor the other one: its lock may be held, it has threads
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

std::atomic<uint64_t> g_host_syncs{0};

// Yielding, not pausing: on a core of one's own it costs a microsecond, and where the scheduler has
// put both threads on one core (a busy neighbour is enough) a pausing waiter keeps off the
// processor the very thread it waits for: 120 us, not 16.
template <class Done> void spin(Done&& is_done) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
  while (!is_done() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
}

void serve(int ordinal);

// Of a worker's own thread: what is made without saying where is made on its device.
void make_current(int ordinal) {
  const int of_gpu = ordinal - kMaxDevicesPerType;
  if (of_gpu < 0) tls.cpu_device = static_cast<uint8_t>(ordinal);
  else tls.cuda_device = static_cast<uint8_t>(of_gpu);
}

// While it lives the thread has a new task's state; what belongs to the thread itself goes on.
class FreshTask {
 public:
  FreshTask() : outer_(tls) {
    tls = Context();
    keep(outer_);
  }
  ~FreshTask() {
    const Context inner = tls;
    tls = outer_;
    keep(inner);
  }
  FreshTask(const FreshTask&) = delete;
  FreshTask& operator=(const FreshTask&) = delete;

 private:
  static void keep(const Context& from) {
    tls.heap = from.heap;
    tls.heap_gone = from.heap_gone;
    tls.draining = from.draining;
    tls.dead = from.dead;
  }
  const Context outer_;
};

// The rest is called under the lock.
bool is_done(Workers& p, uint64_t ticket) {
  Worker& w = p.of[ticket >> 56];
  const uint64_t number = ticket & kNumber;
  return number <= w.finished.load(std::memory_order_acquire) || w.early.count(number);
}

void enqueue(Workers& p, int device, Task task) {
  Worker& w = p.of[device];
  w.queue.push_back(std::move(task));
  w.wake.notify_one();
  if (w.waits_inside) p.finished.notify_all();
}

// After a task has ended: parked ones that waited for it join their queues.
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

void run_one(Workers& p, Worker& w, std::unique_lock<std::mutex>& lock) {
  Task task = std::move(w.queue.front());
  const uint64_t number = task.number;
  w.queue.pop_front();
  lock.unlock();
  const uint64_t outer = std::exchange(t_running, static_cast<uint64_t>(&w - p.of) << 56 | number);
  const uint64_t outer_origin = std::exchange(t_origin, task.origin);
  const uint64_t outer_modes = ramet::detail::float_modes();
  ramet::detail::set_float_modes(task.modes);
  task.run();
  task.run = nullptr;  // what it captured dies before anyone hears that it is done
  ramet::detail::set_float_modes(outer_modes);
  t_running = outer;
  t_origin = outer_origin;
  lock.lock();
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

}  // namespace

namespace {

// A capture writes down what the workers would do, in an order in which they might do it. Whoever
// posts has everything done that the task waits for.
[[gnu::cold]] void run_here(int d, const std::function<void()>& task) {
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
    run_here(d, task);
    return static_cast<uint64_t>(d) << 56;  // task number 0: done
  }
  Workers& p = workers();
  Worker& w = p.of[d];
  std::lock_guard lock(p.mutex);
  // first of all: where the system gives no thread, nothing has been promised
  if (!w.thread.joinable()) {
    w.thread = std::thread(serve, d);
    ++p.started;
  }
  while (!after.empty() && is_done(p, after.back())) after.pop_back();
  const uint64_t number = w.posted.load() + 1;
  w.posted.store(number, std::memory_order_release);
  Task made{number, origin(), ramet::detail::float_modes(), std::move(task)};
  if (after.empty()) enqueue(p, d, std::move(made));
  else p.parked.push_back({d, std::move(after), std::move(made)});
  return static_cast<uint64_t>(d) << 56 | number;
}

bool done(uint64_t ticket) {
  Workers& p = workers();
  if ((ticket & kNumber) <= p.of[ticket >> 56].finished.load(std::memory_order_acquire))
    return true;
  std::lock_guard lock(p.mutex);
  return is_done(p, ticket);
}

namespace {

// Returns when `ready()`; on a worker, runs that worker's own queue meanwhile.
template <class Ready>
void wait_until(Workers& p, std::unique_lock<std::mutex>& lock, Ready&& ready) {
  Worker* own = t_worker >= 0 ? &p.of[t_worker] : nullptr;
  while (!ready()) {
    if (own && !own->queue.empty()) {
      const FreshTask fresh;
      make_current(static_cast<int>(own - p.of));
      run_one(p, *own, lock);
      continue;
    }
    if (own) own->waits_inside = true;
    p.finished.wait(lock, [&] { return ready() || (own && !own->queue.empty()); });
    if (own) own->waits_inside = false;
  }
}

}  // namespace

void wait(uint64_t ticket) {
  Workers& p = workers();
  if (p.may_spin()) {
    const Worker& w = p.of[ticket >> 56];
    spin([&] { return (ticket & kNumber) <= w.finished.load(std::memory_order_acquire); });
  }
  std::unique_lock lock(p.mutex);
  wait_until(p, lock, [&] { return is_done(p, ticket); });
}

namespace {

// Was it computing what nobody can wait for now?
void refuse_lost(uint64_t ticket) {
  Workers& p = workers();
  const Worker& w = p.of[ticket >> 56];
  const uint64_t number = ticket & kNumber;
  if (RAMET_LIKELY(number > w.lost_until) || number <= w.lost_before || w.done_then.count(number))
    return;
  throw Error(ramet::detail::join("[fork] what ", Device::from_ordinal(int(ticket >> 56)).str(),
                                  " was computing when this process was forked is lost: expected "
                                  "fork() when nothing is under way (devices::synchronize())"));
}

}  // namespace

OperandsReady::OperandsReady() : before_(std::exchange(t_ready, true)) {}
OperandsReady::~OperandsReady() { t_ready = before_; }

int worker() { return t_worker; }

uint64_t origin() {
  if (t_origin) return t_origin;
  thread_local const OwnOrigin own;
  return own.number;
}

void synchronize() {
  Workers& p = workers();
  std::unique_lock lock(p.mutex);
  for (int d = 0; d < kMaxDevices; ++d) {
    const uint64_t last = p.of[d].posted.load();
    // Not is_done(last): what was posted before it may still be parked.
    if (d != t_worker) wait_until(p, lock, [&] { return p.of[d].finished.load() >= last; });
  }
  lock.unlock();
  // Not up to device_count(): who has used no GPU need not have a list of them that can be read.
  gpu::Library* gpus = gpu::library();
  if (!gpus) return;
  std::exception_ptr lost[kMaxDevicesPerType];
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    try {
      gpus->wait(k);
    } catch (...) { lost[k] = std::current_exception(); }
  }
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    if (lost[k]) std::rethrow_exception(lost[k]);
    gpus->raise_faults(k);
  }
}

uint64_t host_syncs() { return g_host_syncs; }
void reset_host_syncs() { g_host_syncs = 0; }

}  // namespace devices

void wait_pending(StorageImpl& s) {
  const uint64_t ticket = s.pending.load(std::memory_order_acquire);
  if (RAMET_UNLIKELY(s.external == StorageImpl::kAbsent)) return detail::touch_absent(s);
  if (gpu::is_copy(ticket)) {
    if (gpu::wait_copy(s, ticket) && !devices::on_worker())
      devices::g_host_syncs.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // a task may use what it is itself writing
  if (!ticket || devices::t_ready || ticket == devices::t_running) return;
  devices::refuse_lost(ticket);
  if (!devices::done(ticket)) {
    if (!devices::on_worker()) devices::g_host_syncs.fetch_add(1, std::memory_order_relaxed);
    devices::wait(ticket);
  }
  uint64_t expected = ticket;  // whoever saw it done may clear it; a newer ticket stays
  s.pending.compare_exchange_strong(expected, 0);
}

namespace {
double milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}
}  // namespace

void Event::record(Device device) {
  device = resolve(device);
  std::shared_ptr<gpu::Event> point;
  if (!device.is_cpu()) {
    capture::refuse("Event", "an event of a GPU");
    point = gpu::required("Event", device).event(device.index(), timing_);
  }
  device_ = device;
  host_time_ = timing_ && !point ? std::make_shared<double>() : nullptr;
  const int d = device.ordinal();
  std::vector<uint64_t> parked;  // posted earlier, yet not in the queue
  bool idle;
  {
    auto& p = devices::workers();
    std::lock_guard lock(p.mutex);
    for (auto& t : p.parked)
      if (t.device == d) parked.push_back(static_cast<uint64_t>(t.device) << 56 | t.task.number);
    const auto& w = p.of[d];
    idle = w.posted.load() == w.finished.load() ||
           (devices::t_worker == d && w.queue.empty() && parked.empty());
  }
  if (point && idle) {  // what the device was given is in its stream
    point->record();
    ticket_ = 0;
  } else {
    ticket_ = devices::post_after(device, std::move(parked), [point, time = host_time_] {
      if (time) *time = milliseconds();
      if (!point) return;
      try {
        point->record();
      } catch (const Error&) {}  // a lost device: whoever waits is told the same
    });
  }
  on_gpu_ = std::move(point);
}

bool Event::query() const {
  return (ticket_ == 0 || devices::done(ticket_)) && (!on_gpu_ || on_gpu_->query());
}

void Event::synchronize() const {
  if (ticket_) devices::wait(ticket_);
  if (on_gpu_) on_gpu_->synchronize();
}

void Event::wait(Device later) const {
  later = resolve(later);
  if (!on_gpu_ || later.is_cpu()) return synchronize();
  capture::refuse("Event", "an event of a GPU");
  if (ticket_) devices::wait(ticket_);
  on_gpu_->wait({later, gpu::kCompute});
}

double Event::elapsed_time(const Event& end) const {
  constexpr const char* op = "Event.elapsed_time";
  for (const Event* e : {this, &end}) {
    const char* which = e == this ? "the first" : "the second";
    RAMET_CHECK(e->timing_, op, which, " event has no times, expected Event(true)");
    RAMET_CHECK(e->host_time_ || e->on_gpu_, op, which, " event was never recorded");
    RAMET_CHECK(e->query(), op, which, " event is not done yet: synchronize() waits for it");
  }
  RAMET_CHECK(device_ == end.device_, op, "got events of ", device_, " and ", end.device_,
              ", expected one device");
  return on_gpu_ ? on_gpu_->elapsed_time(*end.on_gpu_) : *end.host_time_ - *host_time_;
}

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
