// What ends an operation on tensors of GPUs, and that these are as before then.
#include <atomic>
#include <mutex>
#include <thread>

#include "runtime/base/logging.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/runtime/cuda/gate.h"

namespace ramet::testing {
namespace {

using distributed::CommAborted;
using distributed::CommLost;
using distributed::CommMismatch;
using distributed::CommTimeout;
using distributed::in_time;

TEST(GpuGroupFailures, DifferentShapes) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const int me = g->rank();
      const Tensor t = full({me ? 8 : 4}, me + 1.0, gpu(me));
      try {
        g->all_reduce(t, "bucket 3").wait();
        ADD_FAILURE() << "no error";
      } catch (const CommMismatch& e) {
        const std::string over = way.nccl() ? ", nccl" : "";
        expect_part(e.what(),
                    "Rank 0 is running collective: all_reduce(operation 1, \"bucket 3\", "
                    "float32[4], sum, fixed" +
                        over + ")");
        expect_part(e.what(),
                    "Rank 1 is running collective: all_reduce(operation 1, \"bucket 3\", "
                    "float32[8], sum, fixed" +
                        over + ")");
      }
      EXPECT_TRUE(same(t, full({me ? 8 : 4}, me + 1.0))) << way;
    });
}

TEST(GpuGroupFailures, MessagesThatDiffer) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const Tensor t = full({g->rank() ? 4 : 8}, 1.0, gpu(g->rank()));
      EXPECT_ERROR_TEXT((g->rank() ? g->recv(t, 0) : g->send(t, 1)).wait(),
                        "Rank 1 receives send(operation 1, float32[4]");
      EXPECT_TRUE(same(t, full({g->rank() ? 4 : 8}, 1.0))) << way;
    });
}

// A GPU's tensor on one rank, the host's on another: over NCCL that is a mismatch.
TEST(GpuGroupFailures, AHostTensorAmongCards) {
  RAMET_NEEDS_NCCL(2);
  const Gpus gpus(rank_gpus(2));
  with_gpu_groups(kNcclThreads, 2, seconds(60), [](const Group& g) {
    const Tensor t = g->rank() ? ones({4}) : ones({4}, gpu(0));
    EXPECT_THROW(g->all_reduce(t).wait(), CommMismatch);
  });
}

TEST(GpuGroupFailures, ARankThatDoesNotCome) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways()) {
    std::atomic<bool> over{false};
    std::atomic<int> ready{0};
    with_gpu_groups(way, 3, seconds(60), [&](const Group& g) {
      if (g->rank() == 1) {
        while (!over) std::this_thread::sleep_for(Milliseconds(5));
        EXPECT_THROW(g->barrier().wait(), CommTimeout);
        return;
      }
      CollectiveOptions o("bucket 2");
      o.timeout = Milliseconds(1500);
      Tensor t = full({4}, g->rank() + 1.0, gpu(g->rank()));
      ++ready;  // on a busy machine the other one may be late, too
      while (ready < 2) std::this_thread::sleep_for(Milliseconds(1));
      const auto begun = std::chrono::steady_clock::now();
      try {
        g->all_reduce(t, o).wait();
        ADD_FAILURE() << "no error";
      } catch (const CommTimeout& e) {
        EXPECT_EQ(e.ranks(), std::vector<int>{1});
        expect_part(e.what(), "rank 1 did not take part");
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begun, in_time(Milliseconds(2500)));
      EXPECT_TRUE(same(t, full({4}, g->rank() + 1.0))) << way;
      const Group rest = g->regroup({0, 2});
      rest->all_reduce(t).wait();
      EXPECT_TRUE(same(t, full({4}, 4.0))) << way;
      rest->barrier().wait();
      over = true;
    });
  }
}

