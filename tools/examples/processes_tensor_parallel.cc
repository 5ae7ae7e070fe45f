// Layers that are cut over processes: the first one by its outputs, the second one by its inputs, so
// that between them nothing is exchanged. Start two on this host with
//
//   tools/launch --nproc 2 -- bazel-bin/tools/examples/processes_tensor_parallel
//
// Started alone, it is the only process.
#include <cstdio>
#include <cstdlib>

#include "parallel/distributed/shard/tensor_parallel.h"
#include "ramet.h"

using namespace ramet;

int main() {
  const bool launched =
      std::getenv("RANK") || std::getenv("OMPI_COMM_WORLD_RANK") || std::getenv("SLURM_PROCID");
  auto group = launched ? distributed::init_process_group() : distributed::make_local_groups(1)[0];

  // The same whole layers, and the same data, on every process.
  manual_seed(1);
  nn::Embedding words(48, 16);
  nn::Linear up(16, 96), down(96, 48);
  const Tensor ids = randint(0, 48, {32}, kLong), next = (ids + 1).remainder(48);

  distributed::ParallelEmbedding cut_words(words, group);
  distributed::ColumnParallelLinear cut_up(up, group);
  distributed::RowParallelLinear cut_down(down, group);
  std::vector<Tensor> parameters;
  for (const nn::Module* m : {static_cast<const nn::Module*>(cut_words.get()),
                              static_cast<const nn::Module*>(cut_up.get()),
                              static_cast<const nn::Module*>(cut_down.get())})
    for (const Tensor& p : m->parameters()) parameters.push_back(p);
  optim::Adam optimizer(parameters, optim::AdamOptions(0.01));

  const auto forward = [&] { return cut_down(cut_up(cut_words(ids)).relu()); };
  const Tensor whole = down(up(words(ids)).relu());
  if (!forward().allclose(whole, 1e-4, 1e-5)) return 1;  // another order of additions
  double loss = 0;
  for (int step = 0; step < 40; ++step) {
    optimizer.zero_grad();
    const Tensor y = cross_entropy_loss(forward(), next);
    y.backward();
    optimizer.step();
    loss = y.item<double>();
    if (step % 20 == 0 && group->rank() == 0) std::printf("step %d: loss %.4f\n", step, loss);
  }
  std::printf("process %d of %d: weight of the first layer %lld x %lld, loss %.4f\n", group->rank(),
              group->size(), static_cast<long long>(cut_up->weight.size(0)),
              static_cast<long long>(cut_up->weight.size(1)), loss);
  group->barrier().wait();
  return loss < 1 ? 0 : 1;
}
