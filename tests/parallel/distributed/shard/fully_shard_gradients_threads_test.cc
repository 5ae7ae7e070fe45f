// fully_shard with ranks as threads: what a backward reduces, and what happens where something
// fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "autograd/autograd.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/sgd.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

// The full gradient of a parameter, put together from the ranks' shards; undefined where all ranks'
// are.
std::vector<double> gradient(ProcessGroup& g, const Tensor& shard, int64_t numel) {
  std::string mine(1, shard.grad().defined() ? '1' : '0');
  if (shard.grad().defined() && shard.numel())
    mine += std::string(static_cast<const char*>(shard.grad().contiguous().data_ptr()),
                        shard.grad().nbytes());
  std::string bytes;
  for (const std::string& part : g.exchange(mine)) {
    EXPECT_EQ(part[0], mine[0]);
    bytes += part.substr(1);
  }
  if (mine[0] == '0') return {};
  EXPECT_EQ(bytes.size(), static_cast<size_t>(numel) * sizeof(float));
  const auto* p = reinterpret_cast<const float*>(bytes.data());
  return {p, p + bytes.size() / sizeof(float)};
}

FactorsOf sharded_factors(int n, const Group& g, const FullyShardOptions& options = {}) {
  FactorsOf net(n);
  for (const Factor& f : net->factors) fully_shard(f, g, options);
  fully_shard(net, g, options);
  return net;
}
const Tensor& shard(const FactorsOf& net, int i) {
  return net->factors[static_cast<size_t>(i)]->own_parameters()["w"];
}
using Numbers = std::vector<double>;

TEST(FullyShardGradients, MeansAndSums) {
  for (int n : {1, 2, 3})
    with_groups_of(n, [n](const Group& g) {
      for (const Average average : {Average::mean, Average::sum}) {
        FullyShardOptions options;
        options.average = average;
        FactorsOf net = sharded_factors(2, g, options);
        for (int step = 1; step <= 2; ++step) {  // added to the gradient that is there
          net(full({2}, g->rank() + 1.0), std::vector<int>{0, 1}).backward();
          const double sum = n * (n + 1) / 2.0;
          const double expected = step * (average == Average::sum ? sum : sum / n);
          EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers(2, expected));
        }
      }
    });
}

// Each parameter in a group of its own and all in one.
TEST(FullyShardGradients, ParametersThatSomeRanksDoNotUse) {
  for (bool apart : {true, false})
    with_groups_of(2, [apart](const Group& g) {
      FactorsOf net(3);
      if (apart) net = sharded_factors(3, g);
      else fully_shard(net, g);
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        net(full({2}, 3.0), std::vector<int>{g->rank()}).backward();
        EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers(2, 1.5));
        EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers(2, 1.5));
        EXPECT_EQ(gradient(*g, shard(net, 2), 2), Numbers());
      }
      // A gradient stays when nothing is added to it.
      net(full({2}, 3.0), std::vector<int>{2}).backward();
      EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers(2, 1.5));
      EXPECT_EQ(gradient(*g, shard(net, 2), 2), Numbers(2, 3));
    });
}

