// replicate: makes a module data-parallel over processes, without a change of its type.
//
//   Net net;
//   replicate(net, group);                       // every rank
//   loss = criterion(net(images), labels);       // this rank's rows
//   loss.backward();                             // gradients: the mean over the ranks
//   {
//     const auto off = replicate_handle(net).no_sync();
//     ...
//   }
//
// Note [Composable replicate]
// The module's type, names and parameters stay. Gradients are reduced as Note [Data-parallel
// processes] describes, in whatever way the parameters are used. Hooks do the rest of the work that
// ranks do in a forward, such as that for buffers and batch norms. So this work needs a call as
// `net(x)`, not `net->forward(x)`. Modules that are replicated one by one share the buckets of one
// reducer. replicate() skips what a replicated module inside this one already has, what
// fully_shard() manages, and what options.ignored names. A copy made by clone() is a plain module.
//
// One device only. A rank with a module on several devices uses DistributedDataParallel.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "parallel/distributed/ddp/data_parallel.h"

namespace ramet {
namespace distributed {

using ReplicateOptions = DdpOptions;

namespace detail {
struct Replicated;
RAMET_API void replicate(const std::shared_ptr<nn::Module>& module,
                         std::shared_ptr<ProcessGroup> group, const ReplicateOptions& options);
}  // namespace detail

/// The operations of a replicated module. Valid as long as the module.
class RAMET_API ReplicateHandle {
 public:
  /// The ranks' group.
  const std::shared_ptr<ProcessGroup>& group() const;
  /// Takes effect from the next backward on; with `recurse`, for replicated modules inside this one
  /// too.
  void set_requires_gradient_sync(bool on, bool recurse = true);
  /// Synchronisation is off while the result exists.
  [[nodiscard]] detail::NoSync no_sync(bool recurse = true);
  /// As DistributedDataParallel's; between steps, in effect at once. Errors: CommStages::add; the
  /// module was replicated without `isolated`. Reason: a hook's state belongs to one module, not to
  /// a shared reducer.
  void register_comm_stage(const std::shared_ptr<CommStage>& stage);
  /// The state of the communication hooks, for checkpoints, and the bytes that they saved. Valid as
  /// long as the module. The same Error without `isolated`.
  CommStages& comm_stages() const;
  /// Full names within this module, in the order of registration; a tied parameter has several.
  const std::vector<std::string>& replicated_param_names() const;
  /// The parameters that no rank used in the last synchronised backward, of all modules that share
  /// the reducer.
  std::vector<std::string> unused_parameters() const;
  /// As DistributedDataParallel's; of all modules that share the reducer.
  StepTimeline last_step() const;
  /// As DistributedDataParallel's; for this module's parameters, by their names within it.
  unsigned register_post_sync_hook(PostSyncHook hook);
  /// An Error if there is no such hook.
  void remove_post_sync_hook(unsigned hook);
  /// As DistributedDataParallel's; over all modules that share the reducer.
  BucketPlan plan() const;
  /// Takes over these buckets; the same on all ranks, between two steps.
  void set_plan(const BucketPlan& plan);
  /// As DistributedDataParallel's. An Error if the module shares its reducer with others.
  void join(const std::function<void()>& loop, const JoinOptions& options = {});

 private:
  friend ReplicateHandle replicate_handle(const nn::Module&);
  explicit ReplicateHandle(std::shared_ptr<detail::Replicated> state) : state_(std::move(state)) {}
  std::vector<detail::DdpCore*> cores(bool recurse) const;
  detail::DdpCore& isolated(const char* op) const;
  std::shared_ptr<detail::Replicated> state_;
};

/// An Error for a module that replicate() was not applied to.
RAMET_API ReplicateHandle replicate_handle(const nn::Module& module);
template <class M> ReplicateHandle replicate_handle(const nn::ModuleHolder<M>& module) {
  return replicate_handle(static_cast<const nn::Module&>(*module.ptr()));
}

/// Collective: every rank calls it for the same modules in the same order. ModuleType: a holder or
/// a shared_ptr. Returns the module itself. Errors:
/// - those of DistributedDataParallel's construction
/// - replicate "has already been applied" to this module
/// - it is "already managed by `fully_shard`"
/// - options that only DistributedDataParallel has: several devices, Batch::whole, or tree(V) with
///   V other than the number of ranks
/// - reduction options that differ from those of the modules with which it would share a reducer
template <class ModuleType>
const ModuleType& replicate(const ModuleType& module, std::shared_ptr<ProcessGroup> group,
                            const ReplicateOptions& options = {}) {
  detail::replicate(nn::parallel::detail::shared(module), std::move(group), options);
  return module;
}

}  // namespace distributed
}  // namespace ramet
