// Data-parallel training over processes.
//
//   auto group = init_process_group();                      // under tools/launch
//   DistributedDataParallel<Net> ddp(net, group);
//   loss = criterion(ddp(images), labels);                  // this rank's part of the batch
//   loss.backward();                                        // gradients: the mean over the ranks
//   optimizer.step();
//
// Note [Data-parallel processes]
// Each rank has the module, and replicas of it on its own devices, as nn::parallel::DataParallel
// has. At construction the ranks compare the whole table of their models and take over rank 0's
// values. In a backward the engine knows how many contributions each parameter still gets, so it
// says when a gradient of this rank is complete: the sum over its replicas, and what came to the
// parameter beside them. When all of a bucket's are, they are added up over the ranks
// (all_reduce_members) while the rest of the backward runs; buckets begin in one order on all
// ranks, that of the plan. The first plan is the reverse order of registration; after the first
// synchronised backward it follows the order in which gradients were complete. What this rank did
// not use is passed over in the sum, and gets the others' gradient; what no rank used keeps the
// gradient it has. When backward() returns all gradients are there.
//
// Hooks of a parameter see what this backward brought to it on this rank, before the reduction, and
// what they leave is reduced: a gradient that a hook drops is none on this rank, one that it puts
// there, of the parameter's size, dtype and device, counts as its own. Until the backward ends a
// gradient that is on its way is an Error for those who look; what they have kept stays as it was.
// Gradients of before that all ranks have already are put aside meanwhile. With the reduced
// gradients come the hooks of register_post_sync_hook().
//
// Every rank runs the same number of backwards, but for join(). With gradient synchronisation off
// (no_sync) gradients accumulate on the rank, and the first synchronised backward reduces all of
// what has accumulated. A backward that throws ends the group, so that no rank waits for the
// others. Parameters may be frozen and thawed between steps, by all ranks alike: where they differ
// the step ends with an error that names them.
//
// Forwards in training mode: batch norms merge the statistics of all ranks' replicas, or normalise
// with them (nn::convert_sync_batchnorm); other buffers that were written follow their policy over
// the ranks as over replicas, before the next forward, and are written only where they differ, in
// fresh memory: what a graph keeps of a buffer stays as it was, so several forwards may come before
// their backward.
//
// tree(V): all ranks together have V shards, V / N each. With the same whole batch (Batch::whole)
// the same bits come out for every number of ranks and devices that divides V: sums over shards are
// one tree, batch norms merge the statistics of all shards, random numbers are keyed by sample.
// That is true of one synchronised backward with Division::post, but for a parameter that is used
// both in a part that a backward computes again and beside it: over the replicas of a process these
// are two sums. A rank that has several shards
// sends the sum of their 16-bit gradients in float32, twice the bytes: it is a part of the tree,
// and the tree's sum is rounded once. (float16 gradients that are subnormal were rounded before: a
// mean over a rank's rows scales them with the number of ranks.)
//
// A backward may run inside the backward, as of a Function that computes activations again: its
// gradients belong to the same step, and buckets wait for it. What a Function that has still to run
// may lead to is anything, so nothing is reduced before it has run, unless it said
// (AutogradContext::mark_differentiated) and its forward met no other rank. In a hook nobody can
// see one coming: too late is an error. Dropout draws there what it drew in the forward.
//
// A module may get other parameters between steps, on all ranks alike: the next forward with
// gradients compares the models again, copies what is new from rank `sync_from`, and goes on with
// a new plan of the buckets. (Buffers that come without parameters, and parameters that only go,
// are not noticed: these stay in the plan as unused ones.) So a forward with gradients after a
// change is collective, in evaluation mode too. A gradient that a parameter has when it comes
// counts as this rank's own, as at construction. Not with communication stages: those know the
// parameters by name; stages that are registered after it find the new ones.
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

/// Where a mean divides by the number of ranks: after the sum, before it (16-bit gradients whose
/// sum would be too large), or by its square root each time.
enum class Division : uint8_t { post, pre, split_sqrt };

/// When it is decided whether a backward synchronises: when it begins, or (as PyTorch does) when
/// its forward began.
enum class SyncMode : uint8_t { at_backward, at_forward };

/// The names of each bucket's gradients; buckets are reduced in this order.
using BucketPlan = std::vector<std::vector<std::string>>;

