// DistributedDataParallel: what hooks of a parameter make of its gradient before the ranks reduce
// it. Ranks are threads.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

const Shapes kShapes = {{3}, {8, 8}, {5}, {8, 8}};
using Stages = std::vector<std::shared_ptr<CommStage>>;
using Hook = std::function<void(const Tensor&)>;

Stages stages_of(int kind) {
  if (kind == 1) return {fp16_stage()};
  if (kind == 2) return {bf16_stage()};
  if (kind == 3) return {int8_stage(32)};
  if (kind == 4) return {power_sgd_stage(low_rank(2, 0))};
  if (kind == 5) return {power_sgd_stage(low_rank(2, 0)), fp16_stage()};
  return {};
}

DdpOptions options_of(int stages, int64_t bucket_bytes) {
  DdpOptions o = with_stages(stages_of(stages));
  o.bucket_bytes = bucket_bytes;
  return o;
}

void each_with_hook(const Given& net, const std::vector<size_t>& which, const Hook& hook) {
  for (size_t i : which)
    net->w[i].register_post_accumulate_grad_hook([hook](const Tensor& p) {
      const NoGradGuard off;
      hook(p);
    });
}

bool same(const Tensor& a, const Tensor& b) {
  return a.defined() == b.defined() && (!a.defined() || same_bits(a, b));
}

// The expected value: the mean over all ranks of the gradients of those other than `dropping`.
Tensor mean_of_others(size_t i, int ranks, int dropping, int step) {
  Tensor sum;
  for (int r = 0; r < ranks; ++r) {
    if (r == dropping) continue;
    const Tensor part = random_gradients(kShapes, r, step)[i];
    sum = sum.defined() ? sum + part : part;
  }
  return sum / ranks;
}

// As reduced(), over several replicas; each has all of `given`.
std::vector<Tensor> reduced_of(GivenDdp& ddp, Given& net, const std::vector<Tensor>& given,
                               int64_t replicas) {
  net->zero_grad();
  ddp(ones({replicas, 1}), nn::parallel::NoScatter<std::vector<Tensor>>(given)).sum().backward();
  std::vector<Tensor> out;
  for (const Tensor& p : net->w) out.push_back(p.grad().defined() ? p.grad().clone() : Tensor());
  return out;
}

// If a rank's hook drops a gradient, the rank counts as one that did not use the parameter.
void expect_dropped_is_none(const Group& g, int dropping, bool by_hand,
                            const std::function<DdpOptions()>& options) {
  const bool everywhere = dropping < 0 || g->size() == 1;
  const bool drops = everywhere || dropping == g->rank();
  Given net(kShapes), twin(kShapes);
  GivenDdp ddp(net, g, options()), other(twin, g, options());
  const auto replicas = static_cast<int64_t>(std::max<size_t>(options().devices.size(), 1));
  each_with_hook(net, {1, 2}, [drops](const Tensor& p) {
    if (drops) p.mutable_grad().reset();
  });
  for (int step = 0; step < 3; ++step) {
    std::vector<Tensor> given = random_gradients(kShapes, g->rank(), step);
    const auto got = reduced_of(ddp, net, given, replicas);
    if (drops) given[1] = given[2] = Tensor();
    const auto expected = reduced_of(other, twin, given, replicas);
    for (size_t i = 0; i < kShapes.size(); ++i) EXPECT_TRUE(same(got[i], expected[i])) << "w" << i;
    EXPECT_EQ(ddp.unused_parameters().size(), everywhere ? 2u : 0u);
    for (size_t i : {size_t{1}, size_t{2}}) {
      EXPECT_EQ(got[i].defined(), !everywhere);
      if (!by_hand || everywhere) continue;
      EXPECT_TRUE(same_bits(got[i], mean_of_others(i, g->size(), dropping, step)));
    }
  }
}

TEST(GradientHooks, ADroppedGradientIsNone) {
  for (int ranks : {1, 2, 3})
    for (int stages = 0; stages <= 5; ++stages)
      for (int64_t bucket_bytes : {int64_t{0}, int64_t{4} << 20})
        with_groups_of(ranks, [&](const Group& g) {
          for (int dropping = -1; dropping < ranks; ++dropping)  // -1: all
            expect_dropped_is_none(g, dropping, /*by_hand=*/stages == 0,
                                   [&] { return options_of(stages, bucket_bytes); });
        });
}

