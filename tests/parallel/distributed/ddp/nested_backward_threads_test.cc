// Backwards inside a backward, as those of Functions that compute their activations again: the
// gradients of both belong to one step.
#include <gtest/gtest.h>

#include <thread>

#include "autograd/autograd.h"
#include "nn/layers/basic/linear.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/sharded_nets.h"

namespace ramet::distributed {
namespace {

// Four layers; the inner two, and they within one of their own, may be computed again.
struct DeepImpl : nn::Cloneable<DeepImpl> {
  DeepImpl() { DeepImpl::reset(); }
  void reset() override {
    for (nn::Linear* l : {&a, &b, &c, &d})
      *l = register_module(std::string(1, static_cast<char>('a' + (l - &a))), nn::Linear(6, 6));
  }
  Tensor forward(const Tensor& x) {
    const Piece first{[this](const Tensor&t) { return b(t).tanh(); }, b->parameters()},
        second{[this](const Tensor&t) { return c(t).relu(); }, c->parameters()},
        both{[=, this](const Tensor&t) { return part(how, second, part(how, first, t)); },
             {b->weight, b->bias, c->weight, c->bias}};
    const Tensor h = a(x).tanh();
    return d(deep ? part(how, both, h) : both.run(h));
  }
  How how = How::plain;
  bool deep = false;
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr}, d{nullptr};
};
RAMET_MODULE(Deep);

Deep deep_net(How how = How::plain, bool deep = false) {
  Deep net;
  net->how = how;
  net->deep = deep;
  uint64_t n = 3;
  const NoGradGuard off;
  for (const Tensor& p : net->parameters()) {
    const Generator g(Device(kCPU, 0), n++);
    p.copy_(randn(p.sizes(), g).mul_(0.4));
  }
  return net;
}
Tensor rows_of(int rank, int step) {
  const Generator g(Device(kCPU, 0), static_cast<uint64_t>(100 * step + rank));
  return randn({3, 6}, g);
}

TEST(NestedBackward, HasTheBitsOfOneWithoutIt) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows)
      for (const bool deep : {false, true})
        for (const int64_t bytes : {int64_t{1}, int64_t{300}, int64_t{1} << 20}) {
          Deep net = deep_net(how, deep), twin = deep_net();
          DistributedDataParallel<Deep> ddp(net, g, buckets_of(bytes)),
              other(twin, g, buckets_of(bytes));
          for (int step = 0; step < 4; ++step) {
            const Tensor x = rows_of(g->rank(), step);
            for (auto* d : {&ddp, &other}) {
              d->set_requires_gradient_sync(step != 1);
              (*d)(x).pow(2).mean().backward();
            }
            EXPECT_TRUE(ddp.unused_parameters().empty());
            const auto mine = net->parameters(), theirs = twin->parameters();
            for (size_t i = 0; i < mine.size(); ++i)
              EXPECT_TRUE(same_bits(mine[i].grad(), theirs[i].grad()))
                  << static_cast<int>(how) << deep << " " << bytes << " step " << step << " " << i;
            if (step == 1) continue;  // these stay for the next one
            for (Deep n : {net, twin}) descend(*n);
          }
        }
  });
}

// One rank computes again, the other does not: what is reduced is the same.
TEST(NestedBackward, OnSomeRanks) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
      Deep net = deep_net(g->rank() ? How::again : How::plain), twin = deep_net();
      DistributedDataParallel<Deep> ddp(net, g, buckets_of(bytes)), other(twin, g);
      for (int step = 0; step < 3; ++step) {
        for (auto* d : {&ddp, &other}) (*d)(rows_of(g->rank(), step)).pow(2).mean().backward();
        for (size_t i = 0; i < net->parameters().size(); ++i)
          EXPECT_TRUE(same_bits(net->parameters()[i].grad(), twin->parameters()[i].grad())) << i;
        for (Deep n : {net, twin}) descend(*n);
      }
    }
  });
}

