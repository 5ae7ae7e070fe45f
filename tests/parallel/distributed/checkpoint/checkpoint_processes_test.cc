// Checkpoints of processes over Gloo; some processes are killed while they save. This process
// starts no thread, so that its children may.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "nn/functional/functional.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/serialize/save.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/checkpoint/checkpoint_kills.h"

namespace ramet::distributed {
namespace {

using std::chrono::seconds;

TEST(CheckpointProcesses, SavedByTwoLoadedByThree) {
  TempFolder folder;
  const std::string c = folder.path("c");
  Ranks savers, loaders;
  savers.start(2, [&](int, const std::string& url, Shared&) {
    save_step(init_process_group(url, within(seconds(60))), c, 5);
    return 0;
  });
  for (int i = 0; i < 2; ++i) ASSERT_EQ(savers.finish(i), 0);
  loaders.start(3, [&](int, const std::string& url, Shared&) {
    return static_cast<int>(load_step(init_process_group(url, within(seconds(60))), c));
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loaders.finish(i), 5);
}

// kill -9 at the beginning of each stage, on each rank that has it. The survivor gets an error. The
// folder holds the step before until the manifest is in place, and the new one from then on.
TEST(CheckpointProcesses, KilledAtEveryStage) {
  struct At {
    int rank;
    const char* stage;
    int64_t expected;
  };
  for (const At& at : {At{1, "data", 1}, At{1, "data written", 1}, At{1, "data in place", 1},
                       At{0, "data", 1}, At{0, "data written", 1}, At{0, "data in place", 1},
                       At{0, "manifest", 1}, At{0, "manifest written", 1}, At{0, "committed", 2},
                       At{0, "removing", 2}, At{0, "removed", 2}}) {
    SCOPED_TRACE(std::string("rank ") + std::to_string(at.rank) + " killed at " + at.stage);
    TempFolder folder;
    const std::string c = folder.path("c");
    Ranks ranks;
    ranks.start(2, [&](int rank, const std::string& url, Shared&) {
      const auto g = init_process_group(url, within(seconds(60)));
      SaveOptions o;
      o.keep = 1;
      save_step(g, c, 1, o);
      o.at = [&](const std::string& stage) {
        if (rank == at.rank && stage == at.stage) raise(SIGKILL);
      };
      try {
        save_step(g, c, 2, o);
        return 1;
      } catch (const CommLost& e) { return e.ranks() == std::vector<int>{at.rank} ? 0 : 2; }
    });
    EXPECT_EQ(ranks.finish(at.rank), 128 + SIGKILL);
    EXPECT_EQ(ranks.finish(1 - at.rank), 0);
    EXPECT_EQ(step_in(c), at.expected);
    // The next save leaves nothing of it.
    Ranks more;
    more.start(1, [&](int, const std::string& url, Shared&) {
      SaveOptions o;
      o.keep = 1;
      save_step(init_process_group(url, within(seconds(60))), c, 3, o);
      return 0;
    });
    EXPECT_EQ(more.finish(0), 0);
    EXPECT_EQ(step_in(c), 3);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(c), {}), 2);
  }
}

TEST(CheckpointProcesses, KilledAtAnyMoment) { killed_at_any_moment(12); }

// The survivors of a save make a group of their own, without starting again, and go on from the
// checkpoint before.
TEST(CheckpointProcesses, SurvivorsGoOn) {
  TempFolder folder;
  const std::string c = folder.path("c");
  Ranks ranks;
  ranks.start(3, [&](int rank, const std::string& url, Shared&) {
    const auto g = init_process_group(url, within(seconds(60)));
    save_step(g, c, 1);
    SaveOptions o;
    o.at = [&](const std::string& stage) {
      if (rank == 1 && stage == "data in place") raise(SIGKILL);
    };
    try {
      save_step(g, c, 2, o);
      return 1;
    } catch (const CommLost&) {}
    const auto rest = g->regroup({0, 2}, within(seconds(60)));
    if (load_step(rest, c) != 1) return 2;
    save_step(rest, c, 3);
    return load_step(rest, c) == 3 ? 0 : 3;
  });
  EXPECT_EQ(ranks.finish(0), 0);
  EXPECT_EQ(ranks.finish(2), 0);
  EXPECT_EQ(ranks.finish(1), 128 + SIGKILL);
}

// Saves of two ranks, of which rank 1 runs into a full disk. Both get the same error, the folder is
// as before, and the group still works.
int into_a_full_disk(const std::shared_ptr<ProcessGroup>& g, const std::string& folder,
                     const std::string& said, const std::function<void(bool full)>& set_full) {
  SaveOptions o;
  o.keep = 1;
  save_step(g, folder, 1, o);
  const auto count = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  const auto before = count();
  set_full(true);
  const std::string error = error_of([&] { save_step(g, folder, 2, o); });
  set_full(false);
  g->barrier().wait();
  if (!contains(error, said)) {
    dprintf(STDERR_FILENO, "got: %s\nexpected: %s\n", error.c_str(), said.c_str());
    return 1;
  }
  if (count() != before) return 2;
  if (load_step(g, folder) != 1) return 3;
  save_step(g, folder, 3, o);
  return load_step(g, folder) == 3 ? 0 : 4;
}

TEST(CheckpointProcesses, AFileThatMayNotGrow) {
  TempFolder folder;
  Ranks ranks;
  ranks.start(2, [&](int rank, const std::string& url, Shared&) {
    signal(SIGXFSZ, SIG_IGN);
    return into_a_full_disk(init_process_group(url, within(seconds(60))), folder.path("c"),
                            "rank 1: [write_file] cannot write: got \"File too large\"",
                            [&](bool full) {
                              rlimit limit{};
                              getrlimit(RLIMIT_FSIZE, &limit);
                              limit.rlim_cur = full && rank == 1 ? 100000 : limit.rlim_max;
                              setrlimit(RLIMIT_FSIZE, &limit);
                            });
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// A small file system in memory, which another file fills.
TEST(CheckpointProcesses, AFullDisk) {
  TempFolder folder;
  std::filesystem::create_directory(folder.path("disk"));
  const int code = in_child([&] {
    if (unshare(CLONE_NEWNS | (geteuid() ? CLONE_NEWUSER : 0)) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder.path("disk").c_str(), "tmpfs", 0, "size=6m") != 0)
      return errno == 0 ? 255 : errno;
    const auto groups = make_local_groups(2);
    int codes[2] = {};
    as_ranks(2, [&](int rank) {
      const std::string filler = folder.path("disk") + "/filler";
      codes[rank] = into_a_full_disk(groups[static_cast<size_t>(rank)], folder.path("disk") + "/c",
                                     "[write_file] cannot write: got \"No space left on device\"",
                                     [&](bool full) {
                                       if (rank == 0 && !full) std::filesystem::remove(filler);
                                       if (rank == 0 && full) {
                                         std::ofstream out(filler, std::ios::binary);
                                         const std::string block(4096, 'x');
                                         while (out.write(block.data(), 4096).flush()) {}
                                       }
                                       groups[static_cast<size_t>(rank)]->barrier().wait();
                                     });
    });
    return codes[0] || codes[1] ? 200 + codes[0] + 10 * codes[1] : 0;
  });
  if (code > 0 && code < 200)
    GTEST_SKIP() << "no file system of a few MiB may be mounted here: " << std::strerror(code);
  EXPECT_EQ(code, 0);
}

// Data-parallel training with everything that has state: batch statistics, dropout's random
// numbers, moments, a schedule.
struct Training {
  explicit Training(const std::shared_ptr<ProcessGroup>& g) : group(g) {
    manual_seed(7);  // the data
    x = randn({32, 6});
    y = randint(0, 3, {32}, kLong);
    manual_seed(1);
    DdpOptions o;
    o.order = ReduceOrder::tree(4);
    o.batch = Batch::whole;
    o.average = Average::sum;
    ddp = std::make_unique<DistributedDataParallel<nn::Sequential>>(model, g, o);
    adam = std::make_unique<optim::AdamW>(model->parameters(), optim::AdamWOptions(0.01));
    schedule = std::make_unique<optim::CosineAnnealingLR>(*adam, 12);
  }
  DistributedCheckpoint checkpoint() {
    DistributedCheckpoint c(group);
    c.add("model", *model).add("adam", *adam, *model).add("schedule", *schedule).add("step", step);
    c.add_plan("plan", *ddp);
    return c;
  }
  void run(int64_t until) {
    for (; step < until; ++step) {
      adam->zero_grad();
      const Tensor out = (*ddp)(x);
      const auto [first, rows] = ddp->rows();
      const Tensor targets = y.slice(0, first, first + rows);
      nn::functional::cross_entropy(out, targets,
                                    nn::functional::CrossEntropyFuncOptions().reduction(kSum))
          .backward();
      adam->step();
      schedule->step();
    }
  }
  // Parameters, batch statistics and moments.
  void write(const std::string& path) {
    serialize::OutputArchive all, net, state;
    model->save(net);
    adam->save(state);
    all.write("model", net);
    all.write("adam", state);
    all.save_to(path);
  }
  std::shared_ptr<ProcessGroup> group;
  nn::Sequential model{nn::Linear(6, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Dropout(0.3),
                       nn::Linear(16, 3)};
  Tensor x, y;
  std::unique_ptr<DistributedDataParallel<nn::Sequential>> ddp;
  std::unique_ptr<optim::AdamW> adam;
  std::unique_ptr<optim::CosineAnnealingLR> schedule;
  int64_t step = 0;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(CheckpointProcesses, ResumedBitForBitByMoreOrFewer) {
  TempFolder folder;
  // Ranks that train until a step, from the checkpoint where there is one; rank 0's state.
  const auto trained = [&](int n, const std::string& checkpoints, int64_t until, bool save) {
    const std::string path = folder.path("state");
    std::filesystem::remove(path);
    Ranks ranks;
    ranks.start(n, [&](int rank, const std::string& url, Shared&) {
      const auto g = init_process_group(url, within(seconds(60)));
      Training t(g);
      if (t.checkpoint().try_load(checkpoints) && t.step != 5) return 1;
      t.run(until);
      if (save) t.checkpoint().save(checkpoints, t.step);
      if (rank == 0) t.write(path);
      g->barrier().wait();
      return 0;
    });
    for (int i = 0; i < n; ++i) EXPECT_EQ(ranks.finish(i), 0);
    return bytes_of(path);
  };
  const std::string straight = trained(4, folder.path("none"), 10, false);
  ASSERT_GT(straight.size(), 1000u);
  for (const auto& [before, after] :
       {std::pair(4, 1), std::pair(4, 2), std::pair(1, 4), std::pair(2, 4)}) {
    const std::string c = folder.path("c" + std::to_string(10 * before + after));
    const std::string half = trained(before, c, 5, true);
    EXPECT_NE(half, straight);
    EXPECT_TRUE(trained(after, c, 10, true) == straight) << before << " then " << after;
  }
}

}  // namespace
}  // namespace ramet::distributed