// A kernel before the operation that does not end: staged copies would wait for it.
TEST(GpuGroupFailures, ATensorThatIsNotReady) {
  RAMET_NEEDS_CARDS(2);
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : {kStagedThreads, kStagedGloo}) {
    Gate gate;
    std::atomic<bool> reported{false};
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const int me = g->rank();
      const Tensor t = full({5}, me + 1.0, gpu(me));
      if (me == 1) queue(1, Gate::wait, &gate);
      CollectiveOptions o("late");
      o.timeout = Milliseconds(600);
      try {
        g->all_reduce(t, o).wait();
        ADD_FAILURE() << "no error";
      } catch (const CommTimeout& e) { EXPECT_EQ(e.ranks(), std::vector<int>{1}) << e.what(); }
      if (me == 1) {
        EXPECT_FALSE(gate.passed) << way;
        reported = true;
        return;
      }
      const auto late = std::chrono::steady_clock::now() + in_time(seconds(5));
      while (!reported && std::chrono::steady_clock::now() < late)
        std::this_thread::sleep_for(Milliseconds(1));
      gate.open = true;
      EXPECT_TRUE(same(t, full({5}, me + 1.0))) << way;
    });
  }
}

// The other ranks are in the middle of NCCL's work.
TEST(GpuGroupFailures, AbortInTheMiddle) {
  RAMET_EMULATED_ONLY("messages that stop half-way");
  for (const Way& way : {kNcclThreads, kNcclGloo})
    for (const auto& [message, driver_waits] :
         {std::pair(false, false), std::pair(true, false), std::pair(false, true)}) {
      const Gpus gpus(rank_gpus(3, emulated::StreamMode::Async, driver_waits));
      const Held held;
      std::atomic<int> begun{0};
      with_gpu_groups(way, 3, seconds(60), [&, message = message](const Group& g) {
        const int me = g->rank();
        const Tensor t = full({500}, me + 1.0, gpu(me));
        const Work work = !message  ? g->all_reduce(t)
                          : me == 0 ? g->send(t, 1)
                          : me == 1 ? g->recv(t, 0)
                                    : Work();
        ++begun;
        if (me == 2) {
          while (begun < 3) std::this_thread::sleep_for(Milliseconds(1));
          std::this_thread::sleep_for(Milliseconds(100));
          g->abort("x");
        }
        if (message && me == 2) return;
        while (begun < 3) std::this_thread::sleep_for(Milliseconds(1));
        const auto from = std::chrono::steady_clock::now();
        try {
          work.wait();
          ADD_FAILURE() << "no error";
        } catch (const CommAborted& e) {
          EXPECT_EQ(e.origin(), 2);
          expect_part(e.what(), "aborted by rank 2: x");
        }
        EXPECT_THROW(g->barrier().wait(), CommAborted);
        EXPECT_LT(std::chrono::steady_clock::now() - from, in_time(seconds(1)));
        EXPECT_TRUE(same(t, full({500}, me + 1.0))) << way;  // the GPU goes on
      });
    }
}

#if RAMET_GPU_EMULATED
// A group's links: one that takes its time does not cost the others theirs.
TEST(GpuGroupFailures, LinksAreAbortedSideBySide) {
  const Gpus gpus(rank_gpus(2));
  std::mutex mutex;
  std::string logged;
  set_log_handler([&](LogLevel, const std::string& text) {
    const std::lock_guard lock(mutex);
    logged += text;
  });
  emulated::hold_nccl_aborts(true);
  std::thread lets_go([] {  // when all of them have begun
    for (int i = 0; i < 20000 && emulated::nccl_aborts_under_way() < 4; ++i)
      std::this_thread::sleep_for(Milliseconds(1));
    EXPECT_EQ(emulated::nccl_aborts_under_way(), 4);
    emulated::hold_nccl_aborts(false);
  });
  with_gpu_groups(kNcclThreads, 2, seconds(60), [&](const Group& g) {
    const Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
    g->all_reduce(t).wait();
    (g->rank() ? g->recv(t, 0) : g->send(t, 1)).wait();
    g->barrier().wait();
    if (g->rank() == 0) g->abort("x");
    EXPECT_THROW(g->barrier().wait(), CommAborted);
  });
  lets_go.join();
  set_log_handler({});
  EXPECT_EQ(logged.find("in time"), std::string::npos) << logged;
}
#endif