// Layers with values that a backward needs on one rank and not on the other.
TEST(FullyShardGradients, LayersThatSomeRanksDoNotUse) {
  struct BranchesImpl : nn::Module {
    BranchesImpl() {
      const auto linear = [&](const char* name) {
        return register_module(name, nn::Linear(nn::LinearOptions(6, 6).bias(false)));
      };
      for (const char* name : {"a", "b", "c"}) layers.push_back(linear(name));
      const NoGradGuard off;
      for (size_t i = 0; i < 3; ++i) layers[i]->weight.fill_(0.1 * (static_cast<double>(i) + 1));
    }
    Tensor forward(const Tensor& x, int skipped) {
      Tensor y = x;
      for (size_t i = 0; i < 3; ++i) {
        const Tensor z = layers[i](y);
        if (static_cast<int>(i) != skipped) y = z.relu();
      }
      return y.sum();
    }
    std::vector<nn::Linear> layers;
  };
  with_groups_of(3, [](const Group& g) {
    const auto net = std::make_shared<BranchesImpl>();
    for (const nn::Linear& l : net->layers) fully_shard(l, g);
    fully_shard(net, g);
    // The expected values: the same layers on one device.
    std::vector<Tensor> expected(3);
    for (int rank = 0; rank < 3; ++rank) {
      const auto whole = std::make_shared<BranchesImpl>();
      whole->forward(full({2, 6}, rank + 1.0), rank).backward();
      for (size_t i = 0; i < 3; ++i) {
        const Tensor& part = whole->layers[i]->weight.grad();
        if (!part.defined()) continue;
        expected[i] = expected[i].defined() ? expected[i] + part : part;
      }
    }
    for (int step = 0; step < 3; ++step) {
      net->zero_grad();
      nn::call(*net, full({2, 6}, g->rank() + 1.0), g->rank()).backward();
      for (size_t i = 0; i < 3; ++i) {
        const Numbers got = gradient(*g, net->layers[i]->own_parameters()["weight"], 36);
        ASSERT_EQ(got.size(), 36u);
        const Tensor want = expected[i].div(3).reshape({-1});
        for (int64_t k = 0; k < 36; ++k)
          EXPECT_EQ(static_cast<float>(got[static_cast<size_t>(k)]), want[k].item<float>());
        EXPECT_EQ(fully_shard_handle(net->layers[i]).state(), ShardState::sharded);
      }
    }
  });
}

TEST(FullyShardGradients, WithoutSynchronisation) {
  with_groups_of(2, [](const Group& g) {
    FactorsOf net = sharded_factors(2, g);
    const FullyShardHandle handle = fully_shard_handle(net);
    const double r = g->rank();
    const auto step = [&](double x, const std::vector<int>& used) {
      net(full({2}, x), used).backward();
    };
    handle.set_requires_gradient_sync(false);
    step(1 + r, {0});
    EXPECT_FALSE(shard(net, 0).grad().defined());
    step(10 + r, {0, 1});
    handle.set_requires_gradient_sync(true);
    step(100 + r, {1});
    EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers(2, 11 + 2 * 0.5));
    EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers(2, 110 + 2 * 0.5));
    step(1000 + r, {1});
    EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers(2, 1110 + 3 * 0.5));
  });
}

TEST(FullyShardGradients, SeveralForwardsAndBackwards) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net(), whole = text_net();
    shard_all(net, DeviceMesh(g));
    DistributedDataParallel<TextNet> ddp(whole, g);
    const TextBatch a = text_batch(g->rank(), 1), b = text_batch(g->rank(), 2);
    const auto compare = [&] {
      for (const auto& item : whole->named_parameters()) {
        const Tensor p = net->named_parameters()[item.key()];
        const Numbers got = gradient(*g, p, item.value().numel());
        const Tensor want = item.value().grad().reshape({-1});
        for (size_t k = 0; k < got.size(); ++k)
          ASSERT_EQ(static_cast<float>(got[k]), want[static_cast<int64_t>(k)].item<float>())
              << item.key();
      }
      net->zero_grad();
      whole->zero_grad();
    };
    // Two forwards, one backward.
    (text_loss(net(a.ids), a) + text_loss(net(b.ids), b)).backward();
    (text_loss(ddp(a.ids), a) + text_loss(ddp(b.ids), b)).backward();
    compare();
    // One forward, two backwards.
    const Tensor x = text_loss(net(a.ids), a), y = text_loss(ddp(a.ids), a);
    for (int i = 0; i < 2; ++i) {
      x.backward({}, /*retain_graph=*/true);
      y.backward({}, /*retain_graph=*/true);
    }
    compare();
    // A forward without a backward.
    net(a.ids);
    text_loss(net(b.ids), b).backward();
    text_loss(ddp(b.ids), b).backward();
    compare();
    // create_graph: the reduced gradients have no history.
    text_loss(net(b.ids), b).backward({}, std::nullopt, /*create_graph=*/true);
    text_loss(ddp(b.ids), b).backward();
    EXPECT_TRUE(net->parameters()[1].grad().is_leaf());
    compare();
  });
}

