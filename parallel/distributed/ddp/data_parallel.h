// Data-parallel training over processes.
//
//   auto group = init_process_group();                      // under tools/launch
//   DistributedDataParallel<Net> ddp(net, group);
//   loss = criterion(ddp(images), labels);                  // this rank's part of the batch
//   loss.backward();                                        // gradients: the mean over the ranks
//   optimizer.step();
//
// Note [Data-parallel processes]
// Each rank has the module, and replicas of it on its own devices, like nn::parallel::DataParallel.
// At construction the ranks compare the whole table of their models and take over rank 0's values.
//
// In a backward the engine knows how many contributions each parameter still gets. It reports when
// a gradient of this rank is complete: the sum over its replicas, plus what reached the parameter
// without a replica. When all gradients of a bucket are complete, all_reduce_members adds them up
// over the ranks while the rest of the backward runs. Buckets begin in the order of the plan, the
// same on all ranks. The first plan is the reverse order of registration. After the first
// synchronised backward the plan follows the order in which gradients were complete.
//
// A parameter that this rank did not use is left out of this rank's part of the sum, and gets the
// others' gradient. A parameter that no rank used keeps the gradient it has. When backward()
// returns, all gradients are complete.
//
// The hooks of a parameter see what this backward brought to it on this rank, before the reduction.
// What the hooks leave is reduced. A gradient that a hook drops counts as none on this rank. A
// gradient that a hook sets counts as this rank's own, if it has the parameter's size, dtype and
// device. While a gradient is being reduced, reading it is an Error until the backward ends. A
// gradient that code kept from before stays as it was. Gradients from before this backward that all
// ranks already have are put aside until it ends. The hooks of register_post_sync_hook() run when
// the reduced gradients are there.
//
// Every rank runs the same number of backwards, except in join(). With gradient synchronisation off
// (no_sync), gradients accumulate on the rank. The first synchronised backward then reduces all
// that has accumulated. A backward that throws ends the group, so that no rank waits for the
// others. Parameters may be frozen and thawed between steps, in the same way on all ranks. If the
// ranks differ, the step ends with an error that names the parameters.
//
// In forwards in training mode, batch norms merge the statistics of all ranks' replicas, or
// normalise with them (nn::convert_sync_batchnorm). Other buffers that were written follow their
// policy over the ranks, as over replicas, before the next forward. They are written only where
// they differ, in fresh memory. What a graph keeps of a buffer stays as it was, so several forwards
// may run before their backwards.
//
// tree(V): all ranks together have V shards, each rank V / N. With the same whole batch
// (Batch::whole), the same bits result for every number of ranks and devices that divides V.
// Reason: the sums over shards form one tree, batch norms merge the statistics of all shards, and
// random numbers are keyed by sample. This holds for one synchronised backward with Division::post.
// The exception is a parameter that is used both in a part that a backward computes again and
// outside it. Over the replicas of a process these are two sums.
//
// A rank that has several shards sends the sum of their 16-bit gradients in float32, twice the
// bytes. That sum is a part of the tree, and the tree's sum is rounded once. (Subnormal float16
// gradients were rounded before: a mean over a rank's rows scales them with the number of ranks.)
//
// A backward may run inside the backward, such as that of a Function that computes activations
// again. Its gradients belong to the same step, and buckets wait for it. A Function that has not
// run yet may lead to any parameter. So nothing is reduced before it has run, unless it declared
// its parameters (AutogradContext::mark_differentiated) and its forward met no other rank. A
// backward that a hook starts cannot be foreseen: one that comes too late is an error. Dropout
// draws the same numbers in the repeated forward as in the first.
//
// A module may get other parameters between steps, in the same way on all ranks. The next forward
// with gradients compares the models again and copies new values from rank `sync_from`. It then
// makes a new plan of the buckets. (It does not notice new buffers without new parameters, nor
// parameters that were only removed. Removed parameters stay in the plan as unused ones.) So a
// forward with gradients after a change is collective, in evaluation mode too. If a new parameter
// already has a gradient, that counts as this rank's own, as at construction. Communication hooks
// do not allow such a change: they know the parameters by name. Hooks that are registered after the
// change find the new parameters.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/apply/data_parallel.h"
#include "parallel/distributed/ddp/step_timeline.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/model/ignored.h"
#include "parallel/distributed/stages/stages.h"

