// Process groups with threads as ranks.
#include <future>
#include <thread>

#include "tests/parallel/distributed/group/group_cases.h"

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

// Survivors learn of a second one's end at different times.
TEST(LocalGroups, RegroupAfterTriesInVain) {
  std::promise<void> over;
  const std::shared_future<void> end = over.get_future().share();
  with_groups(4, seconds(60), [&](const Group& g) {
    if (g->rank() == 3) return g->abort("Badness!");
    error_of([&] { g->barrier().wait(); });
    if (g->rank() == 2) return end.wait();  // does not come any more
    GroupOptions soon, late;
    soon.timeout = Milliseconds(200);
    late.timeout = seconds(20);
    if (g->rank() == 0) {
      EXPECT_ERROR_TEXT(g->regroup({0, 1, 2}, soon),
                        "Timeout: of the ranks 0,1,2 these did not come: ranks 1, 2");
      EXPECT_ERROR_TEXT(g->regroup({1, 0}, soon), "these did not come");
    }
    for (int again = 0; again < 2; ++again) {
      const Group rest = g->regroup({0, 1}, late);
      Tensor t = ones({2});
      rest->all_reduce(t).wait();
      EXPECT_EQ(t[0].item<float>(), 2);
    }
    if (g->rank() == 0) over.set_value();
  });
}

TEST(LocalGroups, WithoutADeadline) {
  with_groups(2, Milliseconds::max(), [](const Group& g) {
    if (g->rank() == 1) std::this_thread::sleep_for(Milliseconds(50));
    CollectiveOptions o;
    o.timeout = Milliseconds::max();
    const Work work = g->barrier(o);
    EXPECT_TRUE(work.wait_for(Milliseconds::max()));
  });
}

}  // namespace ramet::distributed
