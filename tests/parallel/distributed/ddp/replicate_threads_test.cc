// The composable replicate() with ranks as threads.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/model/contract.h"
#include "parallel/distributed/model/device_mesh.h"
#include "parallel/distributed/model/managed.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

struct ReplicatedNetImpl : nn::Cloneable<ReplicatedNetImpl> {
  ReplicatedNetImpl() { ReplicatedNetImpl::reset(); }
  void reset() override {
    fc1 = register_module("fc1", nn::Linear(3, 4));
    fc2 = register_module("fc2", nn::Linear(4, 5));
    fc3 = register_module("fc3", nn::Linear(5, 2));
  }
  Tensor forward(const Tensor& x) { return fc3(fc2(fc1(x).tanh()).tanh()); }
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
RAMET_MODULE(ReplicatedNet);

struct NormNetImpl : nn::Cloneable<NormNetImpl> {
  NormNetImpl() { NormNetImpl::reset(); }
  void reset() override {
    fc = register_module("fc", nn::Linear(3, 4));
    norm = register_module("norm", nn::BatchNorm1d(4));
  }
  Tensor forward(const Tensor& x) { return norm(fc(x)); }
  nn::Linear fc{nullptr};
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(NormNet);

// Its layer may be left out.
struct SkippingImpl : nn::Cloneable<SkippingImpl> {
  SkippingImpl() { SkippingImpl::reset(); }
  void reset() override { fc = register_module("fc", nn::Linear(3, 3)); }
  Tensor forward(const Tensor& x) { return skip ? 2 * x : fc(x); }
  nn::Linear fc{nullptr};
  bool skip = false;
};
RAMET_MODULE(Skipping);

template <class Holder> Holder copy_of(const Holder& net) {
  using Impl = typename Holder::ContainedType;
  return Holder(std::dynamic_pointer_cast<Impl>(net->clone()));
}

ReplicateOptions summed() {
  ReplicateOptions o;
  o.average = Average::sum;
  return o;
}

std::vector<std::string> keys_of(const ReplicatedNet& net) {
  std::vector<std::string> out;
  for (const auto& item : net->named_parameters()) out.push_back(item.key());
  return out;
}

// The same on all ranks?
bool equal_everywhere(const Group& g, const Tensor& t) {
  Tensor first = t.detach().clone();
  g->broadcast(first, 0).wait();
  Tensor same = full({}, same_bits(first, t.detach()) ? 1.0 : 0.0);
  g->all_reduce(same).wait();
  return same.item<double>() == g->size();
}

TEST(Replicate, Contract) {
  with_groups(2, seconds(60), [](const Group& g) {
    ReplicatedNet net;
    const ReplicatedNet& returned = replicate(net, g);
    EXPECT_EQ(returned.get(), net.get());
    EXPECT_ERROR_TEXT(
        replicate(net, g),
        "Each distinct composable distributed API can only be applied to a module once. "
        "replicate has already been applied to the following module:");
    ReplicatedNet sharded;
    set_fully_sharded(*sharded, true);
    EXPECT_ERROR_TEXT(replicate(sharded, g),
                      "Cannot apply `replicate()` on a Module already managed by `fully_shard`");
    set_fully_sharded(*sharded, false);
    replicate(sharded, g);

    ReplicatedNet renamed;
    const auto rename = [](nn::Module& m) {
      m.unregister_module("fc3");
      m.register_module("last", nn::Linear(5, 2));
    };
    const std::string said = error_of([&] { apply_once("mine", *renamed, rename); });
    expect_part(said,
                "Checking parameters: Composable distributed API implementations cannot modify "
                "FQNs.");
    expect_part(said, "only after: 'last.bias', 'last.weight'");
    ReplicatedNet reordered;
    const auto reorder = [](nn::Module& m) {
      const auto fc1 = m.named_children()["fc1"];
      m.unregister_module("fc1");
      m.register_module("fc1", fc1);
    };
    EXPECT_ERROR_TEXT(apply_once("mine", *reordered, reorder), "cannot modify the order of FQNs");
    // One that throws was not applied.
    ReplicatedNet other;
    EXPECT_EQ(error_of([&] {
                apply_once("mine", *other, [](nn::Module&) { throw std::runtime_error("no"); });
              }),
              "no");
    int runs = 0;
    apply_once("mine", *other, [&](nn::Module&) { ++runs; });
    EXPECT_EQ(runs, 1);
  });
}

// By handle and by name.
TEST(Replicate, IgnoredModules) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const bool by_name : {false, true}) {
      ReplicatedNet net;
      ReplicateOptions o;
      if (by_name) o.ignored.names = {"fc1"};
      else o.ignored.modules = {net->fc1.ptr()};
      replicate(net, g, o);
      EXPECT_EQ(replicate_handle(net).replicated_param_names(),
                (std::vector<std::string>{"fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}));
      net(randn({4, 3})).square().sum().backward();
      EXPECT_FALSE(equal_everywhere(g, net->fc1->weight.grad()));
      EXPECT_FALSE(equal_everywhere(g, net->fc1->weight));  // not copied either
      for (const Tensor& p : {net->fc2->weight, net->fc2->bias, net->fc3->weight, net->fc3->bias}) {
        EXPECT_TRUE(equal_everywhere(g, p));
        EXPECT_TRUE(equal_everywhere(g, p.grad()));
      }
    }
    ReplicatedNet net;
    ReplicateOptions o;
    o.ignored.names = {"*.bias", "fc1.*"};
    o.ignored.tensors = {net->fc3->weight};
    replicate(net, g, o);
    EXPECT_EQ(replicate_handle(net).replicated_param_names(),
              (std::vector<std::string>{"fc2.weight"}));
    o.ignored.names = {"fc4"};
    ReplicatedNet other;
    EXPECT_ERROR_TEXT(replicate(other, g, o), "nothing in the module is called 'fc4'");
  });
}

// Of two ranks: modules keep their keys, their order and their values.
void check_several_submodules(const Group& g, const ReplicatedNet& first, const Tensor& x,
                              const ReplicatedNet& one) {
  ReplicatedNet net = copy_of(first);
  const auto keys = keys_of(net);
  std::vector<const TensorImpl*> identity;
  for (const Tensor& p : net->parameters()) identity.push_back(p.impl());
  for (const nn::Linear& fc : {net->fc1, net->fc2, net->fc3}) replicate(fc, g, summed());
  for (const bool after : {false, true}) {
    if (after) net(x.slice(0, 4 * g->rank(), 4 * g->rank() + 4)).square().sum().backward();
    EXPECT_EQ(keys_of(net), keys);
    const auto ours = net->named_parameters(), theirs = first->named_parameters();
    size_t i = 0;
    for (const auto& p : ours) {
      EXPECT_TRUE(same_bits(p.value(), theirs[p.key()])) << p.key();
      EXPECT_EQ(p.value().impl(), identity[i++]);
    }
  }
  const auto ours = net->parameters(), theirs = one->parameters();
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(ours[i].grad().allclose(theirs[i].grad(), 1e-5, 1e-6)) << i;
  // One reducer, one bucket.
  const BucketPlan plan = replicate_handle(net->fc2).plan();
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0], (std::vector<std::string>{"weight", "bias", "1/weight", "1/bias", "2/weight",
                                               "2/bias"}));
  EXPECT_EQ(replicate_handle(net->fc1).plan(), plan);
  ReplicateOptions other;
  ReplicatedNet more;
  EXPECT_ERROR_TEXT(replicate(more->fc1, g, other), "expected the same, or isolated");
  other.isolated = true;
  replicate(more->fc1, g, other);
  EXPECT_EQ(replicate_handle(more->fc1).plan()[0].size(), 2u);
}

