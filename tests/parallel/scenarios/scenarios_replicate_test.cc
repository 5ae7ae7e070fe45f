// Replicas and ReduceAdd. Synchronised statistics and everything about timing are in
// scenarios_data_parallel_threads_test.cc.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "nn/optim/sgd.h"
#include "parallel/move/counters.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;
using ramet::parallel::counters;
using ramet::parallel::reset_counters;

TEST(Replicate, ParametersAreOnTheReplicasDevice) {
  nn::Linear m(3, 4);
  m->to(d(0));
  const auto replicas = replicate(m, {d(0), d(1)});
  ASSERT_EQ(replicas.size(), 2u);
  for (const auto& r : replicas)
    EXPECT_EQ(all_values(r->parameters()), all_values(m->parameters()));
  EXPECT_EQ(replicas[0]->weight->data, m->weight->data);
  EXPECT_NE(replicas[1]->weight->data, m->weight->data);
  EXPECT_EQ(replicas[1]->weight.device(), d(1));
  ASSERT_EQ(replicas[1]->parameters().size(), 2u);
  for (const Tensor& p : replicas[1]->parameters()) {
    EXPECT_FALSE(p.is_leaf());
    EXPECT_TRUE(p.requires_grad());
    EXPECT_EQ(p.device(), d(1));
  }
  EXPECT_TRUE(replicas[1]->is_replica());
  EXPECT_TRUE(replicate(m, {}).empty());
}

TEST(DataParallel, GradientIsTheSumOverReplicas) {
  for (int n : {1, 2, 4}) {
    for (Device home : {kHost, d(0)}) {
      Times m(2.0);
      m->to(home);
      DataParallel<Times> dp(m, many(n));
      const Tensor loss = dp(make({1, 2, 3, 4})).sum();
      loss.backward({}, /*retain_graph=*/true);
      EXPECT_EQ(values(m->w.grad()), Values{10}) << n;
      EXPECT_EQ(m->w.grad().device(), home);
      loss.backward();
      EXPECT_EQ(values(m->w.grad()), Values{20}) << n;
    }
  }
}

struct TwoWeightsImpl : nn::Cloneable<TwoWeightsImpl> {
  TwoWeightsImpl() { TwoWeightsImpl::reset(); }
  void reset() override {
    w1 = register_parameter("w1", filled({5}, 2));
    w2 = register_parameter("w2", filled({7}, 3));
  }
  Tensor forward(const Tensor& x) { return x * w1.sum() * w2.sum(); }
  Tensor w1, w2;
};
RAMET_MODULE(TwoWeights);

TEST(DataParallel, FrozenParametersAreNotReduced) {
  TwoWeights m;
  m->to(d(0));
  m->w1.requires_grad_(false);
  DataParallel<TwoWeights> dp(m, many(4));
  reset_counters();
  const Tensor out = dp(filled({4}, 1, kFloat, d(0)));
  EXPECT_EQ(counters().reduce_nodes_created, 1u);
  for (int r = 0; r < 4; ++r) {
    EXPECT_FALSE(dp.replicas().replica<TwoWeightsImpl>(r).w1.requires_grad());
    EXPECT_TRUE(dp.replicas().replica<TwoWeightsImpl>(r).w2.requires_grad());
  }
  reset_counters();
  out.sum().backward();
  EXPECT_FALSE(m->w1.grad().defined());
  EXPECT_EQ(values(m->w2.grad()), Values(7, 40));
  uint64_t reduced = 0;
  for (int k = 1; k < 4; ++k) reduced += counters().comm_bytes[d(k).ordinal()][d(0).ordinal()];
  EXPECT_EQ(reduced, 3u * 7 * 4);
}

struct TiedImpl : nn::Cloneable<TiedImpl> {
  TiedImpl() { TiedImpl::reset(); }
  void reset() override {
    w = register_parameter("w", make({}, {3}));
    v = register_parameter("v", w);
  }
  Tensor forward(const Tensor& x) { return (x * w) * v; }
  Tensor w, v;
};
RAMET_MODULE(Tied);

TEST(DataParallel, TiedParametersStayTied) {
  Tied m;
  DataParallel<Tied> dp(m, {kHost, d(0)});
  dp(make({1, 1})).sum().backward();
  EXPECT_EQ(values(m->w.grad()), Values{12});
  for (int r = 0; r < 2; ++r) {
    auto& replica = dp.replicas().replica<TiedImpl>(r);
    EXPECT_EQ(replica.w->data, replica.v->data);
    EXPECT_EQ(replica.w->node, replica.v->node);
    EXPECT_EQ(replica.w->slot, replica.v->slot);
  }
}

