// fully_shard with a MixedPrecisionPolicy: which tensors have which dtype, what is kept, and what
// is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <tuple>

#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/module/sequential.h"
#include "nn/utils/clip_grad.h"
#include "tests/parallel/distributed/shard/shard_precision.h"

namespace ramet::distributed {
namespace {

TEST(ShardPrecisionCasts, MembersAreCastAndShardsAreNot) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net();
    const TextNet whole = text_net();
    const Tensor member = net->fc1->weight;
    shard_with_policy(net, DeviceMesh(g), with_policy(kBFloat16));
    for (const Tensor& p : net->parameters()) EXPECT_EQ(p.scalar_type(), kFloat);
    const FullyShardHandle handle = fully_shard_handle(net->fc1);
    handle.unshard();
    EXPECT_TRUE(net->fc1->weight.is_same(member));
    EXPECT_TRUE(same_bits(member.detach(), whole->fc1->weight.detach().to(kBFloat16)));
    handle.reshard();
    EXPECT_EQ(member.scalar_type(), kBFloat16);
    EXPECT_ERROR_TEXT(member.sum(), "is sharded");
  });
}

// The text of each gather of a forward, as the group's record has it.
std::vector<std::string> gathers_of(ProcessGroup& g) {
  std::vector<std::string> out;
  for (const OperationRecord& r : g.recent_operations())
    if (contains(r.text, "/gather [")) out.push_back(r.text);
  return out;
}
TEST(ShardPrecisionCasts, HalfTheBytesAreGathered) {
  for (const bool narrow : {false, true})
    with_groups_of(2, [narrow](const Group& g) {
      nn::Linear net(64, 32);
      FullyShardOptions o;
      if (narrow) o.mp_policy.param_dtype = kHalf;
      fully_shard(net, g, o);
      net(ones({1, 64})).sum().backward();
      const auto texts = gathers_of(*g);
      ASSERT_EQ(texts.size(), 1u);
      // 2048 weights and 32 biases: half of them on each rank.
      expect_part(texts[0], narrow ? "float16[1056]" : "float32[1040]");
    });
}

// Takes and gives tensors in every way that hooks see.
struct ManyImpl : nn::Module {
  ManyImpl() { w = register_parameter("w", ones({2})); }
  using Pair = std::tuple<Tensor, Tensor>;
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& ids, const Pair& pair,
                                             const std::optional<Tensor>& extra, int factor) {
    seen = {x.scalar_type(),
            ids.scalar_type(),
            std::get<0>(pair).scalar_type(),
            std::get<1>(pair).scalar_type(),
            extra->scalar_type(),
            w.scalar_type()};
    const Tensor y = w.to(kFloat) * x.to(kFloat) * std::get<0>(pair).to(kFloat) * factor;
    return {y, y.to(kDouble), ids};
  }
  std::vector<ScalarType> seen;
  Tensor w;
};
TEST(ShardPrecisionCasts, InputsAndOutputs) {
  for (const bool cast : {true, false})
    with_groups_of(2, [cast](const Group& g) {
      const auto net = std::make_shared<ManyImpl>();
      FullyShardOptions o = with_policy(kBFloat16);
      o.mp_policy.output_dtype = kHalf;
      o.mp_policy.cast_forward_inputs = cast;
      fully_shard(net, g, o);
      const Tensor x = full({2}, 1.00390625).requires_grad_();  // 1 + 2^-8 is no bfloat16
      const Tensor wide = full({2}, 3., kDouble).requires_grad_();
      const auto [a, b, c] =
          nn::call(*net, x, full({2}, 5, kLong), ManyImpl::Pair(wide, ones({2}, kHalf)),
                   std::optional<Tensor>(ones({2})), 2);
      const ScalarType in = kBFloat16;
      EXPECT_EQ(net->seen,
                cast ? (std::vector<ScalarType>{in, kLong, in, in, in, in})
                     : (std::vector<ScalarType>{kFloat, kLong, kDouble, kHalf, kFloat, kBFloat16}));
      EXPECT_EQ(a.scalar_type(), kHalf);
      EXPECT_EQ(b.scalar_type(), kHalf);
      EXPECT_EQ(c.scalar_type(), kLong);
      const double factor = cast ? 1 : 1.00390625;
      EXPECT_EQ(a[0].item<double>(), 6 * factor);
      a.sum().backward();
      // Casts are recorded: gradients have the dtype of what they belong to.
      EXPECT_TRUE(same_bits(x.grad(), full({2}, 6.)));
      EXPECT_TRUE(same_bits(wide.grad(), full({2}, 2 * factor, kDouble)));
    });
}

