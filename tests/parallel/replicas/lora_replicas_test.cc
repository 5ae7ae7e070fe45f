// A model with LoRA branches on several devices.
#include <cmath>

#include "nn/module/sequential.h"
#include "nn/utils/lora.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

struct LayersImpl : nn::Cloneable<LayersImpl> {
  LayersImpl() { LayersImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(4, 6));
    rest = register_module("rest", nn::Sequential(nn::Linear(6, 3)));
  }
  Tensor forward(const Tensor& x) { return rest->forward(first->forward(x).relu()); }
  nn::Linear first{nullptr};
  nn::Sequential rest{nullptr};
};
RAMET_MODULE(Layers);

Tensor batch() { return sin(arange(32, kFloat)).view({8, 4}); }

double farthest(const Values& a, const Values& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b.at(i)));
  return most;
}

// The replicas are made before the branches are, and follow each change. GPUs may round the sums
// of a half batch in another order.
TEST(LoRAReplicas, FollowAndTrain) {
  manual_seed(1);
  Layers net;
  net->to(kBFloat16);
  Layers alone(std::dynamic_pointer_cast<LayersImpl>(net->clone(d(0))));
  DataParallel<Layers> on_two(net, DataParallelOptions({d(0), d(1)}));
  const Tensor x = batch().to(kBFloat16);
  const auto same = [&](const char* when) {
    const Values got = values(on_two(x));
    EXPECT_LT(farthest(got, values(alone(x.to(d(0))))), 0x1p-6) << when;
    return got;
  };
  const Values first = same("without branches");
  manual_seed(2);
  nn::apply_lora(net, 2, 4);
  manual_seed(2);
  nn::apply_lora(alone, 2, 4);
  same("at first");
  const Values weight = values(net->first->weight), bias = values(net->first->bias);
  optim::SGD one(nn::lora_parameters(net), optim::SGDOptions(0.5)),
      other(nn::lora_parameters(alone), optim::SGDOptions(0.5));
  for (int step = 0; step < 20; ++step) {
    one.zero_grad();
    other.zero_grad();
    (on_two(x).to(kFloat) - 1).square().mean().backward();
    (alone(x.to(d(0))).to(kFloat) - 1).square().mean().backward();
    one.step();
    other.step();
  }
  const double rounding = d(0).is_cpu() ? 1e-5 : 2e-2;
  const std::vector<Tensor> trained = nn::lora_parameters(net),
                            expected = nn::lora_parameters(alone);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_LT(farthest(values(trained[i]), values(expected[i])), rounding) << i;
  EXPECT_EQ(values(net->first->weight), weight);
  EXPECT_EQ(values(net->first->bias), bias);
  nn::load_lora_state_dict(alone, nn::lora_state_dict(net));
  const Values after = same("trained");
  EXPECT_GT(farthest(after, first), 0.2) << "is there anything to follow?";
  nn::merge_lora(net);
  EXPECT_LT(farthest(values(on_two(x)), after), 0x1p-4);
}

}  // namespace
}  // namespace ramet
