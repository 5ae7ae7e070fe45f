// Runs of processes that save checkpoints and are killed; the test's own process starts no thread.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "tests/parallel/distributed/checkpoint/checkpoint_support.h"
#include "tests/parallel/distributed/processes.h"

namespace ramet::distributed {

/// Values that name the step, in parts and in whole.
inline std::vector<TensorPart> parts_at(int64_t step, int rank, int ranks) {
  return {part_of("sharded", numbered({300, 211}, kFloat, step), Spread::both, rank, ranks),
          part_of("alike", numbered({1 << 18}, kFloat, step + 1), Spread::whole, rank, ranks)};
}
inline void save_step(const std::shared_ptr<ProcessGroup>& g, const std::string& folder,
                      int64_t step, const SaveOptions& o = {}) {
  DistributedCheckpoint c(g);
  int64_t number = step;
  c.add_tensors("t", parts_at(step, g->rank(), g->size())).add("number", number);
  c.save(folder, step, o);
}
/// The step that is loaded, if all its values are right; -1: they are wrong; -2: there is none.
inline int64_t load_step(const std::shared_ptr<ProcessGroup>& g, const std::string& folder) {
  std::vector<TensorPart> mine = parts_at(0, g->rank(), g->size());
  for (TensorPart& p : mine) p = blank(p);
  int64_t number = -1;
  DistributedCheckpoint c(g);
  c.add_tensors("t", mine).add("number", number);
  const auto report = c.try_load(folder);
  if (!report) return -2;
  const auto expected = parts_at(report->step, g->rank(), g->size());
  bool right = number == report->step && report->passed_over.empty();
  for (size_t i = 0; i < mine.size(); ++i) right = right && mine[i].local.equal(expected[i].local);
  return right ? report->step : -1;
}
/// The same by one process that ends then.
inline int64_t step_in(const std::string& folder) {
  Ranks ranks;
  ranks.start(1, [&](int, const std::string&, Shared& shared) {
    shared.done = static_cast<int>(load_step(make_local_groups(1)[0], folder));
    return 0;
  });
  EXPECT_EQ(ranks.finish(0), 0);
  return ranks.shared().done;
}
inline unsigned long setting(const char* name, unsigned long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoul(text, nullptr, 10) : otherwise;
}

/// Kills a random rank at a random moment of a run that saves all the time. The next run, with
/// another number of ranks, goes on from what the first left.
inline void killed_at_any_moment(unsigned long default_rounds) {
  const unsigned long seed = setting("RAMET_SEED", 3),
                      rounds = setting("RAMET_ROUNDS", default_rounds);
  std::mt19937 random(static_cast<unsigned>(seed));
  TempFolder folder;
  const std::string c = folder.path("c");
  int64_t last = -2;  // the last step that is there
  int in_a_save = 0;
  for (unsigned long round = 0; round < rounds; ++round) {
    const int n = 1 + static_cast<int>(round % 3);
    Ranks ranks;
    ranks.start(n, [&](int rank, const std::string& url, Shared& shared) {
      const auto g = init_process_group(url, within(std::chrono::seconds(60)));
      int64_t step = load_step(g, c);
      if (step != last) return 1;
      try {
        for (step = std::max<int64_t>(step, 0);;) {
          ++step;
          if (rank == 0) shared.step = static_cast<int>(step);
          save_step(g, c, step);
          if (rank == 0) shared.done = static_cast<int>(step);
        }
      } catch (const CommLost&) { return 0; }
    });
    ASSERT_TRUE(Ranks::wait_until([&] { return ranks.shared().step > 0; }));
    usleep(static_cast<useconds_t>(random() % 250000));
    const int victim = static_cast<int>(random() % static_cast<unsigned>(n));
    ranks.signal(victim, SIGKILL);
    EXPECT_EQ(ranks.finish(victim), 128 + SIGKILL);
    for (int i = 0; i < n; ++i) {
      if (i != victim) { EXPECT_EQ(ranks.finish(i), 0); }
    }
    const int64_t begun = ranks.shared().step, done = ranks.shared().done, found = step_in(c);
    EXPECT_GE(found, done ? done : last) << "round " << round;
    EXPECT_LE(found, begun) << "round " << round;
    in_a_save += begun > done;
    last = found;
  }
  EXPECT_GT(in_a_save, 0);
  std::printf("RAMET_SEED=%lu RAMET_ROUNDS=%lu: %d killed in a save, the last step is %lld\n", seed,
              rounds, in_a_save, static_cast<long long>(last));
}

}  // namespace ramet::distributed
