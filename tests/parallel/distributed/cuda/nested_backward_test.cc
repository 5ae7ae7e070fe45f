// Backwards inside a backward on GPUs, for every order of streams. They bring gradients from
// replicas' Functions, and sums run on the communication stream at the same time.
#include "autograd/autograd.h"
#include "nn/module/cloneable.h"
#include "parallel/apply/data_parallel.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/ddp/recomputed.h"

namespace ramet::testing {
namespace {

using distributed::How;
using distributed::part;
using distributed::Piece;

// w is used inside a part that is computed again and also outside of it, v only outside of it.
struct WeightsImpl : nn::Cloneable<WeightsImpl> {
  WeightsImpl() { WeightsImpl::reset(); }
  void reset() override {
    w = register_parameter("w", ones({20000}));
    v = register_parameter("v", ones({20000}));
  }
  Tensor forward(const Tensor& x) {
    const Piece piece{[this](const Tensor& t) { return w * t.sum() * 2; }, {w}};
    return (part(how, piece, x) + w * 1 + v * 1).view({1, -1});
  }
  How how = How::plain;
  Tensor w, v;
};
RAMET_MODULE(Weights);

TEST(NestedOnGpus, OfReplicas) {
  RAMET_NEEDS_CARDS(2);
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Lazy, emulated::StreamMode::Random, emulated::StreamMode::Async})
    for (const How how : {How::plain, How::again, How::again_and_says}) {
      const Gpus two(rank_gpus(2, mode));
      Weights net;
      net->how = how;
      net->to(gpu(0));
      nn::parallel::DataParallel<Weights> dp(
          net, nn::parallel::DataParallelOptions(std::vector<Device>{gpu(0), gpu(1)}));
      for (int step = 0; step < 6; ++step) {
        net->zero_grad();
        dp(ones({2, 1}, gpu(0)).set_requires_grad(true)).sum().backward();
        for (const auto& [t, expected] : {std::pair(net->w, 6.0), std::pair(net->v, 2.0)}) {
          ASSERT_EQ(t.grad().min().item<double>(), expected) << static_cast<int>(how) << step;
          ASSERT_EQ(t.grad().max().item<double>(), expected) << static_cast<int>(how) << step;
        }
      }
    }
}

TEST(NestedOnGpus, OverRanksAndReplicas) {
  RAMET_NEEDS_CARDS(4);
  const Gpus four(rank_gpus(4, emulated::StreamMode::Random));
  for (const Way& way : ways({kStagedThreads, kNcclThreads}))
    for (const How how : {How::again, How::again_and_says})
      with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
        Weights net;
        net->how = how;
        net->to(gpu(2 * g->rank()));
        distributed::DdpOptions o;
        o.devices = {gpu(2 * g->rank()), gpu(2 * g->rank() + 1)};
        distributed::DistributedDataParallel<Weights> ddp(net, g, o);
        for (int step = 0; step < 3; ++step) {
          net->zero_grad();
          const Tensor x =
              full({2, 1}, g->rank() + 1.0, gpu(2 * g->rank())).set_requires_grad(true);
          ddp(x).sum().backward();
          EXPECT_EQ(net->w.grad().min().item<double>(), 2 * (2 * 1.5 + 1)) << step;
          EXPECT_EQ(net->w.grad().max().item<double>(), 2 * (2 * 1.5 + 1)) << step;
        }
      });
}

}  // namespace
}  // namespace ramet::testing
