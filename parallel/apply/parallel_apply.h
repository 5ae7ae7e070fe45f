// parallel_apply: one function of several replicas at once, each on its device.
//
// Note [Workers of a data-parallel call]
// Replica i runs on the worker of its device; replicas of the caller's own device run on the
// caller's thread, one after the other. Each sees the caller's thread-local state
// (runtime/thread_local_state.h) with its device current, its share of the cores (Note [Shares] in
// runtime/devices.h) and its number. Every replica runs to its end whatever happens to the others.
// Nodes that replica i records are numbered from a place that depends on i and the number of
// replicas alone, so the order of every sum in a later backward does not depend on how many devices
// there are, or on timing; replica 0's come first in backward, and so do its errors.
//
// Note [Errors of a replica]
// The failure of the lowest replica is thrown when all have ended. Standard exceptions and
// ramet::Error become a ReplicaError, which says where and keeps the original; an exception type of
// the user's own is thrown as it is, and last_failed_replica() says where it came from.
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "nn/module/module_holder.h"
#include "nn/module/module_hooks.h"

namespace ramet {
namespace nn {

class ReplicaMeeting;

namespace parallel {

class RAMET_API ReplicaError : public Error {
 public:
  ReplicaError(int replica, Device device, const std::string& message, std::exception_ptr nested);
  ~ReplicaError() override;
  int replica() const { return replica_; }
  Device device() const { return device_; }
  const std::exception_ptr& nested() const { return nested_; }
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

struct FailedReplica {
  int replica;
  Device device;
};
/// Where the exception came from with which the last parallel call on this thread ended; nullopt if
/// it ended well.
RAMET_API std::optional<FailedReplica> last_failed_replica();

/// Number of the replica that runs on this thread, for hooks and forwards; -1 outside of one.
inline int replica_index() { return tls.replica; }

namespace detail {
/// Runs run(i) for every i as the Notes say. With a meeting, replicas that share a device run on
/// threads of their own.
RAMET_API void run_replicas(ArrayRef<Device> device_of, const std::function<void(int)>& run,
                            ReplicaMeeting* meeting = nullptr);
RAMET_API void check_apply(size_t modules, size_t inputs,
                           const std::optional<std::vector<Device>>& devices);

template <class M> M& module_of(const std::shared_ptr<M>& m) { return *m; }
template <class Impl> Impl& module_of(const ModuleHolder<Impl>& m) { return *m.ptr(); }
}  // namespace detail

/// outputs[i] = modules[i](inputs[i]), side by side, moved to devices[i] (by default the device of
/// inputs[i]). ModuleType: a holder or a shared_ptr.
template <class ModuleType>
std::vector<Tensor> parallel_apply(
    std::vector<ModuleType>& modules, const std::vector<Tensor>& inputs,
    const std::optional<std::vector<Device>>& devices = std::nullopt) {
  detail::check_apply(modules.size(), inputs.size(), devices);
  std::vector<Device> where;
  for (size_t i = 0; i < inputs.size(); ++i) {
    RAMET_CHECK(devices || inputs[i].defined(), "parallel_apply", "in replica ", i,
                ", no device was provided and no tensor input was found; device "
                "cannot be resolved");
    where.push_back(resolve(devices ? (*devices)[i] : inputs[i].device()));
  }
  std::vector<Tensor> outputs(inputs.size());
  detail::run_replicas(where, [&](int i) {
    const auto k = static_cast<size_t>(i);
    outputs[k] = call(detail::module_of(modules[k]), inputs[k]).to(where[k]);
  });
  return outputs;
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