namespace ramet {
namespace distributed {

/// Where a mean divides by the number of ranks: after the sum (post), or before it (pre). `pre` is
/// for 16-bit gradients with a sum that would be too large. split_sqrt divides by its square root
/// before and after.
enum class Division : uint8_t { post, pre, split_sqrt };

/// When it is decided whether a backward synchronises: when the backward begins, or when its
/// forward began (as PyTorch does).
enum class SyncMode : uint8_t { at_backward, at_forward };

/// The names of each bucket's gradients; buckets are reduced in this order.
using BucketPlan = std::vector<std::vector<std::string>>;

struct JoinOptions {
  /// true: a mean is over all ranks, and ranks without further inputs count as zeros. false: it is
  /// over the ranks that still have inputs.
  bool divide_by_initial_world_size = true;
  /// The first rank that runs out of inputs ends the loop on all ranks, with an Error.
  bool throw_on_early_termination = false;
};

/// What a forward receives. local: this rank's rows. Where random numbers matter, every rank must
/// have the same number of rows. whole: all ranks' rows, of which the rank computes and returns its
/// own.
enum class Batch : uint8_t { local, whole };

struct DdpOptions {
  /// The devices of this process; default: the one that holds the module.
  std::vector<Device> devices;
  /// The order of sums over ranks and their replicas. tree(V): V over all of them.
  ReduceOrder order;
  /// How the ranks' gradients are combined: their mean or their sum.
  Average average = Average::mean;
  /// Where a mean divides.
  Division division = Division::post;
  /// When it is decided whether a backward synchronises.
  SyncMode sync_mode = SyncMode::at_backward;
  /// What a forward receives.
  Batch batch = Batch::local;
  /// The size of a bucket: gradients in one bucket are reduced together.
  int64_t bucket_bytes = int64_t{4} << 20;
  /// The communication hooks that gradients pass between the ranks, in this order (stages.h).
  /// Without any, gradients are sent in their own dtype.
  std::vector<std::shared_ptr<CommStage>> stages;
  /// Take over rank `sync_from`'s parameters and buffers at construction.
  bool init_sync = true;
  /// The rank that gives its values to all others.
  int sync_from = 0;
  /// Which parameters and buffers the ranks do not share.
  Ignored ignored;
  /// replicate(): use a separate reducer, not one shared with other modules of the group.
  bool isolated = false;
  /// The name of its operations in error texts.
  std::string name = "ddp";
};

/// Called with the full name of a parameter within its module, and the parameter. Its grad() is the
/// same on all ranks now.
using PostSyncHook = std::function<void(const std::string& name, const Tensor& parameter)>;

namespace detail {

class BufferSync;
class Companion;
class Exceptions;
class GradientReducer;

/// The part of DistributedDataParallel that does not depend on the module's type.
class RAMET_API DdpCore {
 public:
  /// Checks that the options and the model are valid on every rank, and the same. Collective,
  /// before anything is made. `own`: further checks of this rank. Throws an Error on every rank.
  static void verify(const char* op, const std::shared_ptr<ProcessGroup>& group,
                     const nn::Module& module, const DdpOptions& options,
                     const std::function<void()>& own);
  /// Collective, after verify(). `shared`: the reducer that replicate() shares; null: a reducer of
  /// its own.
  DdpCore(std::shared_ptr<ProcessGroup> group, const std::shared_ptr<nn::Module>& module,
          const DdpOptions& options, std::shared_ptr<GradientReducer> shared = nullptr);
  ~DdpCore();
  DdpCore(const DdpCore&) = delete;

