#include <cstdlib>
#include <random>

#include "autograd/ops.h"
#include "tests/fuzz.h"
#include "tests/parallel/distributed/processes.h"

namespace ramet::distributed {

using std::chrono::seconds;

void kill_in_the_middle(int rounds, bool share) {
  fuzz::announce(rounds);
  std::mt19937_64 random(fuzz::seed() + 19);
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Ranks ranks;
    ranks.start(3, [share](int rank, const std::string& url, Shared& shared) {
      setenv("RAMET_SHARED_MEMORY", share ? "1" : "0", 1);
      const auto group = init_process_group(url, within(seconds(60)));
      const Tensor mine = full({2 << 20}, rank + 1.0), sum = full({2 << 20}, 6.0);
      group->barrier().wait();
      for (;;) {
        Tensor t = mine.clone();
        ++shared.step;
        try {
          group->all_reduce(t).wait();
          if (!t.equal(sum)) return 1;
        } catch (const CommLost& e) {
          if (!t.equal(mine)) return 2;
          if (e.ranks() != std::vector<int>{1}) return 3;
          break;
        }
      }
      const auto rest = group->regroup({0, 2}, within(seconds(60)));
      Tensor t = mine.clone();
      rest->all_reduce(t).wait();
      if (!t.equal(full({2 << 20}, 4.0))) return 4;
      if ((rest->shared_bytes() != 0) != share) return 5;
      rest->barrier().wait();
      return 0;
    });
    ASSERT_TRUE(Ranks::wait_until([&] { return ranks.shared().step >= 3; }));
    usleep(static_cast<useconds_t>(random() % 30000));
    ranks.signal(1, SIGKILL);
    EXPECT_EQ(ranks.finish(0), 0);
    EXPECT_EQ(ranks.finish(2), 0);
    EXPECT_EQ(ranks.finish(1), 128 + SIGKILL);
  }
}

}  // namespace ramet::distributed