struct MaySkipImpl : nn::Cloneable<MaySkipImpl> {
  explicit MaySkipImpl(bool nobody) : nobody(nobody) { MaySkipImpl::reset(); }
  void reset() override {
    a = register_parameter("a", make({}, {2}));
    b = register_parameter("b", make({}, {5}));
  }
  Tensor forward(const Tensor& x) { return nobody || replica_index() == 1 ? x * a : x * a * b; }
  bool nobody;
  Tensor a, b;
};
RAMET_MODULE(MaySkip);

TEST(DataParallel, AParameterThatAReplicaSkips) {
  MaySkip one(false);
  DataParallel<MaySkip> dp(one, many(2));
  reset_counters();
  dp(make({1, 2, 3, 4})).sum().backward();
  EXPECT_EQ(values(one->b.grad()), Values{6});  // replica 0: a (1 + 2)
  EXPECT_EQ(counters().reduce_slots_skipped, 1u);
  MaySkip none(true);
  DataParallel<MaySkip> dp2(none, many(2));
  dp2(make({1, 2, 3, 4})).sum().backward();
  EXPECT_FALSE(none->b.grad().defined());
  EXPECT_EQ(values(none->a.grad()), Values{10});
}

TEST(DataParallel, GradientPenalty) {
  nn::Linear m(4, 1);
  DataParallel<nn::Linear> dp(m, many(2));
  const Tensor x = filled({2, 4}, 1);
  x.requires_grad_();
  const Tensor gx = autograd::grad({dp(x).sum()}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
  gx.mean().backward();
  EXPECT_EQ(values(m->weight.grad()), (Values{.25, .25, .25, .25}));
  EXPECT_FALSE(m->bias.grad().defined());
}

struct GradBufferImpl : nn::Cloneable<GradBufferImpl> {
  GradBufferImpl() { GradBufferImpl::reset(); }
  void reset() override {
    Tensor t = make({.5, -.25, 2}, kDouble);
    t.requires_grad_();
    t_rg = register_buffer("t_rg", t);
    c = register_buffer("c", make({1, 2, 3}, kDouble));
  }
  Tensor forward(const Tensor& x) { return x * t_rg + c; }
  Tensor t_rg, c;
};
RAMET_MODULE(GradBuffer);

TEST(DataParallel, BufferThatRequiresGrad) {
  GradBuffer m;
  DataParallel<GradBuffer> dp(m, {kHost, d(0)});
  const Tensor x = varied({4, 3}, 23, kDouble);
  x.requires_grad_();
  EXPECT_TRUE(autograd::gradcheck(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{dp(in[0])}; }, {x}));
  const auto by_buffer = [&](const std::vector<Tensor>&) {
    dp.replicas().mark_dirty();  // gradcheck writes through a raw pointer
    return std::vector<Tensor>{dp(x.detach())};
  };
  EXPECT_TRUE(autograd::gradcheck(by_buffer, {m->t_rg}));
  m->t_rg.mutable_grad() = Tensor();
  dp(x).sum().backward();
  const Values v = values(x);
  for (size_t c = 0; c < 3; ++c)
    EXPECT_NEAR(values(m->t_rg.grad())[c], v[c] + v[3 + c] + v[6 + c] + v[9 + c], 1e-14);
}

struct HolesImpl : nn::Cloneable<HolesImpl> {
  HolesImpl() { HolesImpl::reset(); }
  void reset() override {
    register_parameter("first", Tensor(), false);
    p = register_parameter("p", make({1}));
    register_parameter("last", Tensor(), false);
    register_buffer("none", Tensor());
    b = register_buffer("b", make({2}));
    register_module("nothing", std::shared_ptr<nn::Module>());
    child = register_module("child", nn::Linear(1, 1));
  }
  Tensor forward(const Tensor& x) { return child(x); }
  Tensor p, b;
  nn::Linear child{nullptr};
};
RAMET_MODULE(Holes);

TEST(Replicate, UndefinedMembersStayUndefined) {
  Holes m;
  for (const Holes& r : replicate(m, many(2))) {
    ASSERT_EQ(r->own_parameters().keys(), m->own_parameters().keys());
    ASSERT_EQ(r->own_buffers().keys(), m->own_buffers().keys());
    ASSERT_EQ(r->own_children().keys(), m->own_children().keys());
    EXPECT_FALSE(r->own_parameters()["first"].defined());
    EXPECT_FALSE(r->own_parameters()["last"].defined());
    EXPECT_FALSE(r->own_buffers()["none"].defined());
    EXPECT_EQ(r->own_children()["nothing"], nullptr);
    EXPECT_EQ(values(r->p), Values{1});
    EXPECT_EQ(values(r->b), Values{2});
  }
}

