// Meshes, modules sharded and replicated on them, and their state.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/graph/captured.h"
#include "nn/optim/sgd.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

Tensor summed_over(const std::shared_ptr<ProcessGroup>& group, double value) {
  Tensor t = full({}, value, kDouble);
  group->all_reduce(t).wait();
  return t;
}

TEST(DeviceMesh, DimensionsAndTheirGroups) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"replicate", "shard"});
    const int64_t row = g->rank() / 2, column = g->rank() % 2;
    EXPECT_EQ(mesh.ndim(), 2);
    EXPECT_EQ(mesh.size(), 4);
    EXPECT_EQ(mesh.sizes(), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(mesh.coordinate(), (std::vector<int64_t>{row, column}));
    EXPECT_EQ(mesh.str(), "(replicate=2, shard=2)");
    const DeviceMesh shard = mesh["shard"];
    EXPECT_EQ(shard.ndim(), 1);
    EXPECT_EQ(shard.names(), std::vector<std::string>{"shard"});
    EXPECT_EQ(shard.group()->rank(), column);
    EXPECT_EQ(shard.group(), mesh.group("shard"));
    EXPECT_EQ(shard.group(), mesh.group(-1));
    // Rows are ranks {0, 1} and {2, 3}; columns {0, 2} and {1, 3}.
    const double value = std::pow(10, g->rank());
    EXPECT_EQ(summed_over(shard.group(), value).item<double>(), row ? 1100 : 11);
    EXPECT_EQ(summed_over(mesh.group("replicate"), value).item<double>(), column ? 1010 : 101);
    EXPECT_EQ((mesh[std::vector<std::string>{"replicate", "shard"}].sizes()), mesh.sizes());

    EXPECT_ERROR_TEXT(mesh["pipeline"], "got \"pipeline\", expected one of [replicate, shard]");
    EXPECT_ERROR_TEXT(mesh.group(), "expected a mesh of one dimension");
    expect_part(error_of([&] {
                  mesh[std::vector<std::string>{"shard", "replicate"}];
                }),
                "in the order of [replicate, shard]");
    EXPECT_ERROR_TEXT(init_device_mesh(g, {2, 3}, {"a", "b"}),
                      "got [2, 3], 6 ranks, expected a product of 4");
    EXPECT_ERROR_TEXT(init_device_mesh(g, {int64_t{1} << 62, 4}, {"a", "b"}),
                      "product of the extents");
    EXPECT_ERROR_TEXT(init_device_mesh(g, {2, 2}, {"a", "a"}), "each once");
    EXPECT_ERROR_TEXT(init_device_mesh(g, {2, 2}, {"a"}), "2 extents and 1 names");
    EXPECT_ERROR_TEXT(init_device_mesh(g, {4, 0}, {"a", "b"}), "at least 1");
  });
  with_groups_of(6, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {1, 3, 2}, {"a", "b", "c"});
    EXPECT_EQ(mesh.coordinate(), (std::vector<int64_t>{0, g->rank() / 2, g->rank() % 2}));
    EXPECT_EQ(mesh.group("a")->size(), 1);
    EXPECT_EQ(mesh.group("b")->rank(), g->rank() / 2);
    const double value = std::pow(10, g->rank());
    EXPECT_EQ(summed_over(mesh.group("b"), value).item<double>(), g->rank() % 2 ? 101010 : 10101);
    EXPECT_EQ((mesh[std::vector<std::string>{"a", "c"}].sizes()), (std::vector<int64_t>{1, 2}));
  });
}

// Sharded inside, replicated between: the sums of sums are DDP's tree over all ranks.
TEST(HybridShard, TrainsAsDdp) {
  with_groups_of(4, [](const Group& g) {
    const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"replicate", "shard"});
    DdpOptions ddp_options;
    FullyShardOptions options;
    options.order = ddp_options.order = ReduceOrder::tree(4);
    TextNet whole = text_net(), net = text_net(24, g->rank() ? 50 : 7);
    DistributedDataParallel<TextNet> ddp(whole, g, ddp_options);
    shard_all(net, mesh, options);
    optim::SGD a(whole->parameters(), optim::SGDOptions(0.05).momentum(0.9)),
        b(net->parameters(), optim::SGDOptions(0.05).momentum(0.9));
    const auto step = [&](int number) {
      const TextBatch batch = text_batch(g->rank(), number);
      text_loss(ddp(batch.ids), batch).backward();
      text_loss(net(batch.ids), batch).backward();
    };
    for (int i = 0; i < 10; ++i) {
      a.zero_grad();
      b.zero_grad();
      step(i);
      a.step();
      b.step();
    }
    const auto state = full_state_dict(*net);
    for (const auto& item : whole->named_parameters())
      EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();

    // Sums between the replicas once for two backwards: up to rounding the same.
    a.zero_grad();
    b.zero_grad();
    const FullyShardHandle handle = fully_shard_handle(net);
    handle.set_requires_all_reduce(false);
    step(20);
    EXPECT_FALSE(net->parameters()[0].grad().defined());
    handle.set_requires_all_reduce(true);
    step(21);
    for (const TensorPart& part : tensor_parts(*net)) {
      const Tensor& want = whole->named_parameters()[part.name].grad();
      const Cut& cut = part.cuts[0];
      if (cut.length == 0) continue;
      const Tensor mine = want.reshape({-1}).slice(0, cut.begin, cut.begin + cut.length);
      EXPECT_TRUE(part.local.grad().allclose(mine, 1e-5, 1e-6)) << part.name;
    }
  });
}