// grad() gives this rank's own, and reduces nothing.
TEST(FullyShardGradients, GradOfInputsAndShards) {
  with_groups_of(2, [](const Group& g) {
    FactorsOf net = sharded_factors(2, g);
    const Tensor x = full({2}, g->rank() + 1.0).requires_grad_();
    const Tensor y = net(x, std::vector<int>{0, 1});
    const auto grads = autograd::grad({y}, {x, shard(net, 0)});
    EXPECT_TRUE(grads[0].equal(full({2}, 3.0)));
    EXPECT_EQ(grads[1].numel(), shard(net, 0).numel());
    if (grads[1].numel()) { EXPECT_EQ(grads[1][0].item<double>(), g->rank() + 1.0); }
    EXPECT_FALSE(shard(net, 0).grad().defined());
    net(x, std::vector<int>{0}).backward();
    EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers(2, 1.5));
  });
}

TEST(FullyShardGradients, FrozenAndThawed) {
  with_groups_of(2, [](const Group& g) {
    FactorsOf net(2);
    net->factors[0]->w.set_requires_grad(false);
    for (const Factor& f : net->factors) fully_shard(f, g);
    fully_shard(net, g);
    const auto step = [&] {
      net->zero_grad();
      const Tensor x = full({2}, g->rank() + 1.0).requires_grad_();
      net(x, std::vector<int>{0, 1}).backward();
      EXPECT_TRUE(x.grad().equal(full({2}, 3.0)));
    };
    EXPECT_FALSE(net->factors[0]->w.requires_grad());
    step();
    EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers());
    EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers(2, 1.5));
    shard(net, 0).set_requires_grad(true);
    shard(net, 1).set_requires_grad(false);
    step();
    EXPECT_EQ(gradient(*g, shard(net, 0), 2), Numbers(2, 1.5));
    EXPECT_EQ(gradient(*g, shard(net, 1), 2), Numbers());
    // All of them: the values are still needed.
    shard(net, 0).set_requires_grad(false);
    step();
  });
}

TEST(FullyShardGradients, TiedParameters) {
  struct TiedImpl : nn::Module {
    TiedImpl() {
      a = register_module("a", Factor(3.0));
      b = register_module("b", Factor(5.0));
      b->w = a->w;
      b->set_own_parameter("w", a->w);
    }
    Tensor forward(const Tensor& x) { return b(a(x)).sum(); }
    Factor a{nullptr}, b{nullptr};
  };
  with_groups_of(2, [](const Group& g) {
    auto net = std::make_shared<TiedImpl>();
    fully_shard(net->a, g);
    const Tensor before = net->b->own_parameters()["w"];
    EXPECT_ERROR_TEXT(
        fully_shard(net->b, g),
        "Parameter 'w' is shared with a parameter already managed by another FSDP group. "
        "For shared/tied parameters, use fully_shard([module_a, module_b])");
    EXPECT_TRUE(net->b->own_parameters()["w"].is_same(before));
    // In one group: w = 3, x = 1 and 1, d(w w x)/dw = 2 w x.
    for (bool together : {true, false}) {
      net = std::make_shared<TiedImpl>();
      if (together) fully_shard({net->a.ptr(), net->b.ptr()}, DeviceMesh(g));
      fully_shard(net, g);
      EXPECT_EQ(net->parameters().size(), 1u);
      for (int step = 0; step < 2; ++step) {
        net->zero_grad();
        nn::call(*net, ones({2})).backward();
        EXPECT_EQ(gradient(*g, net->parameters()[0], 2), Numbers(2, 6));
      }
    }
  });
}