TEST(GradientHooks, ADroppedGradientOfSeveralReplicas) {
  for (int ranks : {1, 2})
    with_groups_of(ranks, [&](const Group& g) {
      for (int dropping = -1; dropping < ranks; ++dropping)
        expect_dropped_is_none(g, dropping, /*by_hand=*/false, [] {
          DdpOptions o = options_of(0, 0);
          o.devices = {"cpu:0", "cpu:0"};
          return o;
        });
    });
}

// The program, for DistributedDataParallel and replicate(): 5 rows of rank + 1.
TEST(GradientHooks, DroppedZeroedReplacedDetached) {
  for (int ranks : {1, 2, 3})
    for (bool composable : {false, true})
      with_groups_of(ranks, [&](const Group& g) {
        for (int kind = 0; kind <= 3; ++kind) {
          nn::Linear net(3, 1);
          ReplicateOptions o;
          o.isolated = true;
          std::optional<DistributedDataParallel<nn::Linear>> ddp;
          if (composable) replicate(net, g, o);
          else ddp.emplace(net, g);
          for (const Tensor& p : net->parameters())
            p.register_post_accumulate_grad_hook([kind](const Tensor& q) {
              const NoGradGuard off;
              if (kind == 0) q.mutable_grad().reset();
              if (kind == 1) q.mutable_grad().zero_();
              if (kind == 2) q.mutable_grad() = ones_like(q);
              if (kind == 3) q.mutable_grad() = q.grad().detach();
            });
          for (int step = 1; step <= 2; ++step) {  // gradients of before are added to
            const Tensor x = full({5, 3}, g->rank() + 1.0);
            (composable ? net(x) : (*ddp)(x)).sum().backward();
            const Tensor bias = net->bias.grad(), weight = net->weight.grad();
            ASSERT_EQ(bias.defined(), kind != 0);
            if (kind == 0) continue;
            const double each = kind == 1 ? 0 : kind == 2 ? 1 : 5, mean = (ranks + 1) / 2.0;
            EXPECT_EQ(bias.item<double>(), step * each);
            EXPECT_TRUE(weight.equal(full({1, 3}, step * (kind == 3 ? 5 * mean : each))));
          }
        }
      });
}

// A hook's gradient may lie anywhere: spread out, or in one memory for two parameters. A gradient
// that the program keeps stays as it was.
TEST(GradientHooks, WhatAHookPutsThereIsReducedAlone) {
  for (int64_t bucket_bytes : {int64_t{0}, int64_t{4} << 20})
    with_groups_of(2, [&](const Group& g) {
      Given net(kShapes);
      GivenDdp ddp(net, g, options_of(0, bucket_bytes));
      const Tensor both = full({8, 8}, g->rank() + 1.0);
      std::vector<std::pair<Tensor, Tensor>> kept;
      each_with_hook(net, {1, 3}, [&](const Tensor& p) { p.mutable_grad() = both; });
      each_with_hook(net, {2},
                     [&](const Tensor& p) { kept.emplace_back(p.grad(), p.grad().clone()); });
      each_with_hook(net, {0}, [&](const Tensor& p) {
        p.mutable_grad() =
            (g->rank() ? full({1}, 7.0) : arange(1, 2, TensorOptions(kFloat))).expand(p.sizes());
      });
      for (int step = 0; step < 3; ++step) {
        const auto got = reduced(ddp, net, random_gradients(kShapes, g->rank(), step));
        for (size_t i : {size_t{1}, size_t{3}})
          EXPECT_TRUE(got[i].equal(full({8, 8}, 1.5))) << step;
        EXPECT_TRUE(got[0].equal(full(kShapes[0], 4.0)));
        EXPECT_TRUE(got[2].equal(mean_of_others(2, 2, -1, step)));
        EXPECT_TRUE(both.equal(full({8, 8}, g->rank() + 1.0)));
        for (const auto& [handle, values] : kept) EXPECT_TRUE(handle.equal(values));
      }
    });
}

// With create_graph gradients are kept as they come, and may be one tensor for two parameters.
TEST(GradientHooks, UnderCreateGraph) {
  with_groups_of(2, [](const Group& g) {
    Given net(kShapes);
    GivenDdp ddp(net, g);
    for (int step = 1; step <= 2; ++step) {
      net->zero_grad();
      const Tensor x = full({8, 8}, g->rank() + 1.0);
      const std::vector<Tensor> none(4);
      const Tensor loss =
          ddp(ones({1, 1}), nn::parallel::NoScatter<std::vector<Tensor>>(none)).sum() +
          ((net->w[1] + net->w[3]) * x).sum();
      loss.backward({}, /*retain_graph=*/true, /*create_graph=*/true);
      EXPECT_TRUE(net->w[1].grad().equal(full({8, 8}, 1.5)));
      EXPECT_TRUE(net->w[3].grad().equal(full({8, 8}, 1.5)));
    }
  });
}

