// fully_shard: cuts a module's parameters, gradients and optimizer state over the ranks.
//
//   for (auto& layer : *model->layers) fully_shard(layer->as<Block>()->shared_from_this(), mesh);
// bottom-up; the rest belongs to the model itself
//   optim::AdamW optimizer(model->parameters());          // afterwards: parameters() are shards
//   loss = criterion(model(x), y);                        // through the holder, not ->forward()
//   loss.backward();                                      // each shard's gradient: the mean
//   optimizer.step();
//
// Note [Fully sharded modules]
// Each call makes a group of those parameters of the module that no call for a module inside it has
// taken. Between uses a group is sharded: a rank holds 1/N of its bytes
// (parallel/distributed/shard/shard_layout_internal.h). The module's registry, parameters(),
// named_parameters() and the optimizer see these shards. A shard is a one-dimensional leaf with
// requires_grad, gradient and version. The module's members (net->fc->weight) remain the same
// tensors with the full shape, as long as the module lives. Only their memory is allocated and
// freed.
//
// A pre-hook of the module gathers its group. Concurrently it starts to gather the group that came
// next in the last forward. A hook after the module frees the memory. A backward that needs a
// parameter's values gathers the group again, and concurrently the next one in the reverse order of
// the forward. When the last gradient of a group has come, its memory is freed. The gradients are
// then reduced to the ranks' shards while the rest of the backward runs. They are added to the
// shards' gradients when the whole backward has succeeded on this rank. A backward that fails
// leaves gradients as they were and ends the groups, so that no rank waits for the others.
//
// The hooks of a shard run when it gets the reduced gradient. register_post_accumulate_grad_hook()
// on what parameters() returns is the place for an optimizer's step inside the backward.
// FullyShardHandle controls what is gathered ahead, what stays gathered, and which backwards wait
// for their reductions.
//
// Reading the values of a parameter while it is sharded is an Error that says so. A direct
// ->forward() causes it, since it bypasses hooks; so does printing net->fc->weight.
//
// Every rank runs the same modules in the same order, and the same number of backwards. Within a
// backward ranks may use different parameters. A parameter that a rank did not use adds zero; one
// that no rank used keeps its gradient. Sums are formed in the order of DistributedDataParallel,
// and have its bits.
//
// On a mesh of two dimensions the second one shards and the first one replicates. Gradients are
// reduced to shards inside each replica, then added up between the replicas. That sum of sums has
// the bits of ReduceOrder::tree(all ranks) if both extents are powers of two.
//
// Note [Mixed precision of shards]
// With FullyShardOptions::mp_policy a parameter has up to three dtypes. Its shards, their gradients
// and the optimizer's states keep the parameter's own dtype: they are the float32 masters. Files
// and full_state_dict() have that dtype too. The module's members have param_dtype while they are
// gathered, so forward and backward compute in it, and their gradients come in it. These are cast
// to reduce_dtype, collected in it without synchronisation, and added over the ranks. The sum is
// float32 inside and rounded once to reduce_dtype; on a mesh of two dimensions that needs tree(V).
// Then it is cast to the shards' dtype, where a mean is divided. A float16 sum above 65504 is
// infinite.
//
// Inputs and outputs are the tensors that hooks see: arguments, also in tuples and optionals, and
// the result. Casts are recorded, so an input gets a gradient of its own dtype. Buffers are not
// cast. Each call of fully_shard has a policy of its own; modules inside are not affected by it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/module/ordered_dict.h"
#include "nn/optim/grad_scaler.h"
#include "nn/utils/clip_grad.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/model/device_mesh.h"
#include "parallel/distributed/model/managed.h"
#include "parallel/distributed/shard/tensor_part.h"

