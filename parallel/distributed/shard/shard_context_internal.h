// Coordinates the groups of one tree of modules: their order, prefetch, and the backward.
//
// Note [Order of sharded groups]
// Gathers of a backward begin in one order on all ranks. It is the reverse of the order in which
// the forwards since the last backward used the groups. A backward that needs a group also begins
// the groups before it. The end of a backward begins the groups that this rank did not need,
// because other ranks may wait for them. Reductions begin in the same order, on a queue of their
// own. A group that this backward does not reach takes part with zeros. Before a rank waits for a
// reduction, it begins the gathers that another rank may need to reach that reduction. These are
// the gathers of groups that were used after the reduction's group, or around it. One small
// exchange at the end finds out which parameters any rank had.
//
// Lists of modules to gather ahead change that order, in the same way on all ranks. The groups of a
// group's list follow that group, and a backward that begins the group begins them too.
//
// A backward that is not the last one ends without a wait for the reduction under way and for that
// exchange. The next backward waits for both, and gives the shards their gradients, before it uses
// the groups. This cannot deadlock. All gathers that another rank may need have begun when a
// backward ends. Nothing between two backwards begins an operation on the queue of reductions.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "parallel/distributed/shard/shard_group_internal.h"

namespace ramet::distributed::detail {

class ShardContext : public std::enable_shared_from_this<ShardContext> {
 public:
  /// Recursive: hooks on gradients, which run while it is held, may use the module.
  std::recursive_mutex mutex;

  /// Takes over all groups of `other`. It must be settled, and only its groups may own it.
  void adopt(std::shared_ptr<ShardContext> other);
  void add(ShardGroup* group) { groups_.push_back(group), root_ = group; }
  void forget(const ShardGroup* group);

  /// begin_forward() and end_forward() enclose a forward that uses the group. The last group
  /// entered is left first. An exception that leaves the forward counts as a failure too.
  void begin_forward(ShardGroup& group);
  void end_forward(bool failed = false);
  /// Called when a backward needs the group's values.
  void on_values_needed(ShardGroup& group);
  void on_backward_begun(ShardGroup& group, autograd::GraphTask& task);
  /// Called when all gradients of the group in this backward have come.
  void on_gradients_complete(ShardGroup& group);
  /// Is `task` the current backward, or inside it?
  bool is_running(const autograd::GraphTask* task) const {
    return task && task_ && task->within(*task_);
  }

  bool is_last_backward = true;
  /// Waits for what backwards that were not the last one have left under way, and gives the results
  /// to the shards.
  void settle();

 private:
  // A group with a reduction that is under way since the last backward.
  struct Pending {
    ShardGroup* group;
    size_t first;     // the first of its members' entries in flags_
    uint64_t writes;  // to its shards
  };
  struct Entry {
    ShardGroup* group;
    int exceptions;
  };
  bool reshards(const ShardGroup& group) const;
  void begin_backward(autograd::GraphTask& task);
  bool is_past(const ShardGroup& group) const;
  bool may_get_more(const ShardGroup& group);
  void advance_reductions(bool at_end = false);
  void plan_gathers();
  void gather_until(size_t end);
  void gather_used_after(const ShardGroup& group);
  void on_backward_ended(bool failed);
  void exchange_presence();
  void abort_groups(const char* reason);

  std::vector<ShardGroup*> groups_;
  ShardGroup* root_ = nullptr;  // the outermost
  // Forward.
  std::vector<Entry> running_;
  std::vector<ShardGroup*> sequence_, last_sequence_;  // Of the current forward and the last.
  std::vector<ShardGroup*> history_;  // Used with gradients since the last backward, each once.
  uint64_t uses_ = 0;                 // counts begins and ends
  // The state of the current backward.
  autograd::GraphTask* task_ = nullptr;
  bool reducing_ = false;
  std::vector<ShardGroup*> gathers_, reductions_, reduced_;
  size_t next_gather_ = 0, next_reduction_ = 0;
  std::map<const ShardGroup*, int> open_;  // backwards that have not delivered all gradients yet
  ShardGroup* in_flight_ = nullptr;
  // The state after a backward.
  std::vector<Pending> pending_;
  Tensor flags_;  // does this rank contribute to the gradient of the member?
  Work used_;
};

}  // namespace ramet::distributed::detail
