// What a script's module shares with other modules: captures, checkpoints, files, autocast, ONNX,
// threads; and what observers see of it.
#include <gtest/gtest.h>

#include <mutex>
#include <sstream>
#include <thread>

#include "autograd/autocast.h"
#include "autograd/checkpoint.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/onnx.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/checkpoint.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/script/script.h"
#include "runtime/devices/generator.h"
#include "runtime/observe/observer.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_files.h"

namespace ramet {
namespace {

using namespace script_files;  // NOLINT

std::shared_ptr<script::ScriptModule> double_net(const std::string& name) {
  auto net = script::load(file(name));
  net->to(kDouble);
  return net;
}
Tensor pictures(int step) {
  return randn({4, 3, 8, 8}, Generator(Device(kCPU, 0), static_cast<uint64_t>(step)),
               TensorOptions(kDouble));
}
Tensor classes() { return tensor({0, 3, 1, 2}); }

void expect_same_tensors(nn::Module& a, nn::Module& b) {
  const auto ours = a.named_parameters(), theirs = b.named_parameters();
  ASSERT_EQ(ours.keys(), theirs.keys());
  for (const auto& p : ours) EXPECT_TRUE(p.value().equal(theirs[p.key()])) << p.key();
  const auto mine = a.named_buffers(), others = b.named_buffers();
  ASSERT_EQ(mine.keys(), others.keys());
  for (const auto& t : mine) EXPECT_TRUE(t.value().equal(others[t.key()])) << t.key();
}

Tensor train(script::ScriptModule& net, optim::Optimizer& optimizer, const Tensor& x) {
  optimizer.zero_grad();
  const Tensor loss = cross_entropy_loss(net.forward(x), classes());
  loss.backward();
  optimizer.step();
  return loss.detach();
}

TEST(ScriptUse, ACapturedStepHasTheBitsOfEagerOnes) {
  const auto eager = double_net("cnn_scripted"), net = double_net("cnn_scripted");
  optim::Adam a(eager->parameters(), optim::AdamOptions(0.01)),
      b(net->parameters(), optim::AdamOptions(0.01));
  Captured step([&](const Tensor& x) { return train(*net, b, x); });
  for (int i = 0; i < 6; ++i)
    EXPECT_TRUE(step(pictures(i)).equal(train(*eager, a, pictures(i)))) << i;
  EXPECT_LE(step.size(), 2u);  // the first step makes the optimizer's states
  expect_same_tensors(*net, *eager);
}

TEST(ScriptUse, ACaptureRefusesCodeThatReadsValues) {
  const jit::Module net = jit::load(file("beam"));
  Captured step([&](const Tensor& x) { net({x, 3, 4}); });
  EXPECT_ERROR_TEXT(step(randn({1, 5})), "not capturable");
}

TEST(ScriptUse, ACheckpointOfTheForwardHasItsGradients) {
  const auto plain = double_net("mlp_scripted"), again = double_net("mlp_scripted");
  const Tensor x = randn({4, 5}, TensorOptions(kDouble));
  plain->forward(x).square().sum().backward();
  autograd::checkpoint([&](const Tensor& t) { return again->forward(t); }, x)
      .square()
      .sum()
      .backward();
  for (const auto& p : plain->named_parameters())
    EXPECT_TRUE(again->named_parameters()[p.key()].grad().equal(p.value().grad())) << p.key();
}

TEST(ScriptUse, ARunGoesOnFromACheckpoint) {
  const auto whole = double_net("cnn_scripted"), first = double_net("cnn_scripted"),
             second = double_net("cnn_scripted");
  optim::Adam a(whole->parameters()), b(first->parameters()), c(second->parameters());
  for (int i = 0; i < 4; ++i) train(*whole, a, pictures(i));
  for (int i = 0; i < 2; ++i) train(*first, b, pictures(i));
  std::stringstream held;
  {
    serialize::OutputArchive archive;
    Checkpoint().add("model", *first).add("optimizer", b).save(archive);
    archive.save_to(held);
  }
  serialize::InputArchive archive;
  archive.load_from(held);
  Checkpoint().add("model", *second).add("optimizer", c).load(archive);
  for (int i = 2; i < 4; ++i) train(*second, c, pictures(i));
  expect_same_tensors(*second, *whole);
  // What the archive of TorchScript gets is what was trained.
  std::stringstream file;
  second->script().save(file);
  expect_same_tensors(*script::load(file), *whole);
}

TEST(ScriptUse, AutocastOfTheCallerHolds) {
  const auto net = script::load(file("mlp_scripted"));
  const Tensor x = randn({4, 5}), y = net->forward(x);
  const AutocastGuard on(kCPU);
  const Tensor low = net->forward(x);
  EXPECT_EQ(low.scalar_type(), kBFloat16);
  EXPECT_TRUE(allclose(low.to(kFloat), y, 0.05, 0.05));
  const jit::Module blocks = jit::load(file("blocks"));
  EXPECT_TRUE(blocks({randn({2, 3}), 2}).toTupleRef().elements()[3].toBool());
}

TEST(ScriptUse, AutocastOfTheCodeEndsWithItsBlock) {
  const jit::Module net = jit::load(file("blocks"));
  const Tensor x = randn({2, 3});
  const std::vector<IValue> got = net({x, 2}).toTupleRef().elements();
  const Tensor low = got[1].toTensorVector()[1];
  const Tensor weight = net.named_parameters()[0].value, bias = net.named_parameters()[1].value;
  const Tensor want = linear(x.to(kBFloat16), weight.to(kBFloat16), bias.to(kBFloat16)).to(kFloat);
  EXPECT_TRUE(low.equal(want));
  EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  EXPECT_FALSE(got[3].toBool());
}

TEST(ScriptUse, ListsOfADictionarysValuesHaveTheirType) {
  const jit::Module net = jit::load(file("blocks"));
  const std::vector<IValue> got = net({randn({2, 3}), 0}).toTupleRef().elements();
  EXPECT_TRUE(got[1].isTensorList());
  EXPECT_EQ(got[1].toTensorVector().size(), 1u);
  EXPECT_TRUE(got[2].isIntList());
  EXPECT_EQ(got[2].toIntVector(), std::vector<int64_t>{0});
}

TEST(ScriptUse, ObserversSeeLinesAndSpans) {
  const jit::Module net = jit::load(file("blocks"));
  std::vector<std::string> begun;
  int64_t open = 0;
  Observer observer;
  observer.scope_begin = [&](const Scope& scope) {
    std::string path = scope.name;
    for (const Scope* up = scope.parent; up; up = up->parent) path = up->name + " > " + path;
    begun.push_back(path);
    ++open;
  };
  observer.scope_end = [&](const Scope&) { --open; };
  const uint64_t number = add_observer(observer);
  net({randn({2, 3}), 2});
  EXPECT_NE(error_of([&] { net({randn({2, 4}), 2}); }), "no error");
  remove_observer(number);
  EXPECT_EQ(open, 0);
  const auto has = [&](const std::string& start, const std::string& part, const std::string& end) {
    for (const std::string& path : begun)
      if (path.rfind(start, 0) == 0 && path.find(part) != path.npos && path.size() >= end.size() &&
          path.compare(path.size() - end.size(), end.npos, end) == 0)
        return true;
    return false;
  };
  EXPECT_TRUE(has(
      "inner > ", "/linear.py:",
      " in __torch__.torch.nn.modules.linear." + std::string("___torch_mangle_60.Linear.forward")));
  EXPECT_TRUE(has("", "make_goldens.py:", " in __torch__.Blocks.forward"));
}

// The functional form of the same net.
struct PlainImpl : nn::Module {
  PlainImpl() {
    layers =
        register_module("layers", nn::Sequential(nn::Linear(5, 8), nn::Tanh(), nn::Linear(8, 8),
                                                 nn::ReLU(), nn::Linear(8, 3)));
  }
  Tensor forward(const Tensor& x) {
    const auto p = named_parameters();
    const auto layer = [&](const std::string& i, const Tensor& h) {
      return linear(h, p["layers." + i + ".weight"], p["layers." + i + ".bias"]);
    };
    return log_softmax(layer("4", relu(layer("2", tanh(layer("0", x))))), -1);
  }
  nn::Sequential layers{nullptr};
};

TEST(ScriptUse, AnOnnxFileIsThatOfTheSameOperations) {
  const auto net = script::load(file("mlp_scripted"));
  PlainImpl plain;
  {
    const NoGradGuard off;
    const auto values = net->named_parameters();
    for (const auto& p : plain.named_parameters()) p.value().copy_(values[p.key()]);
  }
  const std::vector<Tensor> inputs = {randn({2, 5})};
  const OnnxOptions options;
  const std::string ours = formats::onnx_bytes(*net, inputs, options, formats::forward_of(*net));
  const std::string theirs =
      formats::onnx_bytes(plain, inputs, options, formats::forward_of(plain));
  EXPECT_GT(ours.size(), 500u);
  EXPECT_EQ(ours, theirs);
}

TEST(ScriptUse, AnyModuleAndSequentialTakeIt) {
  const auto net = script::load(file("mlp_scripted"));
  const Tensor x = randn({2, 5}), y = net->forward(x);
  nn::AnyModule any(net);
  EXPECT_TRUE(any.maps_tensor());
  EXPECT_TRUE(any.forward(x).equal(y));
  EXPECT_ERROR_TEXT(any.any_forward('c'), "argument 0 of forward(): got char");
  nn::AnyModule types(script::load(file("types")));
  EXPECT_FALSE(types.maps_tensor());
  const Tensor two = randn({3, 2});
  EXPECT_TRUE(types.any_forward(two, two).get<IValue>().isTuple());
  nn::Linear last(3, 4);
  nn::Sequential both;
  both->push_back(net);
  both->push_back(last);
  EXPECT_TRUE(both->forward(x).equal(last->forward(y)));
}

TEST(ScriptUse, SeveralThreadsRunOneModule) {
  const auto net = double_net("cnn_scripted");
  net->eval();
  const Tensor x = pictures(1);
  const Tensor want = net->forward(x).detach();
  std::vector<std::thread> threads;
  std::vector<int> right(4, 0);
  for (size_t t = 0; t < right.size(); ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 10; ++round) {
        const Tensor input = x.clone().requires_grad_();
        const Tensor y = net->forward(input);
        right[t] += y.equal(want) && y.requires_grad();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 10));
}

}  // namespace
}  // namespace ramet