// The gradients are those of one process.
TEST(Replicate, SeveralSubmodules) {
  manual_seed(2);
  ReplicatedNet first;
  const Tensor x = randn({8, 3});
  ReplicatedNet one = copy_of(first);
  one(x).square().sum().backward();
  with_groups(2, seconds(60), [&](const Group& g) { check_several_submodules(g, first, x, one); });
  for (const char* slice : {"a", "b"})
    with_groups(4, seconds(60), [&](const Group& g) {
      const DeviceMesh mesh = init_device_mesh(g, {2, 2}, {"a", "b"});
      check_several_submodules(mesh.group(slice), first, x, one);
    });
}

// A nested one is passed over; the verbs of the outer one reach it.
TEST(Replicate, Nested) {
  with_groups(2, seconds(60), [](const Group& g) {
    ReplicatedNet net;
    replicate(net->fc2, g);
    replicate(net, g);
    EXPECT_EQ(replicate_handle(net).replicated_param_names(),
              (std::vector<std::string>{"fc1.weight", "fc1.bias", "fc3.weight", "fc3.bias"}));
    const auto step = [&] {
      net->zero_grad();
      net(randn({4, 3})).square().sum().backward();
    };
    const auto alike = [&](const Tensor& p) { return equal_everywhere(g, p.grad()); };
    {
      const auto off = replicate_handle(net).no_sync();
      step();
      EXPECT_FALSE(alike(net->fc1->weight) || alike(net->fc2->weight));
    }
    step();
    EXPECT_TRUE(alike(net->fc1->weight) && alike(net->fc2->weight));
    replicate_handle(net->fc2).set_requires_gradient_sync(false);
    step();
    EXPECT_TRUE(alike(net->fc1->weight) && !alike(net->fc2->weight));
    replicate_handle(net).set_requires_gradient_sync(true);
    step();
    EXPECT_TRUE(alike(net->fc1->weight) && alike(net->fc2->weight));
    // Gradients do not need the hooks, nor the module's forward.
    net->zero_grad();
    (net->forward(randn({4, 3})).square().sum() + net->fc1->weight.square().sum() * g->rank())
        .backward();
    EXPECT_TRUE(alike(net->fc1->weight) && alike(net->fc2->weight));
  });
}

