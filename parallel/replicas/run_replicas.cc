#include "parallel/replicas/run_replicas.h"

#include <algorithm>
#include <new>
#include <thread>
#include <typeinfo>

#include "nn/module/replica_meeting.h"
#include "runtime/capture.h"
#include "runtime/devices.h"
#include "runtime/observer.h"
#include "runtime/thread_local_state.h"
#include "runtime/thread_pool.h"

using ramet::detail::tls;

namespace ramet::nn::parallel {

ReplicaError::ReplicaError(int replica, Device device, const std::string& message,
                           std::exception_ptr nested)
    : Error("[parallel_apply] Caught an exception in replica " + std::to_string(replica) +
            " on device " + device.str() + ": " + message),
      replica_(replica),
      device_(device),
      nested_(std::move(nested)) {}
ReplicaError::~ReplicaError() = default;

namespace {

thread_local std::optional<FailedReplica> t_failed;

// Of namespace std by its mangled name: a user's class derived from std::runtime_error is the
// user's own.
bool is_standard(const std::exception& e) {
  const char* name = typeid(e).name();
  return name[0] == 'S' || (name[0] == 'N' && name[1] == 'S');
}

// Numbers of operations that one replica may use.
constexpr uint64_t kCounterStep = uint64_t{1} << 28;

}  // namespace

std::optional<FailedReplica> last_failed_replica() { return t_failed; }

// What each replica of one call ended with.
struct ErrorCollector {
  std::vector<std::exception_ptr> errors;
  ArrayRef<Device> device_of;

  void rethrow_first() const {
    size_t i = first(/*absences=*/false);
    if (i == errors.size()) i = first(/*absences=*/true);
    if (i == errors.size()) return;
    t_failed = FailedReplica{static_cast<int>(i), device_of[i]};
    try {
      std::rethrow_exception(errors[i]);
    } catch (const Error& e) { raise(i, e.what()); } catch (const std::exception& e) {
      if (!is_standard(e)) throw;
      raise(i, e.what());
    }
  }

 private:
  // A replica that was only left waiting by another one is not the reason.
  size_t first(bool absences) const {
    for (size_t i = 0; i < errors.size(); ++i) {
      if (!errors[i]) continue;
      try {
        std::rethrow_exception(errors[i]);
      } catch (const ReplicaAbsent&) {
        if (absences) return i;
      } catch (...) { return i; }
    }
    return errors.size();
  }
  [[noreturn]] void raise(size_t i, const char* what) const {
    ReplicaError error(static_cast<int>(i), device_of[i], what, errors[i]);
    for (size_t k = 0; k < errors.size(); ++k)
      if (k != i && errors[k]) error.others_.push_back(errors[k]);
    throw error;
  }
};

namespace detail {

void run_replicas(ArrayRef<Device> device_of, const std::function<void(int)>& run,
                  ReplicaMeeting* meeting) {
  t_failed.reset();
  const int n = static_cast<int>(device_of.size());
  const int home = current_device().ordinal();
  bool used[kMaxDevices] = {};
  int lanes = 0;
  for (Device d : device_of)
    if (!std::exchange(used[d.ordinal()], true)) ++lanes;
  const int threads = tls.share ? tls.share : get_num_threads();
  const int side_by_side = meeting ? n : lanes;
  // A capture is replayed one kernel after the other, each by all threads.
  const uint8_t share = side_by_side > 1 && !capture::active()
                            ? static_cast<uint8_t>(std::clamp(threads / side_by_side, 1, 255))
                            : tls.share;

  const ThreadLocalState state;
  const uint64_t start = tls.counter;
  std::atomic<uint64_t> last{start + static_cast<uint64_t>(n) * kCounterStep};
  ErrorCollector collector{std::vector<std::exception_ptr>(static_cast<size_t>(n)), device_of};

  auto one = [&](int i) {
    ScopedValue<int16_t> number(tls.replica, static_cast<int16_t>(i));
    // Later operations come first in backward: replica 0's, then replica 1's, ...
    tls.counter = start + static_cast<uint64_t>(n - 1 - i) * kCounterStep;
    ReplicaMeeting::Seat seat(meeting, i);
    if (!seat.admitted()) return;
    try {
      run(i);
    } catch (const ReplicaAbsent&) {
      collector.errors[static_cast<size_t>(i)] = std::current_exception();
      seat.failed(/*left_waiting=*/true);
    } catch (...) {
      collector.errors[static_cast<size_t>(i)] = std::current_exception();
      seat.failed(/*left_waiting=*/false);
    }
    uint64_t seen = last.load();
    while (seen < tls.counter && !last.compare_exchange_weak(seen, tls.counter)) {}
  };
  // Replicas of one device, or one of them alone.
  auto lane = [&](int device, int only) {
    const Device d = Device::from_ordinal(device);
    DeviceGuard current(d);
    ScopedValue<uint8_t> cores(tls.share, share);
    ScopedValue<autograd::GraphTask*> outside(tls.task, nullptr);
    const uint64_t before = tls.counter;
    for (int i = 0; i < n; ++i)
      if (device_of[static_cast<size_t>(i)].ordinal() == device && (only < 0 || only == i)) one(i);
    tls.counter = before;
  };
  const uint8_t capturing = tls.capturing;
  auto elsewhere = [&](int i, int device, int only) {
    try {
      ThreadLocalStateGuard guard(state);
      // Replicas that meet take turns, each on a thread of its own, and make one capture together.
      const ScopedValue<uint8_t> together(tls.capturing, capturing);
      lane(device, only);
    } catch (...) {  // no memory for the way there
      collector.errors[static_cast<size_t>(i)] = std::current_exception();
    }
  };

  std::vector<uint64_t> tickets;
  std::vector<std::thread> own;
  std::exception_ptr unable;  // to start a thread or to queue a task
  try {
    bool first[kMaxDevices] = {};
    for (int i = 0; i < n; ++i) {
      const int d = device_of[static_cast<size_t>(i)].ordinal();
      const bool again = std::exchange(first[d], true);
      const bool apart =
          again || (d != home && (capturing || (meeting && meeting->waits_elsewhere())));
      if (apart && meeting) own.emplace_back([&elsewhere, d, i] { elsewhere(i, d, i); });
      else if (!again && d != home)
        tickets.push_back(devices::post(Device::from_ordinal(d), [&elsewhere, d, i, meeting] {
          elsewhere(i, d, meeting ? i : -1);
        }));
    }
  } catch (...) {
    unable = std::current_exception();
    if (meeting) meeting->close();
  }
  if (meeting && !unable) meeting->start();
  if (used[home] && !unable) {
    int only = -1;
    for (int i = n; meeting && i-- > 0;)
      if (device_of[static_cast<size_t>(i)].ordinal() == home) only = i;
    lane(home, only);
  }
  for (uint64_t t : tickets) devices::wait(t);
  for (std::thread& t : own) t.join();
  tls.counter = last;
  if (unable) std::rethrow_exception(unable);
  collector.rethrow_first();
}

}  // namespace detail
}  // namespace ramet::nn::parallel
