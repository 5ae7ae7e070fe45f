// What a recording holds of programs whose every number is known.
#include "tools/see/recording.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "nn/module/module_hooks.h"
#include "ramet.h"
#include "runtime/memory_observer.h"
#include "runtime/observer.h"
#include "tests/autograd/check.h"
#include "tools/see/operation_name.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {
namespace {

size_t at(Id id) { return static_cast<size_t>(id); }
template <class Row> const Row& row(const std::vector<Row>& list, Id id) { return list.at(at(id)); }

std::vector<std::string> names(const RecordingData& d) {
  std::vector<std::string> out;
  for (const OperationRow& op : d.operations) out.push_back(op.name);
  return out;
}
Id find_node(const RecordingData& d, const std::string& name) {
  for (size_t i = 0; i < d.nodes.size(); ++i)
    if (d.nodes[i].name == name) return static_cast<Id>(i);
  return -1;
}
const ParameterRow* find_parameter(const RecordingData& d, const std::string& name) {
  for (const ParameterRow& p : d.parameters)
    if (p.name == name) return &p;
  return nullptr;
}
size_t count(const RecordingData& d, const std::string& kind) {
  return static_cast<size_t>(std::ranges::count(d.events, kind, &EventRow::kind));
}
size_t where(const RecordingData& d, const std::string& kind, Id node) {
  for (size_t i = 0; i < d.events.size(); ++i)
    if (d.events[i].kind == kind && d.events[i].node == node) return i;
  return d.events.size();
}
double sum_of(const Statistics& s) { return s.mean * static_cast<double>(s.count); }
const Statistics& statistics(const RecordingData& d, Id tensor) {
  return row(d.statistics, row(d.tensors, tensor).statistics);
}
// Every index leads somewhere: what a file is checked for.
void expect_whole(const RecordingData& d) {
  EXPECT_EQ(from_json(to_json(d), "recording"), d);
  for (size_t i = 1; i < d.events.size(); ++i) EXPECT_GE(d.events[i].time, d.events[i - 1].time);
}

// One walk: along each edge at most one gradient, after its node ended and before the next is
// ready; every node begins and ends once.
void expect_walk(const RecordingData& d) {
  std::set<std::pair<Id, Id>> seen;
  std::map<Id, int> begun;
  for (size_t i = 0; i < d.events.size(); ++i) {
    const EventRow& e = d.events[i];
    if (e.kind == "begin") ++begun[e.node];
    if (e.kind != "delivered") continue;
    EXPECT_TRUE(seen.insert({e.node, e.edge}).second) << "twice along " << e.node << "/" << e.edge;
    const NodeRow& from = row(d.nodes, e.node);
    if (!from.reduces) { EXPECT_LT(where(d, "end", e.node), i); }
    const Id to = from.edges.at(at(e.edge)).to;
    ASSERT_GE(to, 0);
    EXPECT_GT(where(d, "ready", to), i) << from.name << " to " << row(d.nodes, to).name;
  }
  for (const auto& [node, times] : begun) EXPECT_EQ(times, 1) << row(d.nodes, node).name;
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
  EXPECT_EQ(row(d.tensors, mul.inputs[1]).dtype, std::string(name_of(kDouble)));
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
  // Kernels know whose they are.
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

// Nodes are named by their functions: each word, and each letter behind a digit, is written large,
// as str.title() does. Back again where only knowledge helps.
TEST(Recording, OperationsHaveTheirFunctionsNames) {
  for (const std::string name : {"max_pool2d_with_indices",
                                 "max_pool3d_with_indices",
                                 "adaptive_avg_pool2d",
                                 "avg_pool3d",
                                 "avg_pool2d_backward",
                                 "batch_norm_relu_max_pool2d_backward_weight",
                                 "upsample_bilinear2d",
                                 "upsample_bicubic2d_aa_backward",
                                 "upsample_nearest_exact3d",
                                 "nll_loss2d",
                                 "log1p",
                                 "log2",
                                 "expm1",
                                 "exp2",
                                 "atan2",
                                 "logaddexp2",
                                 "smooth_l1_loss",
                                 "l1_loss",
                                 "smooth_l1_loss_backward",
                                 "im2col",
                                 "col2im",
                                 "deg2rad",
                                 "rad2deg",
                                 "i0",
                                 "i0e",
                                 "constant_pad_nd",
                                 "addmm",
                                 "t",
                                 "linalg_inv_ex",
                                 "native_batch_norm",
                                 "frexp"}) {
    std::string node;
    for (size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '_') continue;
      const bool large = i == 0 || !std::isalpha(static_cast<unsigned char>(name[i - 1]));
      node +=
          large ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[i]))) : name[i];
    }
    EXPECT_EQ(operation_name(node + "Backward0"), name) << node;
  }
  for (const char* const other : {"CopySlices", "AccumulateGrad", "Error", "Backward0", ""})
    EXPECT_EQ(operation_name(other), other);

  // Those that real functions leave.
  namespace F = nn::functional;
  const Tensor x = full({1, 1, 6, 6}, 0.5, TensorOptions(kFloat)).set_requires_grad(true);
  const Tensor w = ones({1, 1, 3, 3});
  const auto last = [](const std::function<void()>& call) {
    Recording r;
    call();
    const RecordingData d = r.data();
    return d.operations.empty() ? std::string() : d.operations.back().name;
  };
  EXPECT_EQ(last([&] { (void)conv2d(x, w); }), "convolution");
  EXPECT_EQ(last([&] { (void)max_pool2d(x, 2); }), "max_pool2d_with_indices");
  EXPECT_EQ(last([&] { (void)avg_pool2d(x, 2); }), "avg_pool2d");
  EXPECT_EQ(last([&] { (void)adaptive_avg_pool2d(x, {2, 2}); }), "adaptive_avg_pool2d");
  EXPECT_EQ(last([&] {
              (void)F::interpolate(
                  x, F::InterpolateFuncOptions().size(std::vector<int64_t>{9, 9}).mode(kBilinear));
            }),
            "upsample_bilinear2d");
  EXPECT_EQ(last([&] { (void)F::unfold(x, F::UnfoldFuncOptions({2, 2})); }), "im2col");
  EXPECT_EQ(last([&] {
              (void)F::fold(x.view({1, 4, 9}), F::FoldFuncOptions({4, 4}, {2, 2}));
            }),
            "col2im");
  EXPECT_EQ(last([&] { (void)log1p(x); }), "log1p");
  EXPECT_EQ(last([&] { (void)x.log2(); }), "log2");
  EXPECT_EQ(last([&] { (void)expm1(x); }), "expm1");
  EXPECT_EQ(last([&] { (void)atan2(x, x); }), "atan2");
  EXPECT_EQ(last([&] { (void)logaddexp2(x, x); }), "logaddexp2");
  EXPECT_EQ(last([&] { (void)deg2rad(x); }), "deg2rad");
  EXPECT_EQ(last([&] { (void)smooth_l1_loss(x, x.detach(), Reduction::None); }), "smooth_l1_loss");
  EXPECT_EQ(last([&] { (void)x.to(kDouble); }), "to");
  Recording r;  // what is made of others is those
  (void)l1_loss(x, x.detach());
  EXPECT_EQ(names(r.data()), (std::vector<std::string>{"sub", "abs", "mean"}));
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
  const RecordingData d = r.data();
  expect_whole(d);
  ASSERT_EQ(d.operations.size(), 3u);
  EXPECT_EQ(d.operations[0].name, "exp");
  EXPECT_EQ(d.operations[0].node, -1);
  EXPECT_EQ(d.operations[1].node, -1);
  EXPECT_EQ(d.operations[2].name, "mul");
  EXPECT_EQ(row(d.nodes, d.operations[2].node).name, "MulBackward0");
  ASSERT_EQ(d.kernels.size(), 3u);
  for (Id k = 0; k < 3; ++k) EXPECT_EQ(d.kernels[at(k)].operation, k);
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
    (void)x.exp();  // nobody's
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