struct JoinOptions {
  /// A mean over all ranks, where those that have no inputs any more count as zeros; else over
  /// those that have.
  bool divide_by_initial_world_size = true;
  /// The first rank that runs out of inputs ends the loop on all of them, with an Error.
  bool throw_on_early_termination = false;
};

/// What a forward is given: this rank's rows, as many as every other rank's where random numbers
/// matter; or all ranks' rows, of which it computes and returns its own.
enum class Batch : uint8_t { local, whole };

struct DdpOptions {
  /// This process's; default: the one that holds the module.
  std::vector<Device> devices;
  /// Over ranks and their replicas. tree(V): V over all of them.
  ReduceOrder order;
  /// What becomes of the ranks' gradients: their mean or their sum.
  Average average = Average::mean;
  /// Where a mean divides.
  Division division = Division::post;
  /// When it is decided whether a backward synchronises.
  SyncMode sync_mode = SyncMode::at_backward;
  /// What a forward is given.
  Batch batch = Batch::local;
  /// Gradients that are reduced together.
  int64_t bucket_bytes = int64_t{4} << 20;
  /// What gradients go through between the ranks, in this order (stages.h). None: float32 and what
  /// else they are, as it is.
  std::vector<std::shared_ptr<CommStage>> stages;
  /// Take over rank `sync_from`'s parameters and buffers at construction.
  bool init_sync = true;
  /// The rank whose values all take over.
  int sync_from = 0;
  /// What the ranks do not share.
  Ignored ignored;
  /// replicate(): a reducer of its own, not one with other modules of the group.
  bool isolated = false;
  /// Of its operations, in error texts.
  std::string name = "ddp";
};

/// With the full name of a parameter within its module, and the parameter, whose grad() is what all
/// ranks have now.
using PostSyncHook = std::function<void(const std::string& name, const Tensor& parameter)>;

namespace detail {

class BufferSync;
class Companion;
class Exceptions;
class GradientReducer;

/// What does not depend on the module's type.
class RAMET_API DdpCore {
 public:
  /// Are the options and the model right on every rank, and the same? Collective, before anything
  /// is made. `own`: what else may be wrong on this rank. An Error on every rank.
  static void verify(const char* op, const std::shared_ptr<ProcessGroup>& group,
                     const nn::Module& module, const DdpOptions& options,
                     const std::function<void()>& own);
  /// Collective, after verify(). `shared`: by replicate(); null: a reducer of its own.
  DdpCore(std::shared_ptr<ProcessGroup> group, const std::shared_ptr<nn::Module>& module,
          const DdpOptions& options, std::shared_ptr<GradientReducer> shared = nullptr);
  ~DdpCore();
  DdpCore(const DdpCore&) = delete;

  /// Of the replicas in this process. Verifies.
  static nn::parallel::DataParallelOptions local_options(const std::shared_ptr<ProcessGroup>& group,
                                                         const nn::Module& module,
                                                         const DdpOptions& options);
  void attach(nn::parallel::ReplicaSet& set);
  /// Sizes of all shards of a whole batch, and the first and last + 1 of this rank's.
  struct Cut {
    std::vector<int64_t> sizes;
    size_t first = 0, last = 0;
    int64_t before = 0, rows = 0;  // samples of the ranks before, and of this one
  };
  Cut cut_whole_batch(int64_t extent, size_t local_replicas) const;
  /// Nothing: no argument of this forward has rows.
  void set_rows(std::optional<int64_t> rows);
  /// True: the module has other parameters than before, on all ranks alike, and what was asked of
  /// it before (merges(), synchronises()) has to be asked again.
  bool begin_forward();
  /// Plans again where the module has got parameters that nobody reduces: begin_forward() does.
  void follow_changes();
  /// Goes over every tensor that a forward returns; empty where there are no other ranks.
  std::function<Tensor(const Tensor&)> on_result() const;
  /// The others, who may wait for this rank in their forward, hear of it.
  void forward_failed() noexcept;