// The elements that cuts keep, one at a time.
Tensor kept(Tensor t, const std::vector<Cut>& cuts) {
  t = t.contiguous().reshape({-1});
  for (const Cut& c : cuts) {
    EXPECT_EQ(t.numel(), c.outer * c.extent * c.inner);
    std::vector<Tensor> out = {t.slice(0, 0, 0)};
    for (int64_t o = 0; o < c.outer; ++o)
      for (int64_t i = c.begin; i < c.begin + c.length; ++i) {
        const int64_t at = (o * c.extent + i) * c.inner;
        out.push_back(t.slice(0, at, at + c.inner));
      }
    t = cat(out);
  }
  return t;
}

TEST(ShardState, PartsAndWholes) {
  OrderedDict<std::string, Tensor> saved;
  for (int n : {2, 3, 1}) {
    OrderedDict<std::string, Tensor> written;
    with_groups_of(n, [&](const Group& g) {
      TextNet net = text_net(24, 5);
      net->fc1->register_buffer("scale", full({3}, 2.0));
      const auto before = net->named_parameters();
      std::vector<Tensor> values;
      for (const auto& item : before) values.push_back(item.value().detach().clone());
      shard_all(net, DeviceMesh(g));
      auto state = full_state_dict(*net);
      std::vector<std::string> keys = before.keys();
      keys.push_back("fc1.scale");
      EXPECT_EQ(state.keys(), keys);
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(same_bits(state[i].value(), values[i]));

      const auto parts = tensor_parts(*net);
      ASSERT_EQ(parts.size(), keys.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        EXPECT_EQ(parts[i].name, keys[i]);
        EXPECT_EQ(IntArrayRef(parts[i].sizes), state[i].value().sizes());
        EXPECT_TRUE(same_bits(parts[i].local.detach().reshape({-1}),
                              kept(state[i].value(), parts[i].cuts)));
      }
      EXPECT_TRUE(parts.back().cuts.empty());

      // Into another number of ranks.
      if (saved.size()) {
        load_full_state_dict(*net, saved);
        const auto loaded = full_state_dict(*net);
        for (const auto& item : saved)
          EXPECT_TRUE(same_bits(loaded[item.key()], item.value())) << item.key();
        const TextBatch batch = text_batch(0, 1);
        TextNet plain = text_net(24, 1);
        const NoGradGuard off;
        for (const auto& item : plain->named_parameters()) item.value().copy_(saved[item.key()]);
        EXPECT_TRUE(same_bits(net(batch.ids), plain(batch.ids)));
      }
      auto wrong = state;
      wrong["fc2.bias"] = zeros({3});
      EXPECT_ERROR_TEXT(load_full_state_dict(*net, wrong), "'fc2.bias': got float32[3]");
      wrong.erase("fc2.bias");
      EXPECT_ERROR_TEXT(load_full_state_dict(*net, wrong), "'fc2.bias' is missing");
      state.insert("fc9.bias", zeros({3}));
      EXPECT_ERROR_TEXT(load_full_state_dict(*net, state), "'fc9.bias' is unknown");
      EXPECT_ERROR_TEXT(tensor_parts(*net->norm), "belongs to a group of a module above");
      g->barrier().wait();
      if (g->rank() == 0) {
        TextNet other = text_net(24, 100 + static_cast<uint64_t>(n));
        for (const auto& item : other->named_parameters())
          written.insert(item.key(), item.value().detach().clone());
        written.insert("fc1.scale", full({3}, 1.0 * n));
      }
    });
    saved = written;
  }
}

TEST(ShardState, GradientNorms) {
  with_groups_of(3, [](const Group& g) {
    for (double p : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
      TextNet net = text_net(), whole = text_net();
      shard_all(net, DeviceMesh(g));
      DistributedDataParallel<TextNet> ddp(whole, g);
      const TextBatch batch = text_batch(g->rank(), 1);
      text_loss(net(batch.ids), batch).backward();
      text_loss(ddp(batch.ids), batch).backward();
      const double limit = 0.01;
      const Tensor total = get_total_norm(*net, p);
      EXPECT_EQ(total.scalar_type(), kDouble);
      // A capture wants no number of the host: an Error before ranks communicate.
      Captured step([&] { clip_grad_norm_(*net, limit, p); });
      EXPECT_ERROR_TEXT(
          step(),
          "[clip_grad_norm_] not capturable: the host reads the norm; get_total_norm and "
          "clip_grads_with_norm_ leave it on the device");
      const double norm = clip_grad_norm_(*net, limit, p),
                   expected = nn::utils::clip_grad_norm_(whole->parameters(), limit, p);
      EXPECT_GT(expected, limit);
      EXPECT_EQ(total.item<double>(), norm);
      EXPECT_NEAR(norm, expected, 1e-6 * expected);
      for (const TensorPart& part : tensor_parts(*net)) {
        const Tensor want = kept(whole->named_parameters()[part.name].grad(), part.cuts);
        EXPECT_TRUE(part.local.grad().allclose(want, 1e-5, 1e-9)) << part.name;
      }
      EXPECT_ERROR_TEXT(clip_grad_norm_(*net, limit, 0), "expected more than 0");
    }
  });
}

}  // namespace
}  // namespace ramet::distributed
