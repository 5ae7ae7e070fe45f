// What groups of one tree of modules do together: their order, prefetch, and the backward.
//
// Note [Order of sharded groups]
// Gathers of a backward are begun in one order on all ranks: the reverse of that in which the
// forwards since the last backward used the groups. Whoever needs a group begins those before it,
// too, and the end of the backward those that nobody on this rank needed, because other ranks may
// wait for them. Reductions begin in the same order, on a queue of their own; a group that this
// backward does not reach takes part with zeros. Before a rank waits for a reduction it has begun
// the gathers that another one may need to get there: those of groups that were used after it, or
// around it. Which parameters any rank had is one small exchange at the end.
//
// Lists of modules to gather ahead change that order, in the same way on all ranks: behind a group
// come those of its list, and who begins a group begins them, too.
//
// A backward that is not the last one ends without waiting for the reduction under way and that
// exchange. They are waited for, and the shards get their gradients, before the next backward does
// anything with the groups: all gathers that another rank may need to get there have begun when a
// backward ends, and what lies between two backwards begins nothing on the queue of reductions.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "parallel/distributed/shard/shard_group_internal.h"

namespace ramet::distributed::detail {

class ShardContext : public std::enable_shared_from_this<ShardContext> {
 public:
  /// Recursive: hooks on gradients, which run under it, may use the module.
  std::recursive_mutex mutex;

  /// All groups of `other`, which they alone may own, become this one's. It is settled.
  void adopt(std::shared_ptr<ShardContext> other);
  void add(ShardGroup* group) { groups_.push_back(group), root_ = group; }
  void forget(const ShardGroup* group);

  /// Around a forward that uses the group. The last one entered is left first; it has failed, too,
  /// where an exception leaves it.
  void begin_forward(ShardGroup& group);
  void end_forward(bool failed = false);
  /// A backward needs the group's values.
  void on_values_needed(ShardGroup& group);
  void on_backward_begun(ShardGroup& group, autograd::GraphTask& task);
  /// All its gradients of this backward have come.
  void on_gradients_complete(ShardGroup& group);
  /// Is `task` the backward that runs, or inside it?
  bool is_running(const autograd::GraphTask* task) const {
    return task && task_ && task->within(*task_);
  }

  bool is_last_backward = true;
  /// Waits for what backwards that were not the last one have left, and gives it to the shards.
  void settle();

 private:
  // A group whose reduction is under way since the last backward.
  struct Pending {
    ShardGroup* group;
    size_t first;     // of its members' entries in flags_
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
  std::vector<ShardGroup*> sequence_, last_sequence_;  // of this outermost forward, of the last one
  std::vector<ShardGroup*> history_;  // used with gradients since a last backward, each once
  uint64_t uses_ = 0;                 // begun and ended
  // Of the backward that runs.
  autograd::GraphTask* task_ = nullptr;
  bool reducing_ = false;
  std::vector<ShardGroup*> gathers_, reductions_, reduced_;
  size_t next_gather_ = 0, next_reduction_ = 0;
  std::map<const ShardGroup*, int> open_;  // backwards that have still to bring what they reach
  ShardGroup* in_flight_ = nullptr;
  // After it.
  std::vector<Pending> pending_;
  Tensor flags_;  // has this rank a part in the gradient of the member?
  Work used_;
};

}  // namespace ramet::distributed::detail
