// State, checkpoints and gradients of modules that are sharded over GPUs, against the host's; and
// what ends in an error.
#include <optional>

#include "autograd/graph/captured.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::testing {
namespace {

using distributed::DeviceMesh;
using distributed::DistributedCheckpoint;
using distributed::full_state_dict;
using distributed::fully_shard;
using distributed::fully_shard_handle;
using distributed::FullyShardOptions;
using distributed::load_full_state_dict;
using distributed::ShardState;
using distributed::tensor_parts;
using distributed::text_batch;
using distributed::text_loss;
using distributed::text_net;
using distributed::TextBatch;
using distributed::TextNet;

using State = OrderedDict<std::string, Tensor>;

State on_host(const State& state) {
  State out;
  for (const auto& item : state) out.insert(item.key(), item.value().to(kHost));
  return out;
}
void expect_same(const State& got, const State& expected) {
  ASSERT_EQ(got.keys(), expected.keys());
  for (const auto& item : expected)
    EXPECT_TRUE(distributed::same_bits(got[item.key()].to(kHost), item.value())) << item.key();
}

// A sharded net with its optimizer, on the rank's GPU or on the host.
struct Trainer {
  Trainer(const Group& g, Device where, uint64_t seed) : group(g), device(where) {
    net = text_net(24, seed);
    net->to(device);
    shard_all(net, DeviceMesh(g));
    adam.emplace(net->parameters(), optim::AdamWOptions(0.01));
  }
  void backward(int step) const {
    const TextBatch b = text_batch(group->rank(), step, 6, device);
    text_loss(net(b.ids), b).backward();
  }
  void steps(int from, int to) {
    for (int i = from; i < to; ++i) {
      adam->zero_grad();
      backward(i);
      adam->step();
    }
  }
  DistributedCheckpoint checkpoint() {
    DistributedCheckpoint c(group);
    const auto parts = tensor_parts(*net);
    c.add("net", *net, parts).add("adam", *adam, parts);
    return c;
  }
  State state() const { return on_host(full_state_dict(*net)); }
  Group group;
  Device device;
  TextNet net{nullptr};
  std::optional<optim::AdamW> adam;
};

TEST(ShardedStateOnGpus, WholeStateOutAndIn) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  State before, other;
  for (const auto& item : text_net(24, 5)->named_parameters())
    before.insert(item.key(), item.value().detach());
  for (const auto& item : text_net(24, 6)->named_parameters())
    other.insert(item.key(), item.value().detach());
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    for (int n : {1, 2, 3})
      with_gpu_groups(way, n, seconds(60), [&](const Group& g) {
        const Device device = gpu(g->rank());
        const Trainer t(g, device, 5);
        const State whole = full_state_dict(*t.net);
        EXPECT_EQ(whole[0].value().device(), device);
        expect_same(whole, before);
        for (const auto& part : tensor_parts(*t.net)) EXPECT_EQ(part.local.device(), device);
        load_full_state_dict(*t.net, other);  // the host's
        expect_same(full_state_dict(*t.net), other);
        load_full_state_dict(*t.net, whole);  // this GPU's
        expect_same(full_state_dict(*t.net), before);
      });
}

TEST(ShardedStateOnGpus, CheckpointsGoOnWithAnyRanks) {
  RAMET_NEEDS_NCCL(4);
  const Gpus gpus(rank_gpus(4));
  const distributed::TempFolder folder;
  State saved, expected;  // after 3 steps, after 5
  with_gpu_groups(kNcclThreads, 2, seconds(60), [&](const Group& g) {
    Trainer t(g, gpu(g->rank()), 7);
    t.steps(0, 3);
    t.checkpoint().save(folder.path("c"), 3);
    const State now = t.state();
    t.steps(3, 5);
    const State then = t.state();
    if (g->rank() == 0) saved = now, expected = then;
    g->barrier().wait();
  });
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      Trainer t(g, gpu(g->rank()), 8);
      EXPECT_EQ(t.checkpoint().load(folder.path("c")).step, 3);
      expect_same(t.state(), saved);
      t.steps(3, 5);
      expect_same(t.state(), expected);
    });
  // Into other numbers of ranks, and on the host: the moments have come along if the next steps are
  // those of the GPUs. Two ranks' batches make one of the four's.
  with_gpu_groups(kStagedThreads, 4, seconds(60), [&](const Group& g) {
    Trainer t(g, gpu(g->rank()), 8);
    t.checkpoint().load(folder.path("c"));
    expect_same(t.state(), saved);
  });
  with_gpu_groups(kStagedThreads, 2, seconds(60), [&](const Group& g) {
    Trainer t(g, kHost, 8);
    t.checkpoint().load(folder.path("c"));
    expect_same(t.state(), saved);
    t.steps(3, 5);
    for (const auto& item : t.state())
      EXPECT_TRUE(item.value().allclose(expected[item.key()], 1e-5, 1e-6)) << item.key();
  });
}