TEST(Replicate, LeavesGeneratorsUntouched) {
  manual_seed(25);
  nn::Linear m(3, 4);
  auto states = [] {
    std::vector<GeneratorState> out;
    for (int k = 0; k < cpu_device_count(); ++k)
      out.push_back(default_generator(Device(kCPU, static_cast<DeviceIndex>(k))).get_state());
    return out;
  };
  const auto before = states();
  replicate(m, many(3));
  EXPECT_EQ(states(), before);
  data_parallel(m, varied({6, 3}, 1), many(3));
  EXPECT_EQ(states(), before);
  clear_data_parallel_cache();
}

TEST(DataParallel, NoGradMakesNoNodes) {
  std::atomic<int> off{0};
  nn::Linear m(256, 512);
  DataParallel<nn::Linear> dp(m, many(3));
  m->register_forward_pre_hook(
      [&](nn::Module&, std::vector<Tensor>&) { off += !GradMode::is_enabled(); });
  const Tensor x = varied({96, 256}, 26);
  NoGradGuard guard;
  dp(x);
  // What the module itself needs for a piece of that size, where it runs: output and workspace.
  int64_t forward = 0;
  {
    const Device there = kGpus ? d(1) : kHost;
    const std::shared_ptr<nn::Module> twin = m->clone(there);
    const Tensor piece = x.narrow(0, 0, 32).clone().to(there);
    reset_peak_memory_stats(there);
    const int64_t start = memory_stats(there).current;
    twin->as<nn::LinearImpl>()->forward(piece);
    forward = memory_stats(there).peak - start;
  }
  reset_counters();
  off = 0;
  std::vector<int64_t> before;
  for (int k = 0; k < 3; ++k) {
    reset_peak_memory_stats(d(k));
    before.push_back(memory_stats(d(k)).current);
  }
  {
    const Tensor out = dp(x);
    EXPECT_EQ(off, 3);
    EXPECT_EQ(counters().reduce_nodes_created, 0u);
    EXPECT_FALSE(out.requires_grad());
    EXPECT_FALSE(dp.replicas().replica<nn::LinearImpl>(1).weight.requires_grad());
    for (int k = 0; k < 3; ++k) {
      const int64_t piece_in = 32 * 256 * 4, whole = 96 * 512 * 4;
      EXPECT_EQ(memory_stats(d(k)).current, before[static_cast<size_t>(k)] + (k == 0 ? whole : 0));
      EXPECT_LE(memory_stats(d(k)).peak,
                before[static_cast<size_t>(k)] + piece_in + forward + (k == 0 ? whole : 0) +
                    (kGpus ? 512 : 0));  // a GPU's blocks are multiples of that
    }
  }
  for (int k = 0; k < 3; ++k) EXPECT_EQ(memory_stats(d(k)).current, before[static_cast<size_t>(k)]);
}

TEST(DataParallel, BatchNormStatistics) {
  const Tensor x = make({4, 1}, {0, 2, 4, 6});
  for (const nn::BufferPolicy policy : {nn::BufferPolicy::first, nn::BufferPolicy::merge_stats}) {
    for (const std::vector<Device>& on : {std::vector<Device>{kHost, d(0)}, many(2)}) {
      nn::BatchNorm1d m(1);
      for (const char* name : {"running_mean", "running_var", "num_batches_tracked"})
        m->set_buffer_policy(name, policy);
      DataParallel<nn::BatchNorm1d> dp(m, on);
      dp(x);
      const bool first = policy == nn::BufferPolicy::first;
      EXPECT_NEAR(values(m->running_mean)[0], first ? 0.1 : 0.3, 1e-6);
      EXPECT_NEAR(values(m->running_var)[0], first ? 1.1 : 1.566667, 1e-6);
      EXPECT_EQ(values(m->num_batches_tracked), Values{1});
      m->eval();
      const Tensor y = dp(x);  // replicas see the merged statistics
      nn::BatchNorm1d alone = m;
      expect_close(values(y), values(alone(x)), 1e-6);
    }
  }
}