// The statistics of batch norms, merged and synchronised: those of one process over all rows.
TEST(Replicate, BatchNorms) {
  manual_seed(3);
  NormNet first;
  first->to(kDouble);
  const Tensor x = randn({7, 3}, TensorOptions(kDouble)),
               seed = randn({7, 4}, TensorOptions(kDouble));
  NormNet one = copy_of(first);
  const Tensor expected = one(x);
  (expected * seed).sum().backward();
  const auto close = [](const Tensor& a, const Tensor& b) { return a.allclose(b, 1e-11, 1e-11); };
  for (const bool sync : {false, true})
    with_groups(2, seconds(60), [&](const Group& g) {
      NormNet net = copy_of(first);
      if (sync) nn::convert_sync_batchnorm(*net);
      replicate(net, g, summed());
      const int64_t from = g->rank() ? 3 : 0, to = g->rank() ? 7 : 3;
      const Tensor y = net(x.slice(0, from, to));
      (y * seed.slice(0, from, to)).sum().backward();
      EXPECT_TRUE(close(net->norm->running_mean, one->norm->running_mean));
      EXPECT_TRUE(close(net->norm->running_var, one->norm->running_var));
      EXPECT_EQ(net->norm->num_batches_tracked.item<int64_t>(), 1);
      EXPECT_EQ(close(y, expected.detach().slice(0, from, to)), sync);
      EXPECT_EQ(close(net->fc->weight.grad(), one->fc->weight.grad()), sync);
      EXPECT_FALSE(net->norm->is_replica());
      // Outside of calls it is as before; evaluation waits for no other rank.
      net->eval();
      if (g->rank() == 0) net(x);
      g->barrier().wait();
    });
}

// A rank that reaches none of the parameters in its backward takes part with nothing.
TEST(Replicate, ARankThatUsesNoParameter) {
  with_groups(2, seconds(60), [](const Group& g) {
    Skipping net;
    replicate(net, g, summed());
    const Tensor x = ones({2, 3}).set_requires_grad(true);
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      net->skip = step % 2 == g->rank();
      net(x).sum().backward();
      EXPECT_TRUE(same_bits(net->fc->bias.grad(), full({3}, 2.0))) << step;
    }
    net->zero_grad();
    net->skip = true;
    net(x).sum().backward();
    EXPECT_FALSE(net->fc->bias.grad().defined());
    EXPECT_EQ(replicate_handle(net).unused_parameters().size(), 2u);
  });
}