  /// The options of the replicas in this process. Calls verify().
  static nn::parallel::DataParallelOptions local_options(const std::shared_ptr<ProcessGroup>& group,
                                                         const nn::Module& module,
                                                         const DdpOptions& options);
  void attach(nn::parallel::ReplicaSet& set);
  /// The sizes of all shards of a whole batch, and this rank's shards [first, last).
  struct Cut {
    std::vector<int64_t> sizes;
    size_t first = 0, last = 0;
    int64_t before = 0, rows = 0;  // samples of the ranks before this one, and of this one
  };
  Cut cut_whole_batch(int64_t extent, size_t local_replicas) const;
  /// nullopt: no argument of this forward has rows.
  void set_rows(std::optional<int64_t> rows);
  /// Returns true if the module has other parameters than before, in the same way on all ranks. The
  /// caller must then ask merges() and synchronises() again.
  bool begin_forward();
  /// Makes a new plan if the module has parameters that no reducer handles yet. begin_forward()
  /// calls it.
  void follow_changes();
  /// Returns a function to apply to every tensor that a forward returns; empty if there are no
  /// other ranks.
  std::function<Tensor(const Tensor&)> on_result() const;
  /// Notifies the other ranks, which may wait for this rank in their forward.
  void forward_failed() noexcept;

  using Replicas = std::vector<std::pair<nn::Module*, std::vector<nn::Module*>>>;
  /// Is `m` a batch norm with statistics to merge? Batch norms that normalise over all ranks are
  /// not.
  bool merges(const nn::Module& m) const;
  bool synchronises(const nn::Module& m) const;
  void merge(const Replicas& modules) const;
  /// Null if no module normalises over all ranks.
  const std::shared_ptr<nn::ShardsElsewhere>& elsewhere() const { return elsewhere_; }
  /// Do forwards in training mode communicate with the other ranks?
  bool forwards_meet() const { return companion_ != nullptr; }

  const std::shared_ptr<ProcessGroup>& group() const { return group_; }
  const DdpOptions& options() const { return options_; }
  const std::vector<std::string>& names() const { return names_; }
  void set_sync(bool on);
  bool sync() const;
  std::vector<std::string> unused() const;
  StepTimeline last_step() const;
  unsigned register_hook(PostSyncHook hook);
  void remove_hook(unsigned id);
  CommStages& stages() const;
  void register_stage(const std::shared_ptr<CommStage>& stage);
  BucketPlan plan() const;
  void set_plan(const BucketPlan& plan);
  void join(const std::function<void()>& loop, const JoinOptions& options);

 private:
  std::shared_ptr<nn::Module> module() const;
  void wait_for_all_ranks(const std::string& name);
  void find_forward_meetings(const nn::Module& module);
  void remember_values(const nn::Module& module);
  void abort_companion_on_failure();
  const std::shared_ptr<ProcessGroup> group_;
  const std::weak_ptr<nn::Module> module_;
  const DdpOptions options_;
  std::unique_ptr<Exceptions> exceptions_;
  std::shared_ptr<GradientReducer> reducer_;
  size_t unit_ = 0;
  std::vector<std::string> names_;
  std::vector<Tensor> known_;  // parameters and buffers with the same values on all ranks
  std::unique_ptr<BufferSync> buffers_;
  std::shared_ptr<Companion> companion_;
  std::shared_ptr<nn::ShardsElsewhere> elsewhere_;
  nn::parallel::ReplicaSet* set_ = nullptr;  // set by attach()
  bool changed_ = false;                     // since the last forward
};

/// While it exists, backwards do not synchronise.
class RAMET_API NoSync {
 public:
  explicit NoSync(std::vector<DdpCore*> cores);
  ~NoSync();
  NoSync(const NoSync&) = delete;

 private:
  std::vector<std::pair<DdpCore*, bool>> before_;
};

}  // namespace detail

/// Several backwards as one step (accumulate()). It must not outlive the module or handle that made
/// it.
class RAMET_API Accumulation {
 public:
  Accumulation(std::vector<detail::DdpCore*> cores, int64_t k);
  /// Runs (loss / k).backward(). The k-th call synchronises the ranks and returns true. Gradients
  /// are then those of the mean of the k losses, and the next call starts anew. A call that throws
  /// does not count. An Error if the k-th call would not synchronise because synchronisation is
  /// switched off.
  bool backward(const Tensor& loss);