// Hooks that are there before fully_shard, and those after it.
TEST(ShardPrecisionCasts, OtherHooksOfTheModule) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(2, 2);
    std::vector<ScalarType> in, out;
    const auto add_hooks = [&] {
      net->register_forward_pre_hook(
          [&](nn::Module&, std::vector<Tensor>& x) { in.push_back(x[0].scalar_type()); });
      return net->register_forward_hook(
          [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
            out.push_back(y[0].scalar_type());
          });
    };
    const unsigned first = add_hooks();
    FullyShardOptions o = with_policy(kBFloat16);
    o.mp_policy.output_dtype = kFloat;
    fully_shard(net, g, o);
    add_hooks();
    net(ones({1, 2}));
    EXPECT_EQ(in, (std::vector<ScalarType>{kBFloat16, kBFloat16}));
    EXPECT_EQ(out, (std::vector<ScalarType>{kBFloat16, kFloat}));
    net->remove_forward_hook(first);  // handles stay valid
    net(ones({1, 2}));
    EXPECT_EQ(out, (std::vector<ScalarType>{kBFloat16, kFloat, kFloat}));
  });
}

// Statistics are buffers: float32, as those of a module without a policy.
TEST(ShardPrecisionCasts, BatchNorm) {
  with_groups_of(2, [](const Group& g) {
    nn::BatchNorm1d net(3);
    fully_shard(net, g, with_policy(kBFloat16));
    const Tensor x = full({4, 3}, 2.0);
    const Tensor y = net(x);
    EXPECT_EQ(y.scalar_type(), kBFloat16);
    y.sum().backward();
    EXPECT_TRUE(same_bits(net->running_mean, full({3}, 0.2)));
    for (const Tensor& p : net->parameters()) EXPECT_EQ(p.grad().scalar_type(), kFloat);
  });
}

// Each call has its own policy: a float32 layer between 16-bit ones.
TEST(ShardPrecisionCasts, PoliciesOfSeveralModules) {
  with_groups_of(2, [](const Group& g) {
    nn::Sequential net(nn::Linear(4, 4), nn::Linear(4, 4), nn::Linear(4, 4));
    std::vector<ScalarType> seen;
    const auto note = [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& y) {
      seen.push_back(y[0].scalar_type());
    };
    const ScalarType dtypes[] = {kBFloat16, kFloat, kHalf};
    for (size_t i = 0; i < 3; ++i) {
      fully_shard(net->children()[i], g, with_policy(dtypes[i]));
      net->children()[i]->register_forward_hook(note);
    }
    FullyShardOptions last;
    last.mp_policy.output_dtype = kDouble;
    fully_shard(net, g, last);
    const Tensor y = net->forward(ones({2, 4}));
    EXPECT_EQ(seen, (std::vector<ScalarType>{kBFloat16, kFloat, kHalf}));
    EXPECT_EQ(y.scalar_type(), kHalf);  // forward() bypasses the outermost module's hooks
    EXPECT_EQ(nn::call(*net, ones({2, 4})).scalar_type(), kDouble);
    nn::call(*net, ones({2, 4})).sum().backward();
    for (const Tensor& p : net->parameters()) EXPECT_EQ(p.grad().scalar_type(), kFloat);
  });
}