// Storages of 8000 bytes, one by one.
TEST(Recording, MemoryOverTimeAndWhoHoldsThePeak) {
  const Device here(kCPU, 6);
  nn::Module module("m");
  const Tensor w =
      module.register_parameter("w", ones({1000}, TensorOptions(kDouble).device(here)));
  const Tensor c = full({1000}, 2, TensorOptions(kDouble).device(here));
  const int64_t before = memory_stats(here).current;
  Recording r;
  r.watch(module);
  {
    const Tensor a = w * c;    // keeps c; 1
    const Tensor b = a.exp();  // keeps its result; 2
    const Tensor e = b + b;    // keeps nothing; 3: the peak
    EXPECT_EQ(memory_stats(here).current, before + 3 * 8000);
  }
  const RecordingData d = r.data();
  expect_whole(d);
  const auto memory = std::ranges::find_if(
      d.memory, [&](const MemoryRow& m) { return row(d.devices, m.device).name == "cpu:6"; });
  ASSERT_NE(memory, d.memory.end());
  EXPECT_EQ(memory->curve.front()[1], before);
  EXPECT_EQ(memory->peak, before + 3 * 8000);
  EXPECT_EQ(memory->curve.back()[1], before);
  std::map<std::string, int64_t> owners;
  int64_t sum = 0;
  for (const BlockRow& b : memory->at_peak) owners[b.owner] += b.bytes, sum += b.bytes;
  EXPECT_EQ(sum, memory->peak);
  const std::map<std::string, int64_t> expected{{"parameter w", 8000},
                                                {"saved by MulBackward0", 8000},
                                                {"saved by ExpBackward0", 8000},
                                                {"output of mul", 8000},
                                                {"output of add", 8000}};
  EXPECT_EQ(owners, expected);
}