TEST(FullyShardGradients, SeveralTypesAndSizes) {
  struct MixedImpl : nn::Module {
    MixedImpl() {
      a = register_parameter("a", full({3, 5}, 2.0));
      b = register_parameter("b", full({7}, 3.0, kDouble));
      c = register_parameter("c", full({}, 4.0));
      d = register_parameter("d", empty({0, 3}));
      e = register_parameter("e", full({4}, 5, kLong), /*requires_grad=*/false);
    }
    Tensor forward(double x) {
      return (a * c * x).sum().to(kDouble) + (b * b * x).sum() + d.sum().to(kDouble) +
             e.sum().to(kDouble);
    }
    Tensor a, b, c, d, e;
  };
  with_groups_of(3, [](const Group& g) {
    const auto net = std::make_shared<MixedImpl>(), whole = std::make_shared<MixedImpl>();
    fully_shard(net, g);
    const double x = g->rank() + 1.0;  // 2 on average
    const Tensor y = nn::call(*net, x);
    EXPECT_EQ(y.item<double>(), whole->forward(x).item<double>());
    y.backward();
    EXPECT_EQ(gradient(*g, net->own_parameters()["a"], 15), Numbers(15, 8));
    EXPECT_EQ(gradient(*g, net->own_parameters()["c"], 1), Numbers(1, 60));
    const Tensor& b = net->own_parameters()["b"];
    if (b.numel()) { EXPECT_TRUE(b.grad().equal(full({b.numel()}, 12.0, kDouble))); }
    EXPECT_EQ(net->own_parameters()["e"].scalar_type(), kLong);
    const auto state = full_state_dict(*net);
    for (const auto& item : whole->named_parameters())
      EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << item.key();
    optim::SGD sgd(net->parameters(), optim::SGDOptions(0.5));
    sgd.step();
    EXPECT_TRUE(full_state_dict(*net)["a"].equal(full({3, 5}, -2.0)));
  });
}

// Values that a graph still needs, and that are gone.
TEST(FullyShardGradients, ChangedBeforeBackward) {
  with_groups_of(1, [](const Group& g) {
    TextNet net = text_net();
    shard_all(net, DeviceMesh(g));
    const TextBatch batch = text_batch(0, 0);
    Tensor loss = text_loss(net(batch.ids), batch);
    {
      const NoGradGuard off;
      net->fc2->own_parameters()["weight"].mul_(2);
    }
    EXPECT_ERROR_TEXT(
        loss.backward(),
        "parameter 'weight' was changed by mul_ after the forward whose backward needs");
    EXPECT_FALSE(net->parameters()[0].grad().defined());
    // Gathered again between forward and backward.
    loss = text_loss(net(batch.ids), batch);
    {
      const NoGradGuard off;
      net->fc2->own_parameters()["weight"].mul_(2);
    }
    net(batch.ids);
    EXPECT_ERROR_TEXT(loss.backward(), "modified by an inplace operation");
    text_loss(net(batch.ids), batch).backward();
    EXPECT_TRUE(net->parameters()[0].grad().defined());
  });
}

// What throws in a forward leaves everything sharded, and the next step is a good one.
TEST(FullyShardGradients, ForwardsThatThrow) {
  struct FragileImpl : nn::Module {
    FragileImpl() {
      a = register_module("a", Factor(2.0));
      b = register_module("b", Factor(3.0));
    }
    Tensor forward(const Tensor& x, int fails) {
      const Tensor y = a(x);
      if (fails == 1) throw std::logic_error("in the middle");
      const Tensor z = b(fails == 2 ? ones({3}) : y);
      if (fails == 3) throw std::logic_error("at the end");
      return z.sum();
    }
    Factor a{nullptr}, b{nullptr};
  };
  with_groups_of(2, [](const Group& g) {
    const auto net = std::make_shared<FragileImpl>();
    fully_shard(net->a, g);
    fully_shard(net->b, g);
    fully_shard(net, g);
    for (int fails : {0, 1, 2, 3, 0}) {
      net->zero_grad();
      const auto step = [&] { nn::call(*net, full({2}, g->rank() + 1.0), fails).backward(); };
      if (fails == 2) {
        EXPECT_THROW(step(), Error);
      } else if (fails) {
        EXPECT_THROW(step(), std::logic_error);
      } else {
        step();
        EXPECT_EQ(gradient(*g, net->a->own_parameters()["w"], 2), Numbers(2, 4.5));
      }
      for (const auto& h :
           {fully_shard_handle(net), fully_shard_handle(net->a), fully_shard_handle(net->b)})
        EXPECT_EQ(h.state(), ShardState::sharded);
    }
  });
}