 private:
  std::vector<detail::DdpCore*> cores_;
  int64_t k_, done_ = 0;
};

/// A module over the ranks of a group. Construction is collective, and so is every backward with
/// synchronisation on. A forward in training mode is collective if the module has batch norms or
/// other buffers. What grad() and backward(inputs) return stays this rank's own. Reduced gradients
/// have no history. If a rank's backward goes through a result but reaches no parameter, the rank
/// takes part without contributions. One forward at a time; not in a captured step.
///
/// Errors at construction:
/// - a module without a parameter that requires grad
/// - ranks with different models, dtypes or shapes ("appears not to match"), each named
/// - ranks with different options, other than devices, ignored and name, each named
/// - tree(V) with a number of ranks or devices that does not divide V
///
/// What is wrong on one rank is an Error on all ranks, which names that rank.
template <class ModuleType>
class DistributedDataParallel : public nn::parallel::DataParallel<ModuleType> {
  using Base = nn::parallel::DataParallel<ModuleType>;

 public:
  DistributedDataParallel(const ModuleType& module, std::shared_ptr<ProcessGroup> group,
                          const DdpOptions& options = {})
      : Base(module,
             detail::DdpCore::local_options(group, *nn::parallel::detail::shared(module), options)),
        core_(group, nn::parallel::detail::shared(module), options) {
    this->always_replicas_ = true;
    core_.attach(this->replicas());
    this->on_result_ = core_.on_result();
  }

  /// The ranks' group.
  const std::shared_ptr<ProcessGroup>& group() const { return core_.group(); }
  /// Takes effect from the next backward on.
  void set_requires_gradient_sync(bool on) { core_.set_sync(on); }
  /// Synchronisation is off while the result exists.
  [[nodiscard]] detail::NoSync no_sync() { return detail::NoSync({&core_}); }
  /// For steps of k backwards, each of another part of the rank's batch:
  ///   auto step = ddp.accumulate(4);
  ///   for (auto& part : parts)
  ///     if (step.backward(loss_of(ddp(part)))) optimizer.step(), optimizer.zero_grad();
  /// k from 1. An Error with SyncMode::at_forward, where the forward has already decided.
  [[nodiscard]] Accumulation accumulate(int64_t k) { return {{&core_}, k}; }
  /// Appends to DdpOptions::stages. Collective; between steps. Errors: CommStages::add.
  void register_comm_stage(const std::shared_ptr<CommStage>& stage) { core_.register_stage(stage); }
  /// The communication hooks: their state, for checkpoints, and the bytes that they saved.
  CommStages& comm_stages() { return core_.stages(); }
  const CommStages& comm_stages() const { return core_.stages(); }
  /// Names of parameters that no rank used in the last synchronised backward. Also listed: those
  /// with gradients that hooks dropped on all ranks that used them.
  std::vector<std::string> unused_parameters() const { return core_.unused(); }
  /// Where the time of this rank's last synchronised backward went. Only backwards that succeeded
  /// count, and not this rank's part in the others' steps (join). Any thread may call it. While a
  /// backward ends, it waits for that end.
  StepTimeline last_step() const { return core_.last_step(); }
  /// The hook is called at the end of each synchronised backward, once for each parameter of which
  /// any rank has a gradient. The parameter then has the gradient that all ranks have. This is the
  /// place for an optimizer's step inside the backward. The order is the same on all ranks. Grad
  /// mode is off, and no reduction of this module is under way. A hook that throws ends the group,
  /// as a backward does. Returns a number for remove_post_sync_hook().
  unsigned register_post_sync_hook(PostSyncHook hook) {
    return core_.register_hook(std::move(hook));
  }
  /// An Error if there is no such hook.
  void remove_post_sync_hook(unsigned hook) { core_.remove_hook(hook); }
  /// The buckets, for checkpoints.
  BucketPlan plan() const { return core_.plan(); }
  /// Takes over the buckets of a checkpoint. Collective, the same on all ranks, between two steps.
  /// They must contain every parameter once, and each bucket only parameters of one dtype and
  /// device.
  void set_plan(const BucketPlan& plan) { core_.set_plan(plan); }
  /// Runs `loop` (steps over this rank's inputs) on all ranks, which may have different numbers of
  /// steps. A rank that has finished takes part in the others' steps without contributions, until
  /// all have finished. Then all take over parameters and buffers of the rank that finished last
  /// (of several, the highest). An optimizer's state stays each rank's own. An exception from
  /// `loop` ends the group. Errors: a join inside a join; a RouteStage (post-local SGD);
  /// JoinOptions::throw_on_early_termination.
  void join(const std::function<void()>& loop, const JoinOptions& options = {}) {
    core_.join(loop, options);
  }
  /// Batch::whole: the first row of this rank's part of the last batch, and the number of its rows.
  std::pair<int64_t, int64_t> rows() const { return rows_; }

