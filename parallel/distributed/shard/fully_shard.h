// fully_shard: parameters, gradients and optimizer state of a module cut over the ranks.
//
//   for (auto& layer : *model->layers) fully_shard(layer->as<Block>()->shared_from_this(), mesh);
//   fully_shard(model, mesh);                             // bottom-up; what is left belongs to it
//   optim::AdamW optimizer(model->parameters());          // afterwards: parameters() are shards
//   loss = criterion(model(x), y);                        // through the holder, not ->forward()
//   loss.backward();                                      // each shard's gradient: the mean
//   optimizer.step();
//
// Note [Fully sharded modules]
// Each call makes a group of the parameters of the module that no call below it has taken. Between
// its uses a group is sharded: a rank holds 1/N of its bytes (parallel/distributed/
// shard/shard_layout.h), and the module's registry, parameters(), named_parameters() and the
// optimizer know these shards: one-dimensional leaves with requires_grad, gradient and version.
// The module's members (net->fc->weight) stay the tensors they were, with the full shape, as long
// as the module lives; their memory comes and goes.
//
// A pre-hook of the module gathers its group, and, beside it, the one that came next in the last
// forward; a hook after it gives the memory back. A backward that touches a parameter's values
// gathers the group again, with the next one in the reverse order of the forward beside it; when
// the last gradient of a group has come its memory goes, and the gradients are reduced to the
// ranks' shards while the rest of the backward runs. They are added to the shards' gradients when
// the whole backward has succeeded on this rank: one that fails leaves gradients as they were, and
// ends the groups, so that no rank waits for the others. A shard's own hooks run then, with the
// reduced gradient: register_post_accumulate_grad_hook() on what parameters() gives is the place
// for an optimizer's step inside the backward. What is gathered ahead, what stays, and
// which backwards wait for their reductions can be set: FullyShardHandle.
//
// Who asks for the values of a parameter while it is sharded gets an Error that says so: a direct
// ->forward() does, since it bypasses hooks, as does printing net->fc->weight.
//
// Every rank runs the same modules in the same order, and as many backwards; within a backward
// ranks may use different parameters: what a rank did not use adds zero, what no rank used keeps
// the gradient it has. Sums are in the order of DistributedDataParallel, and have its bits.
//
// On a mesh of two dimensions the second one shards and the first one replicates: gradients are
// reduced to shards inside, and these are added up between the replicas. That sum of sums has the
// bits of ReduceOrder::tree(all ranks) where both extents are powers of two.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/module/ordered_dict.h"
#include "nn/utils/clip_grad.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/model/device_mesh.h"
#include "parallel/distributed/model/managed.h"
#include "parallel/distributed/shard/tensor_part.h"