// ---- errors -------------------------------------------------------------------------------------

// On rank 1 alone: its error names the parameter, the others do not wait. They then have no
// gradient, or one that was reduced completely before.
void expect_wrong(const Hook& hook, const std::string& text, bool in_fp16 = false) {
  for (int ranks : {1, 2, 3})
    with_groups(ranks, seconds(30), [&](const Group& g) {
      const bool wrong = g->rank() == (ranks > 1 ? 1 : 0);
      Given net(kShapes);
      if (wrong) each_with_hook(net, {1}, hook);
      const auto given = random_gradients(kShapes, g->rank(), 0);
      // A rank's own stages. Buckets of one parameter.
      const DdpOptions options = in_fp16 ? options_of(1, 0) : DdpOptions();
      const std::string said = error_of([&] {
        GivenDdp ddp(net, g, options);  // others may still be here when rank 1 has failed
        reduced(ddp, net, given);
      });
      if (wrong) expect_part(said, text);
      else EXPECT_TRUE(contains(said, "on this rank") || contains(said, "has ended")) << said;
      for (size_t i = 0; i < net->w.size(); ++i) {
        const Tensor& got = net->w[i].grad();
        if (!got.defined()) continue;
        EXPECT_FALSE(wrong) << i;
        Tensor sum = given[i] * 0;
        for (int r = 0; r < ranks; ++r) sum = sum + random_gradients(kShapes, r, 0)[i];
        EXPECT_TRUE(allclose(got, sum / ranks, 2e-3, 2e-3)) << i;  // sent in fp16
      }
    });
}

TEST(GradientHooks, ThatPutAnotherSizeOrDtype) {
  expect_wrong([](const Tensor& p) { p.mutable_grad() = ones({8}); },
               "[ddp] the gradient of 'w1' when it is to be reduced: got");
  expect_wrong([](const Tensor& p) { p.mutable_grad() = p.grad().to(kDouble); },
               "[ddp] the gradient of 'w1' when it is to be reduced: got");
  expect_wrong([](const Tensor& p) { p.mutable_grad() = p.grad().to(Device(kCPU, 1)); },
               "[ddp] the gradient of 'w1' when it is to be reduced: got", /*in_fp16=*/true);
}

TEST(GradientHooks, ThatThrow) {
  expect_wrong([](const Tensor&) { throw std::runtime_error("Badness!"); }, "Badness!");
  expect_wrong([](const Tensor&) { throw std::runtime_error("Badness!"); }, "Badness!",
               /*in_fp16=*/true);
}

// Buckets of one parameter: that of w3 is on its way when w1's gradient comes.
TEST(GradientHooks, ThatLookAtAGradientOnItsWay) {
  for (int ranks : {1, 2})
    with_groups(ranks, seconds(30), [&](const Group& g) {
      for (int kind = 0; kind < 3; ++kind) {
        Given net(kShapes);
        GivenDdp ddp(net, g, options_of(0, 0));
        std::string said;
        each_with_hook(net, {1}, [&](const Tensor&) {
          said = error_of([&] {
            if (kind == 0) (void)net->w[3].grad();
            if (kind == 1) net->w[3].mutable_grad() = Tensor();
            if (kind == 2) net->zero_grad();
          });
        });
        reduced(ddp, net, random_gradients(kShapes, g->rank(), 0));
        expect_part(said, "is being reduced over the ranks by the backward that runs");
        EXPECT_TRUE(net->w[3].grad().defined());
      }
    });
}

TEST(GradientHooks, ThatWriteOneOnItsWay) {
  for (int ranks : {1, 2})
    with_groups(ranks, seconds(30), [&](const Group& g) {
      Given net(kShapes);
      GivenDdp ddp(net, g, options_of(0, 0));
      const bool wrong = g->rank() == ranks - 1;
      if (wrong)
        each_with_hook(net, {1}, [&](const Tensor&) {
          const EnableGradGuard on;
          (net->w[3] * 2).sum().backward({}, {}, false, std::vector<Tensor>{net->w[3]});
        });
      const auto given = random_gradients(kShapes, g->rank(), 0);
      const std::string said = error_of([&] { reduced(ddp, net, given); });
      if (!wrong) return;
      expect_part(said, "[ddp] the gradient of 'w3' was set, or added to, while the ranks reduced");
      EXPECT_FALSE(net->w[3].grad().defined());
    });
}

}  // namespace
}  // namespace ramet::distributed
