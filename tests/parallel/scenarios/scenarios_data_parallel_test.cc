// data_parallel: arguments and results of any kind, devices, training that equals one device.
#include <gtest/gtest.h>

#include <map>

#include "autograd/autograd.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/module/sequential.h"
#include "nn/optim/gradient_accumulation.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

TEST(DataParallel, ScalarResults) {
  Call mean([](const Tensor& x) { return x.mean(); });
  DataParallelOptions options(many(4));
  const Tensor x = counting({10});
  const Tensor stacked = DataParallel<Call>(mean, options)(x);
  EXPECT_EQ(values(stacked), (Values{1, 4, 7, 9}));
  options.scalars = Scalars::mean;
  const Tensor m = DataParallel<Call>(mean, options)(x);
  EXPECT_EQ(m.dim(), 0);
  EXPECT_EQ(values(m), Values{5.25});
  options.scalars = Scalars::weighted_mean;
  const Tensor leaf = counting({10});
  leaf.requires_grad_();
  const Tensor w = DataParallel<Call>(mean, options)(leaf);
  EXPECT_EQ(values(w), Values{4.5});
  w.backward();
  expect_close(values(leaf.grad()), Values(10, 0.1), 1e-7);
  const Tensor alone = DataParallel<Call>(mean, DataParallelOptions({d(0)}))(x);
  EXPECT_EQ(alone.dim(), 0) << "one device";
}

struct NamedImpl : nn::Cloneable<NamedImpl> {
  void reset() override {}
  Tensor forward(const Tensor& x, const std::string& mode) {
    ++runs;
    return mode == "double" ? x * 2 : x;
  }
  static std::atomic<int> runs;
};
std::atomic<int> NamedImpl::runs{0};
RAMET_MODULE(Named);

TEST(DataParallel, FewerPiecesThanDevices) {
  Named m;
  DataParallel<Named> dp(m, {kHost, d(0), d(1), d(2), d(3), d(4), d(5), d(6)});
  const Tensor out = dp(counting({9, 2}), std::string("double"));
  EXPECT_EQ(NamedImpl::runs, 5);
  EXPECT_EQ(shape(out), (Shape{9, 2}));
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(values(out)[i], 2.0 * static_cast<double>(i));
}

struct PairSumImpl : nn::Cloneable<PairSumImpl> {
  void reset() override {}
  Tensor forward(const Tensor& x, const Tensor& y) { return x + y.sum(); }
};
RAMET_MODULE(PairSum);

TEST(DataParallel, ArgumentsOfDifferentLengths) {
  PairSum m;
  DataParallel<PairSum> dp(m, many(4));
  const Tensor eight = counting({8}), six = filled({6}, 1);
  const std::string text = error_of([&] { dp(eight, six); });
  EXPECT_TRUE(contains(text, "argument[0]") && contains(text, "argument[1]") &&
              contains(text, "got 6") && contains(text, "8 for"))
      << text;
  const Tensor out = dp(eight, Broadcast(six));
  EXPECT_EQ(values(out)[7], 13);
  const Tensor shared =
      dp(eight,
         PerReplica<Tensor>({filled({1}, 0), filled({1}, 10), filled({1}, 20), filled({1}, 30)}));
  EXPECT_EQ(values(shared), (Values{0, 1, 12, 13, 24, 25, 36, 37}));
  EXPECT_ERROR_TEXT(dp(eight, PerReplica<Tensor>({six, six})), "4 pieces");
  // A tensor that is broadcast collects the gradients of all replicas.
  six.requires_grad_();
  dp(eight, Broadcast(six)).sum().backward();
  EXPECT_EQ(values(six.grad()), Values(6, 8));
}

struct Named2 {
  Tensor a;
  std::vector<Tensor> b;
  int step = 0;
  RAMET_FIELDS(a, b, step)
};
using Nested = std::tuple<Tensor, std::tuple<Tensor, Tensor, std::vector<Tensor>>, Named2,
                          std::optional<Tensor>, std::map<std::string, Tensor>>;
struct NestedOutImpl : nn::Cloneable<NestedOutImpl> {
  void reset() override {}
  Nested forward(const Tensor& x) {
    Named2 named;
    named.a = x;
    named.b = {x.sin()};
    named.step = 7;
    return {x, {x.sin(), x.cos(), {x + 1}}, named, std::nullopt, {{"x", x}, {"y", x * 2}}};
  }
};
RAMET_MODULE(NestedOut);

struct KeysImpl : nn::Cloneable<KeysImpl> {
  explicit KeysImpl(bool count) : count(count) {}
  void reset() override {}
  std::map<std::string, Tensor> forward(const Tensor& x) {
    std::map<std::string, Tensor> out = {{"a", x}};
    if (count && replica_index() == 1) out["b"] = x;
    if (!count) out[replica_index() == 1 ? "c" : "b"] = x;
    return out;
  }
  bool count;
};
RAMET_MODULE(Keys);