  using Replicas = std::vector<std::pair<nn::Module*, std::vector<nn::Module*>>>;
  /// Batch norms whose statistics are merged; those that normalise over all ranks are not among
  /// them.
  bool merges(const nn::Module& m) const;
  bool synchronises(const nn::Module& m) const;
  void merge(const Replicas& modules) const;
  /// Null where nothing normalises over all ranks.
  const std::shared_ptr<nn::ShardsElsewhere>& elsewhere() const { return elsewhere_; }
  /// Do forwards in training mode meet the other ranks?
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
  std::vector<Tensor> known_;  // parameters and buffers whose values all ranks have
  std::unique_ptr<BufferSync> buffers_;
  std::shared_ptr<Companion> companion_;
  std::shared_ptr<nn::ShardsElsewhere> elsewhere_;
  nn::parallel::ReplicaSet* set_ = nullptr;  // attach()
  bool changed_ = false;                     // since the last forward
};

/// While it lives, backwards do not synchronise.
class RAMET_API NoSync {
 public:
  explicit NoSync(std::vector<DdpCore*> cores);
  ~NoSync();
  NoSync(const NoSync&) = delete;

 private:
  std::vector<std::pair<DdpCore*, bool>> before_;
};

}  // namespace detail

/// Several backwards as one step (accumulate()); it must not outlive what it came from.
class RAMET_API Accumulation {
 public:
  Accumulation(std::vector<detail::DdpCore*> cores, int64_t k);
  /// Runs (loss / k).backward(); the k-th time with the ranks synchronised, and true: gradients are
  /// then those of the mean of the k losses, and the next call begins anew. One that throws does
  /// not count. An Error where the k-th would not synchronise because that is switched off.
  bool backward(const Tensor& loss);

 private:
  std::vector<detail::DdpCore*> cores_;
  int64_t k_, done_ = 0;
};

