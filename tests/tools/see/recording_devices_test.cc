// What a recording holds of memory, devices and waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ramet.h"
#include "tests/autograd/check.h"
#include "tests/tools/see/recording_looks.h"
#include "tools/see/recording.h"

namespace ramet {
namespace see {
namespace {

// Storages of 8000 bytes, one by one.
TEST(RecordingDevices, MemoryOverTimeAndWhoHoldsThePeak) {
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

TEST(RecordingDevices, DataParallelOnTwoDevices) {
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
    // The batch leaves no node, so no node owns its scatter, nor the parameters' copies.
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
TEST(RecordingDevices, AReductionBeginsWhileTheBackwardRuns) {
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

TEST(RecordingDevices, ReplaysOfACapturedStepAreMarked) {
  const Tensor x = constant({1, 2, 3});
  Captured step([](const Tensor& t) { return (t * 2).exp(); });
  (void)step(x);
  Recording r;
  const Tensor y = step(x);
  const RecordingData d = r.data();
  expect_whole(d);
  std::vector<std::string> again;  // the input is brought first
  for (const KernelRow& k : d.kernels)
    if (k.replayed) {
      again.push_back(k.name);
      EXPECT_EQ(k.operation, -1);
    }
  EXPECT_EQ(again, (std::vector<std::string>{"mul", "exp"}));
  EXPECT_LE(d.kernels.size(), 3u);
  EXPECT_EQ(d.operations.size(), d.kernels.size() - 2);
  EXPECT_NE(d.notes.at(0).find("captured step"), std::string::npos);
  EXPECT_NEAR(values(y)[2], std::exp(6.0), 1e-9);
}

[[gnu::noinline]] double number_of(const Tensor& x, int& line) {
  line = __LINE__ + 1;
  return x.item<double>();
}

// An emulated GPU is linked, without kernels.
TEST(RecordingDevices, WaitsOfTheHostAreOperationsWithTheirLines) {
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

}  // namespace
}  // namespace see
}  // namespace ramet