// Parameters of several dtypes, frozen ones, and one that is no floating-point tensor.
struct SeveralImpl : nn::Module {
  SeveralImpl() {
    a = register_parameter("a", full({3, 5}, 2.0));
    b = register_parameter("b", full({7}, 3.0, kDouble));
    c = register_parameter("c", full({2}, 1.5, kBFloat16));
    e = register_parameter("e", full({4}, 5, kLong), /*requires_grad=*/false);
    f = register_parameter("f", full({2}, 1 + 1. / 4096), /*requires_grad=*/false);
    n = register_buffer("n", full({2}, 1 + 1. / 4096));
  }
  Tensor forward(const Tensor& x) {
    for (const Tensor& t : {a, b, c, f}) EXPECT_EQ(t.scalar_type(), kHalf);
    EXPECT_EQ(e.scalar_type(), kLong);
    EXPECT_EQ(n.scalar_type(), kFloat);
    EXPECT_EQ(f[0].item<double>(), 1);
    return (a * x).sum() + (b * x).sum() + (c * x).sum() * f.sum() + (f * x).sum();
  }
  Tensor a, b, c, e, f, n;
};
TEST(ShardPrecisionCasts, SeveralDtypes) {
  with_groups_of(2, [](const Group& g) {
    const auto net = std::make_shared<SeveralImpl>();
    fully_shard(net, g, with_policy(kHalf, kFloat));
    nn::call(*net, full({1}, g->rank() + 1.0)).backward();
    const auto& own = net->own_parameters();
    const auto expect = [&](const char* name, double value, ScalarType dtype) {
      EXPECT_TRUE(same_bits(own[name].grad(), full({own[name].numel()}, value, dtype))) << name;
    };
    expect("a", 1.5, kFloat);
    expect("b", 1.5, kDouble);
    expect("c", 3, kBFloat16);
    EXPECT_FALSE(own["e"].grad().defined() || own["f"].grad().defined());
    const auto state = full_state_dict(*net);
    EXPECT_TRUE(same_bits(state["b"], full({7}, 3.0, kDouble)));
    EXPECT_TRUE(same_bits(state["e"], full({4}, 5, kLong)));
    EXPECT_TRUE(same_bits(state["f"], full({2}, 1 + 1. / 4096)));
    // A frozen parameter that is trained from now on.
    own["f"].set_requires_grad(true);
    net->zero_grad();
    nn::call(*net, full({1}, g->rank() + 1.0)).backward();
    expect("f", 6, kFloat);  // (c x).sum() + x: 4 and 8
  });
}

TEST(ShardPrecisionCasts, StateIsThatOfTheMasters) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net(), whole = text_net(24, 11);
    shard_with_policy(net, DeviceMesh(g), with_policy(kBFloat16));
    OrderedDict<std::string, Tensor> state;
    for (const auto& item : whole->named_parameters())
      state.insert(item.key(), item.value().detach());
    load_full_state_dict(*net, state);
    expect_whole_state(*net, *whole);
    for (const TensorPart& part : tensor_parts(*net)) EXPECT_EQ(part.local.scalar_type(), kFloat);
    const TextBatch batch = text_batch(g->rank(), 0);
    EXPECT_TRUE(same_bits(net(batch.ids).detach(),
                          by_hand(*whole, batch.ids, kBFloat16).detach().to(kFloat)));
  });
}

TEST(ShardPrecisionCasts, NormsAreThoseOfTheMastersGradients) {
  with_groups_of(2, [](const Group& g) {
    TextNet net = text_net(), whole = text_net();
    const FullyShardOptions options = with_policy(kBFloat16);
    shard_with_policy(net, DeviceMesh(g), options);
    const TextBatch batch = text_batch(g->rank(), 0);
    text_loss(net(batch.ids), batch).backward();
    const Tensors means = means_by_hand(whole, options.mp_policy, 2, 0, false);
    double squares = 0;
    for (const Tensor& m : means) squares += m.to(kDouble).square().sum().item<double>();
    const double norm = clip_grad_norm_(*net, 0.1);
    EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
    EXPECT_NEAR(get_total_norm(*net).item<double>(), 0.1, 1e-5);
  });
}

// autograd::grad gives this rank's own gradient of its shards, in their dtype.
TEST(ShardPrecisionCasts, GradOfShards) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(nn::LinearOptions(3, 2).bias(false));
    fully_shard(net, g, with_policy(kBFloat16));
    const Tensor x = full({1, 3}, g->rank() + 2.0).requires_grad_();
    const std::vector<Tensor> got =
        autograd::grad({net(x).sum()}, {net->own_parameters()["weight"], x});
    const int64_t mine = net->own_parameters()["weight"].numel();
    EXPECT_TRUE(same_bits(got[0], full({mine}, g->rank() + 2.0)));
    EXPECT_EQ(got[1].scalar_type(), kFloat);
  });
}