TEST(Recording, DataParallelOnTwoDevices) {
  const std::vector<Device> devices{Device(kCPU, 0), Device(kCPU, 1)};
  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  const Tensor x = randn({6, 4});
  for (int step = 0; step < 2; ++step) {  // replicas are made in the first one
    net->zero_grad();
    Recording r({.statistics = true});
    r.watch(net);
    nn::parallel::data_parallel(net.ptr(), x, devices).sum().backward();
    const RecordingData d = r.data();
    expect_whole(d);
    expect_walk(d);
    EXPECT_EQ(d.devices.size(), 2u);
    std::set<std::string> kinds;
    for (const MovementRow& m : d.movements) kinds.insert(m.kind);
    for (const char* kind : {"scatter", "gather", "reduce_add"})
      EXPECT_TRUE(kinds.count(kind)) << kind << " in step " << step;
    std::set<int> replicas;
    for (const OperationRow& op : d.operations)
      if (op.name == "linear") {
        replicas.insert(op.replica);
        EXPECT_TRUE(op.module == 1 || op.module == 3);
        EXPECT_EQ(row(d.devices, op.device).name, op.replica == 0 ? "cpu:0" : "cpu:1");
      }
    EXPECT_EQ(replicas, (std::set<int>{0, 1}));
    // The batch leaves no node, so its scatter is nobody's; nor are the parameters' copies.
    for (const MovementRow& m : d.movements) {
      const bool has_node = m.kind == "gather";
      EXPECT_EQ(m.operation >= 0, has_node) << m.kind;
      if (has_node) { EXPECT_EQ(row(d.operations, m.operation).name, "gather"); }
    }
    ASSERT_GE(d.buckets.size(), 1u);
    EXPECT_EQ(d.buckets[0].kind, "reduce_add");
    size_t members = 0;
    for (const BucketRow& b : d.buckets) members += b.members.size();
    EXPECT_EQ(members, 4u);
    EXPECT_EQ(count(d, "slot"), 4u);
    EXPECT_EQ(count(d, "reduce_begin"), d.buckets.size());
    EXPECT_EQ(count(d, "reduce_end"), d.buckets.size());
    EXPECT_EQ(d.buckets[0].bytes, 4 * (4 * 8 + 8 + 8 * 2 + 2));
    EXPECT_EQ(d.parameters.size(), 4u);
    for (const auto& item : net->named_parameters()) {
      const ParameterRow& p = *find_parameter(d, item.key());
      EXPECT_NEAR(sum_of(statistics(d, p.gradient)), item.value().grad().sum().item<double>(),
                  1e-4);
      ASSERT_EQ(p.contributors.size(), 1u);
      EXPECT_EQ(row(d.nodes, p.contributors[0]).name, "ReduceAdd(" + item.key() + ")");
    }
    for (const NodeRow& n : d.nodes) EXPECT_EQ(n.moves, n.name == "GatherBackward") << n.name;
    // Both replicas' linear operations lead to the same sum.
    EXPECT_EQ(std::ranges::count_if(d.nodes, [](const NodeRow& n) { return n.reduces; }), 4);
  }
}

// The bucket of the last layers is summed while the first layers' backward still runs.
TEST(Recording, AReductionBeginsWhileTheBackwardRuns) {
  const std::vector<Device> devices{Device(kCPU, 0), Device(kCPU, 1)};
  nn::Sequential net(nn::Linear(4, 400), nn::Linear(400, 400), nn::Linear(400, 400));
  nn::parallel::ReplicaOptions options;
  options.bucket_bytes = 1 << 10;
  nn::parallel::ReplicaSet set(net.ptr(), devices, options);
  const Tensor x = randn({3, 4});
  std::vector<Tensor> out(2);
  Recording r;
  set.apply([&](int i) {
    out[at(i)] = nn::call(set.replica<nn::SequentialImpl>(i), x.to(devices[at(i)])).sum();
  });
  (out[0] + out[1].to(devices[0])).backward();
  const RecordingData d = r.data();
  expect_whole(d);
  expect_walk(d);
  ASSERT_GE(d.buckets.size(), 3u);
  size_t first_reduction = d.events.size(), last_node = 0;
  for (size_t i = 0; i < d.events.size(); ++i) {
    if (d.events[i].kind == "reduce_begin") first_reduction = std::min(first_reduction, i);
    if (d.events[i].kind == "begin" && !row(d.nodes, d.events[i].node).leaf) last_node = i;
  }
  EXPECT_LT(first_reduction, last_node);
}