struct TwoLayersImpl : nn::Cloneable<TwoLayersImpl> {
  TwoLayersImpl() { TwoLayersImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(16, 16));
    b = register_module("b", nn::Linear(16, 4));
  }
  Tensor forward(const Tensor& x) { return b(a(x).tanh()); }
  nn::Linear a{nullptr}, b{nullptr};
};
RAMET_MODULE(TwoLayers);

TEST(DataParallel, RefreshMovesWhatChanged) {
  for (int n : {1, 2, 4}) {
    TwoLayers m;
    m->to(d(0));
    DataParallelOptions options(many(n));
    options.bucket_bytes = 17 * 16 * 4;  // {a.bias, b.weight, b.bias} and {a.weight}
    // with N = 1 also through a replica set
    options.order = n == 1 ? ReduceOrder::tree(2) : ReduceOrder::fixed();
    DataParallel<TwoLayers> dp(m, options);
    const Tensor x = varied({8, 16}, 28, kFloat, d(0));
    dp(x);
    ASSERT_EQ(dp.replicas().buckets().size(), 2u);
    reset_counters();
    Tensor loss = dp(x).sum();
    EXPECT_EQ(counters().replica_refresh_bytes, 0u);
    loss.backward();
    optim::SGD step(std::vector<Tensor>{m->b->weight, m->b->bias}, 0.1);
    dp(x);  // the optimizer may have moved its parameters: what that costs is not counted here
    reset_counters();
    step.step();
    dp(x);
    EXPECT_EQ(counters().replica_refresh_bytes,
              (16u + 16 * 4 + 4) * 4 * static_cast<uint64_t>(n - 1));
    EXPECT_EQ(counters().replica_rebuilds, 0u);
    for (int r = 0; r < n; ++r)
      EXPECT_EQ(values(dp.replicas().replica<TwoLayersImpl>(r).b->weight), values(m->b->weight));
  }
}

TEST(DataParallel, SourceChangedBeforeBackward) {
  for (int n : {1, 2, 3}) {
    for (Device home : {kHost, d(1)}) {
      TwoLayers m;
      m->to(home);
      DataParallelOptions options(many(n));
      if (n == 1) options.order = ReduceOrder::tree(2);
      DataParallel<TwoLayers> dp(m, options);
      const Tensor x = varied({6, 16}, 29);
      Tensor loss = dp(x).sum();
      {
        const NoGradGuard off;
        m->b->weight.mul_(2);  // needed for the gradient of a's output
      }
      const std::string text = error_of([&] { loss.backward(); });
      EXPECT_TRUE(contains(text, "b.weight") && contains(text, "modified by an inplace operation"))
          << text;
      m->zero_grad();
      loss = dp(x).sum();
      {
        const NoGradGuard off;
        m->b->bias.mul_(2);  // nothing needs its value
      }
      loss.backward();
      EXPECT_EQ(values(m->b->bias.grad()), Values(4, 6));
    }
  }
}

struct SealedImpl : nn::Cloneable<SealedImpl> {
  explicit SealedImpl(bool open_child) : open_child(open_child) { SealedImpl::reset(); }
  void reset() override {
    if (open_child) register_module("inner", nn::Linear(1, 1));
    else w = register_parameter("w", make({3}));
  }
  bool is_sealed() const override { return true; }
  bool can_rebind() const override { return true; }
  void rebind(ArrayRef<Tensor> parameters) override { bound = parameters[0]; }
  Tensor forward(const Tensor& x) { return x * (bound.defined() ? bound : w); }
  bool open_child;
  Tensor w, bound;
};
RAMET_MODULE(Sealed);
struct HouseImpl : nn::Cloneable<HouseImpl> {
  explicit HouseImpl(bool open_child) : open_child(open_child) { HouseImpl::reset(); }
  void reset() override { room = register_module("room", Sealed(open_child)); }
  Tensor forward(const Tensor& x) { return room(x); }
  bool open_child;
  Sealed room{nullptr};
};
RAMET_MODULE(House);

TEST(Replicate, SealedModules) {
  House bad(true);
  auto allocated = [] {
    return memory_stats(kHost).allocations + memory_stats(d(0)).allocations +
           memory_stats(d(1)).allocations;
  };
  const int64_t before = allocated();
  EXPECT_ERROR_TEXT(
      replicate(bad, many(2)),
      "Cannot replicate: 'room' is sealed but contains non-sealed child 'room.inner'");
  EXPECT_EQ(allocated(), before);
  House good(false);
  DataParallel<House> dp(good, many(2));
  dp(make({1, 2})).sum().backward();
  EXPECT_EQ(values(good->room->w.grad()), Values{3});
}

}  // namespace
}  // namespace ramet