  void begin_forward(const nn::parallel::DataParallelCall& call) override {
    if (core_.options().batch == Batch::whole) {
      nn::parallel::Extent extent(this->options().dim);
      or_tell_others([&] { call.measure(extent); });
      // Too few rows are too few on all ranks, so this error need not end the group.
      cut_ = core_.cut_whole_batch(extent.scattered() ? extent.size() : -1,
                                   static_cast<size_t>(this->replicas().size()));
    }
    core_.begin_forward();
  }

  void scatter(nn::parallel::DataParallelCall& call) override {
    or_tell_others([&] {
      if (core_.options().batch == Batch::whole) scatter_own_rows(call);
      else scatter_batch(call);
    });
  }

  void parallel_apply(const std::vector<std::shared_ptr<nn::Module>>& replicas,
                      nn::parallel::DataParallelCall& call) override {
    or_tell_others([&] { Base::parallel_apply(replicas, call); });
  }

 private:
  template <class F> void or_tell_others(const F& step) {
    try {
      step();
    } catch (...) {
      core_.forward_failed();
      throw;
    }
  }

  // Scatters a batch of this rank over its replicas.
  void scatter_batch(nn::parallel::DataParallelCall& call) {
    Base::scatter(call);
    const auto& sizes = this->plan_.sizes;
    int64_t rows = 0;
    for (int64_t n : sizes) rows += n;
    const int64_t rank = core_.group()->rank();
    this->first_shard_ = rank * static_cast<int64_t>(this->replicas().size());
    this->first_sample_ = rank * rows;
    core_.set_rows(sizes.empty() ? std::nullopt : std::optional(rows));
    rows_ = {0, rows};
  }

  // Scatters this rank's rows of a whole batch over its replicas.
  void scatter_own_rows(nn::parallel::DataParallelCall& call) {
    auto& plan = this->plan_;
    const detail::DdpCore::Cut& cut = cut_;
    const std::vector<Device>& mine = this->replicas().device_of();
    plan = {};
    plan.dim = this->options().dim;
    plan.alias = this->options().alias;
    // The other ranks' shards are views that are never read.
    plan.devices.assign(cut.sizes.size(), this->home());
    for (size_t i = cut.first; i < cut.last; ++i) plan.devices[i] = mine[i - cut.first];
    plan.sizes = cut.sizes;
    call.scatter(plan);
    call.keep_parts(cut.first, cut.last);
    plan.devices = {plan.devices.begin() + static_cast<std::ptrdiff_t>(cut.first),
                    plan.devices.begin() + static_cast<std::ptrdiff_t>(cut.last)};
    plan.sizes = {cut.sizes.begin() + static_cast<std::ptrdiff_t>(cut.first),
                  cut.sizes.begin() + static_cast<std::ptrdiff_t>(cut.last)};
    this->first_shard_ = static_cast<int64_t>(cut.first);
    this->first_sample_ = cut.before;
    core_.set_rows(cut.rows);
    rows_ = {cut.before, cut.rows};
  }

  detail::DdpCore core_;
  detail::DdpCore::Cut cut_;  // of the whole batch of the current forward
  std::pair<int64_t, int64_t> rows_{0, 0};
};

}  // namespace distributed
}  // namespace ramet
