// Reduces buckets of gradients over the ranks: Note [Data-parallel processes].
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "autograd/graph/graph_task.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/step_timeline.h"
#include "parallel/distributed/model/leaves_internal.h"

namespace ramet::distributed::detail {

/// Thrown in a backward where a rank has no further inputs, if that is to end the loop on all
/// ranks.
struct EarlyTermination final : Error {
  using Error::Error;
};

/// Reduces gradients of leaves over the ranks. Leaves come in units. A DistributedDataParallel has
/// one unit; each module that replicate() was applied to is one unit. All ranks add the same units
/// in the same order.
class GradientReducer final : public std::enable_shared_from_this<GradientReducer> {
 public:
  /// `leaves`: the leaves for which communication hooks may keep state.
  GradientReducer(std::shared_ptr<ProcessGroup> group, const DdpOptions& options,
                  const std::vector<NamedLeaf>& leaves);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;

  /// Adds a unit and returns its number. The leaves must not belong to another reducer. When
  /// `owner` is gone, leaves that still exist are no longer reduced.
  size_t add(const std::vector<NamedLeaf>& leaves, const std::weak_ptr<nn::Module>& owner);
  /// Replaces the unit's leaves by those that `now` lists. It detaches the old leaves before it
  /// calls `now`. The same on all ranks, between backwards.
  void update(size_t unit, const std::function<std::vector<NamedLeaf>()>& now);
  /// Removes the unit: its leaves are no longer reduced.
  void remove(size_t unit);
  const DdpOptions& options() const { return options_; }
  /// `f` is called if a backward fails on this rank. It releases ranks that wait elsewhere than in
  /// the group.
  void on_failure(size_t unit, std::function<void(const std::string& why)> f);
  void abort(const std::string& why);

  void set_sync(size_t unit, bool on);
  bool sync(size_t unit) const;
  void begin_forward(size_t unit);
  /// One forward of a unit: what its results remember.
  struct Forward {
    size_t unit = 0;
    uint64_t number = 0;
    double rows = 1;  // the weight, for a weighted average
  };
  /// `rows`: the number of rows of this rank's part of its batch. An Error if the average needs
  /// them and no argument has rows.
  void set_rows(size_t unit, std::optional<int64_t> rows);
  Forward last_forward(size_t unit) const;
  /// Notes that a backward through results of `forward` begins, whichever leaves it reaches.
  void on_backward_through(autograd::GraphTask& task, const Forward& forward);
  std::vector<std::string> unused() const;
  StepTimeline last_step() const;
  /// Adds a hook of a unit, from the next backward on. Hooks may add and remove hooks.
  unsigned add_hook(size_t unit, PostSyncHook hook);
  /// False if the unit has no such hook.
  bool remove_hook(size_t unit, unsigned id);
  CommStages& stages() { return stages_; }
  void register_stage(const std::shared_ptr<CommStage>& stage);

  // The plan: gradient_plan.cc.

  /// Names of each bucket's members, in the order in which buckets are reduced.
  BucketPlan plan() const;
  /// Collective.
  void set_plan(const BucketPlan& plan);

  // join(): join.cc.

  /// From now on ranks may run out of inputs. `divide_by_active`: a mean is over the ranks that
  /// have not.
  void begin_join(bool divide_by_active, bool throw_on_early_termination);
  void end_join();
  /// On a rank without further inputs: takes part in a step of the other ranks. Returns how many
  /// ranks still had inputs.
  int shadow_step();
  int64_t synchronised_steps() const;

 private:
  struct Hook;
  using Clock = std::chrono::steady_clock;
  // Identifies the value of a tensor at one time.
  struct Values {
    const void* data = nullptr;
    uint32_t version = 0;
    Values() = default;
    explicit Values(const Tensor& t) {
      if (t.defined()) data = t.impl()->data, version = t.version();
    }
    bool is(const Tensor& t) const {
      return data && t.defined() && t.impl()->data == data && t.version() == version;
    }
  };
  // A 16-bit gradient before it was rounded, in float32.
  struct Unrounded {
    Tensor sum;
    Values rounded;
    bool is_of(const Tensor& g) const { return sum.defined() && rounded.is(g); }
  };
  struct Leaf {
    std::string name;
    Tensor tensor;
    autograd::NodePtr node;  // keeps `sink` alive
    autograd::AccumulateGrad* sink = nullptr;
    size_t unit = 0, bucket = 0;
    int member = -1;  // within the bucket, in this backward; -1: takes no part
    std::unique_ptr<Hook> hook;
    double rows = 0;  // of each backward in the gradient; see note_unsynchronised()
    std::atomic<Clock::rep> ready_at{0};  // in this backward; 0: not yet
    Unrounded unrounded;
  };
  // AccumulateGrad::mark: what the gradient contains.
  enum Holds : uint8_t {
    anything,   // This rank's own: may include an earlier gradient, or one that was set.
    common,     // The gradient that all ranks have.
    collected,  // The sum of this rank's unsynchronised backwards.
    both
  };
  struct Unit {
    bool sync = true, sync_of_forward = true, removed = false;
    Forward forward;           // the last one
    std::vector<uint64_t> in;  // forwards that this backward goes through
    double rows = 0;           // of those forwards
    std::weak_ptr<nn::Module> owner;
    std::function<void(const std::string&)> on_failure;
  };
  struct Member {
    size_t leaf = 0;
    // This backward's gradient has come; from take_gradients() on: there is a gradient to reduce.
    bool reached = false;
    bool old = false;       // Includes the gradient from before this backward.
    bool timed = false;     // Is in the bucket's times.
    Tensor wide;            // The gradient in float32.
    Values as_accumulated;  // The gradient that `wide` belongs to.
    Tensor sent;            // What is reduced, in place.
    Tensor before;          // a gradient that is the same on all ranks already
  };
  struct Bucket {
    std::vector<Member> members;
    int waits = 0;  // leaves that this backward has still to reach
    bool launched = false;
    Work work;
    std::shared_ptr<MemberReport> report;
    BucketTimeline times;
    size_t stalling = 0;  // leaf
  };
  // What the plan depends on, and what all ranks must agree on.
  struct Trainable {
    std::vector<size_t> frozen;  // leaves
    uint64_t hash = 0;           // of their names
    uint64_t layout = 0;         // of all leaves' dtypes, devices and sizes: to() changes them
    bool operator==(const Trainable&) const = default;
  };

