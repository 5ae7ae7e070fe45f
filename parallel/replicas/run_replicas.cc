#include "parallel/replicas/run_replicas.h"

#include <algorithm>
#include <new>
#include <thread>
#include <typeinfo>

#include "autograd/autocast.h"
#include "nn/module/replica_meeting.h"
#include "runtime/base/thread_pool.h"
#include "runtime/base/threads_internal.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"
#include "runtime/observe/thread_local_state.h"

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

// Is its class in namespace std, by the mangled name? A user's class derived from
// std::runtime_error is not.
bool is_standard(const std::exception& e) {
  const char* name = typeid(e).name();
  return name[0] == 'S' || (name[0] == 'N' && name[1] == 'S');
}

// How many operation numbers one replica may use.
constexpr uint64_t kCounterStep = uint64_t{1} << 28;

}  // namespace

std::optional<FailedReplica> last_failed_replica() { return t_failed; }

// The error of each replica of one call.
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
  // A replica that only waited in vain for another one is not the cause.
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

namespace {

// One call of run_replicas. The replicas of a device form its lane. A device's worker runs its lane
// one replica after the other; the calling thread runs the lane of its own device. Replicas that
// meet (synchronised batch normalisation) wait for each other, so each of them has its own thread.
class ReplicaRun {
 public:
  ReplicaRun(ArrayRef<Device> device_of, const std::function<void(int)>& run,
             ReplicaMeeting* meeting)
      : device_of_(device_of),
        run_(run),
        meeting_(meeting),
        collector_{std::vector<std::exception_ptr>(device_of.size()), device_of},
        last_(start_ + static_cast<uint64_t>(count()) * kCounterStep) {
    for (Device d : device_of) used_[d.ordinal()] = true;
    share_ = share();
  }

  void run() {
    start_others();
    if (used_[home_] && !unable_) run_lane(home_, first_of_home());
    for (uint64_t t : tickets_) devices::wait(t);
    for (std::thread& t : threads_) t.join();
    tls.counter = last_;
    if (unable_) std::rethrow_exception(unable_);
    collector_.rethrow_first();
  }

 private:
  static constexpr int kWholeLane = -1;
  int count() const { return static_cast<int>(device_of_.size()); }
  int device(int replica) const { return device_of_[static_cast<size_t>(replica)].ordinal(); }
  std::exception_ptr& error(int replica) { return collector_.errors[static_cast<size_t>(replica)]; }

  // The number of threads that the kernels of one replica may use; 0: all.
  uint8_t share() const {
    const int lanes = static_cast<int>(std::count(used_, used_ + kMaxDevices, true));
    const int concurrent = meeting_ ? count() : lanes;
    // A capture is replayed one kernel after the other, each by all threads.
    if (concurrent <= 1 || capture::active()) return tls.share;
    const int threads = tls.share ? tls.share : get_num_threads();
    return static_cast<uint8_t>(std::clamp(threads / concurrent, 1, 255));
  }

  // Starts the replicas that do not run on the calling thread.
  void start_others() {
    try {
      bool begun[kMaxDevices] = {};
      for (int i = 0; i < count(); ++i) start(i, !std::exchange(begun[device(i)], true));
    } catch (...) {
      unable_ = std::current_exception();
      if (meeting_) meeting_->close();
    }
    if (meeting_ && !unable_) meeting_->start();
  }

  void start(int i, bool first_of_device) {
    const int d = device(i);
    const bool is_home = d == home_;
    const bool own_thread =
        !first_of_device || (!is_home && (capturing_ || (meeting_ && meeting_->waits_elsewhere())));
    if (own_thread && meeting_)
      threads_.emplace_back([this, i, d] { run_lane_elsewhere(i, d, i); });
    else if (first_of_device && !is_home)
      tickets_.push_back(devices::post(Device::from_ordinal(d), [this, i, d] {
        run_lane_elsewhere(i, d, meeting_ ? i : kWholeLane);
      }));
  }

  // If replicas meet, the calling thread runs one of them.
  int first_of_home() const {
    for (int i = 0; meeting_ && i < count(); ++i)
      if (device(i) == home_) return i;
    return kWholeLane;
  }

  // Runs on another thread, which takes over the caller's state.
  void run_lane_elsewhere(int replica, int device, int only) {
    try {
      ThreadLocalStateGuard guard(state_);
      // Replicas that meet take turns, each on its own thread, and make one capture together.
      const ScopedValue<uint8_t> together(tls.capturing, capturing_);
      run_lane(device, only);
    } catch (...) {  // no memory for the thread's state
      error(replica) = std::current_exception();
    }
  }

  void run_lane(int lane, int only) {
    const DeviceGuard current(Device::from_ordinal(lane));
    const ScopedValue<uint8_t> cores(tls.share, share_);
    const ScopedValue<autograd::GraphTask*> outside(tls.task, nullptr);
    const uint64_t before = tls.counter;
    for (int i = 0; i < count(); ++i)
      if (device(i) == lane && (only == kWholeLane || only == i)) run_replica(i);
    tls.counter = before;
  }

  void run_replica(int i) {
    const ScopedValue<int16_t> number(tls.replica, static_cast<int16_t>(i));
    // Later operations come first in the backward pass: replica 0's, then replica 1's, ...
    tls.counter = start_ + static_cast<uint64_t>(count() - 1 - i) * kCounterStep;
    ReplicaMeeting::Seat seat(meeting_, i);
    if (!seat.admitted()) return;
    try {
      const ramet::detail::OwnCasts casts;
      run_(i);
    } catch (const ReplicaAbsent&) {
      error(i) = std::current_exception();
      seat.failed(/*left_waiting=*/true);
    } catch (...) {
      error(i) = std::current_exception();
      seat.failed(/*left_waiting=*/false);
    }
    uint64_t seen = last_.load();
    while (seen < tls.counter && !last_.compare_exchange_weak(seen, tls.counter)) {}
  }

  const ArrayRef<Device> device_of_;
  const std::function<void(int)>& run_;
  ReplicaMeeting* const meeting_;
  const int home_ = current_device().ordinal();  // the calling thread runs this device's lane
  const ThreadLocalState state_;
  const uint8_t capturing_ = tls.capturing;
  const uint64_t start_ = tls.counter;
  ErrorCollector collector_;
  std::atomic<uint64_t> last_;  // the largest counter that a replica has reached
  bool used_[kMaxDevices] = {};
  uint8_t share_ = 0;
  std::vector<uint64_t> tickets_;  // of lanes that workers run
  std::vector<std::thread> threads_;
  std::exception_ptr unable_;  // the error of starting a thread or queueing a task
};

}  // namespace

namespace detail {

void run_replicas(ArrayRef<Device> device_of, const std::function<void(int)>& run,
                  ReplicaMeeting* meeting) {
  t_failed.reset();
  RAMET_CHECK(!meeting || ramet::detail::has_threads(), "parallel_apply",
              "replicas that meet need a thread each, and there are no threads on this platform");
  ReplicaRun(device_of, run, meeting).run();
}

}  // namespace detail
}  // namespace ramet::nn::parallel