// A backward that fails on one rank is an error on all of them; gradients are as before.
TEST(FullyShardGradients, BackwardsThatThrow) {
  with_groups_of(2, [](const Group& g) {
    FactorsOf net = sharded_factors(3, g);
    net(full({2}, 1.0), std::vector<int>{0, 1, 2}).backward();
    const Tensor x = full({2}, 2.0).requires_grad_();
    const Tensor y = net->factors[0](x);
    if (g->rank() == 1) y.register_hook([](const Tensor&) { throw std::logic_error("Badness!"); });
    const Tensor loss = net(y, std::vector<int>{0, 1, 2});
    const std::string text = error_of([&] { loss.backward(); });
    if (g->rank() == 1) expect_part(text, "Badness!");
    else expect_part(text, "aborted by rank 1: a backward failed on this rank");
    for (int i = 0; i < 3; ++i) {
      const Tensor& s = shard(net, i);
      EXPECT_TRUE(s.grad().equal(full({s.numel()}, 1.0)));
      EXPECT_EQ(fully_shard_handle(net->factors[static_cast<size_t>(i)]).state(),
                ShardState::sharded);
    }
    EXPECT_THROW(net(x, std::vector<int>{0}), CommError);
  });
}

// A hook that throws is its own shard's failure: the others have their gradients.
TEST(FullyShardGradients, HooksThatThrow) {
  with_groups_of(1, [](const Group& g) {
    FactorsOf net = sharded_factors(3, g);
    shard(net, 1).register_hook([](const Tensor&) { throw std::logic_error("Badness!"); });
    const Tensor loss = net(full({2}, 2.0), std::vector<int>{0, 1, 2});
    EXPECT_THROW(loss.backward(), std::logic_error);
    EXPECT_TRUE(shard(net, 0).grad().equal(full({2}, 2.0)));
    EXPECT_FALSE(shard(net, 1).grad().defined());
    EXPECT_TRUE(shard(net, 2).grad().equal(full({2}, 2.0)));
  });
}

// Layers of the same shapes. A rank that runs them in another order is an error on all ranks, not
// one layer with the other's values.
TEST(FullyShardGradients, LayersInAnotherOrder) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear a(2, 2), b(2, 2);
    fully_shard(a, g);
    fully_shard(b, g);
    const Tensor x = ones({1, 2});
    EXPECT_ERROR_TEXT(g->rank() ? b(x) : a(x),
                      "\"fully_shard (number 2)/gather [weight .. bias]\"");
  });
}

// Its parameters get no gradients any more: said at the first step, which changes nothing.
TEST(FullyShardGradients, AnOptimizerOfBefore) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    nn::Linear other(2, 2);
    std::vector<Tensor> parameters = net->parameters();
    parameters.insert(parameters.begin(), other->weight);
    optim::SGD optimizer(parameters, optim::SGDOptions(0.1));
    shard_all(net, DeviceMesh(g));
    const Tensor before = other->weight.detach().clone();
    other->weight.mutable_grad() = ones({2, 2});
    const TextBatch batch = text_batch(g->rank(), 0);
    text_loss(net(batch.ids), batch).backward();
    EXPECT_ERROR_TEXT(
        optimizer.step(),
        "parameter float32[20, 8] on cpu has been sharded since this optimizer was made");
    EXPECT_TRUE(same_bits(other->weight.detach(), before));
    optim::SGD after(net->parameters(), optim::SGDOptions(0.1));
    after.step();
  });
}

// Sharding moves parameters; a reducer that has them already would not notice.
TEST(FullyShardGradients, ComesBeforeReplicas) {
  with_groups_of(2, [](const Group& g) {
    const std::string refusal =
        "parameter 'weight' of module ramet::nn::LinearImpl is reduced by a "
        "DistributedDataParallel "
        "or a replicate()";
    // Of linear layers: what the mean of the ranks' inputs gives.
    const auto expect_means = [&](nn::Sequential& pair, nn::Linear& first, nn::Linear& second) {
      pair->forward(full({1, 2}, g->rank() + 1.0)).sum().backward();
      const NoGradGuard off;
      const Tensor expected = first(full({1, 2}, 1.5));
      EXPECT_TRUE(allclose(second->weight.grad(), expected.expand({2, 2})));
    };
    {
      nn::Linear first(2, 2), second(2, 2);
      nn::Sequential pair(first, second);
      replicate(pair, g);
      EXPECT_ERROR_TEXT(fully_shard(first, g), refusal);
      EXPECT_FALSE(is_fully_sharded(*first));
      EXPECT_EQ(first->parameters()[0].numel(), 4);
      expect_means(pair, first, second);
    }
    nn::Linear first(2, 2), second(2, 2);
    nn::Sequential pair(first, second);
    {
      DistributedDataParallel<nn::Sequential> ddp(pair, g);
      EXPECT_ERROR_TEXT(fully_shard(first, g), refusal);
      expect_means(pair, first, second);
    }
    // That one is gone. The other order.
    first->zero_grad(/*set_to_none=*/true);
    second->zero_grad(/*set_to_none=*/true);
    fully_shard(first, g);
    replicate(pair, g);
    EXPECT_EQ(replicate_handle(pair).replicated_param_names(),
              (std::vector<std::string>{"1.weight", "1.bias"}));
    expect_means(pair, first, second);
  });
}

