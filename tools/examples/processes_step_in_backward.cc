// An optimizer's step inside the backward, where several processes train. Each parameter takes its
// step as soon as it has the gradient of all ranks, and drops that gradient at once. With shards
// nothing else is left of a gradient. Start it with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_step_in_backward
//
// In one process, and for DataParallel, a parameter's own hook is the place: examples/hooks.cc.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "parallel/distributed/shard/fully_shard.h"
#include "ramet.h"

using namespace ramet;

nn::Sequential make_net() {
  manual_seed(1);
  return nn::Sequential(nn::Linear(10, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(),
                        nn::Linear(32, 2));
}

// One for each parameter, by name.
std::map<std::string, optim::AdamW> optimizers_of(const nn::Sequential& net) {
  std::map<std::string, optim::AdamW> out;
  for (const auto& item : net->named_parameters())
    out.emplace(item.key(), optim::AdamW({item.value()}, optim::AdamWOptions(0.01)));
  return out;
}

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  // Replicated: a hook of the parameter itself would see this rank's gradient, before the
  // reduction. This one comes after it, for each parameter in the same order on all ranks.
  nn::Sequential net = make_net();
  distributed::DistributedDataParallel<nn::Sequential> ddp(net, group);
  auto of_parameter = optimizers_of(net);
  ddp.register_post_sync_hook([&](const std::string& name, const Tensor& parameter) {
    of_parameter.at(name).step();
    parameter.mutable_grad().reset();
  });

  // Sharded: a shard's gradient comes reduced, so here its own hook is the place.
  nn::Sequential sharded = make_net();
  distributed::fully_shard(sharded, group);
  auto of_shard = optimizers_of(sharded);
  for (const auto& item : sharded->named_parameters())
    item.value().register_post_accumulate_grad_hook(
        [&optimizer = of_shard.at(item.key())](const Tensor& shard) {
          optimizer.step();
          shard.mutable_grad().reset();
        });

  // As ever, to compare with.
  nn::Sequential plain = make_net();
  distributed::DistributedDataParallel<nn::Sequential> other(plain, group);
  optim::AdamW optimizer(plain->parameters(), optim::AdamWOptions(0.01));

  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({64, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  for (int step = 0; step < 30; ++step) {
    const Tensor loss = cross_entropy_loss(ddp(x), y);
    loss.backward();  // and all parameters have taken their steps
    cross_entropy_loss(sharded(x), y).backward();

    optimizer.zero_grad();
    cross_entropy_loss(other(x), y).backward();
    optimizer.step();
    if (step % 10 == 9 && group->rank() == 0)
      std::printf("step %d: loss of rank 0 %.4f\n", step + 1, loss.item<double>());
  }

  bool right = true;
  const auto whole = distributed::full_state_dict(*sharded);
  for (const auto& item : plain->named_parameters()) {
    const Tensor &expected = item.value(), &p = net->named_parameters()[item.key()];
    right = right && p.equal(expected) && whole[item.key()].equal(expected) && !p.grad().defined();
  }
  group->barrier().wait();
  return right ? 0 : 1;
}
