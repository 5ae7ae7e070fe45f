// Training that the tests of captures share: a small picture net with batch norm and dropout, on
// one device or data-parallel.
#pragma once
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/cloneable.h"
#include "nn/serialize/archive.h"
#include "parallel/apply/data_parallel.h"
#include "runtime/memory/allocator.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {

using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;
using parallel::ReduceOrder;

struct PicturesImpl : nn::Cloneable<PicturesImpl> {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Dropout drop{nullptr};
  nn::Linear last{nullptr};
  int fails_in = -1;  // this replica
  PicturesImpl() { PicturesImpl::reset(); }
  void reset() override {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 4, 3)));
    norm = register_module("norm", nn::BatchNorm2d(4));
    drop = register_module("drop", nn::Dropout(0.3));
    last = register_module("last", nn::Linear(4 * 5 * 5, 5));
  }
  Tensor forward(const Tensor& x) {
    if (fails_in >= 0 && ramet::detail::tls.replica == fails_in) fail("Pictures", "on purpose");
    const Tensor h = max_pool2d(relu(norm->forward(conv->forward(x))), 2);
    return last->forward(drop->forward(h.flatten(1)));
  }
};
RAMET_MODULE(Pictures);

enum class Kind { kAdam, kAdamW, kSgd };

/// One training run; the tests can compare all state that a step changes.
struct Training {
  Pictures net{nullptr};
  std::unique_ptr<optim::Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> schedule;   ///< null: none
  std::unique_ptr<DataParallel<Pictures>> model;  ///< null: the net alone
  Generator data{kHost, 5};
  Device home;

  explicit Training(Device where, Kind kind = Kind::kAdam) : home(where) {
    manual_seed(11);
    net = Pictures();
    net->to(home);
    const std::vector<Tensor> p = net->parameters();
    if (kind == Kind::kAdam)
      optimizer = std::make_unique<optim::Adam>(p, optim::AdamOptions(0.01).weight_decay(0.01));
    else if (kind == Kind::kAdamW)
      optimizer = std::make_unique<optim::AdamW>(p, optim::AdamWOptions(0.01).amsgrad(true));
    else optimizer = std::make_unique<optim::SGD>(p, optim::SGDOptions(0.05).momentum(0.9));
    schedule = std::make_unique<optim::CosineAnnealingLR>(*optimizer, 40, 0, 3);
  }
  /// `sync`: batch norm over the whole batch.
  explicit Training(const DataParallelOptions& options, bool sync = false)
      : Training((*options.devices)[0]) {
    if (sync)
      for (const auto& buffer : net->norm->named_buffers())
        net->norm->set_buffer_policy(buffer.key(), nn::BufferPolicy::sync);
    model = std::make_unique<DataParallel<Pictures>>(net, options);
  }
  /// A data-parallel step scatters pictures of the host's.
  std::pair<Tensor, Tensor> batch(int64_t n) {
    const Tensor x = normal(0, 1, {n, 1, 12, 12}, data);
    return {x.to(model ? kHost : home), randint(0, 5, {n}, data, TensorOptions(kLong)).to(home)};
  }
  Tensor step(const Tensor& x, const Tensor& y) {
    optimizer->zero_grad();
    Tensor loss = cross_entropy_loss(model ? (*model)(x) : net->forward(x), y);
    loss.backward();
    optimizer->step();
    if (schedule) schedule->step();
    return loss;
  }
  std::string state(const Tensor& loss = {}) {
    std::string s = bits(loss);
    for (const Tensor& t : net->parameters()) s += bits(t) + bits(t.grad());
    for (const Tensor& t : net->buffers()) s += bits(t);
    serialize::OutputArchive archive;
    optimizer->save(archive);
    if (schedule) schedule->save(archive);
    std::ostringstream text;
    archive.save_to(text);
    for (const GeneratorState& g : generator_states())
      s += std::to_string(g.seed) + "," + std::to_string(g.offset) + ",";
    return s + text.str();
  }
};

/// The state after each step, captured but for those that are `eager`.
struct Steps {
  std::vector<std::string> states;
  CapturedCounters counters;
  size_t kept = 0;
};
using Choice = std::function<bool(int step)>;
inline Steps run_steps(Training run, int steps, const Choice& eager) {
  Steps result;
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = run.batch(i % 5 == 4 ? 6 : 8);  // a short last batch
    const Tensor loss = eager(i) ? run.step(x, y) : step(x, y);
    EXPECT_EQ(loss.requires_grad(), eager(i));
    result.states.push_back(run.state(loss));
  }
  result.counters = step.counters(), result.kept = step.size();
  return result;
}
/// Runs that `make` makes have the same states after each step, eager or captured. Returns the
/// captured one.
inline Steps expect_same_steps(
    const std::function<Training()>& make, int steps,
    const Choice& eager = [](int) { return false; }) {
  const Steps captured = run_steps(make(), steps, eager),
              expected = run_steps(make(), steps, [](int) { return true; });
  for (size_t i = 0; i < expected.states.size(); ++i)
    EXPECT_TRUE(captured.states[i] == expected.states[i]) << "step " << i;
  return captured;
}

/// Replays allocate nothing on these devices.
inline void expect_no_allocation(Training run, const std::vector<Device>& devices) {
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  const auto [x, y] = run.batch(8);
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  std::vector<MemoryStats> before;
  for (const Device& d : devices) before.push_back(memory_stats(d));
  for (int i = 0; i < 5; ++i) step(x, y);
  for (size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(memory_stats(devices[i]).allocations, before[i].allocations) << devices[i];
    EXPECT_EQ(memory_stats(devices[i]).current, before[i].current) << devices[i];
  }
  EXPECT_EQ(step.counters().replays, 6u);
}

}  // namespace capture_tests
}  // namespace ramet
