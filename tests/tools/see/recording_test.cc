// What a recording holds of programs with only known numbers.
#include "tools/see/recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <thread>

#include "nn/module/module_hooks.h"
#include "ramet.h"
#include "runtime/memory/memory_observer.h"
#include "runtime/observe/observer.h"
#include "tests/autograd/check.h"
#include "tests/tools/see/recording_looks.h"

namespace ramet {
namespace see {
namespace {

TEST(Recording, ArgumentsOfOperations) {
  const Tensor w = leaf({1, 2, 0});
  Recording r;
  w.softmax(0).add(w, 2);
  const RecordingData d = r.data();
  ASSERT_EQ(names(d), (std::vector<std::string>{"softmax", "add"}));
  EXPECT_EQ(d.operations[0].arguments, "dim=0");
  EXPECT_EQ(d.operations[1].arguments, "number=2");
}

// Two calls of one layer: autocast casts the input and the parameters, and has the latter still at
// the second call.
TEST(Recording, CastsOfAutocast) {
  manual_seed(1);
  nn::Linear fc(4, 4);
  const Tensor x = randn({2, 4});
  for (const bool recorded : {true, false}) {
    SCOPED_TRACE(recorded ? "recorded" : "no_grad");
    const AutoGradMode mode(recorded);
    Recording r;
    r.watch(fc);
    Tensor y;
    {
      const AutocastGuard on(kCPU);
      y = fc(fc(x));
    }
    if (recorded) y.sum().backward();
    const RecordingData d = r.data();
    expect_whole(d);
    std::vector<const OperationRow*> casts, linears;
    for (const OperationRow& op : d.operations) {
      if (op.autocast) casts.push_back(&op);
      if (op.name == "linear") linears.push_back(&op);
    }
    ASSERT_EQ(casts.size(), 3u);  // of x, weight and bias
    std::map<std::string, const OperationRow*> of;
    for (const OperationRow* op : casts) {
      EXPECT_EQ(op->name, "to");
      ASSERT_EQ(op->inputs.size(), 1u);
      ASSERT_EQ(op->outputs.size(), 1u);
      EXPECT_EQ(row(d.tensors, op->inputs[0]).dtype, "float32");
      EXPECT_EQ(row(d.tensors, op->outputs[0]).dtype, "bfloat16");
      EXPECT_EQ(row(d.modules, op->module).type, "Linear");
      of[row(d.tensors, op->inputs[0]).name] = op;
      // Its kernel is known as its own.
      const auto number = static_cast<Id>(op - d.operations.data());
      EXPECT_TRUE(std::ranges::any_of(d.kernels,
                                      [&](const KernelRow& k) { return k.operation == number; }));
    }
    ASSERT_TRUE(of.count("weight") && of.count("bias") && of.count(""));
    EXPECT_EQ(of["weight"]->reuses, 1);
    EXPECT_EQ(of["bias"]->reuses, 1);
    EXPECT_EQ(of[""]->reuses, 0);
    EXPECT_EQ(of[""]->node, -1) << "x has no gradient";
    EXPECT_EQ(of["weight"]->node >= 0, recorded);
    if (!recorded) continue;
    ASSERT_EQ(linears.size(), 2u);
    EXPECT_EQ(linears[0]->inputs, (std::vector<Id>{of[""]->outputs[0], of["weight"]->outputs[0],
                                                   of["bias"]->outputs[0]}));
    EXPECT_EQ(linears[1]->inputs[0], linears[0]->outputs[0]);
    EXPECT_EQ(linears[1]->inputs[1], of["weight"]->outputs[0]) << "one cast for both";
    EXPECT_EQ(row(d.tensors, linears[1]->outputs[0]).dtype, "bfloat16");
    EXPECT_EQ(row(d.tensors, find_parameter(d, "weight")->gradient).dtype, "float32");
  }
  // A cast that a program makes itself is none of autocast's.
  Recording r;
  const AutocastGuard on(kCPU);
  fc->weight.to(kBFloat16).sum();
  for (const OperationRow& op : r.data().operations) EXPECT_FALSE(op.autocast) << op.name;
}

TEST(Recording, AnExpressionWithEveryNumber) {
  const Tensor w = leaf({1, 2, 0}), c = constant({3, 4, 5});
  Recording r({.title = "three", .statistics = true});
  const Tensor y = (w * c).relu();
  y.sum().backward();
  const RecordingData d = r.data();
  expect_whole(d);
  expect_walk(d);
  EXPECT_EQ(d.title, "three");
  EXPECT_EQ(names(d), (std::vector<std::string>{"mul", "relu", "sum"}));
  const OperationRow& mul = d.operations[0];
  ASSERT_EQ(mul.inputs.size(), 2u);
  EXPECT_EQ(row(d.tensors, mul.inputs[1]).shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(row(d.tensors, mul.inputs[1]).dtype, "float64");
  EXPECT_EQ(row(d.tensors, mul.inputs[1]).bytes, 24);
  ASSERT_EQ(mul.saved.size(), 1u);  // w alone wants a gradient, so c alone is kept
  EXPECT_EQ(mul.saved[0].tensor, mul.inputs[1]);
  EXPECT_EQ(d.operations[1].inputs[0], mul.outputs[0]);
  ASSERT_EQ(d.operations[1].saved.size(), 1u);
  EXPECT_EQ(d.operations[1].saved[0].tensor, d.operations[1].outputs[0]);  // its result
  const Statistics& s = statistics(d, mul.outputs[0]);                     // 3, 8, 0
  EXPECT_EQ(s.count, 3);
  EXPECT_EQ(s.zeros, 1);
  EXPECT_EQ(s.min, 0);
  EXPECT_EQ(s.max, 8);
  EXPECT_NEAR(s.mean, 11.0 / 3, 1e-12);
  EXPECT_NEAR(s.deviation, std::sqrt((9 + 64) / 3.0 - 121.0 / 9), 1e-12);
  EXPECT_EQ(s.histogram[0], 1);
  EXPECT_EQ(s.histogram[12], 1);  // 3 of 8 in 32 bins
  EXPECT_EQ(s.histogram[31], 1);
  // Nodes and edges.
  const Id leaf_node = find_node(d, "AccumulateGrad"), mul_node = find_node(d, "MulBackward0"),
           relu_node = find_node(d, "ReluBackward0"), sum_node = find_node(d, "SumBackward0");
  EXPECT_EQ(row(d.nodes, sum_node).edges.at(0).to, relu_node);
  EXPECT_EQ(row(d.nodes, relu_node).edges.at(0).to, mul_node);
  EXPECT_EQ(row(d.nodes, mul_node).edges.at(0).to, leaf_node);
  EXPECT_EQ(row(d.nodes, mul_node).edges.at(1).to, -1);
  EXPECT_EQ(row(d.nodes, relu_node).operation, 1);
  // Kernels know their operation or node.
  for (const KernelRow& k : d.kernels)
    EXPECT_TRUE(k.operation >= 0 || k.node >= 0 || k.name == "fill_dense") << k.name;
  // The backward.
  EXPECT_EQ(count(d, "backward_begin"), 1u);
  EXPECT_EQ(count(d, "delivered"), 3u);
  EXPECT_EQ(count(d, "backward_end"), 1u);
  const EventRow& got = d.events[where(d, "accumulated", leaf_node)];
  EXPECT_NEAR(sum_of(statistics(d, got.tensor)), 7, 1e-12);  // 3 + 4 + 0
  ASSERT_EQ(d.parameters.size(), 1u);
  EXPECT_EQ(d.parameters[0].contributors, (std::vector<Id>{mul_node}));
}

TEST(Recording, AModuleItsPathsItsParametersAndAStep) {
  nn::Sequential net(nn::Linear(4, 3), nn::ReLU(), nn::Linear(3, 2));
  net->parameters()[0].set_requires_grad(false);  // 0.weight
  optim::SGD step(net->parameters(), 0.1);
  const Tensor x = ones({5, 4});
  std::vector<double> before;
  for (const Tensor& p : net->parameters()) before.push_back(p.sum().item<double>());
  Recording r({.statistics = true});
  r.watch(net, "net.");
  net->forward(x).sum().backward();
  step.step();
  const RecordingData d = r.data();
  expect_whole(d);
  expect_walk(d);
  EXPECT_TRUE(!net->forward_hooks() || net->forward_hooks()->empty());  // none is left
  ASSERT_EQ(d.modules.size(), 4u);
  EXPECT_EQ(d.modules[1].path, "net.0");
  EXPECT_EQ(d.modules[3].type, "Linear");
  EXPECT_EQ(d.modules[3].parent, 0);
  ASSERT_EQ(names(d), (std::vector<std::string>{"linear", "relu", "linear", "sum"}));
  EXPECT_EQ(d.operations[0].module, 1);
  EXPECT_EQ(d.operations[1].module, 2);
  EXPECT_EQ(d.operations[2].module, 3);
  EXPECT_EQ(d.operations[3].module, -1);
  EXPECT_EQ(row(d.tensors, d.operations[2].inputs[1]).name, "net.2.weight");
  ASSERT_EQ(d.parameters.size(), 4u);
  const ParameterRow& frozen = *find_parameter(d, "net.0.weight");
  EXPECT_FALSE(frozen.requires_grad);
  EXPECT_EQ(frozen.gradient, -1);
  for (size_t i = 0; i < 4; ++i)  // as they were before the step
    EXPECT_NEAR(sum_of(statistics(d, d.parameters[i].tensor)), before[i], 1e-5);
  for (const auto& item : net->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    const ParameterRow& p = *find_parameter(d, "net." + item.key());
    EXPECT_NEAR(sum_of(statistics(d, p.gradient)), item.value().grad().sum().item<double>(), 1e-5);
    EXPECT_EQ(p.contributors.size(), 1u);
  }
  EXPECT_EQ(count(d, "step_begin"), 1u);
  EXPECT_EQ(count(d, "step_end"), 1u);
  EXPECT_EQ(d.events[d.events.size() - 1].text, "SGD.step");
  // Costs: 5x4 times 4x3.
  const auto product = std::ranges::find(d.kernels, std::string("matmul"), &KernelRow::name);
  ASSERT_NE(product, d.kernels.end());
  EXPECT_EQ(product->flops, 2 * 5 * 4 * 3);
  EXPECT_EQ(product->bytes, 4 * (5 * 4 + 4 * 3 + 5 * 3 + 3));
  EXPECT_EQ(product->operation, 0);
}

TEST(Recording, WhatLeavesNoNodeIsKnownByItsKernels) {
  const Tensor a = constant({1, 2}), w = leaf({3, 4});
  Recording r;
  const Tensor b = a.exp();
  Tensor twice;
  {
    NoGradGuard off;
    twice = w * 2;
  }
  const Tensor y = b * w;  // claims its own kernel only
  const Tensor last = a.neg();
  const RecordingData d = r.data();
  expect_whole(d);
  ASSERT_EQ(d.operations.size(), 4u);
  EXPECT_EQ(d.operations[3].name, "neg");
  EXPECT_EQ(d.operations[0].name, "exp");
  EXPECT_EQ(d.operations[0].node, -1);
  EXPECT_EQ(d.operations[1].node, -1);
  EXPECT_EQ(d.operations[2].name, "mul");
  EXPECT_EQ(row(d.nodes, d.operations[2].node).name, "MulBackward0");
  ASSERT_EQ(d.kernels.size(), 4u);
  for (Id k = 0; k < 4; ++k) EXPECT_EQ(d.kernels[at(k)].operation, k);
}

// Two kernels that are given the same number of elements have no memory in common.
TEST(Recording, NumbersAmongArgumentsAreNoMemory) {
  const Tensor a = ones({256, 512}), w = ones({256, 512}).set_requires_grad(true);
  Recording r;
  const Tensor b = a.exp(), y = w.relu();
  const RecordingData d = r.data();
  EXPECT_EQ(names(d), (std::vector<std::string>{"exp", "relu"}));
  ASSERT_EQ(d.kernels.size(), 2u);
  EXPECT_GE(d.operations.back().start, d.kernels[0].end);
}

TEST(Recording, InPlaceAndViews) {
  const Tensor w = leaf({1, 2, 3, 4});
  Recording r({.statistics = true});
  Tensor y = w * 2;
  y.mul_(3);
  const Tensor v = y.slice(0, 0, 2);
  v.mul_(w.slice(0, 0, 2));
  y.sum().backward();
  const RecordingData d = r.data();
  expect_whole(d);
  expect_walk(d);
  // y.mul_ reads and writes the memory of w * 2, with the version that it has then.
  ASSERT_GE(d.operations.size(), 2u);
  const OperationRow &first = d.operations[0], &second = d.operations[1];
  EXPECT_EQ(row(d.tensors, first.outputs[0]).storage, row(d.tensors, second.outputs[0]).storage);
  EXPECT_EQ(sum_of(statistics(d, second.outputs[0])), 60);
  EXPECT_GE(find_node(d, "CopySlices"), 0);
  const Id leaf_node = find_node(d, "AccumulateGrad");
  // d/dw of 6 w0 w0 + 6 w1 w1 + 6 w2 + 6 w3
  EXPECT_EQ(sum_of(statistics(d, d.events[where(d, "accumulated", leaf_node)].tensor)),
            12 + 24 + 6 + 6);
}

TEST(Recording, DoubleBackward) {
  const Tensor x = leaf({2.0});
  Recording r({.statistics = true});
  const Tensor y = (x * x * x).sum();
  const Tensor g = autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
  g.sum().backward();
  const RecordingData d = r.data();
  expect_whole(d);
  EXPECT_EQ(count(d, "backward_begin"), 2u);
  EXPECT_EQ(count(d, "backward_end"), 2u);
  const auto made = std::ranges::count(d.nodes, true, &NodeRow::in_backward);
  EXPECT_GE(made, 2);
  const Id leaf_node = find_node(d, "AccumulateGrad");
  EXPECT_NEAR(sum_of(statistics(d, d.events[where(d, "accumulated", leaf_node)].tensor)), 12, 1e-9);
}

TEST(Recording, AGraphFromBeforeIsThereWithItsEdges) {
  const Tensor x = leaf({2.0, 3.0});
  const Tensor y = (x * x).sum();
  Recording r;
  y.backward();
  const RecordingData d = r.data();
  expect_whole(d);
  expect_walk(d);
  EXPECT_EQ(d.operations.size(), 0u);
  const Id sum = find_node(d, "SumBackward0"), mul = find_node(d, "MulBackward0");
  ASSERT_GE(sum, 0);
  EXPECT_EQ(row(d.nodes, sum).edges.at(0).to, mul);
  EXPECT_EQ(count(d, "delivered"), 3u);  // both edges of x * x
}

// A leaf's gradient is what came, the sum of what came, or that plus its gradient before.
TEST(Recording, StatisticsOfALeafsGradientAreOfTheSum) {
  const Tensor x = ones({1000}).set_requires_grad(true);
  Recording r({.statistics = true});
  (x * 3).sum().backward();
  (x * x).sum().backward();
  (x * 4).sum().backward();
  const RecordingData d = r.data();
  std::vector<double> means;
  for (const EventRow& e : d.events)
    if (e.kind == "accumulated") means.push_back(statistics(d, e.tensor).mean);
  EXPECT_EQ(means, (std::vector<double>{3, 5, 9}));
}

TEST(Recording, AFailureIsAnEventAndTheRecordingIsWhole) {
  const Tensor x = leaf({2.0});
  const Tensor y = autograd::DelayedError("on purpose", 1).apply({x})[0].sum();
  Recording r;
  EXPECT_THROW(y.backward(), Error);
  (x * 2).sum().backward();
  const RecordingData d = r.data();
  expect_whole(d);
  const Id bad = find_node(d, "Error");
  const size_t failed = where(d, "failed", bad);
  ASSERT_LT(failed, d.events.size());
  EXPECT_NE(d.events[failed].text.find("on purpose"), std::string::npos);
  EXPECT_EQ(std::ranges::count(d.events, std::string("failed"), &EventRow::text), 1);
  EXPECT_EQ(count(d, "accumulated"), 1u);
}

TEST(Recording, ThreadsAndNestedRecordingsEachSeeTheirOwn) {
  const Tensor x = leaf({1.0});
  Recording outer;
  (void)(x * 2);
  std::thread([&] {
    (void)x.exp();  // in no recording
    Recording own;
    (void)x.sin();
    EXPECT_EQ(names(own.data()), (std::vector<std::string>{"sin"}));
  }).join();
  {
    Recording inner;
    (void)x.cos();
    outer.stop();  // not in the order in which they began
    (void)x.tanh();
    EXPECT_EQ(names(inner.data()), (std::vector<std::string>{"cos", "tanh"}));
  }
  (void)x.exp();
  EXPECT_EQ(names(outer.data()), (std::vector<std::string>{"mul", "cos"}));
  std::string why;
  std::thread([&] {
    Recording mine;
    std::thread([&] { why = error_of([&] { mine.stop(); }); }).join();
  }).join();
  EXPECT_NE(why.find("[see] stop: got another thread"), std::string::npos) << why;
}

TEST(Recording, AnExceptionEndsIt) {
  const Tensor x = leaf({1.0});
  nn::Linear net(1, 1);
  try {
    Recording r;
    r.watch(net);
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {}
  EXPECT_TRUE(!net->forward_hooks() || net->forward_hooks()->empty());
  EXPECT_EQ(ramet::detail::tls.watching, 0);
  EXPECT_FALSE(observed());
  EXPECT_FALSE(memory_observed());
}

TEST(Recording, MoreThanItMayKeepIsCounted) {
  const Tensor x = leaf({1.0});
  Recording r({.most_rows = 10});
  for (int i = 0; i < 20; ++i) (void)(x * 2);
  const RecordingData d = r.data();
  expect_whole(d);
  EXPECT_EQ(d.operations.size() + d.kernels.size(), 10u);
  EXPECT_EQ(d.notes,
            (std::vector<std::string>{"30 rows came after the first 10 and were not kept."}));
}

// Convolutions leave results channels-last. A public access to them changes that for good, and with
// it the kernels that take them, and their rounding.
TEST(Recording, StatisticsChangeNoBits) {
  const auto gradients = [](bool recorded) {
    manual_seed(1);
    nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 32, 3).padding(1)),
                       nn::BatchNormReLUMaxPool2d(32), nn::Conv2d(32, 8, 3));
    const Tensor x = randn({5, 3, 12, 12});
    std::optional<Recording> r;
    if (recorded) r.emplace(RecordingOptions{.statistics = true});
    net->forward(x).square().mean().backward();
    if (recorded) { EXPECT_GE(r->data().statistics.size(), 9u); }
    std::vector<Tensor> all;
    for (const Tensor& p : net->parameters()) all.push_back(p.grad());
    return all;
  };
  const std::vector<Tensor> plain = gradients(false), seen = gradients(true);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(equal(plain[i], seen[i])) << i;
}

// What is detached has been settled, so it lies elsewhere.
TEST(Recording, ADetachedConvolutionIsFound) {
  for (const bool statistics : {false, true}) {
    nn::Sequential stem(nn::Conv2d(nn::Conv2dOptions(3, 32, 3).padding(1)));
    nn::Conv2d head(32, 8, 3);
    Recording r({.statistics = statistics});
    r.watch(stem, "stem.");
    r.watch(head, "head.");
    head(stem->forward(randn({5, 3, 12, 12})).detach()).square().mean().backward();
    std::string texts;
    for (const FindingRow& f : r.data().findings) texts += f.text + "\n";
    EXPECT_NE(texts.find("stem.0.weight has no gradient"), std::string::npos) << texts;
    EXPECT_NE(texts.find("as detach() and data leave it"), std::string::npos) << texts;
  }
}

[[gnu::noinline]] Tensor called_here(const Tensor& x, int& line) {
  line = __LINE__ + 1;
  return x.exp();
}

TEST(Recording, NamesOfOperations) {
  const Tensor x = rand({1, 1, 4, 4}, TensorOptions(kDouble).requires_grad(true));
  Recording r;
  (void)std::get<0>(max_pool2d_with_indices(avg_pool2d(x, 2), 2)).log_softmax(1);
  EXPECT_EQ(names(r.data()),
            (std::vector<std::string>{"avg_pool2d", "max_pool2d_with_indices", "log_softmax"}));
}

TEST(Recording, TheProgramsOwnLine) {
  const Tensor x = leaf({1.0});
  Recording r({.source_lines = true});
  int line = 0;
  (void)called_here(x, line);
  const RecordingData d = r.data();
  expect_whole(d);
  ASSERT_EQ(d.operations.size(), 1u);
  const SourceRow& source = row(d.sources, d.operations[0].source);
  EXPECT_NE(source.file.find("tests/tools/see/recording_test.cc"), std::string::npos)
      << source.file;
  EXPECT_EQ(source.line, line);
  EXPECT_NE(source.function.find("called_here"), std::string::npos) << source.function;
}

}  // namespace
}  // namespace see
}  // namespace ramet
