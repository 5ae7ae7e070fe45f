// Data-parallel steps, captured: the same bits as eager ones.
#include <memory>
#include <sstream>

#include "nn/cloneable.h"
#include "nn/serialize/archive.h"
#include "parallel/data_parallel.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;
using parallel::ReduceOrder;

struct PicturesImpl : nn::Cloneable<PicturesImpl> {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Dropout drop{nullptr};
  nn::Linear last{nullptr};
  PicturesImpl() { PicturesImpl::reset(); }
  void reset() override {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 4, 3)));
    norm = register_module("norm", nn::BatchNorm2d(4));
    drop = register_module("drop", nn::Dropout(0.3));
    last = register_module("last", nn::Linear(4 * 5 * 5, 5));
  }
  Tensor forward(const Tensor& x) {
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

  explicit Training(const DataParallelOptions& options) {
    manual_seed(11);
    net = Pictures();
    adam = std::make_unique<optim::Adam>(net->parameters(), optim::AdamOptions(0.01));
    model = std::make_unique<DataParallel<Pictures>>(net, options);
  }
  std::pair<Tensor, Tensor> batch(int64_t n) {
    return {normal(0, 1, {n, 1, 12, 12}, data), randint(0, 5, {n}, data, TensorOptions(kLong))};
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

std::vector<Device> cpus(int n) {
  std::vector<Device> out;
  for (int i = 0; i < n; ++i) out.emplace_back(kCPU, static_cast<DeviceIndex>(i));
  return out;
}

TEST(CapturedDataParallel, SameBitsAsEager) {
  for (const int devices : {1, 2, 4}) {
    for (const bool tree : {false, true}) {
      SCOPED_TRACE(std::to_string(devices) + (tree ? " devices, tree" : " devices"));
      DataParallelOptions options(cpus(devices));
      if (tree) options.order = ReduceOrder::tree(4);
      const auto size = [](int i) { return i % 5 == 4 ? 6 : 8; };
      std::vector<std::string> expected;
      {
        Training eager(options);
        for (int i = 0; i < 20; ++i) {
          const auto [x, y] = eager.batch(size(i));
          expected.push_back(eager.state(eager.step(x, y)));
        }
      }
      Training run(options);
      Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
      for (int i = 0; i < 20; ++i) {
        const auto [x, y] = run.batch(size(i));
        // An eager step between: replicas follow what replays have changed.
        const Tensor loss = i == 7 ? run.step(x, y) : step(x, y);
        ASSERT_TRUE(run.state(loss) == expected[static_cast<size_t>(i)]) << "step " << i;
      }
      EXPECT_EQ(step.counters().captures, 3u);
      EXPECT_EQ(step.counters().replays, 16u);
    }
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