namespace ramet {
namespace distributed {

/// The dtypes of a sharded module: PyTorch's class of this name. Each is a floating-point dtype.
/// Note [Mixed precision of shards] has the details.
struct MixedPrecisionPolicy {
  /// Of the gathered parameters, and so of the module's forward and backward. Parameters are cast
  /// before they are gathered, so 16 bits halve the bytes. Default: that of each parameter.
  std::optional<ScalarType> param_dtype;
  /// In which gradients are reduced, and collected without synchronisation. Default: that of the
  /// sharded parameter, as in PyTorch since 2.15.
  std::optional<ScalarType> reduce_dtype;
  /// To which the module's floating-point outputs are cast. Default: no cast.
  std::optional<ScalarType> output_dtype;
  /// Are the module's floating-point inputs cast to param_dtype?
  bool cast_forward_inputs = true;
};

struct FullyShardOptions {
  /// Free the memory after each forward, and gather again for backward. Default: true, except for
  /// the outermost module, since its backward comes at once. Without grad mode always true.
  std::optional<bool> reshard_after_forward;
  /// How the ranks' gradients are combined: mean or sum.
  Average average = Average::mean;
  /// The order of sums over ranks. tree(V): V is the number of ranks.
  ReduceOrder order;
  /// Gather the next group while this one computes.
  bool prefetch = true;
  /// Take over the values of the mesh's first rank.
  bool init_sync = true;
  /// The name of its operations in error texts.
  std::string name = "fully_shard";
  /// The dtypes of values, gradients, inputs and outputs.
  MixedPrecisionPolicy mp_policy;
};

/// All ranks of the mesh call it, in the same order. `modules` together form one group, which tied
/// parameters need. Parameters must be leaves without gradients or hooks. All parameters that a
/// rank has in the tree must be in host memory, or on one GPU. Errors, before anything has changed:
/// - a module that has been sharded or replicated already, or is part of one that
///   DistributedDataParallel or replicate() was given: apply those after fully_shard()
/// - a parameter that is shared with another group
/// - a mesh of more than two dimensions
/// - ranks with different parameters (names, dtypes, shapes, requires_grad, ties) or options
///   (average, order, reshard_after_forward, init_sync, mp_policy)
/// - a dtype of mp_policy that is not a floating-point one, or its param_dtype or reduce_dtype for
///   a module without floating-point parameters
/// - a rank's parameters on several GPUs
///
/// What is wrong on one rank is an Error on all ranks, which names that rank.
///
/// A backward inside the backward, such as that of a Function that computes activations again, is
/// part of the step, as with DistributedDataParallel. Reductions wait for it, and one that comes
/// too late is an Error. On a mesh of two dimensions and under tree(V), sums of 16-bit gradients
/// over the shards stay in float32. So the sum between replicas is rounded once. Buffers stay each
/// rank's own. Not in a captured step. The module cannot be cloned any more.
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

/// The state of a module's parameters: cut, being gathered, or whole.
enum class ShardState : uint8_t { sharded, gathering, gathered };

namespace detail {
class ShardGroup;
}

/// Controls a module that fully_shard was called on. With `recurse` a setting also applies to
/// sharded modules inside it. Settings must be the same on all ranks. If they differ, the
/// operations that do not match throw an Error, at the latest at their deadline. Settings change
/// when memory is allocated and what waits, but no bit of a result.
class RAMET_API FullyShardHandle {
 public:
  /// An Error if fully_shard was not called on the module.
  explicit FullyShardHandle(std::shared_ptr<nn::Module> module);
  /// The state of its group.
  ShardState state() const;
  /// The number of elements of this rank's shards, of this module's group alone, without padding.
  int64_t local_numel() const;
  /// Off: backwards collect the full gradients on the rank. The next backward with synchronisation
  /// on reduces all that has been collected.
  void set_requires_gradient_sync(bool on, bool recurse = true) const;
  /// For a mesh of two dimensions. Off: backwards sum inside each replica. The next backward with
  /// it on adds up all of that between the replicas.
  void set_requires_all_reduce(bool on, bool recurse = true) const;
  /// Sets FullyShardOptions::reshard_after_forward from the next forward on.
  void set_reshard_after_forward(bool on, bool recurse = true) const;
  /// Off: what a backward has gathered stays for the next forward, which gathers again only what an
  /// optimizer has changed since. Together with set_reshard_after_forward(false), all steps of an
  /// accumulation need one gather; reshard() frees the memory. Default: on.
  void set_reshard_after_backward(bool on, bool recurse = true) const;
  /// Off: backwards do not gather the group, because none of them needs its values (an embedding's,
  /// for example). A backward that needs them is an Error. Applies to this module alone. Default:
  /// on.
  void set_unshard_in_backward(bool on) const;
  /// Applies to the whole tree of sharded modules, through any handle of it. Off: backwards end
  /// without a wait for the reduction under way, which continues during the next forward. The next
  /// backward still knows the order of the forwards. Pipelines need this: they run several forwards
  /// and then their backwards. Gradients, and errors of their reduction, come at the beginning of
  /// the next backward, or with finalize_backward() or clip_grad_norm_(). If shards were changed
  /// before that, the next forward is an Error. Default: on.
  void set_is_last_backward(bool on) const;
  /// All ranks call it. Waits for the reductions that backwards with set_is_last_backward(false)
  /// have left under way, for use when no further backward follows. Throws the Error of a reduction
  /// that failed. Does nothing if no reduction is under way.
  void finalize_backward() const;
  /// The modules to gather while this module's forward runs, in this order. Applies from the first
  /// forward on, whatever FullyShardOptions::prefetch is. If the current forward of the outermost
  /// module does not use one of them afterwards, the gather was in vain. Its memory is freed at the
  /// end of that forward. All the named modules need memory at once. An empty list: the module that
  /// came next in the last forward. Errors, with nothing changed: a handle of a module that
  /// fully_shard was not called on, or of another tree.
  void set_modules_to_forward_prefetch(const std::vector<FullyShardHandle>& modules) const;
  /// The modules to gather when a backward first needs this module's values. Gathers follow the
  /// reverse order of the forward, but the named modules move up to follow this one. Gathers before
  /// them in that order are begun too. Modules that the forwards did not use are skipped. An empty
  /// list: the next one.
  void set_modules_to_backward_prefetch(const std::vector<FullyShardHandle>& modules) const;
  /// Gathers, collectively, until reshard(): members may be read. Values that are written to them
  /// are lost. `async`: returns at once, and the first read waits.
  void unshard(bool async = false) const;
  /// Frees the gathered memory; does nothing if it is not gathered.
  void reshard() const;

