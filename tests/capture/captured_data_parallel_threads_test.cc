// Data-parallel steps, captured: the same bits as eager ones.
#include <algorithm>
#include <chrono>
#include <thread>

#include "parallel/move/movement_internal.h"
#include "parallel/replicas/replica_state.h"
#include "tests/capture/training.h"
#include "tests/devices.h"

namespace ramet {
namespace capture_tests {
namespace {

TEST(CapturedDataParallel, SameBitsAsEager) {
  for (const int devices : {1, 2, 4}) {
    for (const bool tree : {false, true}) {
      SCOPED_TRACE(std::to_string(devices) + (tree ? " devices, tree" : " devices"));
      DataParallelOptions options(cpus(devices));
      if (tree) options.order = ReduceOrder::tree(4);
      // With an eager step between: replicas follow what replays have changed.
      const Steps captured =
          expect_same_steps([&] { return Training(options); }, 20, [](int i) { return i == 7; });
      EXPECT_EQ(captured.counters.captures, 3u);
      EXPECT_EQ(captured.counters.replays, 16u);
    }
  }
}

// Replicas that wait for each other's statistics in forward; two of them on one device, too.
TEST(CapturedDataParallel, SynchronisedBatchNorm) {
  std::vector<Device> twice = cpus(2);
  twice.insert(twice.begin() + 1, twice[0]);
  for (const std::vector<Device>& devices : {cpus(2), cpus(4), twice}) {
    const DataParallelOptions options(devices);
    const Steps captured = expect_same_steps([&] { return Training(options, /*sync=*/true); }, 10,
                                             [](int i) { return i == 7; });
    EXPECT_EQ(captured.counters.captures, 3u);
    EXPECT_EQ(captured.counters.replays, 6u);
  }
}

TEST(CapturedDataParallel, AReplicaThatNeverComes) {
  for (const int fails : {0, 1, 2}) {
    Training run(DataParallelOptions(cpus(3)), /*sync=*/true);
    const auto [x, y] = run.batch(9);
    Captured step([&](const Tensor& a, const Tensor& b) { return run.step(a, b); });
    for (int i = 0; i < 3; ++i) step(x, y);
    const std::string before = run.state(x);
    run.net->fails_in = fails;
    const std::string text = error_of([&] { step(x, y); });
    EXPECT_TRUE(contains(text, "in replica " + std::to_string(fails) + " on") &&
                contains(text, "[Pictures] on purpose"))
        << text;
    EXPECT_TRUE(run.state(x) == before);
    run.net->fails_in = -1;
    step(x, y);
    EXPECT_EQ(step.counters().captures, 3u);
  }
}

TEST(CapturedDataParallel, TrainingModeOfTheSource) {
  Training run{DataParallelOptions(cpus(2))};
  const auto [x, y] = run.batch(8);
  Captured forward([&](const Tensor& in) { return (*run.model)(in); });
  run.net->eval();
  const std::string expected = bits((*run.model)(x));
  EXPECT_EQ(bits(forward(x)), expected);
  run.net->train();
  forward(x);
  EXPECT_EQ(forward.counters().failed_guards, 1u);
  run.net->eval();
  EXPECT_EQ(bits(forward(x)), bits((*run.model)(x)));
  EXPECT_EQ(forward.counters().captures, 2u);
}

TEST(CapturedDataParallel, AMemberThatChangesIsNoticed) {
  Training run{DataParallelOptions(cpus(2))};
  run.net->eval();
  const auto [x, y] = run.batch(8);
  Captured forward([&](const Tensor& in) { return (*run.model)(in); });
  forward(x);
  run.net->last = run.net->replace_module("last", nn::Linear(4 * 5 * 5, 5));
  EXPECT_EQ(bits(forward(x)), bits((*run.model)(x)));
  EXPECT_EQ(forward.counters().failed_guards, 1u);
}

TEST(CapturedDataParallel, HooksOnSums) {
  for (const bool post : {false, true}) {
    Training run{DataParallelOptions(cpus(2))};
    Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
    const auto [x, y] = run.batch(8);
    for (int i = 0; i < 3; ++i) step(x, y);
    EXPECT_EQ(step.counters().replays, 1u);
    auto& replicas = run.model->replicas();
    int calls = 0;
    const unsigned hook =
        post ? replicas.register_post_reduce_hook([&](const std::string&, const Tensor&) {
          ++calls;
          return Tensor();
        })
             : replicas.register_pre_reduce_hook([&](int, const std::string&, const Tensor&) {
                 ++calls;
                 return Tensor();
               });
    EXPECT_ERROR_TEXT(step(x, y), post ? "[register_post_reduce_hook] not capturable"
                                       : "[register_pre_reduce_hook] not capturable");
    EXPECT_EQ(calls, 0);
    replicas.remove_reduce_hook(hook);
    step(x, y);
    EXPECT_EQ(step.counters().captures, 3u);  // replicas are made again after a failure
    EXPECT_EQ(step.counters().replays, 1u);
  }
}

struct CountingImpl : nn::Cloneable<CountingImpl> {
  CountingImpl() { CountingImpl::reset(); }
  void reset() override { w = register_parameter("w", ones({1})); }
  Tensor forward(const Tensor& x) {
    *rows += x.size(0);
    return x * w;
  }
  Tensor w;
  nn::parallel::replica_state<int64_t> rows{0, [](const std::vector<int64_t>& seen) {
                                              return *std::max_element(seen.begin(), seen.end());
                                            }};
};
RAMET_MODULE(Counting);

TEST(CapturedDataParallel, MembersThatTheHostMerges) {
  Counting module;
  DataParallel<Counting> model(module, DataParallelOptions(cpus(2)));
  Captured step([&](const Tensor& x) { return model(x); });
  EXPECT_ERROR_TEXT(step(ones({4, 1})), "[replica_state] not capturable");
  EXPECT_EQ(*module->rows, 0);
  model(ones({4, 1}));
  EXPECT_EQ(*module->rows, 2);
}

// What a worker still writes is waited for, as an operation would.
TEST(CapturedDataParallel, TensorsThatAWorkerWrites) {
  for (const bool view : {false, true}) {
    const Tensor w = ones({4});
    Captured step([&](const Tensor& x) { return x * (view ? w.view({4}) : w); });
    for (const float v : {1.f, 2.f, 3.f}) {
      parallel::detail::queue(Device(kCPU, 1), {}, {w}, [w, v] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        std::fill_n(static_cast<float*>(w->data), 4, v);
      });
      EXPECT_EQ(bits(step(ones({4}))), bits(full({4}, v)));
    }
    EXPECT_EQ(step.counters().captures, 1u);
  }
}

TEST(CapturedDataParallel, NoAllocationInAReplay) {
  expect_no_allocation(Training{DataParallelOptions(cpus(2))}, {kHost});
}

TEST(CapturedDataParallel, AFailureLeavesReplicasUsable) {
  Training run{DataParallelOptions(cpus(2))}, twin{DataParallelOptions(cpus(2))};
  bool fails = true;
  Captured step([&](const Tensor& x, const Tensor& y) {
    const Tensor loss = run.step(x, y);
    if (fails) fail("step", "on purpose");
    return loss;
  });
  for (int i = 0; i < 6; ++i) {
    const auto [x, y] = run.batch(8);
    if (i % 2 == 1) {
      fails = true;
      step.clear();
      EXPECT_ERROR_TEXT(step(x, y), "on purpose");
    }
    fails = false;
    manual_seed(static_cast<uint64_t>(i));
    const Tensor loss = i % 2 ? run.step(x, y) : step(x, y);
    const std::string state = run.state(loss);
    const auto [x2, y2] = twin.batch(8);
    manual_seed(static_cast<uint64_t>(i));
    ASSERT_TRUE(twin.state(twin.step(x2, y2)) == state) << i;
  }
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
