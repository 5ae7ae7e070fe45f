// A model that is cut over processes. Each holds 1/N of the parameters, gradients and optimizer
// state, and gathers a layer's values while the layer computes. The layers compute in bfloat16, the
// optimizer works on float32. Start four on this host with
//
//   tools/launch --nproc 4 -- bazel-bin/tools/examples/processes_fully_shard
//
// Started alone, it is the only process.
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/shard/fully_shard.h"
#include "ramet.h"

using namespace ramet;

struct BlockImpl : nn::Cloneable<BlockImpl> {
  explicit BlockImpl(int64_t width) : width(width) { BlockImpl::reset(); }
  void reset() override {
    norm = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})));
    up = register_module("up", nn::Linear(width, 4 * width));
    down = register_module("down", nn::Linear(4 * width, width));
  }
  Tensor forward(const Tensor& x) { return x + down(up(norm(x)).relu()); }
  int64_t width;
  nn::LayerNorm norm{nullptr};
  nn::Linear up{nullptr}, down{nullptr};
};
RAMET_MODULE(Block);

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(10, 32));
    a = register_module("a", Block(32));
    b = register_module("b", Block(32));
    last = register_module("last", nn::Linear(32, 2));
  }
  Tensor forward(const Tensor& x) { return last(b(a(first(x)))); }
  nn::Linear first{nullptr}, last{nullptr};
  Block a{nullptr}, b{nullptr};
};
RAMET_MODULE(Net);

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  manual_seed(1);
  Net net;
  // With an even number of processes, pairs of them hold the whole, and the pairs are replicas.
  const int n = group->size();
  const auto mesh = n >= 4 && n % 2 == 0
                        ? distributed::init_device_mesh(group, {n / 2, 2}, {"replicate", "shard"})
                        : distributed::DeviceMesh(group);
  // What is gathered, and forward and backward, have bfloat16. Gradients are added in float32.
  distributed::FullyShardOptions options;
  options.mp_policy.param_dtype = kBFloat16;
  options.mp_policy.reduce_dtype = kFloat;
  // Bottom-up: a group for each block, one for what is left, which gives float32.
  distributed::fully_shard(net->a, mesh, options);
  distributed::fully_shard(net->b, mesh, options);
  options.mp_policy.output_dtype = kFloat;
  distributed::fully_shard(net, mesh, options);

  // The first block's values and then the second one's are on their way while `first` computes,
  // from the first step on.
  const auto sharded = distributed::fully_shard_handle(net);
  sharded.set_modules_to_forward_prefetch(
      {distributed::fully_shard_handle(net->a), distributed::fully_shard_handle(net->b)});

  // Made afterwards: its parameters, and so its states, are this process's shards.
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01));
  int64_t mine = 0;
  for (const Tensor& p : net->parameters()) mine += p.numel();
  std::printf("process %d of %d on mesh %s holds %lld numbers\n", group->rank(), n,
              mesh.str().c_str(), static_cast<long long>(mine));

  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  const Tensor x = randn({64, 10}), y = x.slice(1, 0, 1).gt(0).to(kLong).view({-1});
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    optimizer.zero_grad();
    double sum = 0;
    for (int64_t half = 0; half < 2; ++half) {
      // The first half's reduction goes on while the second half's forward runs.
      sharded.set_is_last_backward(half == 1);
      const auto part = [half](const Tensor& t) { return t.slice(0, 32 * half, 32 * (half + 1)); };
      const Tensor loss =
          cross_entropy_loss(net(part(x)), part(y)).div(2);  // net(x), not net->forward(x)
      loss.backward();                                       // each shard's gradient: the mean
      sum += loss.item<double>();
    }
    distributed::clip_grad_norm_(*net, 1.0);  // of the whole gradient
    optimizer.step();
    (step ? last : first) = sum;
  }
  if (group->rank() == 0) std::printf("loss %.4f, then %.4f\n", first, last);

  // Whole tensors in float32, on every process: what a module that is not sharded can load.
  const auto state = distributed::full_state_dict(*net);
  Net whole;
  {
    const NoGradGuard off;
    for (const auto& item : whole->named_parameters()) item.value().copy_(state[item.key()]);
    whole->to(kBFloat16);
    if (!whole->forward(x.to(kBFloat16)).to(kFloat).equal(net(x))) return 1;
  }
  group->barrier().wait();  // no rank leaves while others still need it
  return last < first ? 0 : 1;
}
