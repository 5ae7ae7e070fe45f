// Batch norms that freeze() folds into convolutions, compared with PyTorch's frozen modules.
#include <gtest/gtest.h>

#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/pt.h"
#include "nn/script/module_internal.h"
#include "nn/script/script.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

int own_forwards(const jit::Module& module) {
  int count = 0;
  std::vector<std::shared_ptr<script::Object>> waiting{jit::ModuleAccess::loaded(module).object};
  while (!waiting.empty()) {
    const auto object = waiting.back();
    waiting.pop_back();
    if (object->own_forward) ++count;
    for (const IValue& value : object->slots)
      if (auto child = script::module_in(value)) waiting.push_back(std::move(child));
  }
  return count;
}

Tensor folded_input() {
  const auto rows = formats::load_pt(file("frozen_values")).toGenericDict();
  return rows.at("folded_scripted").toGenericDict().at("inputs").toList().get(0).toTensor();
}

// PyTorch's frozen module leaves five batch norms of twelve, too.
TEST(FoldedBatchNorms, GiveWhatPyTorchsDo) {
  for (const std::string name : {"folded_scripted", "folded_traced"}) {
    SCOPED_TRACE(name);
    const jit::Module net = jit::load(file(name));
    const auto row =
        formats::load_pt(file("frozen_values")).toGenericDict().at(name).toGenericDict();
    const Tensor x = row.at("inputs").toList().get(0).toTensor();
    const NoGradGuard off;
    const Tensor unfolded = net.forward({x}).toTensor();
    const jit::Module folded = jit::freeze(net);
    EXPECT_EQ(own_forwards(folded), 2 * 7);
    EXPECT_EQ(own_forwards(net), 0);
    const Tensor got = folded.forward({x}).toTensor();
    EXPECT_FALSE(got.equal(unfolded)) << "it computes with other weights";
    const jit::Module same = jit::freeze(net, std::nullopt, /*optimize_numerics=*/false);
    EXPECT_EQ(own_forwards(same), 0);
    EXPECT_TRUE(same.forward({x}).toTensor().equal(unfolded));
    EXPECT_EQ(own_forwards(jit::optimize_for_inference(net)), 2 * 7);
    // In float64 only rounding is left.
    net.to(kDouble);
    const Tensor exact = net.forward({x.to(kDouble)}).toTensor();
    const auto error = [&](const Tensor& y) {
      return ((y.to(kDouble) - exact).abs().max() / exact.abs().max()).item<double>();
    };
    const double theirs = error(row.at("result").toTensor());
    EXPECT_LT(theirs, 1e-3) << "PyTorch's own";
    EXPECT_LE(error(got), 2 * theirs + 1e-6);
    const Tensor in_double = jit::freeze(net).forward({x.to(kDouble)}).toTensor();
    EXPECT_TRUE(in_double.allclose(exact, 1e-12, 1e-12));
  }
}

// Statistics in float32 with weights in bfloat16: the new weights are bfloat16.
TEST(FoldedBatchNorms, KeepTheDtypeOfWeights) {
  const jit::Module net = jit::load(file("folded_scripted"));
  const Tensor x = folded_input().to(kBFloat16);
  const NoGradGuard off;
  for (const auto& each : net.named_modules())
    if (each.value.type_name().find("Norm") == std::string::npos)
      for (const auto& p : each.value.named_parameters(false))
        p.value.set_data(p.value.to(kBFloat16));
  const jit::Module folded = jit::freeze(net);
  EXPECT_EQ(own_forwards(folded), 2 * 7);
  const Tensor want = net.forward({x}).toTensor(), got = folded.forward({x}).toTensor();
  EXPECT_EQ(got.scalar_type(), kBFloat16);
  const jit::Module wide = net.deepcopy();
  wide.to(kDouble);
  const Tensor exact = wide.forward({x.to(kDouble)}).toTensor();
  const auto error = [&](const Tensor& y) {
    return ((y.to(kDouble) - exact).square().mean() / exact.square().mean()).sqrt().item<double>();
  };
  EXPECT_LE(error(got), 1.5 * error(want));
  // Weights in float64 with statistics in float32 are left as they are.
  net.to(kFloat);
  for (const auto& p : net.named_parameters())
    if (p.name.find("first.0") == 0) p.value.set_data(p.value.to(kDouble));
  EXPECT_EQ(own_forwards(jit::freeze(net)), 2 * 6);
}

TEST(FoldedBatchNorms, LeaveWhatIsPreserved) {
  const jit::Module net = jit::load(file("folded_scripted"));
  const NoGradGuard off;
  for (const std::string name : {"up", "up_norm", "up_norm.running_mean"})
    EXPECT_EQ(own_forwards(jit::freeze(net, std::vector<std::string>{name})), 2 * 6) << name;
  EXPECT_EQ(own_forwards(jit::freeze(net, std::vector<std::string>{"shared"})), 2 * 7);
}

// A ScriptModule may change what was folded: then both modules compute as before.
TEST(FoldedBatchNorms, EndWhereAttributesChange) {
  const jit::Module frozen = jit::freeze(jit::load(file("folded_scripted")));
  const jit::Module same =
      jit::freeze(jit::load(file("folded_scripted")), std::nullopt, /*optimize_numerics=*/false);
  const auto folded_net = std::make_shared<script::ScriptModule>(frozen);
  const auto plain_net = std::make_shared<script::ScriptModule>(same);
  auto &folded = *folded_net, &plain = *plain_net;
  const Tensor x = folded_input();
  const NoGradGuard off;
  EXPECT_FALSE(folded.forward(x).equal(plain.forward(x)));

  for (script::ScriptModule* each : {&folded, &plain})
    for (const auto& module : each->named_modules())
      for (const auto& buffer : module.value()->named_buffers(false))
        if (buffer.key() == "running_mean") buffer.value().add_(1);
  EXPECT_TRUE(folded.forward(x).equal(plain.forward(x)));
  const auto copy = plain.clone(Device(kCPU, 1)), other = folded.clone(Device(kCPU, 1));
  auto& mine = dynamic_cast<script::ScriptModule&>(*other);
  EXPECT_TRUE(mine.forward(x.to(Device(kCPU, 1))).cpu().equal(plain.forward(x)));
  for (script::ScriptModule* each : {&folded, &plain}) each->train();
  EXPECT_TRUE(folded.forward(x).equal(plain.forward(x)));
}

// The file has all attributes and batch norms.
TEST(FoldedBatchNorms, AreSavedAsTheyWere) {
  const jit::Module net = jit::load(file("folded_scripted"));
  const Tensor x = folded_input();
  const NoGradGuard off;
  std::stringstream bytes;
  jit::freeze(net).save(bytes);
  EXPECT_TRUE(jit::load(bytes).forward({x}).toTensor().equal(net.forward({x}).toTensor()));
}

}  // namespace
}  // namespace ramet
