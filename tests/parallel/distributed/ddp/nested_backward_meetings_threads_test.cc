// Functions with a forward that communicates with the other ranks, and does so again in a backward
// inside the backward. All ranks do it in one order, also where devices' lanes have timings of
// their own.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

// a, then b and c: one after the other, or concurrently, with b on a device of its own.
struct BranchesImpl : nn::Cloneable<BranchesImpl> {
  BranchesImpl() { BranchesImpl::reset(); }
  void reset() override {
    for (nn::Linear* l : {&a, &b, &c})
      *l = register_module(std::string(1, static_cast<char>('a' + (l - &a))), nn::Linear(6, 6));
  }
  Tensor of(nn::Linear& layer, const Tensor& x) {
    return part(how, {[&layer](const Tensor& t) { return layer(t).tanh(); }, layer->parameters()},
                x);
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = a(x);
    return apart ? of(b, h.to(there)).to("cpu:0") + of(c, h) : of(c, of(b, h));
  }
  How how = How::plain;
  bool apart = false;
  Device there{kCPU, 1};
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
};
RAMET_MODULE(Branches);

void shard(const Branches& net, const Group& g) {
  for (const nn::Linear& l : {net->b, net->c}) fully_shard(l, g);
  fully_shard(net, g);
}

TEST(NestedMeetings, ShardedBranchesOnTwoDevices) {
  for (const How how : {How::plain, How::again, How::again_and_says}) {
    with_groups(2, seconds(60), [&](const Group& g) {
      manual_seed(5);
      Branches net;
      net->how = how;
      net->apart = true;
      net->there = Device(kCPU, 1 + g->rank());
      net->b->to(net->there);
      shard(net, g);
      for (int step = 0; step < 100 / testing::one_repeat_in(); ++step) {
        net->zero_grad();
        net(ones({3, 6})).sum().backward();
        for (const Tensor& p : net->parameters()) ASSERT_TRUE(p.grad().defined()) << step;
      }
    });
  }
}

