// Process groups over Gloo, all ranks in this process: the cases of inproc_threads_test.cc.
#include "tests/parallel/distributed/group_cases.h"

namespace ramet::distributed {

void with_groups(int ranks, Milliseconds timeout, const Body& body) {
  const auto store = std::make_shared<MemoryStore>();
  GroupOptions o;
  o.timeout = timeout;
  as_ranks(ranks, [&](int rank) {
    const Group mine = make_group({store, rank, ranks, rank, "127.0.0.1"}, o);
    EXPECT_STREQ(mine->backend(), "gloo");
    body(mine);
  });
}

}  // namespace ramet::distributed
