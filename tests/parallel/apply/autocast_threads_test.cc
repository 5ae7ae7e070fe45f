// Data-parallel training under autocast: each replica's thread has the caller's state, and casts
// its own parameters.
#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/ops.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/sgd.h"
#include "parallel/apply/data_parallel.h"
#include "tests/values.h"

namespace ramet {
namespace {

using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;

// The layer in the middle runs twice, so its casts are used twice. `again`: both are computed again
// in the backward pass.
struct TiedImpl : nn::Cloneable<TiedImpl> {
  nn::Linear first{nullptr}, middle{nullptr}, last{nullptr};
  bool again;
  explicit TiedImpl(bool computed_again = false) : again(computed_again) { TiedImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(4, 8));
    middle = register_module("middle", nn::Linear(8, 8));
    last = register_module("last", nn::Linear(8, 2));
  }
  Tensor twice(const Tensor& x) {
    Tensor h = middle->forward(middle->forward(x).tanh());
    EXPECT_EQ(h.scalar_type(), kBFloat16);
    return h;
  }
  Tensor forward(const Tensor& x) {
    const auto fn = [this](const Tensor& t) { return twice(t); };
    const Tensor in = first->forward(x), h = again ? autograd::checkpoint(fn, in) : fn(in);
    return last->forward(h.tanh());
  }
};
RAMET_MODULE(Tied);

// The parameters after a few steps. `whole`: one guard around all of them.
std::vector<double> trained(const std::vector<Device>& devices, bool whole, bool again = false) {
  manual_seed(5);
  Tied net(again);
  optim::SGD sgd(net->parameters(), optim::SGDOptions(0.1));
  DataParallelOptions options;
  options.devices = devices;
  options.order = parallel::ReduceOrder::tree(2);
  DataParallel<Tied> model(net, options);
  std::optional<AutocastGuard> around;
  if (whole) around.emplace(kCPU);
  for (int step = 0; step < 5; ++step) {
    const Tensor x = randn({8, 4}), y = randn({8, 2});
    Tensor loss;
    {
      const AutocastGuard guard(kCPU);
      const Tensor out = model(x);
      EXPECT_EQ(out.scalar_type(), kBFloat16);
      loss = mse_loss(out, y);
    }
    sgd.zero_grad();
    loss.backward();
    sgd.step();
  }
  std::vector<double> all;
  for (const Tensor& p : net->parameters()) {
    EXPECT_EQ(p.scalar_type(), kFloat);
    for (const double v : values(p)) all.push_back(v);
  }
  return all;
}

TEST(DataParallelAutocast, AnyNumberOfDevicesHasTheSameBits) {
  const Device first(kCPU, 0), second(kCPU, 1);
  const std::vector<double> one = trained({first}, false);
  EXPECT_EQ(trained({first, second}, false), one);
  EXPECT_EQ(trained({first, second}, true), one);
  EXPECT_EQ(trained({first}, true), one);
  for (const bool whole : {false, true})
    EXPECT_EQ(trained({first, second}, whole, /*again=*/true), one);
}

}  // namespace
}  // namespace ramet
