// Process groups over Gloo with a process a rank; some are stopped or killed. This process starts
// no thread, so that its children may.
#include "tests/parallel/distributed/processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/error_text.h"
#include "tests/fuzz.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

using std::chrono::seconds;

TEST(Processes, SumsAreTheSameOnAllRanksAndAsInOneProcess) {
  Ranks ranks;
  ranks.start(3, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    manual_seed(static_cast<uint64_t>(rank));
    const Tensor mine = randn({300001});
    std::vector<Tensor> all;
    for (int i = 0; i < 3; ++i) all.push_back(zeros({300001}));
    group->all_gather(all, mine).wait();
    Tensor sum = mine.clone();
    group->all_reduce(sum).wait();
    const bool right = sum.equal(all[0] + all[1] + all[2]);
    group->barrier().wait();
    return right ? 0 : 1;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// Rank 0 has read that rank 1 was given another world size, and its process ends; rank 2 comes
// then. Rank 3 never comes, and no rank waits for it.
TEST(Processes, ARankThatComesWhenRankZeroHasFailed) {
  Ranks ranks;
  const std::string address = "tcp://127.0.0.1:" + std::to_string(free_port());
  ranks.start(3, [&](int rank, const std::string&, Shared& shared) {
    if (rank == 2) Ranks::wait_until([&] { return shared.step == 2; });
    RendezvousOptions o;
    o.rank = rank;
    o.world_size = rank == 1 ? 4 : 3;
    o.timeout = seconds(60);
    const std::string text = error_of([&] { init_process_group(address, {}, o); });
    if (!contains(text, "world size: rank 1 was given 4, rank 0 was given 3")) {
      dprintf(STDERR_FILENO, "rank %d: %s\n", rank, text.c_str());
      return 1;
    }
    ++shared.step;
    if (rank == 0) {
      Ranks::wait_until([&] { return shared.step >= 2; });
      std::exit(0);  // runs what ends with the process
    }
    return 0;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// The composable replicate with a batch norm that normalises over the ranks, which have different
// numbers of batches. The ranks end with one model, after gradients of a float64 reference.
TEST(Processes, ReplicateAndJoin) {
  Ranks ranks;
  ranks.start(3, [](int rank, const std::string& url, Shared&) {
    const auto group = init_process_group(url, within(seconds(60)));
    manual_seed(1);
    nn::Sequential net(nn::Linear(4, 5), nn::BatchNorm1d(5)),
        one(nn::Linear(4, 5), nn::BatchNorm1d(5));
    for (nn::Sequential n : {net, one}) n->to(kDouble);
    const Tensor x = randn({6, 4}, TensorOptions(kDouble)),
                 seed = randn({6, 5}, TensorOptions(kDouble));
    {
      const NoGradGuard off;
      for (size_t i = 0; i < net->parameters().size(); ++i)
        one->parameters()[i].copy_(net->parameters()[i]);
    }
    nn::convert_sync_batchnorm(*net);
    ReplicateOptions options;
    options.average = Average::sum;
    replicate(net, group, options);
    const auto part = [&](const Tensor& t) { return t.slice(0, 2 * rank, 2 * rank + 2); };
    bool right = true;
    int left = rank + 1;
    replicate_handle(*net).join([&] {
      for (; left > 0; --left) {
        net->zero_grad();
        (net(part(x)) * part(seed)).sum().backward();
        if (left < rank + 1) continue;
        (one->forward(x) * seed).sum().backward();
        for (size_t i = 0; i < net->parameters().size(); ++i)
          right = right &&
                  net->parameters()[i].grad().allclose(one->parameters()[i].grad(), 1e-11, 1e-11);
      }
    });
    for (const auto& list : {net->parameters(), net->buffers()})
      for (const Tensor& t : list) {
        Tensor first = t.detach().clone();
        group->broadcast(first, 0).wait();
        right = right && first.equal(t.detach());
      }
    group->barrier().wait();
    return right ? 0 : 1;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

TEST(Processes, KilledInTheMiddle) { kill_in_the_middle("all_reduce", 10, /*share=*/false); }
TEST(Processes, KilledBesideSharedMemory) { kill_in_the_middle("all_reduce", 10, /*share=*/true); }

TEST(Processes, KilledInTheMiddleOfMembers) {
  kill_in_the_middle("all_reduce_members", 2, /*share=*/false);
}

struct OtherCollectives : ::testing::TestWithParam<std::string> {};
TEST_P(OtherCollectives, KilledInTheMiddle) { kill_in_the_middle(GetParam(), 2, /*share=*/true); }
INSTANTIATE_TEST_SUITE_P(Processes, OtherCollectives, ::testing::ValuesIn(other_collectives()),
                         [](const auto& info) { return info.param; });

// A rank's host does not answer any more, and its connections are still open.
TEST(Processes, StoppedInTheMiddle) {
  std::mt19937_64 random(fuzz::seed() + 23);
  until_hit(1, [&] {
    Ranks ranks;
    ranks.start(3, [](int rank, const std::string& url, Shared& shared) {
      const auto group = init_process_group(url, within(seconds(60)));
      group->barrier().wait();
      group->set_timeout(seconds(2));
      const Tensor mine = full({2 << 20}, rank + 1.0);
      for (int call = 1;; ++call) {
        Tensor t = mine.clone();
        const auto begun = std::chrono::steady_clock::now();
        shared.of(rank).enter(call);
        try {
          group->all_reduce(t, "bucket 0").wait();
          shared.of(rank).leave();
        } catch (const CommTimeout& e) {
          shared.of(rank).failed = call;
          // A second after the deadline.
          if (std::chrono::steady_clock::now() - begun > in_time(seconds(3))) return 4;
          if (!t.equal(mine)) return 2;
          return contains(e.what(), "rank 1 ") && contains(e.what(), "\"bucket 0\"") ? 0 : 3;
        }
      }
    });
    const int call = ranks.stop_inside(1, random);
    EXPECT_NE(call, 0);
    if (!call) return false;  // no rank would end
    EXPECT_EQ(ranks.finish(0), 0);
    EXPECT_EQ(ranks.finish(2), 0);
    return ranks.hit(call, 1);
  });
}

// The stopped rank does not read the message about the end. The others send it in vain before the
// error, within the timeout. It does not delay a further group that the error ends. Three tries: on
// a busy machine any process may stand still for a while.
TEST(Processes, AnErrorComesWithinItsTimeout) {
  bool in_time = false;
  for (int i = 0; i < 3 && !in_time; ++i) {
    Ranks ranks;
    ranks.start(3, [](int rank, const std::string& url, Shared&) {
      const auto group = init_process_group(url, within(seconds(60)));
      const auto beside = group->subgroup({0, 1, 2});
      beside->barrier().wait();
      group->set_timeout(seconds(5));
      if (rank == 1) raise(SIGSTOP);
      const auto begun = std::chrono::steady_clock::now();
      const auto since = [&begun] { return std::chrono::steady_clock::now() - begun; };
      try {
        group->barrier().wait();
        return 1;
      } catch (const CommTimeout& e) {
        if (e.ranks() != std::vector<int>{1}) return 2;
      }
      if (since() < std::chrono::milliseconds(3700)) return 3;  // three quarters
      const bool early = since() < seconds(5);
      beside->abort("the other group has ended");
      if (error_of([&] { beside->check(); }).empty()) return 4;
      return early && since() < std::chrono::milliseconds(5400) ? 0 : 5;
    });
    in_time = true;
    for (const int rank : {0, 2}) {
      const int code = ranks.finish(rank);
      ASSERT_TRUE(code == 0 || code == 5) << "rank " << rank << ": " << code;
      in_time = in_time && code == 0;
    }
  }
  EXPECT_TRUE(in_time);
}

// The process of the store dies: the others notice it by their connections.
TEST(Processes, RankZeroKilled) {
  const std::string url = "tcp://127.0.0.1:" + std::to_string(free_port()) + "?world_size=3&rank=";
  Ranks ranks;
  ranks.start(3, [&](int rank, const std::string&, Shared& shared) {
    const auto group = init_process_group(url + std::to_string(rank), within(seconds(60)));
    group->barrier().wait();
    Tensor t = full({4}, rank + 1.0);
    if (rank == 0) {
      while (shared.step < 2) usleep(1000);
      raise(SIGKILL);
    }
    const Work work = group->all_reduce(t);
    ++shared.step;
    try {
      work.wait();
      return 1;
    } catch (const CommLost& e) {
      if (e.ranks() != std::vector<int>{0}) return 2;
    }
    // There is no store for a new group any more: said, and soon.
    const std::string said = error_of([&] { group->regroup({1, 2}, within(seconds(60))); });
    if (!contains(said, "rank 0's process, which serves it, ended")) {
      dprintf(STDERR_FILENO, "%s\n", said.c_str());
      return 3;
    }
    return t.equal(full({4}, rank + 1.0)) ? 0 : 4;
  });
  EXPECT_EQ(ranks.finish(1), 0);
  EXPECT_EQ(ranks.finish(2), 0);
  EXPECT_EQ(ranks.finish(0), 128 + SIGKILL);
}

// Programs that just end are no failure of any rank.
TEST(Processes, EndsWithoutABarrier) {
  for (int round = 0; round < 5; ++round) {
    Ranks ranks;
    ranks.start(4, [](int rank, const std::string& url, Shared&) {
      const auto group = init_process_group(url, within(seconds(60)));
      Tensor t = full({100000}, rank + 1.0);
      for (int i = 0; i < 3; ++i) group->broadcast(t, i).wait();
      group->all_reduce(t).wait();
      return t[0].item<double>() == 4.0 ? 0 : 1;
    });
    for (int i = 0; i < 4; ++i) EXPECT_EQ(ranks.finish(i), 0);
  }
}

// ---- communication stages -----------------------------------------------------------------------

const Shapes kLayers{{40, 30}, {64}, {700}};

std::vector<std::shared_ptr<CommStage>> low_rank_in_8_bits() {
  return {power_sgd_stage(low_rank(2, 1)), int8_stage(64, 3)};
}

TEST(Processes, StagesGiveTheBitsOfRanksThatAreThreads) {
  Ranks ranks;
  ranks.start(3, [](int rank, const std::string& url, Shared&) {
    const auto run = [](const Group& group) {
      Given net(kLayers);
      DdpOptions o = with_stages(low_rank_in_8_bits());
      o.bucket_bytes = 1024;
      GivenDdp ddp(net, group, o);
      std::vector<Tensor> out;
      for (int step = 0; step < 4; ++step)
        out = reduced(ddp, net, random_gradients(kLayers, group->rank(), step));
      return std::pair(out, group->wire_bytes("all_reduce_stages"));
    };
    const auto group = init_process_group(url, within(seconds(60)));
    const auto mine = run(group);
    bool same = mine.second > 0;
    auto groups = make_local_groups(3);
    as_ranks(3, [&](int r) {
      const Group thread = std::move(groups[static_cast<size_t>(r)]);
      const auto theirs = run(thread);
      if (r != rank) return;
      same = same && mine.second == theirs.second;
      for (size_t i = 0; i < kLayers.size(); ++i)
        same = same && same_bits(mine.first[i], theirs.first[i]);
    });
    group->barrier().wait();
    return same ? 0 : 1;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks.finish(i), 0);
}

// The survivors' backward ends with an error, without gradients.
TEST(Processes, KilledInTheMiddleOfStages) {
  std::mt19937_64 random(fuzz::seed() + 29);
  until_hit(3, [&] {
    Ranks ranks;
    ranks.start(3, [](int rank, const std::string& url, Shared& shared) {
      const auto group = init_process_group(url, within(seconds(60)));
      Given net(kLayers);
      GivenDdp ddp(net, group, with_stages(low_rank_in_8_bits()));
      for (int step = 1;; ++step) {
        const std::vector<Tensor> gradients = random_gradients(kLayers, rank, step);
        shared.of(rank).enter(step);
        try {
          reduced(ddp, net, gradients);
          shared.of(rank).leave();
        } catch (const CommError&) {
          shared.of(rank).failed = step;
          for (const Tensor& w : net->w)
            if (w.grad().defined()) return 1;
          return 0;
        }
      }
    });
    const int step = ranks.stop_inside(1, random, 7 + static_cast<int>(random() % 15));
    ranks.signal(1, SIGKILL);
    EXPECT_NE(step, 0);
    EXPECT_EQ(ranks.finish(0), 0);
    EXPECT_EQ(ranks.finish(2), 0);
    EXPECT_EQ(ranks.finish(1), 128 + SIGKILL);
    return ranks.hit(step, 1);
  });
}

}  // namespace
}  // namespace ramet::distributed
