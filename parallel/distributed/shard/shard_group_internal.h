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

/// The gradient edge of a full parameter; its group is the bucket.
class ShardEdge final : public autograd::Node {
 public:
  ShardEdge(ShardGroup* group, size_t unit, size_t member);
  ~ShardEdge() override;
  std::string name() const override;
  autograd::RawEdge* edges() override { return &next_; }
  /// Outside of a reduction (autograd::grad): this rank's own gradient of its shard.
  void apply(Tensor* in, Tensor* out) override;
  Tensor destination(uint32_t slot) override;
  autograd::ReduceBucket* bucket() override;

  void lead_to(const Tensor& shard);

 private:
  friend class ShardGroup;
  autograd::RawEdge next_;
  ShardGroup* group_;  // null: gone
  const size_t unit_, member_;
};

/// Gathers and reductions are queued separately: how they follow one another may differ from rank
/// to rank.
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

/// Part of a flat tensor, from the element `offset`, with a storage of its own.
Tensor piece_of(const Tensor& flat, int64_t offset, IntArrayRef sizes);

class ShardGroup final : public autograd::ReduceBucket,
                         public std::enable_shared_from_this<ShardGroup> {
 public:
  struct Member {
    std::string name;
    Tensor full;        // the module's member
    Tensor shard;       // what is registered
    StorageRef absent;  // the memory of `full` while it is sharded; counts its versions
    autograd::NodePtr edge;
    std::vector<std::pair<nn::Module*, std::string>> places;
    uint32_t gathered_version = 0, written_version = 0;  // of the shard, of `full`
    Tensor place;                                        // of the gradient, in the unit's flat ones
    bool reached = false;                                // by the backward that runs
    bool collected = false;                              // by one without synchronisation
    bool summed = false;                                 // by one without all-reduce
  };
  /// Parameters of one dtype that all want a gradient, or none of them.
  struct Unit {
    std::vector<Member> members;
    ShardLayout layout;
    ScalarType dtype = kFloat;
    Device device{kCPU, 0};
    Tensor flat;  // gathered, or on its way
    Work gathering;
    Tensor gradients, collected;  // flat, full
    Tensor piece, summed;         // of the sum
    Work reducing;
    bool trainable() const;
    /// [n], of its dtype, on its device.
    Tensor zeros(int64_t n) const;
    /// Each rank's piece of `flat`.
    std::vector<Tensor> pieces(const Tensor& flat, int ranks) const;
    /// Where the gradient of a member goes, in `gradients`; made when it is first asked for.
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
  /// To gather beside this one, in this order; none: as the last forward was.
  std::vector<ShardGroup*> forward_prefetch, backward_prefetch;
  bool sync = true, all_reduce = true;
  bool held = false;  // by unshard()
  int uses = 0;       // forwards that run
  // When the first one of the history began, and the last one ended, as the context counts.
  uint64_t first_use = 0, last_use = 0;

  // Values. All of it under the context's lock.
  ShardState state() const { return state_; }
  /// Begins to gather, unless that was begun and the shards have not changed since.
  void launch_gather();
  /// Waits for it; members have their values.
  void finish_gather();
  void reshard();
  /// Begins to gather a unit's shards into `flat`, which has room for all of them.
  Work gather(const Unit& unit, const Tensor& flat, const char* what) const;
  /// The first parameter whose shard was changed since it was gathered last; null: none.
  const Member* changed() const;
  /// Grows with each write to a shard.
  uint64_t writes() const;
  /// Members follow requires_grad of their shards.
  void follow_requires_grad();
  /// Somebody asks for values that are not here.
  void on_absent_values_read(const std::string& parameter);

  // Gradients: shard_gradients.cc.
  std::vector<Tensor> reduce(const std::vector<std::pair<autograd::Node*, std::vector<Tensor>>>& in,
                             autograd::GraphTask& task) override;
  void on_backward_begun(autograd::GraphTask& task) override;
  Tensor gradient_place(size_t unit, size_t member);
  bool may_grow(autograd::GraphTask& task) const;  // may a backward inside it come with more?
  bool reduces() const;        // is there anything to reduce when it is synchronised?
  void keep_unsynchronised();  // no synchronisation: keeps what has come
  void launch_reduction();
  void finish_reduction();
  /// For each member that is reduced, in order: has this rank a part in it?
  void add_presence(std::vector<bool>& present) const;
  /// What a shard gets.
  struct Reduced {
    autograd::NodePtr leaf;
    Tensor gradient;
  };
  /// As many entries, of what all ranks have together: appends what has come of them.
  void take_reduced(const bool* present, std::vector<Reduced>& out);
  void drop_gradients();

 private:
  ShardGroup(const ShardLanes& l, const FullyShardOptions& o);
  void shard_values(Unit& unit);
  void drop_zeroed(Unit& unit);
  std::string named(const char* what, const Unit& unit) const;
  ShardState state_ = ShardState::sharded;
  bool all_reducing_ = true;  // all_reduce, when the reduction began
};

/// The group that fully_shard made for this very module; null where it was not called.
std::shared_ptr<ShardGroup> shard_group_of(const nn::Module& module);

}  // namespace ramet::distributed::detail