// Layers that keep their weights in lists of their own.
TEST(ShardPrecisionCasts, RecurrentLayers) {
  with_groups_of(2, [](const Group& g) {
    manual_seed(4);
    nn::LSTM net(nn::LSTMOptions(4, 3).num_layers(2)), whole(nn::LSTMOptions(4, 3).num_layers(2));
    for (size_t i = 0; i < whole->parameters().size(); ++i) {
      const NoGradGuard off;
      const Generator draws(Device(kCPU, 0), 50 + i);
      const Tensor p = whole->parameters()[i];
      p.copy_(randn(p.sizes(), draws, TensorOptions(kFloat).device(Device(kCPU, 0))).mul_(.3));
      net->parameters()[i].copy_(p);
    }
    fully_shard(net, g, with_policy(kBFloat16));
    whole->to(kBFloat16);
    const Tensor x = ones({5, 2, 4});
    const auto [y, state] = net(x);
    const auto [want, last] = whole->forward(x.to(kBFloat16));
    EXPECT_TRUE(same_bits(y.detach(), want.detach()));
    EXPECT_TRUE(same_bits(std::get<1>(state).detach(), std::get<1>(last).detach()));
    y.sum().backward();
    for (const Tensor& p : net->parameters()) EXPECT_EQ(p.grad().scalar_type(), kFloat);
  });
}

TEST(ShardPrecisionCasts, Refusals) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(2, 2);
    const Tensor weight = net->own_parameters()["weight"];
    const auto said = [&](const std::function<void(MixedPrecisionPolicy&)>& change,
                          bool on_all = true) {
      FullyShardOptions o;
      if (on_all || g->rank() == 1) change(o.mp_policy);
      return error_of([&] { fully_shard(net, g, o); });
    };
    expect_part(said([](MixedPrecisionPolicy& p) { p.param_dtype = kInt; }),
                "mp_policy: param_dtype: got Int, expected a floating-point dtype");
    expect_part(said([](MixedPrecisionPolicy& p) { p.reduce_dtype = kBool; }),
                "mp_policy: reduce_dtype: got Bool, expected a floating-point dtype");
    expect_part(said([](MixedPrecisionPolicy& p) { p.output_dtype = kLong; }),
                "mp_policy: output_dtype: got Long, expected a floating-point dtype");
    expect_part(said([](MixedPrecisionPolicy& p) { p.param_dtype = kByte; }, false),
                "[fully_shard] rank 1: ");
    // Policies that differ between ranks.
    const std::string text = said([](MixedPrecisionPolicy& p) { p.param_dtype = kHalf; }, false);
    expect_part(text, "the ranks have different parameters or options");
    expect_part(text, "param_dtype Half");
    expect_part(text, "param_dtype as it is");
    expect_part(said([](MixedPrecisionPolicy& p) { p.cast_forward_inputs = false; }, false),
                "cast_forward_inputs false");

    nn::Sequential nothing{nn::ReLU()};
    EXPECT_ERROR_TEXT(fully_shard(nothing, g, with_policy(kHalf)),
                      "got param_dtype for a module without floating-point parameters, expected at "
                      "least one such parameter");
    EXPECT_ERROR_TEXT(fully_shard(nothing, g, with_policy({}, kHalf)), "got reduce_dtype for");

    // Nothing has changed.
    EXPECT_TRUE(net->own_parameters()["weight"].is_same(weight));
    EXPECT_EQ(weight.scalar_type(), kFloat);
    EXPECT_FALSE(net->forward_hooks());
    EXPECT_FALSE(is_fully_sharded(*net));
    // A module with parameters that modules inside it have taken is not without parameters.
    nn::Sequential outer(net);
    fully_shard(net, g, with_policy(kHalf));
    fully_shard(outer, g, with_policy(kHalf));
    EXPECT_EQ(nn::call(*outer, ones({1, 2})).scalar_type(), kHalf);
  });
}

// Inputs that are not cast meet parameters of another dtype.
TEST(ShardPrecisionCasts, InputsOfAnotherDtype) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net(2, 2);
    FullyShardOptions o = with_policy(kHalf);
    o.mp_policy.cast_forward_inputs = false;
    fully_shard(net, g, o);
    EXPECT_ERROR_TEXT(net(ones({1, 2})), "dtype");
    EXPECT_EQ(net(ones({1, 2}, kHalf)).scalar_type(), kHalf);
  });
}

}  // namespace
}  // namespace ramet::distributed