// w0 is used outside and inside two such parts, w1 inside both, w2 inside one, w3 on no rank. The
// numbers add up exactly in any order.
struct SharedImpl : nn::Cloneable<SharedImpl> {
  SharedImpl() { SharedImpl::reset(); }
  void reset() override {
    w.clear();
    for (int i = 0; i < 4; ++i)
      w.push_back(register_parameter("w" + std::to_string(i), full({2}, 1.0)));
  }
  Tensor forward(const Tensor& x) {
    const Piece one{[this](const Tensor&t) { return w[0] * t + w[1] * t; }, {w[0], w[1]}},
        two{[this](const Tensor&t) { return 2 * (w[0] * t) + 4 * (w[1] * t) + w[2] * t; },
            {w[0], w[1], w[2]}};
    return (part(how, one, x) + part(how, two, x) + 8 * (w[0] * x)).sum();
  }
  How how = How::plain;
  std::vector<Tensor> w;
};
RAMET_MODULE(Shared);

TEST(NestedBackward, ParametersThatSeveralReach) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows)
      for (const bool replicated : {false, true})
        for (const int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
          Shared net;
          net->how = how;
          std::optional<DistributedDataParallel<Shared>> ddp;
          DdpOptions o = buckets_of(bytes);
          o.isolated = replicated;
          if (replicated) replicate(net, g, o);
          else ddp.emplace(net, g, o);
          // The second step's gradients come to those that the ranks have in common already.
          for (const double times : {1.0, 2.0}) {
            const Tensor x = full({2}, g->rank() ? 3.0 : 1.0).set_requires_grad(true);
            (ddp ? (*ddp)(x) : net(x)).backward();
            for (const auto& [i, expected] : {std::pair(0, 22.0), {1, 10.0}, {2, 2.0}})
              EXPECT_TRUE(
                  same_bits(net->w[static_cast<size_t>(i)].grad(), full({2}, expected * times)))
                  << i << " " << bytes << net->w[static_cast<size_t>(i)].grad();
            EXPECT_FALSE(net->w[3].grad().defined());
            if (ddp) { EXPECT_EQ(ddp->unused_parameters(), std::vector<std::string>{"w3"}); }
            // 17 x and 6 x and 1 x: of both passes.
            EXPECT_TRUE(same_bits(x.grad(), full({2}, 17.0)));
          }
        }
  });
}

TEST(NestedBackward, WeightedByRows) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows) {
      Shared net;
      net->how = how;
      DdpOptions o = buckets_of(1);
      o.average = Average::weighted;
      DistributedDataParallel<Shared> ddp(net, g, o);
      // Rank 0 has one row, rank 1 three; each one's loss is a sum.
      const Tensor x = ones({g->rank() ? 3 : 1, 2}).set_requires_grad(true);
      ddp(x).backward();
      EXPECT_TRUE(same_bits(net->w[2].grad(), full({2}, (1 * 1 + 3 * 3) / 4.0)));
    }
  });
}

// Some Functions say what their backward leads to. With those, or once all Functions have run, a
// bucket leaves when its gradients are there; else it waits.
TEST(NestedBackward, WhenBucketsGo) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows) {
      Deep net = deep_net(how);
      DistributedDataParallel<Deep> ddp(net, g, buckets_of(1));
      for (int step = 0; step < 3; ++step) {
        net->zero_grad();
        ddp(rows_of(g->rank(), step)).pow(2).mean().backward();
      }
      const StepTimeline t = ddp.last_step();
      ASSERT_EQ(t.buckets.size(), 8u);  // d, c, b, a: a weight and a bias each
      for (size_t i = 0; i < 8; ++i) EXPECT_EQ(t.buckets[i].gradients, 1) << i;
      const double b_has_come = t.buckets[5].complete, d_goes = t.buckets[1].launched;
      if (how == How::again_and_says) EXPECT_LT(d_goes, b_has_come);
      else EXPECT_GE(d_goes, b_has_come);
      EXPECT_LE(t.buckets[5].launched, t.backward);
      EXPECT_LT(t.buckets[0].launched, t.backward);
    }
  });
}

