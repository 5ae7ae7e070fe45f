// Process groups over Gloo, all ranks in this process: the cases of inproc_threads_test.cc.
#include "tests/parallel/distributed/group/group_cases.h"

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

TEST(Gloo, TwoGroupsOfOneName) {
  const auto store = std::make_shared<MemoryStore>();
  GroupOptions o;
  o.timeout = seconds(60);
  as_ranks(2, [&](int rank) {
    const Group first = make_group({store, rank, 2, rank, "127.0.0.1"}, o);
    const Group second = make_group({store, rank, 2, rank, "127.0.0.1"}, o);
    Tensor t = ones({3});
    second->all_reduce(t).wait();
    first->all_reduce(t).wait();
    EXPECT_EQ(t[0].item<double>(), 4);
    second->barrier().wait();  // the other has its sum
    first->abort("only this one");
    EXPECT_THROW(first->barrier().wait(), CommAborted);
    second->barrier().wait();
  });
}

}  // namespace ramet::distributed