// Gradients and norms after backwards of several kinds, on rank 0.
Groups gradients(const Way& way, bool on_gpus) {
  Groups result;
  with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
    Trainer t(g, on_gpus ? gpu(g->rank()) : kHost, 7);
    Groups mine;
    const auto note = [&] {
      mine.emplace_back();
      for (const Tensor& p : t.net->parameters())
        for (double v : values(p.grad().defined() ? p.grad() : zeros_like(p)))
          mine.back().push_back(v);
    };
    // What is not synchronised is reduced by the next one that is.
    fully_shard_handle(t.net).set_requires_gradient_sync(false);
    t.backward(0);
    for (const Tensor& p : t.net->parameters()) EXPECT_FALSE(p.grad().defined());
    fully_shard_handle(t.net).set_requires_gradient_sync(true);
    t.backward(1);
    note();
    t.backward(2);  // added
    note();
    // Only rank 0 uses the layers after fc1; the embedding is frozen.
    t.net->zero_grad();
    t.net->words->own_parameters()[0].value().set_requires_grad(false);
    const Tensor y = t.net(text_batch(g->rank(), 3, 6, t.device).ids),
                 h = t.net->fc1(ones({2, 32}, TensorOptions(t.device)));
    (g->rank() ? h : y).pow(2).sum().backward();
    EXPECT_FALSE(t.net->words->own_parameters()[0].value().grad().defined());
    note();
    mine.push_back({distributed::clip_grad_norm_(*t.net, 0.01)});
    note();
    if (g->rank() == 0) result = mine;
    g->barrier().wait();
  });
  return result;
}
TEST(ShardedStateOnGpus, GradientsOfTheHost) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  const Groups host = gradients(kStagedThreads, false);
  Groups first;
  for (const Way& way : all_ways()) {
    const Groups now = gradients(way, true);
    EXPECT_LE(difference(host, now), 1e-5) << way;
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << way;
  }
}

// ---- errors -------------------------------------------------------------------------------------

TEST(ShardedErrorsOnGpus, Refusals) {
  RAMET_NEEDS_NCCL(4);
  const Gpus gpus(rank_gpus(4));
  with_gpu_groups(kStagedThreads, 2, seconds(60), [](const Group& g) {
    const Device mine = gpu(g->rank()), second = gpu(g->rank() + 2);
    TextNet net = text_net();
    net->to(mine);
    net->fc2->to(second);
    std::string text = error_of([&] { fully_shard(net, g); });
    expect_part(text, "[fully_shard] parameters on several devices: got 'words.weight' float32");
    expect_part(text, "on " + mine.str() + " and 'fc2.weight' float32[24, 24] on " + second.str());
    expect_part(text, "expected all that a rank has in host memory or on one GPU");
    // Next to a group on another GPU, and next to the host's.
    fully_shard(net->fc2, g);
    text = error_of([&] { fully_shard(net, g); });
    expect_part(text, "'weight' float32[24, 24] on " + second.str());
    TextNet other = text_net();
    other->fc3->to(mine);
    EXPECT_ERROR_TEXT(fully_shard(other, g), "'fc3.weight' float32[5, 24] on cuda:");
    // Nothing has changed.
    EXPECT_EQ(net->fc1->parameters()[0].dim(), 2);
    EXPECT_EQ(other->fc3->parameters()[0].dim(), 2);
  });
  with_gpu_groups(kNcclThreads, 2, seconds(60), [](const Group& g) {
    TextNet net = text_net();
    net->to(gpu(0));
    EXPECT_ERROR_TEXT(fully_shard(net, g), "NCCL wants a card for each rank");
    EXPECT_EQ(net->fc1->parameters()[0].dim(), 2);
  });
}

TEST(ShardedErrorsOnGpus, NotInACapturedStep) {
  RAMET_NEEDS_NCCL(2);
  const Gpus gpus(rank_gpus(2));
  with_gpu_groups(kNcclThreads, 2, seconds(60), [](const Group& g) {
    const Device device = gpu(g->rank());
    nn::Linear net(4, 4);
    net->to(device);
    fully_shard(net, g);
    const Tensor x = ones({2, 4}, device);
    Captured step([&](const Tensor& in) { net(in).sum().backward(); });
    EXPECT_ERROR_TEXT(step(x), "not capturable: a module's hook runs on the host");
    EXPECT_EQ(fully_shard_handle(net).state(), ShardState::sharded);
    net(x).sum().backward();  // it goes on
    EXPECT_TRUE(net->parameters()[0].grad().defined());
  });
}

// A backward that fails on one rank is an error on all of them; gradients are as before. So is an
// index that is out of range, which shows when a kernel has run.
TEST(ShardedErrorsOnGpus, BackwardsThatFail) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    for (bool in_data : {false, true})
      with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
        Trainer t(g, gpu(g->rank()), 7);
        t.backward(0);
        const Values before = all_values({t.net->parameters()[2].grad()});
        TextBatch b = text_batch(g->rank(), 1, 6, t.device);
        if (in_data && g->rank() == 1) b.ids = full_like(b.ids, 77);
        const std::string text = error_of([&] {
          const Tensor y = t.net(b.ids);
          if (!in_data && g->rank() == 1)
            y.register_hook([](const Tensor&) { throw std::logic_error("Badness!"); });
          text_loss(y, b).backward();
        });
        if (g->rank() == 1) expect_part(text, in_data ? "embedding" : "Badness!");
        else EXPECT_NE(text, "no error");
        if (in_data)
          (void)error_of([&] { cuda::synchronize(t.device.index()); });  // raises it once more
        EXPECT_EQ(all_values({t.net->parameters()[2].grad()}), before) << way;
        EXPECT_EQ(fully_shard_handle(t.net->fc1).state(), ShardState::sharded);
        EXPECT_NE(error_of([&] { t.backward(2); }), "no error");
      });
}

}  // namespace
}  // namespace ramet::testing
