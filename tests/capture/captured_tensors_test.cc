// Tensors from outside that a captured function uses through views of them, and its results: what
// happens to both between two calls.
#include <string>
#include <utility>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "parallel/apply/data_parallel.h"
#include "runtime/devices/devices.h"
#include "tests/capture/support.h"

namespace ramet {
namespace capture_tests {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

// Other memory for `w` is noticed, and what a replay would do is compared with what f does.
void expect_followed(const std::string& what, const Tensor& w, const Function& f, const Tensor& x) {
  SCOPED_TRACE(what);
  const NoGradGuard off;
  Captured step([&](const Tensor& in) { return f(in); });
  EXPECT_EQ(bits(step(x)), bits(f(x)));
  w.set_data(randn(w.sizes()).to(w.device()));
  EXPECT_EQ(bits(step(x)), bits(f(x)));
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_STREQ(step.last_failed_guard(), "storages");
}

TEST(CapturedTensors, OtherMemoryBehindAView) {
  const Tensor w = randn({4, 4}), v = randn({4}), x = randn({4, 4});
#define F(value) [&](const Tensor& in) -> Tensor { return value; }
  const std::vector<std::pair<const char*, Function>> of_w{
      {"t", F(in.matmul(w.t()))},
      {"select", F(in + w[0])},
      {"view", F(in.view({16}) * w.view({16}))},
      {"detach", F(in + w.detach())},
      {"index_select", F(in + w.index_select(0, arange(4)))},
      {"softmax", F(in + w.softmax(0))},
      {"stack", F(stack({in, w}, 0))},
      {"itself", F(in + w)},
  };
  for (const auto& [what, f] : of_w) expect_followed(what, w, f, x);
  expect_followed("mv", v, F(in.mv(v)), x);
  expect_followed("expand", v, F(in + v.expand({4, 4})), x);
  const Tensor k = randn({1, 4, 8});
  expect_followed("attention", k, F(scaled_dot_product_attention(in, k, k)), randn({1, 4, 8}));
#undef F
}

template <class Module>
void followed(const char* what, Module module, const Tensor& member, const Tensor& x) {
  expect_followed(
      what, member, [&](const Tensor& in) { return module->forward(in); }, x);
}

TEST(CapturedTensors, OtherMemoryOfMembers) {
  nn::Conv1d conv1(nn::Conv1dOptions(2, 3, 3));
  followed("Conv1d", conv1, conv1->weight, randn({2, 2, 8}));
  nn::Conv2d conv2(nn::Conv2dOptions(2, 3, 3));
  followed("Conv2d", conv2, conv2->weight, randn({2, 2, 8, 8}));
  nn::BatchNorm2d norm(2);
  norm->eval();
  followed("BatchNorm2d, mean", norm, norm->running_mean, randn({2, 2, 8, 8}));
  followed("BatchNorm2d, weight", norm, norm->weight, randn({2, 2, 8, 8}));
  nn::LayerNorm layer(nn::LayerNormOptions({4}));
  followed("LayerNorm", layer, layer->weight, randn({4, 4}));
  nn::GroupNorm groups(2, 4);
  followed("GroupNorm", groups, groups->weight, randn({2, 4, 8}));
  nn::GRUCell cell(4, 3);
  followed("GRUCell", cell, cell->weight_hh, randn({2, 4}));
  nn::LSTM lstm(4, 3);
  expect_followed(
      "LSTM", lstm->all_weights()[1],
      [&](const Tensor& in) { return std::get<0>(lstm->forward(in)); }, randn({3, 2, 4}));
  nn::Linear linear(4, 4);
  followed("Linear", linear, linear->bias, randn({4, 4}));
  nn::Embedding words(4, 3);
  followed("Embedding", words, words->weight, arange(4));
}

TEST(CapturedTensors, OtherMemoryOfMembersOnAGpu) {
  if (!why_no_gpu().empty()) GTEST_SKIP() << "no GPU: " << why_no_gpu();
  const Device device(kCUDA, 0);
  nn::Embedding words(4, 3);
  words->to(device);
  followed("Embedding", words, words->weight, arange(4).to(device));
}

TEST(CapturedTensors, AMemberOfAnotherDtypeOrFrozen) {
  nn::Embedding words(4, 3);
  Captured step([&](const Tensor& i) {
    Tensor y = words->forward(i).sum();
    if (y.requires_grad()) y.backward();
    return y;
  });
  const Tensor i = arange(4);
  step(i);
  words->weight.requires_grad_(false);
  words->weight.mutable_grad() = Tensor();
  step(i);
  EXPECT_EQ(step.counters().captures, 2u);
  EXPECT_FALSE(words->weight.grad().defined());
  words->to(kDouble);
  EXPECT_EQ(step(i).scalar_type(), kDouble);
}

// The memory is the same.
TEST(CapturedTensors, OtherShapesAndStrides) {
  const auto followed = [](const char* what, const Function& f, const Tensor& x,
                           const std::function<void()>& change) {
    SCOPED_TRACE(what);
    const NoGradGuard off;
    Captured step([&](const Tensor& in) { return f(in); });
    EXPECT_EQ(bits(step(x)), bits(f(x)));
    change();
    const Tensor y = step(x);
    EXPECT_EQ(y.sizes(), f(x).sizes());
    EXPECT_EQ(bits(y), bits(f(x)));
    EXPECT_STREQ(step.last_failed_guard(), "shapes");
  };
  const auto numbers = [](IntArrayRef sizes) { return arange(36).to(kFloat).view(sizes).clone(); };
  const Tensor a = numbers({4, 9}), b = numbers({1, 36}), c = numbers({36}), d = numbers({4, 3, 3});
  followed(
      "set_data", [&](const Tensor& x) { return (a * 2).sum(0) + x; }, ones({1}),
      [&] {
        a.set_data(a.detach().view({9, 4}));
      });
  followed(
      "t_", [&](const Tensor& x) { return b + x; }, ones({36, 36}), [&] { b.t_(); });
  followed(
      "unsqueeze_", [&](const Tensor& x) { return c + x; }, ones({36, 36}),
      [&] { c.unsqueeze_(1); });
  const Tensor e = d.permute({0, 2, 1});
  followed(
      "strides alone", [&](const Tensor& x) { return e + x; }, ones({4, 3, 3}),
      [&] { e.set_data(d); });
}

// What a replay writes through a view is a write.
TEST(CapturedTensors, VersionsOfWhatIsWrittenThroughAView) {
  const Tensor w = ones({4}), i = tensor({0, 1}, kLong);
  const std::vector<std::pair<const char*, std::function<void()>>> writes{
      {"scatter_add_", [&] { w.scatter_add_(0, i, ones({2})); }},
      {"index_add_", [&] { w.index_add_(0, i, ones({2})); }},
      {"slice", [&] { w.slice(0, 0, 2).zero_(); }},
      {"view",
       [&] {
         w.view({2, 2}).mul_(2);
       }},
      {"select", [&] { w.select(0, 0).add_(1); }},
  };
  for (const auto& [what, f] : writes) {
    Captured step([&f = f](const Tensor&) { f(); });
    step(i);
    const auto version = w._version();
    const Tensor p = ones({4}).requires_grad_(), loss = (w * p).sum();  // saves w
    step(i);
    EXPECT_EQ(step.counters().replays, 1u);
    EXPECT_GT(w._version(), version) << what;
    EXPECT_ERROR_TEXT(loss.backward(), "modified by an inplace operation");
  }
}

TEST(CapturedTensors, ReplicasFollowWhatAReplayWrites) {
  nn::Linear net(4, 3);
  const std::vector<Device> two{kHost, Device(kCPU, 1)};
  nn::parallel::DataParallel<nn::Linear> model(net, nn::parallel::DataParallelOptions(two));
  const Tensor x = randn({8, 4}), d = full({12}, 0.5f);
  Captured update([&](const Tensor& by) {
    const NoGradGuard off;
    net->weight.view({12}).sub_(by);
  });
  for (int i = 0; i < 3; ++i) {
    update(d);
    EXPECT_EQ(bits(model(x)), bits(net->forward(x))) << "after call " << i;
  }
}

// What the caller does to a result is gone with the next call.
TEST(CapturedTensors, ResultsThatTheCallerChanges) {
  const Tensor w = full({3}, 2.f).requires_grad_(), x = ones({3}), expected = full({3}, 2.f);
  Captured step([](const Tensor& in) { return in + 1; });
  const auto leaf = [](Tensor y) {
    y.requires_grad_();
    (y * y).sum().backward();
    EXPECT_EQ(bits(y.grad()), bits(full({3}, 4.f)));
  };
  const std::vector<std::pair<const char*, std::function<void(Tensor)>>> changes{
      {"history", [&](Tensor y) { y.mul_(w), y.sum().backward(); }},
      {"a leaf", leaf},
      {"a leaf once more", leaf},
      {"shape", [&](Tensor y) { y.unsqueeze_(0); }},
      {"memory", [&](Tensor y) { y.set_data(zeros({3})); }},
  };
  for (const auto& [what, change] : changes) {
    SCOPED_TRACE(what);
    change(step(x));
    const Tensor y = step(x);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_TRUE(y.is_leaf());
    EXPECT_EQ(y.sizes(), IntArrayRef({3}));
    EXPECT_EQ(bits(y), bits(expected));
  }
  EXPECT_EQ(step.counters().captures, 1u);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