TEST(DataParallel, NestedResults) {
  NestedOut m;
  const Tensor x = varied({5, 2}, 34);
  const Nested out = DataParallel<NestedOut>(m, many(2))(x), expected = m(x);
  EXPECT_EQ(values(std::get<0>(out)), values(x));
  const double slack = kGpus ? 1e-6 : 0;  // a GPU's sine has other last bits
  const auto& [sine, cosine, list] = std::get<1>(out);
  const auto& [expected_sine, expected_cosine, expected_list] = std::get<1>(expected);
  expect_close(values(sine), values(expected_sine), slack);
  expect_close(values(cosine), values(expected_cosine), slack);
  EXPECT_EQ(values(list.at(0)), values(expected_list.at(0)));
  EXPECT_EQ(values(std::get<2>(out).a), values(x));
  expect_close(values(std::get<2>(out).b.at(0)), values(x.sin()), slack);
  EXPECT_EQ(std::get<2>(out).step, 7);
  EXPECT_EQ(std::get<3>(out), std::nullopt);
  EXPECT_EQ(values(std::get<4>(out).at("y")), values(x * 2));

  Keys more(true), other(false);
  EXPECT_ERROR_TEXT(DataParallel<Keys>(more, many(2))(x),
                    "All dicts must have the same number of keys");
  EXPECT_ERROR_TEXT(DataParallel<Keys>(other, many(2))(x), "['b']: replica 1 has no such key");
}

struct NoInputImpl : nn::Cloneable<NoInputImpl> {
  void reset() override {}
  Tensor forward() {
    ++runs;
    return zeros({2});
  }
  static std::atomic<int> runs;
};
std::atomic<int> NoInputImpl::runs{0};
RAMET_MODULE(NoInput);

TEST(DataParallel, WithoutInputsRunsOnce) {
  NoInput m;
  const Tensor out = DataParallel<NoInput>(m, many(3))();
  EXPECT_EQ(NoInputImpl::runs, 1);
  EXPECT_EQ(out.device(), d(0));
}

TEST(DataParallel, OutputDevice) {
  nn::Linear m(3, 2);
  const Tensor x = varied({6, 3}, 36);
  const Values expected = values(m(x));
  for (const std::optional<Device> to :
       {std::optional<Device>(kHost), std::optional<Device>(d(1)), std::optional<Device>()}) {
    const Tensor out = data_parallel(m, x, many(2), to);
    EXPECT_EQ(out.device(), to.value_or(d(0)));
    expect_close(values(out), expected, 1e-6);
  }
  m->to(d(0));
  const Tensor out = data_parallel(m, x, std::vector<Device>{d(1)});
  EXPECT_EQ(out.device(), d(1));
  expect_close(values(out), expected, 1e-6);
  EXPECT_EQ(m->weight.device(), d(0)) << "the module is not moved";
  EXPECT_ERROR_TEXT(data_parallel(m, x, std::vector<Device>{}), "at least one device is required");
  if (!kGpus)
    EXPECT_ERROR_TEXT(data_parallel(m, x, std::vector<Device>{Device(kCUDA, 0)}),
                      "Expected at least one CUDA device to be available");
  clear_data_parallel_cache();
}

TEST(DataParallel, CurrentDeviceIsTheReplicas) {
  std::mutex mutex;
  std::map<int, std::pair<Device, Device>> seen;
  Call m([&](const Tensor& x) {
    // Factories make tensors on the host's current device, or on the kind that their caller gives.
    const Tensor fresh = x.is_cpu() ? zeros({2}) : zeros({2}, kCUDA);
    const std::lock_guard<std::mutex> lock(mutex);
    seen.emplace(replica_index(), std::pair(resolve(x.device().type()), fresh.device()));
    return x;
  });
  const std::vector<Device> on = {kHost, d(0), d(1), d(2)};
  DataParallel<Call>(m, on)(counting({8}));
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [replica, where] : seen) {
    EXPECT_EQ(where.first, on[static_cast<size_t>(replica)]);
    EXPECT_EQ(where.second, where.first);
  }
  EXPECT_EQ(current_device(), kHost);
  EXPECT_EQ(replica_index(), -1);
}

// Parameters, which are on `home`, after three steps of SGD.
Values trained(int n, int tree, bool plain = false, Device home = kHost) {
  SmallConv m;
  set_parameters(*m, 39);
  m->to(home);
  DataParallelOptions options(many(n));
  if (tree) options.order = ReduceOrder::tree(tree);
  DataParallel<SmallConv> dp(m, options);
  for (uint64_t step = 0; step < 3; ++step) {
    const Tensor x = varied({16, 1, 6, 6}, 390 + step), y = varied({16, 3}, 395 + step);
    m->zero_grad();
    const Tensor out = plain ? m(x) : dp(x).to(kHost);
    const Tensor difference = out - y;
    (difference * difference).mean().backward();
    sgd(*m, 0.1);
  }
  return all_values(m->parameters());
}