TEST(Recording, ReplaysOfACapturedStepAreMarked) {
  const Tensor x = constant({1, 2, 3});
  Captured step([](const Tensor& t) { return (t * 2).exp(); });
  (void)step(x);
  Recording r;
  const Tensor y = step(x);
  const RecordingData d = r.data();
  expect_whole(d);
  std::vector<std::string> again;  // the input is brought first
  for (const KernelRow& k : d.kernels)
    if (k.replayed) again.push_back(k.name);
  EXPECT_EQ(again, (std::vector<std::string>{"mul", "exp"}));
  EXPECT_LE(d.kernels.size(), 3u);
  EXPECT_EQ(d.operations.size(), 0u);
  EXPECT_NE(d.notes.at(0).find("captured step"), std::string::npos);
  EXPECT_NEAR(values(y)[2], std::exp(6.0), 1e-9);
}

[[gnu::noinline]] double number_of(const Tensor& x, int& line) {
  line = __LINE__ + 1;
  return x.item<double>();
}

// A GPU is linked, without kernels.
TEST(Recording, WaitsOfTheHostAreOperationsWithTheirLines) {
  const Device gpu(kCUDA, 0);
  const Tensor w = leaf({6}), one = constant({1}).to(gpu);
  int line = 0;
  Recording r({.source_lines = true});
  const Tensor y = w.to(gpu);
  EXPECT_EQ(number_of(y, line), 6);
  const Tensor with_history = y.cpu(), without = y.detach().cpu();
  cuda::synchronize();
  y.backward(one);
  EXPECT_EQ(y.item<double>(), 6);  // after the step
  const RecordingData d = r.data();
  expect_whole(d);
  EXPECT_EQ(names(d),
            (std::vector<std::string>{"to", "item", "to", "copy", "synchronize", "copy", "item"}));
  EXPECT_EQ(d.operations.at(1).inputs, d.operations.at(0).outputs);
  EXPECT_EQ(row(d.nodes, d.operations.at(2).node).name, "ToCopyBackward0");
  EXPECT_EQ(d.operations.at(3).node, -1);
  EXPECT_EQ(row(d.devices, row(d.tensors, d.operations.at(3).outputs.at(0)).device).kind, "cpu");
  for (Id i = 1; i < 7; ++i) EXPECT_GE(d.operations[at(i)].end, d.operations[at(i)].start);
  std::vector<Id> waits;
  for (const FindingRow& f : d.findings)
    if (f.kind == "host wait") {
      waits.push_back(f.operation);
      EXPECT_NE(f.text.find(" waits for cuda:0"), std::string::npos) << f.text;
    }
  EXPECT_EQ(waits, (std::vector<Id>{1, 2, 3, 4, 5}));  // the backward has a copy of its own
  if (const Id source = d.operations[1].source; source >= 0) {  // else without -g
    const int got = row(d.sources, source).line;
    EXPECT_TRUE(got == 0 || got == line) << got;
  }
}

TEST(Recording, StatisticsOfNoNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor x = leaf({nan, inf, -inf, 1e308, -1e308});
  Recording r({.statistics = true});
  (void)(x * 1);
  (void)(leaf({nan}) * 1);
  const RecordingData d = r.data();
  expect_whole(d);
  const Statistics& s = statistics(d, d.operations.at(0).outputs.at(0));
  EXPECT_EQ(s.nans, 1);
  EXPECT_EQ(s.infinities, 2);
  EXPECT_EQ(s.min, -1e308);
  EXPECT_EQ(s.max, 1e308);
  EXPECT_EQ(s.mean, 0);
  EXPECT_NEAR(s.deviation / 1e308, 1, 1e-9);
  EXPECT_EQ(s.histogram[0], 1);
  EXPECT_EQ(s.histogram[31], 1);
  const Statistics& none = statistics(d, d.operations.at(1).outputs.at(0));
  EXPECT_EQ(none.nans, 1);
  EXPECT_EQ(none.max, 0);
  EXPECT_EQ(none.histogram, Statistics().histogram);
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
#if defined(RAMET_HAS_LINES)  // compiled with -g
  const SourceRow& source = row(d.sources, d.operations[0].source);
  EXPECT_NE(source.file.find("tests/tools/see/recording_test.cc"), std::string::npos)
      << source.file;
  EXPECT_EQ(source.line, line);
  EXPECT_NE(source.function.find("called_here"), std::string::npos) << source.function;
#else
  // Without, only names tell, and these here are in namespace ramet. A sanitizer's build has lines.
  if (d.operations[0].source >= 0) {
    const int got = row(d.sources, d.operations[0].source).line;
    EXPECT_TRUE(got == 0 || got == line) << got;
  }
#endif
}

}  // namespace
}  // namespace see
}  // namespace ramet
