// replicate: a module becomes data-parallel over processes and stays what it is.
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
// The module's type, names and parameters stay. Gradients are reduced as
// Note [Data-parallel processes] says, whatever way the parameters are used in; buffers, batch
// norms and everything else that ranks do in a forward are done by hooks, so where the module is
// called as `net(x)`, not `net->forward(x)`. Modules that are replicated one by one share the
// buckets of one reducer. What a replicated module below has already, what fully_shard() manages
// and what options.ignored names is passed over. A copy made by clone() is a plain module.
//
// One device: a rank whose module runs on several uses DistributedDataParallel.
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

/// What can be done with a replicated module. Valid as long as the module.
class RAMET_API ReplicateHandle {
 public:
  /// The ranks' group.
  const std::shared_ptr<ProcessGroup>& group() const;
  /// From the next backward on; of replicated modules below this one too.
  void set_requires_gradient_sync(bool on, bool recurse = true);
  /// Off while the result lives.
  [[nodiscard]] detail::NoSync no_sync(bool recurse = true);
  /// As DistributedDataParallel's, between steps and at once. Errors: CommStages::add; the module
  /// was replicated without `isolated`: what stages remember is a module's, not a shared reducer's.
  void register_comm_stage(const std::shared_ptr<CommStage>& stage);
  /// The state of the stages, for checkpoints, and what they saved. Valid as long as the module.
  /// The same Error without `isolated`.
  CommStages& comm_stages() const;
  /// Full names within this module, in the order of registration; a tied parameter has several.
  const std::vector<std::string>& replicated_param_names() const;
  /// Of all modules that share the reducer: what no rank used in the last synchronised backward.
  std::vector<std::string> unused_parameters() const;
  /// As DistributedDataParallel's; of all modules that share the reducer.
  StepTimeline last_step() const;
  /// As DistributedDataParallel's; of this module's parameters, by their names within it.
  unsigned register_post_sync_hook(PostSyncHook hook);
  /// An Error if there is no such hook.
  void remove_post_sync_hook(unsigned hook);
  /// As DistributedDataParallel's; over all modules that share the reducer.
  BucketPlan plan() const;
  /// Takes over such buckets; on all ranks alike, between two steps.
  void set_plan(const BucketPlan& plan);
  /// As DistributedDataParallel's. An Error where the module shares its reducer with others.
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

/// Collective: every rank, the same modules in the same order. ModuleType: a holder or a
/// shared_ptr; the module itself is returned. Errors: those of DistributedDataParallel's
/// construction; replicate "has already been applied" to this module; it is "already managed by
/// `fully_shard`"; options that are DistributedDataParallel's alone (several devices, Batch::whole,
/// tree(V) with V other than the number of ranks); options of reductions that differ from those of
/// the modules it would share a reducer with.
template <class ModuleType>
const ModuleType& replicate(const ModuleType& module, std::shared_ptr<ProcessGroup> group,
                            const ReplicateOptions& options = {}) {
  detail::replicate(nn::parallel::detail::shared(module), std::move(group), options);
  return module;
}

}  // namespace distributed
}  // namespace ramet