TEST(GpuGroupFailures, DeadlineInTheMiddle) {
  RAMET_EMULATED_ONLY("messages that stop half-way");
  for (const auto& [way, driver_waits] :
       {std::pair(kNcclThreads, false), std::pair(kNcclThreads, true),
        std::pair(kNcclGloo, true)}) {
    const Gpus gpus(rank_gpus(2, emulated::StreamMode::Async, driver_waits));
    const Held held;
    with_gpu_groups(way, 2, seconds(60), [&, way = way](const Group& g) {
      CollectiveOptions o("late");
      o.timeout = Milliseconds(600);
      const Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
      std::vector<Tensor> members{full({5}, g->rank() + 1.0, gpu(g->rank()))};
      const auto begun = std::chrono::steady_clock::now();
      EXPECT_ERROR_TEXT(
          g->all_reduce(t, o).wait(),
          "all_reduce(operation 1, \"late\", float32[5], sum, fixed, nccl): the messages "
          "between the cards did not arrive");
      EXPECT_LT(std::chrono::steady_clock::now() - begun, in_time(Milliseconds(1600)));
      EXPECT_THROW(g->check(), CommTimeout);
      EXPECT_TRUE(same(t, full({5}, g->rank() + 1.0))) << way;
      EXPECT_THROW(g->all_reduce_members(members).wait(), CommTimeout);
    });
  }
}

TEST(GpuGroupFailures, NcclSaysThatARankIsGone) {
  RAMET_EMULATED_ONLY("errors that NCCL reports");
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : {kNcclThreads, kNcclGloo}) {
    emulated::report_nccl_error(ncclSuccess);
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
      g->all_reduce(t).wait();
      g->barrier().wait();
      emulated::report_nccl_error(ncclRemoteError);
      EXPECT_THROW(g->all_reduce(t).wait(), CommLost);
      EXPECT_ERROR_TEXT(g->check(), "remote process exited or there was a network");
      EXPECT_TRUE(same(t, full({5}, 3.0)));
    });
  }
  emulated::report_nccl_error(ncclSuccess);
  with_gpu_groups(kNcclThreads, 2, seconds(60), [&](const Group& g) {
    Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
    g->barrier().wait();
    emulated::report_nccl_error(ncclInternalError);
    EXPECT_ERROR_TEXT(g->all_reduce(t).wait(), "failed: internal error");
    EXPECT_THROW(g->check(), CommAborted);
    EXPECT_TRUE(same(t, full({5}, g->rank() + 1.0)));
  });
  emulated::report_nccl_error(ncclSuccess);
}

// A rank destroys its group while the other waits for its GPU.
TEST(GpuGroupFailures, ARankThatLeaves) {
  RAMET_EMULATED_ONLY("messages that stop half-way");
  const Gpus gpus(rank_gpus(2));
  GroupOptions o;
  o.backend = "nccl";
  const Held held;
  auto groups = distributed::make_local_groups(2, o);
  distributed::as_ranks(2, [&](int rank) {
    Group mine = std::move(groups[static_cast<size_t>(rank)]);
    const Tensor t = full({5}, rank + 1.0, gpu(rank));
    const Work work = mine->all_reduce(t);
    if (rank == 1) {
      std::this_thread::sleep_for(Milliseconds(300));
      mine.reset();
    }
    EXPECT_ERROR_TEXT(work.wait(), "rank 1 left the group");
    EXPECT_TRUE(same(t, full({5}, rank + 1.0)));
  });
}