  // The address by which observers of the graph know a bucket.
  const void* known_as(const Bucket& b) const {
    return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(this) +
                                         static_cast<uintptr_t>(&b - buckets_.data()));
  }

  void set_leaves(size_t unit, const std::vector<NamedLeaf>& leaves);
  void drop_removed();  // leaves of units that have gone

  // A backward: gradient_backward.cc.
  void begin_backward(autograd::GraphTask& task);
  void on_leaf_in_graph(size_t leaf, autograd::GraphTask& task);
  void note_unsynchronised(Leaf& leaf) const;
  void check_unsynchronised(const Leaf& leaf) const;
  bool is_weighted() const;
  double rows() const;  // of this backward
  void on_gradient_ready(size_t leaf, const Tensor& gradient);
  bool adds_unrounded() const;
  ScalarType wire_dtype(const Leaf& leaf) const;
  void on_unrounded_sum(size_t leaf, const Tensor& sum, const Tensor& rounded);
  static Tensor place_of(const Leaf& leaf);
  void on_accumulated(size_t leaf);
  void begin_buckets(bool with_sync);
  Member* member_of(size_t leaf);
  void take_gradients(Bucket& bucket);  // what this rank contributes
  void check_taken(const Leaf& leaf) const;
  void give_own_memory(Member& member) const;
  void launch_bucket(Bucket& bucket, size_t index, bool fresh);  // fresh: only of this backward
  bool may_grow(const Bucket& bucket) const;
  void launch_ready_buckets();  // while the backward runs: if this reducer leads
  // A leaf of which all ranks have a gradient now, for its unit's hooks.
  struct Synchronised {
    size_t unit;
    std::string name;
    Tensor leaf;
  };
  void on_backward_ended(bool failed);
  std::vector<Synchronised> finish_backward(bool failed);
  void run_hooks(const std::vector<Synchronised>& leaves);
  // Note [Step timeline]: step_timeline.cc.
  double seconds_at(Clock::time_point t) const;  // since the backward began
  void on_last_contribution(size_t leaf, size_t parts);
  void record_gradient_time(Bucket& bucket, Member& member);
  void wait_for(Bucket& bucket) const;
  void restore_gradients(Bucket& bucket);
  void store_reduced(Bucket& bucket, std::vector<std::string>& unused,
                     std::vector<Synchronised>& synchronised);
  double divisor_before() const;
  double divisor_after(const MemberReport& report) const;

  Trainable trainable() const;
  void publish_trainable();
  std::string disagreement() const;
  [[noreturn]] void explain(const std::exception_ptr& error) const;
  void make_plan();
  void agree_on_order();

  const std::shared_ptr<ProcessGroup> group_;
  const int64_t number_;  // among the group's reducers
  const DdpOptions options_;
  CommStages stages_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Leaf>> leaves_;  // null: removed
  std::vector<Unit> units_;
  std::vector<std::string> unused_;
  StepTimeline last_step_;
  uint64_t forwards_ = 0;
  struct UnitHook {
    size_t unit;
    unsigned id;
    std::shared_ptr<const PostSyncHook> call;
  };
  std::vector<UnitHook> hooks_;  // in order of registration
  unsigned last_hook_ = 0;

  // The plan.
  std::vector<size_t> order_;  // all leaves, the first to be reduced first
  std::vector<std::vector<size_t>> plan_;
  Trainable planned_, published_;
  std::string key_;  // in the group's store
  bool stored_ = false, agreed_ = false;

  // join()
  bool joining_ = false, by_active_ = false, throw_early_ = false, shadow_ = false;
  int64_t steps_ = 0;

  // The state of the current backward.
  autograd::GraphTask* task_ = nullptr;
  bool syncing_ = false, leads_ = false;
  Clock::time_point began_;
  size_t next_ = 0;
  std::vector<Bucket> buckets_;
  std::vector<size_t> completed_;
};

}  // namespace ramet::distributed::detail