namespace ramet {
namespace distributed {

struct FullyShardOptions {
  /// Give the memory back after each forward, and gather again for backward. Default: yes, but for
  /// the outermost module, whose backward comes at once. Without grad mode always yes.
  std::optional<bool> reshard_after_forward;
  /// Of the ranks' gradients: mean or sum.
  Average average = Average::mean;
  /// Of the sums over ranks. tree(V): V is the number of ranks.
  ReduceOrder order;
  /// Gather the next group while this one computes.
  bool prefetch = true;
  /// Take over the values of the mesh's first rank.
  bool init_sync = true;
  /// Of its operations, in error texts.
  std::string name = "fully_shard";
};

/// All ranks of the mesh call it, in the same order. `modules` make one group: what tied parameters
/// need. Parameters are leaves without gradients or hooks, all that a rank has in the tree in host
/// memory or on one GPU. Errors, before anything has changed: a module that has been sharded or
/// replicated already, or is part of one that DistributedDataParallel or replicate() was given:
/// these come after it; a parameter that is shared with another group; a mesh of more than two
/// dimensions; ranks with different parameters (names, dtypes, shapes, requires_grad, ties) or
/// options (average, order, reshard_after_forward, init_sync); a rank's parameters on several GPUs.
/// A backward inside the backward, of a Function that computes activations again, is part of the
/// step, as with DistributedDataParallel: reductions wait for it, and one that comes too late is an
/// Error. On a mesh of two dimensions the sums of 16-bit gradients over the shards go on in
/// float32. What is wrong on one rank is an Error on all, which names it. Buffers stay each rank's
/// own. Not in a captured step; the module cannot be cloned any more.
RAMET_API void fully_shard(const std::vector<std::shared_ptr<nn::Module>>& modules,
                           const DeviceMesh& mesh, const FullyShardOptions& options = {});
template <class ModuleType>
void fully_shard(const ModuleType& module, const DeviceMesh& mesh,
                 const FullyShardOptions& options = {}) {
  const std::shared_ptr<nn::Module> one = nn::parallel::detail::shared(module);
  fully_shard(std::vector<std::shared_ptr<nn::Module>>{one}, mesh, options);
}
template <class ModuleType>
void fully_shard(const ModuleType& module, std::shared_ptr<ProcessGroup> group,
                 const FullyShardOptions& options = {}) {
  fully_shard(module, DeviceMesh(std::move(group)), options);
}

/// Where a module's parameters are: cut, on their way, or whole.
enum class ShardState : uint8_t { sharded, gathering, gathered };

namespace detail {
class ShardGroup;
}

/// What can be done with a module that fully_shard was called on. With `recurse` also to those
/// below. Settings are the same on all ranks: what they set differently is an Error of the
/// operations that do not match, or of their deadline. When memory comes and goes, and who waits,
/// changes no bit of a result.
class RAMET_API FullyShardHandle {
 public:
  /// An Error where it was not.
  explicit FullyShardHandle(std::shared_ptr<nn::Module> module);
  /// Of its group.
  ShardState state() const;
  /// Elements of this rank's shards, of this module's group alone, padding left out.
  int64_t local_numel() const;
  /// Off: backwards collect the full gradients on the rank, and the next one with it on reduces all
  /// of what has been collected.
  void set_requires_gradient_sync(bool on, bool recurse = true) const;
  /// On a mesh of two dimensions. Off: backwards sum inside, and the next one with it on adds up
  /// all of that between the replicas.
  void set_requires_all_reduce(bool on, bool recurse = true) const;
  /// FullyShardOptions::reshard_after_forward from the next forward on.
  void set_reshard_after_forward(bool on, bool recurse = true) const;
  /// Off: what a backward has gathered stays for the next forward, which gathers again only what an
  /// optimizer has changed since. With set_reshard_after_forward(false) the steps of an
  /// accumulation gather once; reshard() gives the memory back. Default: on.
  void set_reshard_after_backward(bool on, bool recurse = true) const;
  /// Off: backwards do not gather the group, whose values none of them needs (an embedding's); one
  /// that needs them is an Error. For this module alone. Default: on.
  void set_unshard_in_backward(bool on) const;
  /// Of the whole tree of sharded modules, whichever of them is asked. Off: backwards end without
  /// waiting for the reduction under way, which goes on beside the next forward, and the order of
  /// the forwards stays known to the next backward, as pipelines need that run several forwards and
  /// then their backwards. Gradients, and what goes wrong with them, come with the next backward,
  /// at its beginning, or with finalize_backward() or clip_grad_norm_(). Shards that were changed
  /// before that are an Error of the next forward. Default: on.
  void set_is_last_backward(bool on) const;
  /// All ranks. Waits for what backwards that were not the last one have left under way: where it
  /// turns out that there is no other. The Error of a reduction that failed. Nothing where nothing
  /// is under way.
  void finalize_backward() const;
  /// What to gather while this module's forward runs, in this order, from the first forward on and
  /// without regard to FullyShardOptions::prefetch. Those that this forward of the outermost module
  /// does not come to use afterwards are gathered in vain, and given back at its end. Memory: all
  /// that is named, at once. An empty list: what came next in the last forward.
  /// Errors, nothing having changed: a module that fully_shard was not called on (by its handle),
  /// or of another tree.
  void set_modules_to_forward_prefetch(const std::vector<FullyShardHandle>& modules) const;
  /// What to gather when a backward first needs this module's values. The order of all gathers is
  /// the reverse of the forward, with those that are named moved up to follow this module: what
  /// comes before them comes, too. Those that its forwards did not use are passed over. An empty
  /// list: the next one.
  void set_modules_to_backward_prefetch(const std::vector<FullyShardHandle>& modules) const;
  /// Gathers, collectively, until reshard(): members may be read. What is written to them is lost.
  /// `async`: the first that reads waits.
  void unshard(bool async = false) const;
  /// Gives the memory back; nothing where it is not gathered.
  void reshard() const;

 private:
  template <class F> void each(bool recurse, const F& f) const;
  std::vector<detail::ShardGroup*> groups_of(const std::vector<FullyShardHandle>& modules) const;
  std::shared_ptr<nn::Module> module_;
  std::shared_ptr<detail::ShardGroup> group_;
};
/// The handle of a module that fully_shard was called on; an Error where it was not.
template <class ModuleType> FullyShardHandle fully_shard_handle(const ModuleType& module) {
  return FullyShardHandle(nn::parallel::detail::shared(module));
}

/// The norm of all gradients of a module whose parameters are spread over ranks by fully_shard or
/// tensor parallel layers: that of the whole gradient, the same on all ranks, which all call it. A
/// 0-dim float64 tensor on the device of the first parameter, as
/// nn::utils::clip_grads_with_norm_(module.parameters(), max_norm, norm) takes it. norm_type: more
/// than 0, or infinity.
RAMET_API Tensor get_total_norm(const nn::Module& module, double norm_type = 2.0,
                                bool error_if_nonfinite = false);
/// Both, and the norm as a number, for which the host waits: nn::utils::clip_grad_norm_ of such a
/// module. A capture refuses it.
RAMET_API double clip_grad_norm_(const nn::Module& module, double max_norm, double norm_type = 2.0,
                                 bool error_if_nonfinite = false);

/// What this rank holds of the module's parameters and buffers, by full name, in their order: what
/// a sharded checkpoint consists of. Nothing is exchanged. `local` are the shards themselves, and
/// the optimizer's states of a shard are cut as it is.
RAMET_API std::vector<TensorPart> tensor_parts(const nn::Module& module);
/// Whole tensors, copies, on every rank, which all call it: names and values of the module before
/// it was spread.
RAMET_API OrderedDict<std::string, Tensor> full_state_dict(const nn::Module& module);
/// Each rank takes its parts from whole tensors. Nothing is exchanged. Errors, before anything is
/// written: a name that is missing or unknown, another shape.
RAMET_API void load_full_state_dict(const nn::Module& module,
                                    const OrderedDict<std::string, Tensor>& state);

}  // namespace distributed
}  // namespace ramet
