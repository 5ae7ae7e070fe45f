// A module from a TorchScript file on several devices.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "nn/script/script.h"
#include "parallel/apply/data_parallel.h"
#include "parallel/replicas/replicate.h"
#include "tests/values.h"

namespace ramet {
namespace {

const std::string kScripted = "tests/nn/script/goldens/cnn_scripted.pt";

std::shared_ptr<script::ScriptModule> scripted() {
  auto net = script::load(kScripted);
  net->eval();
  net->to(kDouble);
  return net;
}

TEST(ScriptReplicas, GiveTheModulesOutputsAndGradients) {
  const auto net = scripted(), alone = scripted();
  const Tensor x = randn({6, 3, 8, 8}, kDouble);
  const Tensor want = alone->forward(x);
  want.square().sum().backward();
  const auto replicas = nn::parallel::replicate(net, {Device(kCPU, 0), Device(kCPU, 1)});
  ASSERT_EQ(replicas.size(), 2u);
  const std::vector<Tensor> parts = x.chunk(2);
  Tensor loss;
  for (size_t i = 0; i < 2; ++i) {
    const Device device(kCPU, static_cast<DeviceIndex>(i));
    const Tensor y = replicas[i]->forward(parts[i].to(device));
    EXPECT_EQ(y.device(), device);
    EXPECT_TRUE(allclose(y.to(Device(kCPU, 0)), want.chunk(2)[i], 1e-12, 1e-12));
    const Tensor part = y.square().sum().to(Device(kCPU, 0));
    loss = loss.defined() ? loss + part : part;
  }
  loss.backward();
  const auto ours = net->named_parameters(), theirs = alone->named_parameters();
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& p : ours)
    EXPECT_TRUE(allclose(p.value().grad(), theirs[p.key()].grad(), 1e-9, 1e-12)) << p.key();
}

// Its graph makes positions on "cpu", which every replica takes as its own device.
TEST(ScriptReplicas, OfExportedCodeWithADevice) {
  const auto net = script::load("tests/nn/script/goldens/exported/gpt_2.15.pt2");
  const Tensor ids = tensor({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).view({2, 5});
  const Tensor want = net->forward(ids).detach();
  for (int i = 1; i < 3; ++i) {
    const Device device(kCPU, static_cast<DeviceIndex>(i));
    const auto replicas = nn::parallel::replicate(net, {Device(kCPU, 0), device});
    const Tensor y = replicas[1]->forward(ids.to(device));
    EXPECT_EQ(y.device(), device);
    EXPECT_TRUE(allclose(y.to(Device(kCPU, 0)), want, 1e-12, 1e-12));
  }
}

TEST(ScriptReplicas, RunDataParallel) {
  const auto net = scripted();
  const Tensor x = randn({6, 3, 8, 8}, kDouble), want = net->forward(x).detach();
  const std::vector<Device> devices = {Device(kCPU, 0), Device(kCPU, 1)};
  const Tensor y = nn::parallel::data_parallel(net, x, devices);
  EXPECT_TRUE(allclose(y, want, 1e-12, 1e-12));
}

}  // namespace
}  // namespace ramet