/// A module over the ranks of a group. Construction, and every backward with synchronisation on,
/// are collective; so is a forward in training mode where the module has batch norms or other
/// buffers. What grad() and backward(inputs) return stays this rank's own, and reduced gradients
/// have no history. A rank whose backward goes through a result, but reaches none of the
/// parameters, takes part with nothing. One forward at a time; not in a captured step. Errors at
/// construction: a module without a parameter that requires grad; ranks with different models,
/// dtypes or shapes ("appears not to match"), each named; ranks with different options, but for
/// devices, ignored and name, each named; tree(V) with a number of ranks, or of devices, that does
/// not divide V. What is wrong on one rank is an Error on all, which names it.
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
  /// From the next backward on.
  void set_requires_gradient_sync(bool on) { core_.set_sync(on); }
  /// Off while the result lives.
  [[nodiscard]] detail::NoSync no_sync() { return detail::NoSync({&core_}); }
  /// For steps of k backwards, each of another part of the rank's batch:
  ///   auto step = ddp.accumulate(4);
  ///   for (auto& part : parts)
  ///     if (step.backward(loss_of(ddp(part)))) optimizer.step(), optimizer.zero_grad();
  /// k from 1. An Error with SyncMode::at_forward, where the forward has decided already.
  [[nodiscard]] Accumulation accumulate(int64_t k) { return {{&core_}, k}; }
  /// Appends to DdpOptions::stages. Collective; between steps. Errors: CommStages::add.
  void register_comm_stage(const std::shared_ptr<CommStage>& stage) { core_.register_stage(stage); }
  /// Their state, for checkpoints, and what they saved.
  CommStages& comm_stages() { return core_.stages(); }
  const CommStages& comm_stages() const { return core_.stages(); }
  /// Parameters that no rank used in the last synchronised backward, or whose gradients hooks
  /// dropped on all that did, by name.
  std::vector<std::string> unused_parameters() const { return core_.unused(); }
  /// Where the time of this rank's last synchronised backward went: of the last one that ended
  /// well, not of a part that this rank had in the others' steps (join). Any thread; while a
  /// backward ends, when that is over.
  StepTimeline last_step() const { return core_.last_step(); }
  /// Called at the end of each synchronised backward, once for each parameter that any rank has a
  /// gradient of, with what all of them have: the place for an optimizer's step inside the
  /// backward. One order on all ranks, without grad mode, nothing of this module being under way. A
  /// hook that throws ends the group, as a backward does. Returns a number for
  /// remove_post_sync_hook(), which is an Error where there is no such hook.
  unsigned register_post_sync_hook(PostSyncHook hook) {
    return core_.register_hook(std::move(hook));
  }
  /// An Error if there is no such hook.
  void remove_post_sync_hook(unsigned hook) { core_.remove_hook(hook); }
  /// The buckets, for checkpoints, and those of a checkpoint: collective, between steps; every
  /// parameter once, with those of its dtype and device.
  BucketPlan plan() const { return core_.plan(); }
  /// Takes over such buckets; on all ranks alike, between two steps.
  void set_plan(const BucketPlan& plan) { core_.set_plan(plan); }
  /// Runs `loop` (steps over this rank's inputs), on all ranks, which may have different numbers of
  /// steps: one that is through takes part in the others' with nothing, until all are. Then all
  /// take over parameters and buffers of the rank that was through last (of several, the highest);
  /// an optimizer's state stays each rank's own. What `loop` throws ends the group. Errors: a join
  /// inside a join; a RouteStage (post-local SGD); JoinOptions::throw_on_early_termination.
  void join(const std::function<void()>& loop, const JoinOptions& options = {}) {
    core_.join(loop, options);
  }
  /// Batch::whole: the first row of this rank's part of the last batch, and how many.
  std::pair<int64_t, int64_t> rows() const { return rows_; }

  void begin_forward(const nn::parallel::Value& arguments) override {
    if (core_.options().batch == Batch::whole) {
      nn::parallel::Extent extent(this->options().dim);
      or_tell_others([&] { arguments.measure(extent, "argument"); });
      // Too few rows are too few on all ranks: that need not end anything.
      cut_ = core_.cut_whole_batch(extent.scattered() ? extent.size() : -1,
                                   static_cast<size_t>(this->replicas().size()));
    }
    core_.begin_forward();
  }

  std::vector<nn::parallel::Value> scatter(const nn::parallel::Value& arguments) override {
    return or_tell_others([&] {
      return core_.options().batch == Batch::whole ? own_part_of(arguments)
                                                   : scatter_own(arguments);
    });
  }

  std::vector<nn::parallel::Value> parallel_apply(
      const std::vector<std::shared_ptr<nn::Module>>& replicas,
      std::vector<nn::parallel::Value>& arguments,
      const std::function<nn::parallel::Value(nn::Module&, nn::parallel::Value&)>& forward)
      override {
    return or_tell_others([&] { return Base::parallel_apply(replicas, arguments, forward); });
  }

 private:
  template <class F> auto or_tell_others(const F& step) {
    try {
      return step();
    } catch (...) {
      core_.forward_failed();
      throw;
    }
  }

  // This rank's rows over its replicas.
  std::vector<nn::parallel::Value> scatter_own(const nn::parallel::Value& arguments) {
    auto parts = Base::scatter(arguments);
    const auto& sizes = this->plan_.sizes;
    int64_t rows = 0;
    for (int64_t n : sizes) rows += n;
    const int64_t rank = core_.group()->rank();
    this->first_shard_ = rank * static_cast<int64_t>(this->replicas().size());
    this->first_sample_ = rank * rows;
    core_.set_rows(sizes.empty() ? std::nullopt : std::optional(rows));
    rows_ = {0, rows};
    return parts;
  }

  // Of a whole batch.
  std::vector<nn::parallel::Value> own_part_of(const nn::parallel::Value& arguments) {
    auto& plan = this->plan_;
    const detail::DdpCore::Cut& cut = cut_;
    const std::vector<Device>& mine = this->replicas().device_of();
    plan = {};
    plan.dim = this->options().dim;
    plan.alias = this->options().alias;
    // The other ranks' shards are views that nobody looks at.
    plan.devices.assign(cut.sizes.size(), this->home());
    for (size_t i = cut.first; i < cut.last; ++i) plan.devices[i] = mine[i - cut.first];
    plan.sizes = cut.sizes;
    std::vector<nn::parallel::Value> all = arguments.scatter(plan), parts;
    for (size_t i = cut.first; i < cut.last; ++i) parts.push_back(std::move(all[i]));
    plan.devices = {plan.devices.begin() + static_cast<std::ptrdiff_t>(cut.first),
                    plan.devices.begin() + static_cast<std::ptrdiff_t>(cut.last)};
    plan.sizes = {cut.sizes.begin() + static_cast<std::ptrdiff_t>(cut.first),
                  cut.sizes.begin() + static_cast<std::ptrdiff_t>(cut.last)};
    this->first_shard_ = static_cast<int64_t>(cut.first);
    this->first_sample_ = cut.before;
    core_.set_rows(cut.rows);
    rows_ = {cut.before, cut.rows};
    return parts;
  }

  detail::DdpCore core_;
  detail::DdpCore::Cut cut_;  // of the whole batch of the forward that runs
  std::pair<int64_t, int64_t> rows_{0, 0};
};

}  // namespace distributed
}  // namespace ramet
