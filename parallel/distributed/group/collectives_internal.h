// The algorithms, each over the channel of one operation: Note [Collectives].
#pragma once
#include <functional>
#include <vector>

#include "parallel/distributed/group/combine_internal.h"
#include "parallel/distributed/group/operand_internal.h"

namespace ramet::distributed::detail {

/// One member of a message: its position, and which ranks contribute to it.
struct Member {
  int64_t offset, numel;         // in elements, from the message's start
  std::vector<bool> present_on;  // [rank]
};

/// Reduces `elements` at `place` over all ranks, in place. Each member is reduced over the ranks
/// that have it; members that no rank has stay as they are. If it fails, the memory is as before
/// where `undo` is true. Else it is undefined, which saves a copy. `members` is called once, after
/// the first messages were sent.
void reduce_everywhere(Channel& channel, const Reduction& reduction, char* place, int64_t elements,
                       const std::function<std::vector<Member>()>& members, bool undo);
/// The same, but only `root` gets the result.
void reduce_to(Channel& channel, const Reduction& reduction, const char* from, int64_t elements,
               int root, const std::function<void(const char*)>& commit);
/// Sends the root's bytes to each other rank. They arrive in staging memory, or at `landing` where
/// that is not null.
void broadcast_from(Channel& channel, int root, const char* from, size_t bytes, char* landing,
                    const std::function<void(const char*)>& commit);

}  // namespace ramet::distributed::detail