TEST(FullyShardGradients, OptionsThatDiffer) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(2, 2);
    const auto said = [&](const std::function<void(FullyShardOptions&)>& change) {
      FullyShardOptions o;
      if (g->rank() == 1) change(o);
      return error_of([&] { fully_shard(net, g, o); });
    };
    const std::string what = "the ranks have different parameters or options: rank ";
    std::string text = said([](FullyShardOptions& o) { o.average = Average::sum; });
    expect_part(text, what);
    expect_part(text, "average sum");
    expect_part(text, "average mean");
    expect_part(said([](FullyShardOptions& o) { o.order = ReduceOrder::any(); }), "order any");
    expect_part(said([](FullyShardOptions& o) { o.reshard_after_forward = false; }),
                "reshard_after_forward by default");
    expect_part(said([](FullyShardOptions& o) { o.init_sync = false; }), "init_sync false");
    EXPECT_FALSE(is_fully_sharded(*net));
    fully_shard(net, g);
  });
}

TEST(FullyShardGradients, Refusals) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    shard_all(net, DeviceMesh(g));
    const auto keys = net->named_parameters().keys();
    EXPECT_ERROR_TEXT(fully_shard(net, g), "has already been applied");
    EXPECT_ERROR_TEXT(net->clone(), "FSDP does not support deepcopy");
    EXPECT_ERROR_TEXT(fully_shard_handle(net->norm), "was not called on");
    EXPECT_TRUE(is_fully_sharded(*net) && is_fully_sharded(*net->fc1));
    EXPECT_FALSE(is_fully_sharded(*net->norm));
    EXPECT_EQ(net->named_parameters().keys(), keys);

    TextNet other = text_net(g->rank() ? 24 : 25);
    const Tensor weight = other->fc1->own_parameters()["weight"];
    EXPECT_ERROR_TEXT(fully_shard(other->fc1, g), "the ranks have different parameters");
    EXPECT_TRUE(other->fc1->own_parameters()["weight"].is_same(weight));
    EXPECT_EQ(weight.dim(), 2);
    FullyShardOptions options;
    options.average = Average::weighted;
    EXPECT_ERROR_TEXT(fully_shard(other, g, options), "got weighted");
    options = {};
    options.order = ReduceOrder::tree(4);
    EXPECT_ERROR_TEXT(fully_shard(other, g, options), "expected tree(2)");
    nn::Linear used(2, 2);
    used(ones({1, 2})).sum().backward();
    EXPECT_ERROR_TEXT(fully_shard(used, g), "has a gradient or hooks");
    net->to(kDouble);
    EXPECT_ERROR_TEXT(net(text_batch(0, 0).ids), "expected float32");

    // One module is never both. replicate passes over children that are sharded.
    EXPECT_ERROR_TEXT(replicate(net->fc1, g),
                      "Cannot apply `replicate()` on a Module already managed by `fully_shard`");
    nn::Sequential pair(nn::Linear(2, 3), nn::Linear(3, 2));
    fully_shard(pair->children()[0], g);
    replicate(pair, g);
    EXPECT_EQ(replicate_handle(pair).replicated_param_names(),
              (std::vector<std::string>{"1.weight", "1.bias"}));
    EXPECT_ERROR_TEXT(fully_shard(pair, g),
                      "Cannot apply `fully_shard()` on a Module already managed by `replicate`");
  });
}

}  // namespace
}  // namespace ramet::distributed
