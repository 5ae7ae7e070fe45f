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
#pragma once
#include <mutex>
#include <set>
#include <vector>

#include "parallel/distributed/shard_group_internal.h"

namespace ramet::distributed::detail {

class ShardContext : public std::enable_shared_from_this<ShardContext> {
 public:
  /// Recursive: hooks on gradients, which run under it, may use the module.
  std::recursive_mutex mutex;

  /// All groups of `other`, which they alone may own, become this one's.
  void adopt(std::shared_ptr<ShardContext> other);
  void add(ShardGroup* group) { groups_.push_back(group), root_ = group; }
  void forget(const ShardGroup* group);

  /// Around a forward that uses the group. The last one entered is left first; it has failed, too,
  /// where an exception leaves it.
  void enter(ShardGroup& group);
  void leave(bool failed = false);
  /// A backward needs the group's values.
  void needed(ShardGroup& group);
  void begun(ShardGroup& group, autograd::GraphTask& task);
  /// All its gradients of this backward have come.
  void complete(ShardGroup& group);
  bool runs(const autograd::GraphTask* task) const { return task && task == task_; }

 private:
  struct Entry {
    ShardGroup* group;
    int exceptions;
  };
  bool reshards(const ShardGroup& group) const;
  void begin(autograd::GraphTask& task);
  void advance();
  void gather_used_after(const ShardGroup& group);
  void end(bool failed);
  void reduce_all(const std::vector<ShardGroup*>& reduced) const;

  std::vector<ShardGroup*> groups_;
  ShardGroup* root_ = nullptr;  // the outermost
  // Forward.
  std::vector<Entry> running_;
  std::vector<ShardGroup*> sequence_, last_sequence_;  // of this outermost forward, of the last one
  std::vector<ShardGroup*> history_;  // used with gradients since the last backward, each once
  uint64_t uses_ = 0;                 // begun and ended
  // Of the backward that runs.
  autograd::GraphTask* task_ = nullptr;
  bool reducing_ = false;
  std::vector<ShardGroup*> gathers_, reductions_;
  size_t next_gather_ = 0, next_reduction_ = 0;
  std::set<const ShardGroup*> reached_, complete_;
  ShardGroup* in_flight_ = nullptr;
};

}  // namespace ramet::distributed::detail