// A hook is no Function: the reducer cannot foresee its backward.
TEST(NestedBackward, ThatComesTooLate) {
  for (const bool says_wrong : {false, true})
    with_groups(2, seconds(60), [says_wrong](const Group& g) {
      Deep net = deep_net();
      DistributedDataParallel<Deep> ddp(net, g, buckets_of(1));
      Piece piece{[&](const Tensor& t) { return net->d->weight.sum() * t; }, {}};
      const auto step = [&](bool wrong) {
        Tensor x = rows_of(g->rank(), 0);
        if (says_wrong && wrong) x = part(How::again_and_says, piece, x.set_requires_grad(true));
        if (!says_wrong && wrong)
          net->a->weight.register_hook([&](const Tensor&) {
            const AutoGradMode on(true);
            net->d->weight.sum().backward();
          });
        return error_of([&] { ddp(x).pow(2).mean().backward(); });
      };
      EXPECT_EQ(step(false), "no error");
      net->zero_grad();
      std::string error = step(g->rank() == 0);
      // All its buckets may have gone before rank 0 failed.
      if (g->rank() == 1 && error == "no error") error = step(false);
      if (g->rank() == 0) {
        expect_part(error, "a backward inside a backward leads to 'd.weight'");
        expect_part(error, "mark_differentiated");
      } else {
        expect_part(error, "a backward failed on this rank");
      }
    });
}

// Two threads' backwards are still one at a time.
TEST(NestedBackward, OfAnotherThread) {
  with_groups(2, seconds(60), [](const Group& g) {
    Shared net;
    DistributedDataParallel<Shared> ddp(net, g);
    const Tensor x = ones({2}).set_requires_grad(true);
    std::string error;
    Piece piece{[&](const Tensor& t) {
                  if (GradMode::is_enabled())
                    std::thread([&] {
                      error = error_of([&] { net->forward(x.detach()).backward(); });
                    }).join();
                  return 1 * t;
                },
                {}};
    part(How::again, piece, ddp(x)).backward();
    expect_part(error, "a second backward through this module while one runs");
    EXPECT_TRUE(same_bits(net->w[2].grad(), ones({2})));
  });
}

// ---- replicas in a process ----------------------------------------------------------------------

// Each replica's parts are computed again when its device comes to them. Their gradients are still
// added up in the order of the replicas.
TEST(NestedBackward, OfReplicasHasTheBitsOfRanks) {
  for (const bool narrow : {false, true})
    for (const How how : kHows)
      for (const bool deep : {false, true})
        expect_same_bits_for_every_number_of_ranks([&](int ranks, std::vector<Device> devices) {
          std::vector<Tensor> result;
          with_groups(ranks, seconds(100), [&](const Group& g) {
            Deep net = deep_net(how, deep);
            if (narrow) net->to(kBFloat16);
            DdpOptions o = buckets_of(300);
            o.order = ReduceOrder::tree(4);
            o.batch = Batch::whole;
            o.average = Average::sum;
            o.devices = devices;
            DistributedDataParallel<Deep> ddp(net, g, o);
            for (int step = 0; step < 4; ++step) {
              const Generator of_step(Device(kCPU, 0), static_cast<uint64_t>(step));
              const Tensor x =
                  randn({step % 2 ? 10 : 16, 6}, of_step).to(net->a->weight.scalar_type());
              (ddp(x).to(kFloat).pow(2).sum() * 0.125).backward();
              if (g->rank() == 0)
                for (const Tensor& p : net->parameters()) result.push_back(p.grad().clone());
              descend(*net);
            }
          });
          return result;
        });
}