// A parameter that the graph does not lead to, with a gradient of the caller's.
TEST(Replicate, AParameterAsARoot) {
  with_groups(2, seconds(60), [](const Group& g) {
    Skipping net;
    replicate(net, g, summed());
    net->skip = true;
    for (int step = 1; step < 3; ++step) {
      const Tensor y = net(ones({2, 3}).set_requires_grad(true)).sum();
      autograd::backward({y, net->fc->bias, net->fc->bias},
                         {Tensor(), full({3}, g->rank() + 1.0), full({3}, 10.0)});
      EXPECT_TRUE(same_bits(net->fc->bias.grad(), full({3}, 23.0 * step))) << step;
    }
  });
}

TEST(Replicate, AForwardThatFails) {
  with_groups(2, seconds(600), [](const Group& g) {
    NormNet net;
    replicate(net, g);
    const std::string said = error_of([&] { net(ones({2, g->rank() ? 4 : 3})); });
    if (g->rank() == 0) expect_part(said, "a forward failed on this rank");
    EXPECT_FALSE(net->norm->is_replica());
    EXPECT_TRUE(net->norm->deposited().empty());
  });
}

// A copy is a plain module, and so is the module when its replicated wrapper is gone.
TEST(Replicate, Copies) {
  with_groups(2, seconds(60), [](const Group& g) {
    ReplicatedNet kept{nullptr};
    nn::Linear part{nullptr};
    {
      ReplicatedNet net;
      replicate(net, g);
      kept = copy_of(net);
      part = net->fc1;
    }
    EXPECT_ERROR_TEXT(replicate_handle(kept), "expected one that replicate()");
    if (g->rank() == 0) {  // alone
      kept(ones({2, 3})).sum().backward();
      part(ones({2, 3})).sum().backward();
    }
    EXPECT_EQ(part->weight.grad().defined(), g->rank() == 0);
    g->barrier().wait();
  });
}

// Processes and replicas in one process.
TEST(Replicate, OverDataParallel) {
  with_groups(2, seconds(60), [](const Group& g) {
    nn::Linear fc(nn::LinearOptions(1, 1).bias(false));
    replicate(fc, g, summed());
    nn::parallel::DataParallelOptions o({"cpu:0", "cpu:1"});
    nn::parallel::DataParallel<nn::Linear> dp(fc, o);
    const double r = g->rank();
    dp(tensor({{1 + r}, {10 + r}, {100 + r}}, TensorOptions(kFloat))).sum().backward();
    EXPECT_EQ(fc->weight.grad().item<double>(), 2 * 111 + 3);

    NormNet net;
    replicate(net, g, summed());
    nn::parallel::DataParallel<NormNet> both(net, o);
    EXPECT_ERROR_TEXT(both(ones({4, 3})), "expected DistributedDataParallel");
  });
}

TEST(Replicate, Options) {
  with_groups(2, seconds(60), [](const Group& g) {
    const auto said = [&](const ReplicateOptions& o) {
      ReplicatedNet net;
      return error_of([&] { replicate(net, g, o); });
    };
    ReplicateOptions o;
    o.devices = {"cpu:0", "cpu:1"};
    expect_part(said(o), "device_ids can only be None or contain a single element");
    o.devices = {"cpu:1"};
    expect_part(said(o), "expected the module's, cpu");
    o = {};
    o.batch = Batch::whole;
    expect_part(said(o), "expected Batch::local");
    o = {};
    o.order = ReduceOrder::tree(4);
    expect_part(said(o), "got V = 4 and 2 ranks");
    ReplicatedNet frozen;
    for (const Tensor& p : frozen->parameters()) p.requires_grad_(false);
    EXPECT_ERROR_TEXT(replicate(frozen, g), "doesn't have any parameter that requires a gradient");
    EXPECT_ERROR_TEXT(replicate(ReplicatedNet(), nullptr), "group: got an empty pointer");
  });
}

}  // namespace
}  // namespace ramet::distributed
