// Data-parallel training that the tests of captures share: a small picture net with batch norm,
// dropout and Adam.
#pragma once
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/cloneable.h"
#include "nn/serialize/archive.h"
#include "parallel/apply/data_parallel.h"
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

struct Training {
  Pictures net{nullptr};
  std::unique_ptr<optim::Adam> adam;
  std::unique_ptr<DataParallel<Pictures>> model;
  Generator data{kHost, 5};
  Device home = kHost;

  /// `sync`: batch norm over the whole batch.
  explicit Training(const DataParallelOptions& options, bool sync = false) {
    manual_seed(11);
    net = Pictures();
    home = (*options.devices)[0];
    net->to(home);
    if (sync)
      for (const auto& buffer : net->norm->named_buffers())
        net->norm->set_buffer_policy(buffer.key(), nn::BufferPolicy::sync);
    adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions(0.01));
    model = std::make_unique<DataParallel<Pictures>>(net, options);
  }
  std::pair<Tensor, Tensor> batch(int64_t n) {
    // Pictures of the host's, which the step scatters.
    return {normal(0, 1, {n, 1, 12, 12}, data),
            randint(0, 5, {n}, data, TensorOptions(kLong)).to(home)};
  }
  Tensor step(const Tensor& x, const Tensor& y) {
    adam->zero_grad();
    Tensor loss = cross_entropy_loss((*model)(x), y);
    loss.backward();
    adam->step();
    return loss;
  }
  std::string state(const Tensor& loss) {
    std::string s = bits(loss);
    for (const Tensor& t : net->parameters()) s += bits(t) + bits(t.grad());
    for (const Tensor& t : net->buffers()) s += bits(t);
    serialize::OutputArchive archive;
    adam->save(archive);
    std::ostringstream text;
    archive.save_to(text);
    for (const GeneratorState& g : generator_states()) s += std::to_string(g.offset) + ",";
    return s + text.str();
  }
};

/// The state after each step, eager or captured; `eager_at`: a captured run makes this step
/// eagerly.
struct Steps {
  std::vector<std::string> states;
  CapturedCounters counters;
};
inline Steps run_steps(const DataParallelOptions& options, int steps, bool captured,
                       int eager_at = -1, bool sync = false) {
  Steps result;
  Training run(options, sync);
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  for (int i = 0; i < steps; ++i) {
    const auto [x, y] = run.batch(i % 5 == 4 ? 6 : 8);  // a short last batch
    const Tensor loss = captured && i != eager_at ? step(x, y) : run.step(x, y);
    result.states.push_back(run.state(loss));
  }
  result.counters = step.counters();
  return result;
}
inline void expect_same_steps(const Steps& a, const Steps& b) {
  ASSERT_EQ(a.states.size(), b.states.size());
  for (size_t i = 0; i < a.states.size(); ++i)
    ASSERT_TRUE(a.states[i] == b.states[i]) << "step " << i;
}

}  // namespace capture_tests
}  // namespace ramet
