// The algorithms, over one operation's channel: Note [Collectives].
#pragma once
#include <functional>
#include <vector>

#include "parallel/distributed/group/combine_internal.h"
#include "parallel/distributed/group/operand_internal.h"

namespace ramet::distributed::detail {

/// Members of one message: what ranks contribute to each, and where it lies.
struct Member {
  int64_t offset, numel;         // in elements, from the message's start
  std::vector<bool> present_on;  // [rank]
};

/// Reduces `elements` at `place` over all ranks, in place, each member over the ranks that have it;
/// members of no rank stay as they are. Where it fails, the memory is as it was if `undo`,
/// undefined if not (which saves a copy). `members` is called once, after the first messages were
/// sent.
void reduce_everywhere(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                       const std::function<std::vector<Member>()>& members, bool undo);
/// The same, where only `root` wants it.
void reduce_to(Channel& channel, const Reduction& reduction, const char* from, int64_t elements,
               int root, const std::function<void(const char*)>& commit);
/// To each rank but the root: to memory of the library's own, or to `landing` where that is not
/// null.
void broadcast_from(Channel& channel, int root, const char* from, size_t bytes, char* landing,
                    const std::function<void(const char*)>& commit);

}  // namespace ramet::distributed::detail