 private:
  template <class F> void each(bool recurse, const F& f) const;
  std::vector<detail::ShardGroup*> groups_of(const std::vector<FullyShardHandle>& modules) const;
  std::shared_ptr<nn::Module> module_;
  std::shared_ptr<detail::ShardGroup> group_;
};
/// The handle of a module that fully_shard was called on; an Error if it was not.
template <class ModuleType> FullyShardHandle fully_shard_handle(const ModuleType& module) {
  return FullyShardHandle(nn::parallel::detail::shared(module));
}

/// The norm of all gradients of a module with parameters that fully_shard or tensor parallel layers
/// spread over ranks. It is the norm of the whole gradient, the same on all ranks; all of them call
/// it. The result is a 0-dim float64 tensor on the device of the first parameter.
/// nn::utils::clip_grads_with_norm_(module.parameters(), max_norm, norm) takes it. norm_type: more
/// than 0, or infinity.
RAMET_API Tensor get_total_norm(const nn::Module& module, double norm_type = 2.0,
                                bool error_if_nonfinite = false);
/// nn::utils::clip_grad_norm_ for such a module: computes the norm, scales the gradients, and
/// returns the norm as a number, for which the host waits. A capture refuses it.
RAMET_API double clip_grad_norm_(const nn::Module& module, double max_norm, double norm_type = 2.0,
                                 bool error_if_nonfinite = false);

/// Makes all ranks skip a step of `scaler` where one of them has a gradient that is not finite. A
/// rank has only a part of such a module's gradients, so the ranks exchange what they found. All of
/// them then call step() together. Ranks of DistributedDataParallel and replicate() have the same
/// gradients, and decide alike without it. Several modules may share a scaler if all ranks step all
/// of their optimizers. A capture refuses the step.
RAMET_API void share_found_inf(optim::GradScaler& scaler, const nn::Module& module);

/// The part of the module's parameters and buffers that this rank holds, by full name, in their
/// order. A sharded checkpoint consists of these parts. No communication. `local` are the shards
/// themselves. The optimizer's states of a shard are cut in the same way.
RAMET_API std::vector<TensorPart> tensor_parts(const nn::Module& module);
/// Copies of the whole tensors, on every rank; all ranks call it. Names and values are those of the
/// module before it was spread.
RAMET_API OrderedDict<std::string, Tensor> full_state_dict(const nn::Module& module);
/// Each rank takes its parts from whole tensors. No communication. Errors, before anything is
/// written: a missing or unknown name, another shape.
RAMET_API void load_full_state_dict(const nn::Module& module,
                                    const OrderedDict<std::string, Tensor>& state);

}  // namespace distributed
}  // namespace ramet
