// Waits for tasks of devices' workers, and for memory that they have not yet written.
#include <utility>

#include "runtime/base/threads_internal.h"
#include "runtime/devices/devices_internal.h"
#include "runtime/devices/gpu.h"
#include "runtime/memory/absent_storage.h"
#include "runtime/tensor/pinned.h"

namespace ramet {
namespace devices {
namespace {

std::atomic<uint64_t> g_host_syncs{0};

}  // namespace

bool done(uint64_t ticket) {
  Workers& p = workers();
  if ((ticket & kNumber) <= p.of[ticket >> 56].finished.load(std::memory_order_acquire))
    return true;
  std::lock_guard lock(p.mutex);
  return is_done(p, ticket);
}

namespace {

// Returns when `ready()`. A worker runs its own queue while it waits.
template <class Ready>
void wait_until(Workers& p, std::unique_lock<std::mutex>& lock, Ready&& ready) {
  if (!ramet::detail::has_threads()) {
    // Inside a task: the ticket is of a task in the queue of one that waits itself.
    while (!ready()) {
      const auto next = std::find_if(std::begin(p.of), std::end(p.of),
                                     [](const Worker& w) { return !w.queue.empty(); });
      RAMET_CHECK(next != std::end(p.of), "wait", "a task waits for its own end");
      run_here(p, *next, lock);
    }
    return;
  }
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

void wait_until_done(uint64_t ticket) {
  Workers& p = workers();
  if (p.may_spin()) {
    const Worker& w = p.of[ticket >> 56];
    spin([&] { return (ticket & kNumber) <= w.finished.load(std::memory_order_acquire); });
  }
  std::unique_lock lock(p.mutex);
  wait_until(p, lock, [&] { return is_done(p, ticket); });
}

// Rethrows the exception of a task that is done. `taken`: it is thrown only once.
void rethrow_failure(uint64_t ticket, bool taken) {
  Workers& p = workers();
  if (RAMET_LIKELY(!p.any_failed.load(std::memory_order_acquire))) return;
  std::exception_ptr error;
  {
    const std::lock_guard lock(p.mutex);
    const auto found = p.failed.find(ticket);
    if (found == p.failed.end()) return;
    error = found->second;
    if (taken) p.failed.erase(found);
    p.any_failed = !p.failed.empty();
  }
  std::rethrow_exception(error);
}

}  // namespace

void wait(uint64_t ticket) {
  wait_until_done(ticket);
  rethrow_failure(ticket, /*taken=*/true);
}

namespace {

// Throws if the task was lost in a fork().
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

void synchronize() {
  Workers& p = workers();
  std::unique_lock lock(p.mutex);
  for (int d = 0; d < kMaxDevices; ++d) {
    const uint64_t last = p.of[d].posted.load();
    // Not is_done(last): what was posted before it may still be parked.
    if (d != t_worker) wait_until(p, lock, [&] { return p.of[d].finished.load() >= last; });
  }
  std::exception_ptr thrown;
  if (!p.failed.empty()) {
    thrown = p.failed.begin()->second;
    p.failed.erase(p.failed.begin());
    p.any_failed = !p.failed.empty();
  }
  lock.unlock();
  if (thrown) std::rethrow_exception(thrown);
  // Not up to device_count(): a program that has used no GPU may have an invalid list of GPUs.
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
  // a task may use the memory that it writes
  if (!ticket || devices::t_ready || ticket == devices::t_running) return;
  devices::refuse_lost(ticket);
  if (!devices::done(ticket)) {
    if (!devices::on_worker()) devices::g_host_syncs.fetch_add(1, std::memory_order_relaxed);
    devices::wait_until_done(ticket);
  }
  devices::rethrow_failure(ticket, /*taken=*/false);  // nothing was written there
  uint64_t expected = ticket;  // any thread that saw it done may clear it; a newer ticket stays
  s.pending.compare_exchange_strong(expected, 0);
}

}  // namespace ramet
