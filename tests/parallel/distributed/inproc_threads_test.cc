// Process groups whose ranks are threads.
#include "tests/parallel/distributed/group_cases.h"

namespace ramet::distributed {

void with_groups(int ranks, Milliseconds timeout, const Body& body) {
  GroupOptions o;
  o.timeout = timeout;
  auto groups = make_local_groups(ranks, o);
  as_ranks(ranks, [&](int rank) {
    // The thread's own: what it destroys is gone.
    const Group mine = std::move(groups[static_cast<size_t>(rank)]);
    EXPECT_STREQ(mine->backend(), "inproc");
    body(mine);
  });
}

TEST(LocalGroups, Sizes) {
  EXPECT_NE(error_of([] { make_local_groups(0); }), "no error");
  EXPECT_EQ(make_local_groups(5).size(), 5u);
}

// More ranks than the kernel has operands.
TEST(LocalGroups, SumsOverManyRanks) {
  constexpr int kRanks = 19;
  std::vector<Tensor> parts;
  for (int i = 0; i < kRanks; ++i) parts.push_back(numbers_of(i, 100));
  with_groups(kRanks, seconds(100), [&](const Group& g) {
    Tensor t = numbers_of(g->rank(), 100);
    g->all_reduce(t).wait();
    EXPECT_TRUE(same_bits(t, summed(parts, false)));
  });
}

}  // namespace ramet::distributed
