// fully_shard with ranks as threads, with backwards through different parts of the modules: in
// which order the ranks communicate.
#include <gtest/gtest.h>

#include "nn/module/sequential.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

enum class Uses { once, first_layer_again, inside_another };

// Rank 1's loss is of the first layer alone. Its backward does not need the values of that layer.
Tensor loss_of(TextNet net, nn::Sequential outer, int rank, Uses uses) {
  Tensor early;
  const auto hook = net->fc1->register_forward_hook(
      [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) { early = y[0]; });
  const Tensor ids = text_batch(rank, 1).ids, y = outer.is_empty() ? net(ids) : outer(ids);
  net->fc1->remove_forward_hook(hook);
  if (uses == Uses::first_layer_again) net->fc1(full({2, 32}, 0.5));
  return (rank ? early : y).pow(2).sum();
}

// Rank 1 comes to wait for rank 0's gradients, which need values that it has a part of.
TEST(FullyShardOrder, BackwardsThatEndEarly) {
  for (const Uses uses : {Uses::once, Uses::first_layer_again, Uses::inside_another})
    with_groups(2, seconds(20), [uses](const Group& g) {
      TextNet net = text_net(), whole[] = {text_net(), text_net()};
      for (TextNet n : {net, whole[0], whole[1]}) n->words->weight.set_requires_grad(false);
      shard_all(net, DeviceMesh(g));
      // Its last layer is used after those inside, and given back after the forward.
      nn::Sequential outer{nullptr};
      if (uses == Uses::inside_another) fully_shard(outer = nn::Sequential(net), g);
      for (int step = 0; step < 2; ++step) loss_of(net, outer, g->rank(), uses).backward();
      for (const int r : {0, 1})
        for (int step = 0; step < 2; ++step)
          loss_of(whole[r], nn::Sequential(nullptr), r, uses).backward();
      for (const TensorPart& part : tensor_parts(*net)) {
        const Tensor a = whole[0]->named_parameters()[part.name].grad(),
                     b = whole[1]->named_parameters()[part.name].grad();
        EXPECT_EQ(part.local.grad().defined(), a.defined()) << part.name;
        if (!a.defined()) continue;
        const Tensor want = (b.defined() ? a + b : a).div(2).reshape({-1});
        const Cut& cut = part.cuts[0];
        EXPECT_TRUE(part.local.grad().allclose(want.slice(0, cut.begin, cut.begin + cut.length),
                                               1e-6, 1e-7))
            << part.name;
      }
    });
}

}  // namespace
}  // namespace ramet::distributed
