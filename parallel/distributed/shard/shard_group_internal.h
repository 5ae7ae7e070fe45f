// The memory of one group of sharded parameters: Note [Fully sharded modules].
#pragma once
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "autograd/graph/graph_task.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "parallel/distributed/shard/shard_layout_internal.h"
#include "runtime/tensor/storage_ref.h"

namespace ramet::distributed::detail {

class ShardContext;
class ShardGroup;

/// The gradient edge of a full parameter. The group is its bucket.
class ShardEdge final : public autograd::Node {
 public:
  ShardEdge(ShardGroup* group, size_t unit, size_t member);
  ~ShardEdge() override;
  std::string name() const override;
  autograd::RawEdge* edges() override { return &next_; }
  /// Outside of a reduction (autograd::grad): returns this rank's own gradient of its shard.
  void apply(Tensor* in, Tensor* out) override;
  Tensor destination(uint32_t slot) override;
  autograd::ReduceBucket* bucket() override;

  void lead_to(const Tensor& shard);

 private:
  friend class ShardGroup;
  autograd::RawEdge next_;
  ShardGroup* group_;  // null: the group is gone
  const size_t unit_, member_;
};

/// Gathers and reductions have separate queues: their relative order may differ from rank to rank.
struct ShardLanes {
  std::shared_ptr<ProcessGroup> gather, reduce;
  std::shared_ptr<ProcessGroup> outer;  // between replicas; null: there are none
  int ranks() const { return gather->size() * (outer ? outer->size() : 1); }
  void abort(const std::string& reason) const;
};

/// A parameter to shard, and where it is registered.
struct FoundParameter {
  std::string name;
  Tensor tensor;
  std::vector<std::pair<nn::Module*, std::string>> places;
};

/// The part of a flat tensor that begins at element `offset`, with a storage of its own.
Tensor piece_of(const Tensor& flat, int64_t offset, IntArrayRef sizes);

class ShardGroup final : public autograd::ReduceBucket,
                         public std::enable_shared_from_this<ShardGroup> {
 public:
  struct Member {
    std::string name;
    Tensor full;        // the module's member
    Tensor shard;       // the registered parameter
    StorageRef absent;  // the memory of `full` while it is sharded; counts its versions
    autograd::NodePtr edge;
    std::vector<std::pair<nn::Module*, std::string>> places;
    uint32_t gathered_version = 0, written_version = 0;  // Of the shard, of `full`.
    Tensor place;                                        // Of the gradient, in the unit's flat
                                                         // gradients.
    bool reached = false;                                // By the current backward.
    bool collected = false;                              // by a backward without synchronisation
    bool summed = false;                                 // by a backward without all-reduce
  };
  /// Parameters of one dtype, either all with requires_grad or all without.
  struct Unit {
    std::vector<Member> members;
    ShardLayout layout;
    // Of the shards and their gradients; of the gathered values and theirs; of the reduction.
    ScalarType dtype = kFloat, gathered_dtype = kFloat, reduced_dtype = kFloat;
    Device device{kCPU, 0};
    Tensor flat;  // gathered, or being gathered
    Work gathering;
    Tensor gradients, collected;  // flat, full
    Tensor piece, summed;         // of the sum
    Work reducing;
    bool trainable() const;
    /// Zeros of shape [n] on its device.
    Tensor zeros(int64_t n, ScalarType its_dtype) const;
    /// Bytes of an element of the narrowest of its dtypes.
    int64_t narrowest_item() const;
    /// Each rank's piece of `flat`.
    std::vector<Tensor> pieces(const Tensor& flat, int ranks) const;
    /// The memory in `gradients` for a member's gradient; made when it is first asked for.
    const Tensor& place(size_t member);
  };

  static std::shared_ptr<ShardGroup> make(const ShardLanes& lanes, const FullyShardOptions& options,
                                          std::vector<FoundParameter> found);
  ~ShardGroup() override;

  std::vector<Unit> units;
  const ShardLanes lanes;
  const FullyShardOptions options;
  std::shared_ptr<ShardContext> context;
  std::optional<bool> reshard_after_forward;
  bool reshard_after_backward = true, unshard_in_backward = true;
  /// The groups to gather concurrently with this one, in this order; empty: as in the last forward.
  std::vector<ShardGroup*> forward_prefetch, backward_prefetch;
  bool sync = true, all_reduce = true;
  bool held = false;  // by unshard()
  int uses = 0;       // running forwards
  // When the first use in the history began, and the last one ended, as the context counts.
  uint64_t first_use = 0, last_use = 0;

  // Values. The caller of each holds the context's lock.
  ShardState state() const { return state_; }
  /// Begins to gather, unless a gather has begun and the shards have not changed since.
  void launch_gather();
  /// Waits for the gather; then members have their values.
  void finish_gather();
  void reshard();
  /// Begins to gather a unit's shards into `flat`, which must hold all of them.
  Work gather(const Unit& unit, const Tensor& flat, const char* what) const;
  /// The first parameter with a shard that was changed since it was last gathered; null: none.
  const Member* changed() const;
  /// Increases with each write to a shard.
  uint64_t writes() const;
  /// Members follow requires_grad of their shards.
  void follow_requires_grad();
  /// Called when code reads values that are not gathered.
  void on_absent_values_read(const std::string& parameter);

  // Gradients: shard_gradients.cc.
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask& task) override;
  void on_backward_begun(autograd::GraphTask& task) override;
  Tensor gradient_place(size_t unit, size_t member);
  bool may_grow(autograd::GraphTask& task) const;  // may an inner backward bring more?
  bool reduces() const;        // is there anything to reduce with synchronisation on?
  void keep_unsynchronised();  // without synchronisation: keeps what has come
  void launch_reduction();
  void finish_reduction();
  /// Appends, for each member that is reduced, in order: does this rank contribute to it?
  void add_presence(std::vector<bool>& present) const;
  /// The gradient that a shard gets.
  struct Reduced {
    autograd::NodePtr leaf;
    Tensor gradient;
  };
  /// `present`: the same entries, combined over all ranks. Appends the gradients that have
  /// resulted.
  void take_reduced(const bool* present, std::vector<Reduced>& out);
  void drop_gradients();

 private:
  ShardGroup(const ShardLanes& l, const FullyShardOptions& o);
  void add(FoundParameter found);
  void replace_by_shard(size_t unit, size_t member);
  void shard_values(Unit& unit);
  void drop_zeroed(Unit& unit);
  Tensor combined(const Unit& unit, Tensor sum) const;
  std::string named(const char* what, const Unit& unit) const;
  ShardState state_ = ShardState::sharded;
  bool all_reducing_ = true;  // the value of all_reduce when the reduction began
};

/// The group that fully_shard made for exactly this module; null if it was not called on it.
std::shared_ptr<ShardGroup> shard_group_of(const nn::Module& module);

}  // namespace ramet::distributed::detail
