// Recordings of ranks: each has its own, and they become one. Ranks are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "ramet.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {
namespace {

size_t count(const RecordingData& d, const std::string& kind) {
  return static_cast<size_t>(std::ranges::count(d.events, kind, &EventRow::kind));
}

using Group = std::shared_ptr<distributed::ProcessGroup>;

// What `step` gives for each of two ranks, by threads of their own.
template <class Step> std::vector<RecordingData> of_two_ranks(const Step& step) {
  auto groups = distributed::make_local_groups(2);
  std::vector<RecordingData> ranks(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      const auto r = static_cast<size_t>(rank);
      ranks[r] = step(rank, groups[r]);
    });
  for (std::thread& t : threads) t.join();
  return ranks;
}

TEST(RecordingRanks, EachRanksBucketsAndAllOfThemTogether) {
  std::vector<std::vector<double>> sums(2);
  const std::vector<RecordingData> ranks = of_two_ranks([&](int rank, const Group& group) {
    manual_seed(1);
    nn::Sequential net(nn::Linear(4, 300), nn::ReLU(), nn::Linear(300, 2));
    distributed::DdpOptions options;
    options.bucket_bytes = 1024;  // a bucket a layer
    options.devices = {Device(kCPU, static_cast<DeviceIndex>(rank))};
    distributed::DistributedDataParallel<nn::Sequential> ddp(net, group, options);
    const Tensor x = full({3, 4}, rank + 1.0);
    ddp(x).sum().backward();
    net->zero_grad();
    Recording recording({.title = "ranks", .statistics = true});
    recording.watch(net);
    ddp(x).sum().backward();
    for (const Tensor& p : net->parameters())
      sums[static_cast<size_t>(rank)].push_back(p.grad().sum().item<double>());
    return recording.data();
  });
  for (size_t r = 0; r < 2; ++r) {
    const RecordingData& d = ranks[r];
    EXPECT_EQ(from_json(to_json(d), "rank"), d);
    std::vector<size_t> buckets;  // those of the ranks
    int64_t bytes = 0;
    size_t members = 0;
    for (size_t b = 0; b < d.buckets.size(); ++b)
      if (d.buckets[b].kind == "all_reduce") {
        buckets.push_back(b);
        bytes += d.buckets[b].bytes;
        members += d.buckets[b].members.size();
      }
    EXPECT_GE(buckets.size(), 2u);
    EXPECT_EQ(members, 4u);
    EXPECT_EQ(bytes, 4 * (4 * 300 + 300 + 300 * 2 + 2));
    for (const size_t b : buckets) {
      const auto where = [&](const std::string& kind, bool last) {
        size_t at = d.events.size();
        for (size_t i = 0; i < d.events.size(); ++i)
          if (d.events[i].kind == kind && d.events[i].bucket == static_cast<Id>(b))
            if (last || at == d.events.size()) at = i;
        return at;
      };
      EXPECT_LT(where("slot", true), where("reduce_begin", false));
      EXPECT_LT(where("reduce_begin", false), where("reduce_end", false));
      EXPECT_LT(where("reduce_end", false), d.events.size());
    }
    EXPECT_EQ(std::ranges::count(d.movements, std::string("all_reduce"), &MovementRow::kind),
              static_cast<int64_t>(buckets.size()));
    EXPECT_EQ(count(d, "backward_begin"), 1u);  // the other rank's is not here
    ASSERT_EQ(d.parameters.size(), 4u);
    for (size_t p = 0; p < 4; ++p) {  // averaged over ranks, as the program sees it
      const TensorRow& g = d.tensors[static_cast<size_t>(d.parameters[p].gradient)];
      const Statistics& s = d.statistics[static_cast<size_t>(g.statistics)];
      EXPECT_NEAR(s.mean * static_cast<double>(s.count), sums[r][p], 1e-3);
    }
  }
  EXPECT_EQ(sums[0], sums[1]);
  const RecordingData both = merge(ranks);
  EXPECT_EQ(both.ranks, 2);
  EXPECT_EQ(from_json(to_json(both), "both"), both);
  EXPECT_EQ(both.devices.back().rank, 1);
  EXPECT_EQ(both.parameters.size(), 8u);
  EXPECT_EQ(count(both, "backward_begin"), 2u);
}