// Different programs are an error at once, no wait.
TEST(NestedMeetings, ShardedOnSomeRanks) {
  const auto start = std::chrono::steady_clock::now();
  with_groups(2, seconds(60), [](const Group& g) {
    Branches net;
    net->how = g->rank() ? How::again : How::plain;
    shard(net, g);
    const std::string said = error_of([&] { net(ones({3, 6})).sum().backward(); });
    expect_part(said, "fully_shard");
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, in_time(seconds(5)));
}

// A hook's backward may come when nothing is reduced.
TEST(NestedMeetings, AHookWithoutSynchronisation) {
  double total[2] = {0, 0};
  for (const bool sharded : {false, true})
    with_groups(2, seconds(60), [&](const Group& g) {
      Branches net;
      {
        const NoGradGuard off;
        for (const Tensor& p : net->parameters()) p.fill_(0.1);
      }
      std::optional<DistributedDataParallel<Branches>> ddp;
      if (sharded) shard(net, g);
      else ddp.emplace(net, g);
      const auto synchronise = [&](bool on) {
        if (ddp) ddp->set_requires_gradient_sync(on);
        else fully_shard_handle(net).set_requires_gradient_sync(on);
      };
      const auto forward = [&](const Tensor& x) { return (ddp ? (*ddp)(x) : net(x)).sum(); };
      synchronise(false);
      const Tensor x = ones({3, 6}).set_requires_grad(true);
      x.register_hook([&](const Tensor&) {
        const AutoGradMode on(true);
        net->c(ones({1, 6})).sum().backward();
      });
      forward(x).backward();
      synchronise(true);
      (0 * forward(ones({3, 6}))).backward();  // brings what was collected
      const Tensor sum = net->c->parameters()[1].grad().sum().to(kDouble);
      if (sharded) g->all_reduce(sum).wait();
      if (g->rank() == 0) total[sharded] = sum.item<double>();
    });
  EXPECT_GT(total[0], 6);  // from the hook alone
  EXPECT_NEAR(total[1], total[0], 1e-5);
}

// ---- norms --------------------------------------------------------------------------------------

struct NormedImpl : nn::Cloneable<NormedImpl> {
  NormedImpl() { NormedImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    norm = register_module("norm", nn::BatchNorm1d(4));
    b = register_module("b", nn::Linear(4, 2));
  }
  Tensor forward(const Tensor& x) {
    const Piece piece{[this](const Tensor& t) { return norm(t).tanh(); }, norm->parameters()};
    return b(part(how, piece, a(x)));
  }
  How how = How::plain;
  nn::Linear a{nullptr}, b{nullptr};
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(Normed);

enum class By : uint8_t { ddp, two_devices, replicate };

Normed normed(How how, bool synchronised) {
  Normed net;
  net->how = how;
  const NoGradGuard off;
  uint64_t n = 1;
  for (const Tensor& p : net->parameters())
    p.copy_(randn(p.sizes(), Generator(Device(kCPU, 0), n++)));
  if (synchronised) nn::convert_sync_batchnorm(*net);
  return net;
}

// They normalise as in the forward, with all ranks' rows where they are synchronised, and learn
// nothing a second time.
TEST(NestedMeetings, Norms) {
  for (const How how : kHows)
    for (const bool synchronised : {false, true})
      for (const By by : {By::ddp, By::two_devices, By::replicate}) {
        if (synchronised && by == By::two_devices) continue;  // below
        with_groups(2, seconds(60), [&](const Group& g) {
          Normed net = normed(how, synchronised), twin = normed(How::plain, synchronised);
          DdpOptions o;
          if (by == By::two_devices) o.devices = {"cpu:0", "cpu:1"};
          o.isolated = by == By::replicate;
          std::vector<std::unique_ptr<DistributedDataParallel<Normed>>> wrapped;
          for (const Normed& n : {net, twin})
            if (by == By::replicate) replicate(n, g, o);
            else wrapped.push_back(std::make_unique<DistributedDataParallel<Normed>>(n, g, o));
          for (int step = 0; step < 3; ++step) {
            const auto seed = static_cast<uint64_t>(10 * step + g->rank());
            const Tensor x = randn({6, 4}, Generator(Device(kCPU, 0), seed));
            const Tensor one = wrapped.empty() ? net(x) : (*wrapped[0])(x);
            one.pow(2).mean().backward();
            const Tensor two = wrapped.empty() ? twin(x) : (*wrapped[1])(x);
            two.pow(2).mean().backward();
            for (size_t i = 0; i < net->parameters().size(); ++i)
              EXPECT_TRUE(same_bits(net->parameters()[i].grad(), twin->parameters()[i].grad()))
                  << synchronised << static_cast<int>(by) << " " << i;
            descend(*net), descend(*twin);
          }
          for (size_t i = 0; i < net->buffers().size(); ++i)
            EXPECT_TRUE(same_bits(net->buffers()[i], twin->buffers()[i]))
                << synchronised << static_cast<int>(by) << " " << i;
        });
      }
}

// Its other replicas may share the thread: the norm does not wait for them.
TEST(NestedMeetings, SynchronisedNormsOfSeveralReplicas) {
  std::vector<std::string> said(2);
  with_groups(2, seconds(60), [&said](const Group& g) {
    Normed net = normed(How::again, true);
    DdpOptions o;
    o.devices = {"cpu:0", "cpu:1"};
    DistributedDataParallel<Normed> ddp(net, g, o);
    const Tensor y = ddp(ones({6, 4}) * arange(6, kFloat).view({6, 1})).sum();
    said[static_cast<size_t>(g->rank())] = error_of([&] { y.backward(); });
  });
  expect_mistake_of_all(said, "it is computed again in a backward");
}

// ---- the whole wrapped module again -------------------------------------------------------------

struct WholeNetImpl : nn::Cloneable<WholeNetImpl> {
  explicit WholeNetImpl(bool norm = false) : norm(norm) { WholeNetImpl::reset(); }
  void reset() override {
    body = register_module("body", nn::Linear(3, 3));
    head = register_module("head", nn::Linear(3, 2));
    if (norm) middle = register_module("middle", nn::BatchNorm1d(3));
  }
  Tensor forward(const Tensor& x) { return head(middle ? middle(body(x)) : body(x)); }
  bool norm;
  nn::Linear body{nullptr}, head{nullptr};
  nn::BatchNorm1d middle{nullptr};
};
RAMET_MODULE(WholeNet);
using Wrapped = DistributedDataParallel<WholeNet>;

Tensor again(How how, Wrapped& ddp, const Tensor& x) {
  return part(how, {[&ddp](const Tensor& t) { return ddp(t); }, ddp.module().parameters()}, x);
}

TEST(NestedMeetings, TheWholeModule) {
  for (const How how : kHows)
    for (const Average average : {Average::mean, Average::weighted})
      with_groups(2, seconds(60), [&](const Group& g) {
        WholeNet net;
        DdpOptions o;
        o.average = average;
        Wrapped ddp(net, g, o);
        const Tensor x = ones({g->rank() ? 3 : 1, 3}).set_requires_grad(true);
        const auto gradient = [&] { return net->head->bias.grad()[0].item<double>(); };
        again(how, ddp, x).sum().backward();
        EXPECT_EQ(gradient(), average == Average::mean ? 2 : 2.5);  // (1 + 9) / 4
        net->zero_grad();
        (again(how, ddp, x).sum() + ddp(x).sum()).backward();
        EXPECT_EQ(gradient(), average == Average::mean ? 4 : 5);
        // On one rank only: its rows are no more for that.
        net->zero_grad();
        if (g->rank()) ddp(x).sum().backward();
        else (again(How::again, ddp, x).sum() + 0 * ddp(x).sum()).backward();
        EXPECT_EQ(gradient(), average == Average::mean ? 2 : 2.5);
      });
}

// Another module of the group inside a Function of this one's step: buckets of both, and statistics
// of norms, come in one order.
TEST(NestedMeetings, AnotherModuleInside) {
  for (const How how : kHows)
    for (const bool norm : {false, true})
      for (const bool two : {false, true})
        with_groups(2, seconds(60), [&](const Group& g) {
          const int steps = 60 / testing::one_repeat_in();
          WholeNet inner(norm), other(norm);
          Branches outer;
          DdpOptions o = buckets_of(1);
          if (two) o.devices = {"cpu:0", Device(kCPU, 1 + g->rank())};
          Wrapped in(inner, g), in_too(other, g);
          DistributedDataParallel<Branches> out(outer, g, o);
          for (int step = 0; step < steps; ++step) {
            const Tensor h = ones({2, 3}).set_requires_grad(true);
            (out(ones({4, 6})).sum() + again(how, in, h).sum() + again(how, in_too, h).sum())
                .backward();
          }
          for (const auto& m : {inner, other}) {
            Tensor first = m->head->bias.grad().clone();
            g->broadcast(first, 0).wait();
            EXPECT_TRUE(same_bits(first, m->head->bias.grad()));
            EXPECT_EQ(first[0].item<double>(), steps * 2);
          }
        });
}

}  // namespace
}  // namespace ramet::distributed