// What a kernel before the operation found in its data ends the operation of its rank.
TEST(GpuGroupFailures, ErrorsInData) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const int me = g->rank();
      const Tensor index = full({4}, me ? 9 : 1, TensorOptions(kLong).device(gpu(me)));
      const Tensor t = ones({5}, gpu(me)).index_select(0, index);
      const std::string said = error_of([&] { g->all_reduce(t).wait(); });
      if (me == 1) {
        expect_part(said, "index_select");
        EXPECT_ERROR_TEXT(g->check(), "index_select");
      } else if (!way.nccl()) {  // with NCCL, rank 0 may be done
        // On a busy machine Gloo's connection may break before rank 1's word has come.
        if (way.gloo) EXPECT_NE(said, "no error");
        else expect_part(said, "index_select");
        EXPECT_TRUE(same(t, ones({4}))) << way;
      }
    });
}

TEST(GpuGroupFailures, NoNccl) {
  RAMET_EMULATED_ONLY("an NCCL that is missing or old");
  for (const auto& [version, said] :
       {std::pair(0, "NCCL cannot be used"),
        std::pair(21104, "NCCL 2.11.4 is too old, expected 2.14.0 or newer")}) {
    emulated::Settings settings = rank_gpus(2);
    settings.nccl_version = version;
    const Gpus gpus(settings);
    with_gpu_groups(kNcclThreads, 2, seconds(60), [&, &said = said](const Group& g) {
      const Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
      g->barrier().wait();  // needs none
      Tensor host = ones({3});
      g->all_reduce(host).wait();
      try {
        g->all_reduce(t).wait();
        ADD_FAILURE() << "no error";
      } catch (const CommAborted& e) {
        EXPECT_EQ(e.ranks(), (std::vector<int>{0, 1}));
        expect_part(e.what(), "ranks 0, 1 cannot use NCCL, which the group's backend asks for");
        expect_part(e.what(), said);
      }
      EXPECT_TRUE(same(t, full({5}, g->rank() + 1.0)));
    });
    with_gpu_groups(kStagedThreads, 2, seconds(60), [](const Group& g) {
      Tensor t = full({5}, g->rank() + 1.0, gpu(g->rank()));
      g->all_reduce(t).wait();
      EXPECT_TRUE(same(t, full({5}, 3.0)));
    });
  }
}

TEST(GpuGroupFailures, TwoRanksOnOneCard) {
  RAMET_NEEDS_NCCL(2);
  for (const char* list : {"0,0", "0,1"}) {
    const bool one_card = list[2] == '0';
    const Gpus gpus(rank_gpus(2), list);
    with_gpu_groups(kNcclThreads, 2, seconds(60), [&](const Group& g) {
      // Two logical devices of one GPU, and one logical device of both ranks.
      const Device mine = gpu(one_card ? g->rank() : 1);
      const Tensor t = full({5}, g->rank() + 1.0, mine);
      EXPECT_ERROR_TEXT(g->all_reduce(t).wait(),
                        one_card
                            ? "ranks 0, 1 are on one card (cuda:0 and cuda:1): NCCL wants a card "
                              "for each rank"
                            : "ranks 0, 1 are on one card (cuda:1 and cuda:1)");
      EXPECT_TRUE(same(t, full({5}, g->rank() + 1.0)));
    });
    with_gpu_groups(kNcclThreads, 2, seconds(60), [&](const Group& g) {
      const Tensor t = full({5}, g->rank() + 1.0, gpu(one_card ? g->rank() : 1));
      EXPECT_ERROR_TEXT((g->rank() ? g->recv(t, 0) : g->send(t, 1)).wait(), "are on one card");
    });
    with_gpu_groups(kStagedThreads, 2, seconds(60), [&](const Group& g) {
      Tensor t = full({5}, g->rank() + 1.0, gpu(one_card ? g->rank() : 1));
      g->all_reduce(t).wait();
      EXPECT_TRUE(same(t, full({5}, 3.0)));
    });
  }
}

}  // namespace
}  // namespace ramet::testing
