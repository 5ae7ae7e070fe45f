// Acceptance scenarios 31 to 36 and 38 to 40, and the further ones listed under the specification's
// rulings. Not here: 38's autocast, complex transport (both come with those features) and emulated
// GPUs.
#include <gtest/gtest.h>

#include <map>

#include "autograd/autograd.h"
#include "parallel/counters.h"
#include "runtime/devices.h"
#include "runtime/generator.h"
#include "runtime/logging.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

TEST(Scenario, S31_ScalarResults) {
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

TEST(Scenario, S32_FewerPiecesThanDevices) {
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

TEST(Scenario, S33_Lengths) {
  PairSum m;
  DataParallel<PairSum> dp(m, many(4));
  const Tensor eight = counting({8}), six = filled({6}, 1);
  const std::string text = error_of([&] { dp(eight, six); });
  EXPECT_TRUE(has(text, "argument[0]") && has(text, "argument[1]") && has(text, "got 6") &&
              has(text, "8 for"))
      << text;
  const Tensor out = dp(eight, Broadcast(six));
  EXPECT_EQ(values(out)[7], 13);
  const Tensor shared =
      dp(eight,
         PerReplica<Tensor>({filled({1}, 0), filled({1}, 10), filled({1}, 20), filled({1}, 30)}));
  EXPECT_EQ(values(shared), (Values{0, 1, 12, 13, 24, 25, 36, 37}));
  EXPECT_ERROR(dp(eight, PerReplica<Tensor>({six, six})), "4 pieces");
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

TEST(Scenario, S34_NestedResults) {
  NestedOut m;
  const Tensor x = varied({5, 2}, 34);
  const Nested out = DataParallel<NestedOut>(m, many(2))(x), expected = m(x);
  EXPECT_EQ(values(std::get<0>(out)), values(x));
  EXPECT_EQ(values(std::get<0>(std::get<1>(out))), values(std::get<0>(std::get<1>(expected))));
  EXPECT_EQ(values(std::get<1>(std::get<1>(out))), values(std::get<1>(std::get<1>(expected))));
  EXPECT_EQ(values(std::get<2>(std::get<1>(out)).at(0)),
            values(std::get<2>(std::get<1>(expected)).at(0)));
  EXPECT_EQ(values(std::get<2>(out).a), values(x));
  EXPECT_EQ(values(std::get<2>(out).b.at(0)), values(x.sin()));
  EXPECT_EQ(std::get<2>(out).step, 7);
  EXPECT_EQ(std::get<3>(out), std::nullopt);
  EXPECT_EQ(values(std::get<4>(out).at("y")), values(x * 2));

  Keys more(true), other(false);
  EXPECT_ERROR(DataParallel<Keys>(more, many(2))(x), "All dicts must have the same number of keys");
  EXPECT_ERROR(DataParallel<Keys>(other, many(2))(x), "['b']: replica 1 has no such key");
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

TEST(Scenario, S35_NoInputs) {
  NoInput m;
  const Tensor out = DataParallel<NoInput>(m, many(3))();
  EXPECT_EQ(NoInputImpl::runs, 1);
  EXPECT_EQ(out.device(), d(0));
}

TEST(Scenario, S36_OutputDevice) {
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
  EXPECT_ERROR(data_parallel(m, x, std::vector<Device>{}), "at least one device is required");
  EXPECT_ERROR(data_parallel(m, x, std::vector<Device>{Device(kCUDA, 0)}),
               "Expected at least one CUDA device to be available");
  clear_data_parallel_cache();
}

TEST(Scenario, S38_CurrentDevice) {
  std::mutex mutex;
  std::map<int, std::pair<Device, Device>> seen;
  Call m([&](const Tensor& x) {
    const Tensor fresh = zeros({2});
    const std::lock_guard<std::mutex> lock(mutex);
    seen.emplace(replica_index(), std::pair(current_device(), fresh.device()));
    return x;
  });
  DataParallel<Call>(m, {kHost, d(0), d(1), d(2)})(counting({8}));
  ASSERT_EQ(seen.size(), 4u);
  for (const auto& [replica, where] : seen) {
    EXPECT_EQ(where.first, Device(kCPU, static_cast<DeviceIndex>(replica)));
    EXPECT_EQ(where.second, where.first);
  }
  EXPECT_EQ(current_device(), kHost);
  EXPECT_EQ(replica_index(), -1);
}

// Parameters after three steps of SGD.
Values trained(int n, int tree, bool plain = false) {
  SmallConv m;
  set_parameters(*m, 39);
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

TEST(Scenario, S39_TrainingEqualsOneDevice) {
  const Values one = trained(1, 0, /*plain=*/true);
  for (int n : {1, 2, 4}) expect_close(trained(n, 0), one, 1e-6);
  const Values tree = trained(1, 4);
  expect_close(tree, one, 1e-6);
  for (int n : {2, 4}) EXPECT_EQ(trained(n, 4), tree) << "tree(4) on " << n << " devices";
}

TEST(Scenario, S40_DropoutMasks) {
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

// ---- more scenarios -----------------------------------------------------------------------------

TEST(MoreScenarios, StrictSource) {
  nn::BatchNorm1d m(2);
  DataParallelOptions options({d(0), d(1)});
  options.strict_source = true;
  EXPECT_ERROR(DataParallel<nn::BatchNorm1d>(m, options),
               "module must have its parameters and buffers on device cpu:1 (device_ids[0]) but "
               "found one of them on device: cpu");
  m->to(d(0));
  m->running_mean.set_data(m->running_mean.to(d(1)));
  EXPECT_ERROR(DataParallel<nn::BatchNorm1d>(m, options), "('running_mean')");
}

TEST(MoreScenarios, Imbalance) {
  EXPECT_EQ(imbalance_warning({{0, 100, 10}, {1, 75, 10}}), std::nullopt) << "strictly less";
  const auto memory = imbalance_warning({{0, 100, 10}, {1, 74, 1}, {2, 74, 10}, {3, 100, 10}});
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory,
            "There is an imbalance between your GPUs. You may want to exclude GPU 1 which has less "
            "than 75% of the memory or cores of GPU 0. "
            "You can do so by setting the device_ids argument to DataParallel, or by setting the "
            "CUDA_VISIBLE_DEVICES environment variable.");
  EXPECT_TRUE(has(imbalance_warning({{4, 100, 8}, {5, 100, 16}}).value(),
                  "exclude GPU 4 which has less than 75% of the memory or cores of GPU 5"));
  EXPECT_EQ(imbalance_warning({}), std::nullopt);
}

TEST(MoreScenarios, AlongDimensionOne) {
  Call m([](const Tensor& x) { return x * x; });
  const Tensor x = varied({3, 7}, 1);
  x.requires_grad_();
  const Tensor out = data_parallel(m, x, many(3), kHost, 1);
  EXPECT_EQ(values(out), values(x * x));
  out.sum().backward();
  expect_close(values(x.grad()), values(x.detach() * 2), 1e-6);
  clear_data_parallel_cache();
}

TEST(MoreScenarios, HooksRunOncePerReplica) {
  nn::Linear m(2, 2);
  std::atomic<int> pre{0}, post{0};
  m->register_forward_pre_hook(
      [&](nn::Module& module, std::vector<Tensor>&) { pre += module.is_replica() ? 1 : 100; });
  DataParallel<nn::Linear> dp(m, many(3));
  dp(varied({6, 2}, 1));
  m->register_forward_hook([&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& out) {
    ++post;
    out[0] = out[0] * 0;
  });
  const Tensor y = dp(varied({6, 2}, 1));
  EXPECT_EQ(pre, 6);
  EXPECT_EQ(post, 3);
  EXPECT_EQ(values(y), Values(12, 0));
}

TEST(MoreScenarios, ExplicitDetach) {
  nn::Linear m(2, 2);
  for (const auto& r : replicate(m, {kHost, d(0)}, /*detach=*/true)) {
    for (const Tensor& p : r->parameters()) {
      EXPECT_TRUE(p.is_leaf());
      EXPECT_FALSE(p.requires_grad());
    }
  }
  EXPECT_TRUE(m->weight.requires_grad());
}

TEST(MoreScenarios, TransparentWrapper) {
  nn::Linear m(2, 2);
  DataParallel<nn::Linear> dp(m, std::vector<Device>{});
  const Tensor x = varied({3, 2}, 1);
  EXPECT_EQ(values(dp(x)), values(m(x)));
  dp(x).sum().backward();
  EXPECT_TRUE(m->weight.grad().defined());
}

TEST(MoreScenarios, SourceOnHostWithBatchNorm) {
  SmallConv m(true);
  set_parameters(*m, 5);
  DataParallelOptions options(many(2));
  options.output_device = kHost;
  DataParallel<SmallConv> dp(m, options);
  const Tensor x = varied({8, 1, 6, 6}, 6);
  dp(x).sum().backward();
  EXPECT_EQ(m->conv->weight.grad().device(), kHost);
  EXPECT_EQ(values(m->norm->num_batches_tracked), Values{1});
  SmallConv alone(true);
  set_parameters(*alone, 5);
  alone(x);
  expect_close(values(m->norm->running_var), values(alone->norm->running_var), 1e-5);
}

TEST(MoreScenarios, ModuleWithoutParameters) {
  Call m([](const Tensor& x) { return x + 1; });
  EXPECT_EQ(values(data_parallel(m, counting({4}), many(2), kHost)), (Values{1, 2, 3, 4}));
  EXPECT_EQ(replicate(m, many(2)).size(), 2u);
  clear_data_parallel_cache();
}

struct PlainImpl : nn::Cloneable<PlainImpl> {
  PlainImpl() { PlainImpl::reset(); }
  void reset() override { w = register_parameter("w", make({}, {1})); }
  Tensor forward(const Tensor& x) {
    factor += 1;  // discarded in replicas
    return x * w * factor;
  }
  double factor = 1;
  Tensor w;
};
RAMET_MODULE(Plain);

TEST(MoreScenarios, PlainMemberChanged) {
  Plain m;
  DataParallel<Plain> dp(m, many(2));
  EXPECT_EQ(values(dp(make({1, 1})))[1], 2);
  m->factor = 10;
  ramet::parallel::reset_counters();
  EXPECT_EQ(values(dp(make({1, 1}))), (Values{11, 11}));
  EXPECT_EQ(ramet::parallel::counters().replica_rebuilds, 1u);
  EXPECT_EQ(m->factor, 10);
}

TEST(MoreScenarios, HandMadeReplicas) {
  nn::Linear m(2, 1);
  std::vector<nn::Linear> copies;
  for (int k = 0; k < 2; ++k)
    copies.push_back(nn::Linear(std::dynamic_pointer_cast<nn::LinearImpl>(m->clone(d(k)))));
  replicate_grad_edges(m, copies, many(2));
  const auto out = nn::parallel::parallel_apply(
      copies, {filled({1, 2}, 1, kFloat, d(0)), filled({1, 2}, 10, kFloat, d(1))});
  (out[0].to(kHost) + out[1].to(kHost)).sum().backward();
  EXPECT_EQ(values(m->weight.grad()), (Values{11, 11}));
  EXPECT_EQ(values(m->bias.grad()), Values{2});
  std::vector<nn::Linear> wrong = {nn::Linear(2, 1), nn::Linear(3, 1)};
  wrong[0]->to(d(0));
  wrong[1]->to(d(1));
  EXPECT_ERROR(replicate_grad_edges(m, wrong, many(2)), "replica 1 on device cpu:2: 'weight'");
  EXPECT_ERROR(replicate_grad_edges(m, copies, many(1)), "as many devices as replicas");
}

struct OwnError : std::runtime_error {
  explicit OwnError(int code) : std::runtime_error("own"), code(code) {}
  int code;
};

TEST(MoreScenarios, UserExceptionType) {
  Call m([](const Tensor& x) -> Tensor {
    if (replica_index() == 1) throw OwnError(42);
    return x;
  });
  DataParallel<Call> dp(m, many(2));
  try {
    dp(counting({4}));
    FAIL();
  } catch (const OwnError& e) { EXPECT_EQ(e.code, 42); }
  ASSERT_TRUE(last_failed_replica());
  EXPECT_EQ(last_failed_replica()->replica, 1);
  EXPECT_EQ(last_failed_replica()->device, d(1));
}

}  // namespace
}  // namespace ramet