TEST(DataParallel, TrainingEqualsOneDevice) {
  const Values one = trained(1, 0, /*plain=*/true);
  for (int n : {1, 2, 4}) expect_close(trained(n, 0), one, 1e-6);
  const Values tree = trained(1, 4);
  expect_close(tree, one, 1e-6);
  for (int n : {2, 4}) EXPECT_EQ(trained(n, 4), tree) << "tree(4) on " << n << " devices";
  EXPECT_EQ(trained(1, 2, false, d(0)), trained(2, 2)) << "one device, where the module is";
}

// A layer of each kind is one operation, also of a replica's parameters.
struct SequencesImpl : nn::Cloneable<SequencesImpl> {
  SequencesImpl() { SequencesImpl::reset(); }
  void reset() override {
    lstm = register_module("lstm",
                           nn::LSTM(nn::LSTMOptions(3, 5).batch_first(true).bidirectional(true)));
    gru = register_module("gru", nn::GRU(nn::GRUOptions(10, 4).batch_first(true)));
  }
  Tensor forward(const Tensor& x) {
    return std::get<0>(gru->forward(std::get<0>(lstm->forward(x))));
  }
  nn::LSTM lstm{nullptr};
  nn::GRU gru{nullptr};
};
RAMET_MODULE(Sequences);

// Parameters after two steps with a gradient's square in the loss.
Values trained_sequences(int n, int tree, bool plain = false) {
  Sequences m;
  set_parameters(*m, 49);
  DataParallelOptions options(many(n));
  if (tree) options.order = ReduceOrder::tree(tree);
  DataParallel<Sequences> dp(m, options);
  for (uint64_t step = 0; step < 2; ++step) {
    const Tensor x = varied({8, 2, 3}, 490 + step);
    x.requires_grad_();
    m->zero_grad();
    const Tensor out = plain ? m(x) : dp(x).to(kHost);
    const Tensor gx = autograd::grad({out.square().sum()}, {x}, {}, std::nullopt, true)[0];
    (out.square().mean() + gx.square().mean()).backward();
    sgd(*m, 0.1);
  }
  return all_values(m->parameters());
}

TEST(DataParallel, RecurrentTrainingEqualsOneDevice) {
  const Values one = trained_sequences(1, 0, /*plain=*/true);
  expect_close(trained_sequences(4, 0), one, 1e-6);
  const Values tree = trained_sequences(1, 4);
  expect_close(tree, one, 1e-6);
  for (int n : {2, 4}) EXPECT_EQ(trained_sequences(n, 4), tree) << "tree(4) on " << n << " devices";
}

TEST(DataParallel, DropoutMasksOfOneDevice) {
  const Tensor x = filled({16, 33}, 1);
  auto two_masks = [&](int n, bool plain) {
    manual_seed(40);
    nn::Dropout m(0.5);
    DataParallel<nn::Dropout> dp(m, many(n));
    std::vector<Values> out;
    for (int step = 0; step < 2; ++step) out.push_back(values(plain ? m(x) : dp(x)));
    out.push_back(values(rand({3})));  // the generator is where it would be
    return out;
  };
  const auto one = two_masks(1, true);
  EXPECT_NE(one[0], one[1]);
  for (int n : {1, 2, 4}) EXPECT_EQ(two_masks(n, false), one) << n;
}

// Each backward adds the replicas' sums to what the module has: the bits of one device.
TEST(DataParallel, AnAccumulationOverReplicas) {
  Values gradients[2];
  for (const int devices : {1, 2}) {
    manual_seed(3);
    nn::Sequential net(nn::Linear(4, 6), nn::Tanh(), nn::Linear(6, 2));
    DataParallelOptions options(many(devices));
    options.order = ReduceOrder::tree(4);
    DataParallel<nn::Sequential> dp(net, options);
    optim::GradientAccumulation step(3);
    const Tensor x = randn({24, 4});
    for (int part = 0; part < 3; ++part)
      EXPECT_EQ(step.backward(dp(x.slice(0, 8 * part, 8 * part + 8)).square().mean()), part == 2);
    Values& all = gradients[devices - 1];
    for (const Tensor& p : net->parameters())
      for (double v : values(p.grad())) all.push_back(v);
    net->zero_grad();
    net->forward(x).square().mean().backward();
    Values whole;
    for (const Tensor& p : net->parameters())
      for (double v : values(p.grad())) whole.push_back(v);
    expect_close(all, whole, 1e-6);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
}

}  // namespace
}  // namespace ramet
