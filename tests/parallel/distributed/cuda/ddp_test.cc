// DistributedDataParallel over GPUs: ranks as threads, an emulated GPU or several each.
#include "autograd/graph/node.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/share.h"

namespace ramet::testing {
namespace {

using distributed::Average;
using distributed::Batch;
using distributed::DdpOptions;
using distributed::DistributedDataParallel;
using parallel::ReduceOrder;

struct Training {
  int ranks = 2, replicas = 1;  // of a rank
  bool on_gpus = true;
  int tree = 0;
  bool norm = false, stages = false;
  ReduceOrder order;
  ScalarType dtype = kFloat;
};

// Parameters and buffers after some steps, as rank 0 has them.
Groups trained(const Way& way, const Training& r) {
  Groups result;
  manual_seed(7);
  with_gpu_groups(way, r.ranks, seconds(120), [&](const Group& g) {
    SmallConv net(r.norm);
    // Its random numbers are the process's, which the ranks share here.
    if (r.norm) net->drop->eval();
    set_parameters(*net, 70 + static_cast<uint64_t>(g->rank()));  // rank 0's are taken over
    DdpOptions o;
    for (int i = 0; i < r.replicas; ++i)
      o.devices.push_back(r.on_gpus ? gpu(g->rank() * r.replicas + i) : kHost);
    net->to(o.devices[0], r.dtype);
    o.order = r.tree ? ReduceOrder::tree(r.tree) : r.order;
    o.average = Average::sum;
    o.batch = Batch::whole;
    o.bucket_bytes = 256;  // several
    DistributedDataParallel<SmallConv> ddp(net, g, o);
    if (r.stages) {
      ddp.register_comm_stage(distributed::power_sgd_stage());
      ddp.register_comm_stage(distributed::bf16_stage());
    }
    optim::SGD sgd(net->parameters(), optim::SGDOptions(0.02).momentum(0.9));
    for (int step = 0; step < 4; ++step) {
      const int64_t n = step == 3 ? 14 : 16;  // a short last one
      const auto seed = static_cast<uint64_t>(step);
      const Tensor x = varied({n, 1, 6, 6}, 700 + seed).to(o.devices[0], r.dtype);
      sgd.zero_grad();
      const Tensor y = ddp(x);
      const auto [row, rows] = ddp.rows();
      const Tensor target = varied({n, 3}, 800 + seed).slice(0, row, row + rows).to(o.devices[0]);
      ((y.to(kFloat) - target).pow(2).sum() / static_cast<double>(3 * n)).backward();
      sgd.step();
    }
    const Groups mine = state_groups(*net);
    g->barrier().wait();
    if (g->rank() == 0) result = mine;
  });
  return result;
}

TEST(DdpOnGpus, AgreesWithTheHost) {
  RAMET_NEEDS_NCCL(4);
  const Gpus gpus(rank_gpus(4));
  Training r;
  r.on_gpus = false;
  const Groups host = trained(kStagedThreads, r);
  r.on_gpus = true;
  Groups first;
  for (const Way& way : all_ways()) {
    const Groups a = trained(way, r), b = trained(way, r);
    EXPECT_LE(difference(host, a), 1e-5) << way;
    EXPECT_EQ(a, b) << way << ": the same bits from run to run";
    if (first.empty()) first = a;
    EXPECT_EQ(a, first) << way << ": the same bits by every way";
  }
  r.order = ReduceOrder::any();
  EXPECT_LE(difference(host, trained(kNcclThreads, r)), 1e-5);
}

TEST(DdpOnGpus, OneDigestForEveryNumberOfRanks) {
  RAMET_NEEDS_CARDS(4);
  const Gpus gpus(rank_gpus(4));
  Training r;
  r.tree = 4;
  for (const ScalarType dtype : {kFloat, kBFloat16}) {
    r.dtype = dtype;
    r.norm = dtype == kFloat;
    r.ranks = r.replicas = 1;
    const Groups one = trained(kStagedThreads, r);
    for (const Way& way : ways({kStagedThreads, kNcclThreads, kNcclGloo}))
      for (int ranks : {1, 2, 4})
        for (int replicas : {1, 2}) {
          if (ranks * replicas > 4) continue;
          // All of the GPUs at once are the most that can race.
          if (one_repeat_in() > 1 && ranks * replicas < 4) continue;
          r.ranks = ranks;
          r.replicas = replicas;
          EXPECT_EQ(trained(way, r), one)
              << way << ", " << ranks << " ranks of " << replicas << ", " << name_of(dtype);
        }
  }
}

// Communication hooks compute on the host, with any backend.
TEST(DdpOnGpus, Stages) {
  RAMET_NEEDS_NCCL(2);
  const Gpus gpus(rank_gpus(2));
  Training r;
  r.stages = true;
  const Groups staged = trained(kStagedThreads, r);
  EXPECT_EQ(trained(kNcclThreads, r), staged);
  r.on_gpus = false;
  EXPECT_LE(difference(trained(kStagedThreads, r), staged), 1e-3);  // bfloat16 has 8 bits
}

// For every order of streams: in the lazy one nothing is there by luck.
TEST(DdpOnGpus, AnyOrderOfStreams) {
  RAMET_NEEDS_CARDS(4);
  Training r;
  Groups first;
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Async, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    const Gpus gpus(rank_gpus(4, mode));
    for (const Way& way : ways({kStagedThreads, kNcclThreads}))
      for (int replicas : {1, 2}) {
        r.replicas = replicas;
        const Groups now = trained(way, r);
        if (first.empty()) first = now;
        EXPECT_LE(difference(first, now), replicas == 1 ? 0.0 : 1e-5) << way;
      }
  }
}

// The ranks' sums of a bucket begin while the backward still runs.
TEST(DdpOnGpus, BucketsBeginInTheBackward) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 4));
      net->to(gpu(g->rank()));
      DdpOptions o;
      o.bucket_bytes = 1;  // a bucket for each parameter
      DistributedDataParallel<nn::Sequential> ddp(net, g, o);
      const Tensor x = ones({2, 4}, gpu(g->rank())).requires_grad_();
      const auto* leaf = autograd::grad_accumulator(net->parameters()[3].impl());
      bool looked = false;
      // After the first layer; a barrier ends after the operations before it. The second bias has 2
      // from rank 0 and 4 from rank 1.
      x.register_hook([&](const Tensor& grad) {
        g->barrier().wait();
        EXPECT_TRUE(same(leaf->where, full({4}, 3.0))) << way;
        looked = true;
        return grad;
      });
      (ddp(x) * (g->rank() + 1.0)).sum().backward();
      EXPECT_TRUE(looked);
      EXPECT_TRUE(same(net->parameters()[3].grad(), full({4}, 3.0))) << way;
    });
}

}  // namespace
}  // namespace ramet::testing