// Each operation of a group is a movement: what came from this rank's tensors, and to which.
TEST(RecordingRanks, OperationsOfAGroupAreMovements) {
  const std::vector<RecordingData> ranks = of_two_ranks([](int rank, const Group& shared) {
    distributed::ProcessGroup& group = *shared;
    const Tensor t = full({8}, rank + 1.0);
    const auto two = [&] { return std::vector<Tensor>{zeros({8}), zeros({8})}; };
    group.all_reduce(t.clone()).wait();  // no recording yet
    Recording recording;
    group.all_reduce(t).wait();
    group.broadcast(t, 1).wait();
    group.reduce(t, 0).wait();
    group.all_gather(two(), t).wait();
    group.reduce_scatter(t, two()).wait();
    group.all_to_all(two(), two()).wait();
    group.scatter(t, rank == 0 ? two() : std::vector<Tensor>(), 0).wait();
    group.gather(rank == 0 ? two() : std::vector<Tensor>(), t, 0).wait();
    group.all_reduce_members({t, t.clone()}).wait();
    if (rank == 0) group.send(t, 1).wait();
    else group.recv(t, 0).wait();
    group.barrier().wait();  // moves nothing
    EXPECT_THROW(group.broadcast(rank ? t : zeros({3})).wait(), distributed::CommError);
    RecordingData data = recording.data();
    group.abort("done");
    EXPECT_THROW(group.all_reduce(t).wait(), distributed::CommError);
    return data;
  });
  struct Expected {
    const char* kind;
    size_t from, to;
    int64_t bytes;
  };
  const std::vector<Expected> expected[2] = {{{"all_reduce", 1, 1, 32},
                                              {"broadcast", 0, 1, 32},
                                              {"reduce", 1, 1, 32},
                                              {"all_gather", 1, 2, 64},
                                              {"reduce_scatter", 2, 1, 32},
                                              {"all_to_all", 2, 2, 64},
                                              {"scatter", 2, 1, 32},
                                              {"gather", 1, 2, 64},
                                              {"all_reduce", 2, 2, 64},
                                              {"send", 1, 0, 32}},
                                             {{"all_reduce", 1, 1, 32},
                                              {"broadcast", 1, 0, 32},
                                              {"reduce", 1, 0, 32},
                                              {"all_gather", 1, 2, 64},
                                              {"reduce_scatter", 2, 1, 32},
                                              {"all_to_all", 2, 2, 64},
                                              {"scatter", 0, 1, 32},
                                              {"gather", 1, 0, 32},
                                              {"all_reduce", 2, 2, 64},
                                              {"recv", 0, 1, 32}}};
  for (size_t r = 0; r < 2; ++r) {
    const RecordingData& d = ranks[r];
    EXPECT_EQ(from_json(to_json(d), "rank"), d);
    ASSERT_EQ(d.movements.size(), expected[r].size());
    uint64_t before = 0;
    for (size_t i = 0; i < d.movements.size(); ++i) {
      const MovementRow& m = d.movements[i];
      const Expected& e = expected[r][i];
      EXPECT_EQ(m.kind, e.kind);
      EXPECT_EQ(m.from.size(), e.from) << m.kind;
      EXPECT_EQ(m.to.size(), e.to) << m.kind;
      EXPECT_EQ(m.bytes, e.bytes) << m.kind;
      EXPECT_EQ(m.operation, -1) << m.kind;
      EXPECT_GE(m.start, before) << m.kind;
      EXPECT_GT(m.end, m.start) << m.kind;
      before = m.end;
    }
  }
}

// Values are gathered before they are used, in the backward too, and gradients become parts.
TEST(RecordingRanks, AFullyShardedStep) {
  const std::vector<RecordingData> ranks = of_two_ranks([](int rank, const Group& group) {
    manual_seed(1);
    nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
    for (const size_t layer : {0, 2}) distributed::fully_shard(net->ptr(layer), group);
    const Tensor x = full({3, 4}, rank + 1.0);
    net->forward(x).sum().backward();
    Recording recording;
    net->forward(x).sum().backward();
    return recording.data();
  });
  for (const RecordingData& d : ranks) {
    EXPECT_EQ(from_json(to_json(d), "rank"), d);
    const auto moved = [&](const char* kind) {
      return std::ranges::count(d.movements, std::string(kind), &MovementRow::kind);
    };
    EXPECT_GE(moved("all_gather"), 2);
    EXPECT_EQ(moved("reduce_scatter"), 2);
    for (const MovementRow& m : d.movements) EXPECT_GT(m.bytes, 0) << m.kind;
  }
}

}  // namespace
}  // namespace see
}  // namespace ramet
