// Runs replicas concurrently, each on its device, for parallel_apply and ReplicaSet.
//
// Note [Workers of a data-parallel call]
// Replica i runs on the worker of its device. Replicas of the caller's own device run on the
// caller's thread, one after the other. Each replica sees the caller's thread-local state
// (runtime/observe/thread_local_state.h) with its own device current. It also has its share of the
// cores (Note [Shares] in runtime/devices/devices.h) and its number. Every replica runs to its end,
// whatever happens to the others.
//
// The numbers of the nodes that replica i records begin at a value that depends only on i and the
// number of replicas. So the order of every sum in a later backward depends neither on the number
// of devices nor on timing. Replica 0's nodes come first in backward, and so do its errors.
//
// Note [Errors of a replica]
// When all replicas have ended, the failure of the lowest one is thrown. Standard exceptions and
// ramet::Error become a ReplicaError, which says where it happened and keeps the original. A
// user-defined exception type is thrown unchanged, and last_failed_replica() says where it came
// from.
#pragma once
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/context.h"
#include "runtime/base/device.h"
#include "runtime/base/error.h"

namespace ramet {
namespace nn {

class ReplicaMeeting;

namespace parallel {

/// The exception of a parallel call in which replicas failed: the failure of the one with the
/// lowest number.
class RAMET_API ReplicaError : public Error {
 public:
  ReplicaError(int replica, Device device, const std::string& message, std::exception_ptr nested);
  ~ReplicaError() override;
  /// Its number, its device, and its exception:
  int replica() const { return replica_; }
  Device device() const { return device_; }
  const std::exception_ptr& nested() const { return nested_; }
  /// Throws that exception.
  [[noreturn]] void rethrow_nested() const { std::rethrow_exception(nested_); }
  /// Failures of the other replicas in the same call, in order.
  const std::vector<std::exception_ptr>& others() const { return others_; }

 private:
  friend struct ErrorCollector;
  int replica_;
  Device device_;
  std::exception_ptr nested_;
  std::vector<std::exception_ptr> others_;
};

/// The replica that caused the exception of a parallel call.
struct FailedReplica {
  /// Its number.
  int replica;
  /// The device on which it ran.
  Device device;
};
/// The source of the exception with which the last parallel call on this thread ended; nullopt if
/// it succeeded.
RAMET_API std::optional<FailedReplica> last_failed_replica();

/// The number of the replica that runs on this thread, for hooks and forwards; -1 outside of one.
inline int replica_index() { return ramet::detail::tls.replica; }

namespace detail {
/// Runs run(i) for every i as the Notes describe. With a meeting, replicas that share a device run
/// on separate threads.
RAMET_API void run_replicas(ArrayRef<Device> device_of, const std::function<void(int)>& run,
                            ReplicaMeeting* meeting = nullptr);
}  // namespace detail

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
