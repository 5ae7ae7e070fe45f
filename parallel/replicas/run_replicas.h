// Replicas side by side, each on its device: what parallel_apply and a ReplicaSet run them by.
//
// Note [Workers of a data-parallel call]
// Replica i runs on the worker of its device; replicas of the caller's own device run on the
// caller's thread, one after the other. Each sees the caller's thread-local state
// (runtime/observe/thread_local_state.h) with its device current, its share of the cores (Note
// [Shares] in runtime/devices/devices.h) and its number. Every replica runs to its end whatever
// happens to the others. Nodes that replica i records are numbered from a place that depends on i
// and the number of replicas alone, so the order of every sum in a later backward does not depend
// on how many devices there are, or on timing; replica 0's come first in backward, and so do its
// errors.
//
// Note [Errors of a replica]
// The failure of the lowest replica is thrown when all have ended. Standard exceptions and
// ramet::Error become a ReplicaError, which says where and keeps the original; an exception type of
// the user's own is thrown as it is, and last_failed_replica() says where it came from.
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

/// What a parallel call throws where replicas failed: the first of them, by number.
class RAMET_API ReplicaError : public Error {
 public:
  ReplicaError(int replica, Device device, const std::string& message, std::exception_ptr nested);
  ~ReplicaError() override;
  /// Which one, where, and what it threw:
  int replica() const { return replica_; }
  Device device() const { return device_; }
  const std::exception_ptr& nested() const { return nested_; }
  /// Throws that.
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

/// The replica whose error a parallel call threw.
struct FailedReplica {
  /// Its number.
  int replica;
  /// Where it ran.
  Device device;
};
/// Where the exception came from with which the last parallel call on this thread ended; nullopt if
/// it ended well.
RAMET_API std::optional<FailedReplica> last_failed_replica();

/// Number of the replica that runs on this thread, for hooks and forwards; -1 outside of one.
inline int replica_index() { return ramet::detail::tls.replica; }

namespace detail {
/// Runs run(i) for every i as the Notes say. With a meeting, replicas that share a device run on
/// threads of their own.
RAMET_API void run_replicas(ArrayRef<Device> device_of, const std::function<void(int)>& run,
                            ReplicaMeeting* meeting = nullptr);
}  // namespace detail

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
