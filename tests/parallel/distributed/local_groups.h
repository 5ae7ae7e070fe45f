// with_groups for tests whose ranks are threads.
#pragma once
#include <utility>

#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

inline void with_groups(int ranks, Milliseconds timeout, const Body& body) {
  GroupOptions o;
  o.timeout = timeout;
  auto groups = make_local_groups(ranks, o);
  as_ranks(ranks, [&](int rank) {
    const Group mine = std::move(groups[static_cast<size_t>(rank)]);
    body(mine);
  });
}
inline void with_groups_of(int ranks, const Body& body) { with_groups(ranks, seconds(60), body); }

}  // namespace ramet::distributed
