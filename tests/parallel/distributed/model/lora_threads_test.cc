// LoRA branches in float32 over a bfloat16 model, on two ranks: the same as one process.
#include "nn/layers/basic/activation.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/utils/lora.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed::lora_tests {
namespace {

constexpr int kBoth = 2, kLearned = 5;

Tensor filled(IntArrayRef sizes, double start) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return sin(arange(n, kFloat) * 0.7 + start).view(sizes);
}
nn::Sequential made() {
  nn::Sequential net{nn::Linear(4, 6), nn::ReLU(), nn::Linear(6, 3)};
  const auto fill = [&](bool branches) {
    const NoGradGuard off;
    double start = 0;
    for (const auto& p : net->named_parameters())
      if ((p.key().find("lora_") != std::string::npos) == branches)
        p.value().copy_(filled(p.value().sizes(), start += 1) * 0.5);
  };
  fill(false);
  net->to(kBFloat16);
  nn::apply_lora(net, 2, 4);
  fill(true);
  return net;
}
Tensor loss_of(const Tensor& y) { return (y.to(kFloat) - 1).square().sum(); }
Tensor part(int step, int rank) { return filled({3, 4}, 10 * step + rank).to(kBFloat16); }

// Each rank gets what one process makes of both parts.
template <class Wrap> void expect_same_as_alone(const Wrap& wrap) {
  nn::Sequential alone = made();
  optim::AdamW adam(nn::lora_parameters(alone), optim::AdamWOptions(0.05));
  const Tensor first = alone(part(0, 0)).detach();
  for (int step = 0; step < kLearned; ++step) {
    adam.zero_grad();
    for (int rank = 0; rank < kBoth; ++rank) loss_of(alone(part(step, rank))).backward();
    adam.step();
  }
  const Tensor expected = alone(part(0, 0)).detach();
  EXPECT_GT((expected - first).abs().max().item<double>(), 0.2) << "it learns nothing";
  with_groups(kBoth, seconds(60), [&](const Group& group) {
    nn::Sequential net = made();
    auto model = wrap(net, group);
    optim::AdamW own(nn::lora_parameters(net), optim::AdamWOptions(0.05));
    for (int step = 0; step < kLearned; ++step) {
      own.zero_grad();
      loss_of(model(part(step, group->rank()))).backward();
      own.step();
    }
    const Tensor y = model(part(0, 0)).detach();
    EXPECT_LE((y - expected).abs().max().template item<double>(), 0x1p-6);
  });
}

TEST(LoRARanks, DistributedDataParallel) {
  expect_same_as_alone([](nn::Sequential net, const Group& group) {
    DdpOptions options;
    options.average = Average::sum;
    const auto ddp = std::make_shared<DistributedDataParallel<nn::Sequential>>(net, group, options);
    return [ddp](const Tensor& x) { return (*ddp)(x); };
  });
}

TEST(LoRARanks, FullyShard) {
  expect_same_as_alone([](nn::Sequential net, const Group& group) {
    FullyShardOptions options;
    options.average = Average::sum;
    fully_shard(net, group, options);
    EXPECT_ERROR_TEXT(nn::merge_lora(net), "[merge_lora] got shards of a weight");
    EXPECT_ERROR_TEXT(nn::lora_state_dict(net), "[lora_state_dict] '0.lora_A': got shards of its");
    EXPECT_ERROR_TEXT(nn::load_lora_state_dict(net, {}), "[load_lora_state_dict] '0.lora_A'");
    return [net](const Tensor& x) mutable { return net(x); };
  });
}

}  // namespace
}  // namespace ramet::distributed::lora_tests