// Without other processes, on devices that are in no particular order.
TEST(NestedBackward, OfDataParallel) {
  for (const auto order : {ReduceOrder::fixed(), ReduceOrder::tree(4)}) {
    std::vector<std::vector<Tensor>> all;
    for (const How how : {How::plain, How::again, How::again, How::again_and_says, How::again}) {
      Deep net = deep_net(how, true);
      nn::parallel::DataParallelOptions o(std::vector<Device>{"cpu:0", "cpu:1", "cpu:2", "cpu:3"});
      o.order = order;
      nn::parallel::DataParallel<Deep> dp(net, o);
      auto& gradients = all.emplace_back();
      for (int step = 0; step < 10; ++step) {
        const Generator of_step(Device(kCPU, 0), static_cast<uint64_t>(step));
        dp(randn({16, 6}, of_step)).pow(2).mean().backward();
        for (const Tensor& p : net->parameters()) gradients.push_back(p.grad().clone());
        descend(*net);
      }
    }
    for (const auto& other : all)
      for (size_t i = 0; i < other.size(); ++i)
        EXPECT_TRUE(same_bits(other[i], all[0][i])) << i << " of run " << &other - all.data();
  }
}

// ---- sharded modules ----------------------------------------------------------------------------

void expect_same_values(const nn::Module& sharded, const nn::Module& whole, int step) {
  const auto state = full_state_dict(sharded);
  for (const auto& item : whole.named_parameters())
    EXPECT_TRUE(same_bits(state[item.key()], item.value().detach())) << step << " " << item.key();
}

TEST(NestedBackward, OfShardedModules) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows)
      for (const bool deep : {false, true})
        for (const bool reshard : {true, false}) {
          Deep net = deep_net(how, deep), twin = deep_net();
          FullyShardOptions o;
          o.reshard_after_forward = reshard;
          for (const nn::Linear& l : {net->b, net->c}) fully_shard(l, g, o);
          fully_shard(net, g, o);
          DistributedDataParallel<Deep> other(twin, g);
          for (int step = 0; step < 4; ++step) {
            const Tensor x = rows_of(g->rank(), step);
            fully_shard_handle(net).set_requires_gradient_sync(step != 1);
            other.set_requires_gradient_sync(step != 1);
            net(x).pow(2).mean().backward();
            other(x).pow(2).mean().backward();
            if (step == 1) continue;
            for (Deep n : {net, twin}) descend(*n);
            expect_same_values(*net, *twin, step);
          }
        }
  });
}

// All of a rank's gradients come to the group's one place, however many backwards bring them.
struct SharedPartsImpl : nn::Cloneable<SharedPartsImpl> {
  SharedPartsImpl() { SharedPartsImpl::reset(); }
  void reset() override {
    for (int i = 0; i < 3; ++i) f.push_back(register_module("f" + std::to_string(i), Factor(1.0)));
  }
  Tensor forward(const Tensor& x) {
    const Piece one{[this](const Tensor&t) { return f[0](t) + f[1](t); }, {f[0]->w, f[1]->w}},
        two{[this](const Tensor&t) { return 2 * f[0](t) + 4 * f[1](t) + f[2](t); },
            {f[0]->w, f[1]->w, f[2]->w}};
    return (part(how, one, x) + part(how, two, x) + 8 * f[0](x)).sum();
  }
  How how = How::plain;
  std::vector<Factor> f;
};
RAMET_MODULE(SharedParts);

TEST(NestedBackward, ShardedParametersThatSeveralReach) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const How how : kHows)
      for (const bool one_group : {false, true}) {
        SharedParts net;
        net->how = how;
        if (!one_group)
          for (const Factor& f : net->f) fully_shard(f, g);
        fully_shard(net, g);
        for (const double times : {1.0, 2.0}) {
          const Tensor x = full({2}, g->rank() ? 3.0 : 1.0).set_requires_grad(true);
          net(x).backward();
          for (const auto& [i, expected] : {std::pair(0, 22.0), {1, 10.0}, {2, 2.0}}) {
            const Tensor grad = net->f[static_cast<size_t>(i)]->parameters()[0].grad();
            ASSERT_TRUE(grad.defined());
            EXPECT_TRUE(same_bits(grad, full(grad.sizes(), expected * times))) << i << grad;
          }
          EXPECT_TRUE(same_bits(x.grad(), full({2}, 17.0)));
        }
      }
  });
}

}  // namespace
}  // namespace ramet::distributed
