// Modules that get other parameters after they were wrapped: all ranks plan again, at the next
// forward.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/ddp/recomputed.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

struct PartsImpl : nn::Cloneable<PartsImpl> {
  explicit PartsImpl(bool counts = false) : counts(counts) { PartsImpl::reset(); }
  void reset() override {
    body = register_module("body", nn::Sequential(nn::Linear(3, 3)));
    head = register_module("head", nn::Sequential(nn::Linear(3, 2)));
    if (counts) calls = register_buffer("calls", zeros({1}));
  }
  Tensor forward(const Tensor& x) {
    if (counts) calls.add_(x.slice(0, 0, 1).sum());
    return head(body(x));
  }
  bool counts;
  Tensor calls;
  nn::Sequential body{nullptr}, head{nullptr};
};
RAMET_MODULE(Parts);

void fill(const nn::Module& m, double value) {
  const NoGradGuard off;
  for (const Tensor& p : m.parameters()) p.fill_(value);
}
void give_head(Parts& net, nn::Sequential head) {
  net->head = net->replace_module("head", std::move(head));
}

std::vector<Tensor> gradients(const nn::Module& m) {
  std::vector<Tensor> out;
  for (const Tensor& p : m.parameters()) out.push_back(p.grad());
  return out;
}

// A step by either wrapper.
struct Wrapped {
  Wrapped(const Parts& net, const Group& g, bool replicated, DdpOptions o = {}) : net(net) {
    if (replicated) {
      o.isolated = true;
      replicate(net, g, o);
    } else {
      ddp.emplace(net, g, o);
    }
  }
  Tensor operator()(const Tensor& x) { return ddp ? (*ddp)(x) : net(x); }
  std::vector<std::string> planned() const {
    std::vector<std::string> names;
    for (const auto& b : ddp ? ddp->plan() : replicate_handle(*net).plan())
      names.insert(names.end(), b.begin(), b.end());
    std::ranges::sort(names);
    return names;
  }
  Parts net;
  std::optional<DistributedDataParallel<Parts>> ddp;
};

TEST(ChangedModule, ANewPartIsReducedWithTheOthers) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const bool replicated : {false, true})
      for (const int64_t bytes : {int64_t{1}, int64_t{1} << 20}) {
        Parts net;
        fill(*net, 1);
        DdpOptions o;
        o.average = Average::sum;
        o.bucket_bytes = bytes;
        Wrapped ddp(net, g, replicated, o);
        const Tensor x = full({2, 3}, g->rank() + 1.0);
        ddp(x).sum().backward();
        const Tensor before = net->body->parameters()[0].grad().clone();
        give_head(net, nn::Sequential(nn::Linear(3, 5), nn::Linear(5, 2)));
        fill(*net->head, g->rank() + 1.0);
        ddp(x).sum().backward();
        // Rank 0's values; the sum over the ranks, for one row of ones 3 times as much in all.
        for (const Tensor& p : net->head->parameters())
          EXPECT_EQ(p[0].sum().item<double>(), p[0].numel());
        expect_equal_on_all_ranks(g, gradients(*net));
        EXPECT_EQ(net->head->parameters()[3].grad()[0].item<double>(), 4);  // rows of both
        // On top of what all ranks had: 5 x 2 instead of 1 x 2 paths lead there.
        EXPECT_TRUE(same_bits(net->body->parameters()[0].grad(), before * 6));
        const std::vector<std::string> names = {"body.0.bias",   "body.0.weight", "head.0.bias",
                                                "head.0.weight", "head.1.bias",   "head.1.weight"};
        EXPECT_EQ(ddp.planned(), names);
        // And so on, with another plan.
        net->zero_grad();
        ddp(x).sum().backward();
        EXPECT_TRUE(same_bits(net->body->parameters()[0].grad(), before * 5));
        expect_equal_on_all_ranks(g, gradients(*net));
        EXPECT_EQ(ddp.planned(), names);
      }
  });
}

TEST(ChangedModule, WithSeveralDevices) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DdpOptions o;
    o.devices = {"cpu:0", "cpu:1"};
    DistributedDataParallel<Parts> ddp(net, g, o);
    const Tensor x = full({4, 3}, g->rank() + 1.0);
    ddp(x).sum().backward();
    give_head(net, nn::Sequential(nn::Linear(3, 4), nn::BatchNorm1d(4)));
    for (int step = 0; step < 2; ++step) {
      net->zero_grad();
      ddp(x + ddp.group()->rank()).pow(2).sum().backward();
      expect_equal_on_all_ranks(g, net->parameters());
      expect_equal_on_all_ranks(g, gradients(*net));
      expect_equal_on_all_ranks(g, net->buffers());
    }
  });
}

// Where forwards did not communicate with the other ranks, they do from then on.
TEST(ChangedModule, APartWithStatistics) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const bool replicated : {false, true})
      for (const bool synchronised : {false, true}) {
        Parts net;
        Wrapped ddp(net, g, replicated);
        const Tensor x = full({4, 3}, g->rank() + 1.0) * arange(4, kFloat).view({4, 1});
        ddp(x).sum().backward();
        give_head(net, nn::Sequential(nn::Linear(3, 2), nn::BatchNorm1d(2)));
        fill(*net->head, 1);
        fill(*net->body, 1);
        if (synchronised) nn::convert_sync_batchnorm(*net->head);
        const Tensor y = ddp(x);
        (y * y).sum().backward();
        expect_equal_on_all_ranks(g, net->buffers());
        expect_equal_on_all_ranks(g, gradients(*net));
        // The mean of 3 (3 x + 1) + 1 over both ranks' rows, of which momentum takes a tenth.
        const double mean = 9 * (1 + 2) / 2. * 1.5 + 4;
        EXPECT_NEAR(net->buffers()[0][0].item<double>(), mean / 10, 1e-5);
        // x is 0 to 3 and 0 to 6: 1.5 and 3 on the mean, 2.25 together with a variance of 3.6875.
        const double mine = y.mean().item<double>() - 1;
        if (synchronised) EXPECT_NEAR(mine, (g->rank() ? 0.75 : -0.75) / std::sqrt(3.6875), 1e-5);
        else EXPECT_NEAR(mine, 0, 1e-5);
      }
  });
}

// What the ranks wrote to buffers that were there before becomes the same by their policy first.
TEST(ChangedModule, BuffersOfBefore) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const bool replicated : {false, true}) {
      Parts net(true);
      Wrapped ddp(net, g, replicated);
      const Tensor x = full({2, 3}, g->rank() + 1.0);
      ddp(x).sum().backward();
      give_head(net, nn::Sequential(nn::Linear(3, 4)));
      ddp(x).sum().backward();
      // Rank 0's 3 of the first forward, and each rank's own of the second.
      EXPECT_EQ(net->calls.item<double>(), 3 + 3 * (g->rank() + 1));
    }
  });
}

TEST(ChangedModule, FrozenAndIgnoredParts) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DdpOptions o;
    o.ignored.names = {"head*"};
    DistributedDataParallel<Parts> ddp(net, g, o);
    const Tensor x = full({2, 3}, g->rank() + 1.0);
    ddp(x).sum().backward();
    give_head(net, nn::Sequential(nn::Linear(3, 4)));
    fill(*net->head, g->rank() + 1.0);
    net->body->push_back(nn::Linear(3, 3));
    for (Tensor& p : net->body[1]->parameters()) p.set_requires_grad(false);
    net->zero_grad();
    for (int step = 0; step < 2; ++step) {
      ddp(x).sum().backward();
      EXPECT_EQ(net->head->parameters()[1][0].item<double>(), g->rank() + 1.0) << "its own";
      EXPECT_EQ(net->head->parameters()[1].grad()[0].item<double>(), 2.0 * (step + 1));
      expect_equal_on_all_ranks(g, net->body->parameters());
      EXPECT_FALSE(net->body->parameters()[2].grad().defined());
    }
    for (Tensor& p : net->body[1]->parameters()) p.set_requires_grad(true);
    ddp(x).sum().backward();
    expect_equal_on_all_ranks(g, gradients(*net->body));
  });
}

// A rank may compute results alone.
TEST(ChangedModule, WithoutGradientsNobodyMeets) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DistributedDataParallel<Parts> ddp(net, g);
    give_head(net, nn::Sequential(nn::Linear(3, 4)));
    if (g->rank() == 1) {
      const NoGradGuard off;
      EXPECT_EQ(ddp(ones({2, 3})).size(1), 4);
    }
    ddp(ones({2, 3})).sum().backward();
    expect_equal_on_all_ranks(g, gradients(*net));
  });
}

// A part with a replicate() of its own gets its gradients, whichever module is called first.
TEST(ChangedModule, APartWithItsOwnReducer) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    ReplicateOptions own;
    own.average = Average::sum;
    own.isolated = true;
    replicate(net->head, g, own);
    DistributedDataParallel<Parts> ddp(net, g);
    ddp(ones({1, 3})).sum().backward();
    net->zero_grad();
    net->head->push_back(nn::Linear(2, 2));
    ddp(ones({1, 3})).sum().backward();
    EXPECT_EQ(net->head->parameters()[3].grad()[0].item<double>(), 2) << "the sum, no mean";
    EXPECT_EQ(replicate_handle(*net->head).replicated_param_names().size(), 4u);
  });
}

TEST(ChangedModule, ModulesOfOneReducer) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts a, b;
    replicate(a, g);
    replicate(b, g);
    const Tensor x = full({2, 3}, g->rank() + 1.0);
    (a(x).sum() + b(x).sum()).backward();
    for (int i = 0; i < 3; ++i) {
      const Tensor of_before = b(x).sum();
      (i % 2 ? b : a)->head->push_back(nn::Linear(2, 2));
      a->zero_grad(), b->zero_grad();
      (a(x).sum() + of_before + b(x).sum()).backward();
      for (const Parts& n : {a, b}) expect_equal_on_all_ranks(g, gradients(*n));
    }
  });
}

TEST(ChangedModule, GraphsOfBeforeAndAccumulation) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const Average average : {Average::mean, Average::sum, Average::weighted}) {
      Parts net;
      DdpOptions o;
      o.average = average;
      DistributedDataParallel<Parts> ddp(net, g, o);
      const Tensor x = full({1, 3}, g->rank() + 1.0);
      ddp(x).sum().backward();
      net->zero_grad();
      const Tensor of_before = ddp(x).sum();
      const nn::Sequential old = net->head;  // a graph does not keep it
      give_head(net, nn::Sequential(nn::Linear(3, 4)));
      const Tensor of_now = ddp(x).sum();
      of_before.backward();
      of_now.backward();
      expect_equal_on_all_ranks(g, gradients(*net));
      ddp.set_plan(ddp.plan());
      net->zero_grad();
      auto step = ddp.accumulate(2);
      step.backward(ddp(x).sum());
      net->head->push_back(nn::Linear(4, 2));
      step.backward(ddp(x).sum());
      expect_equal_on_all_ranks(g, gradients(*net));
      // In one of two backwards, which count half each.
      EXPECT_EQ(net->head->parameters()[3].grad()[0].item<double>(),
                average == Average::sum ? 1 : 0.5);
    }
  });
}

// A Function's forward records nothing, but its backward does.
TEST(ChangedModule, ComputedAgain) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DistributedDataParallel<Parts> ddp(net, g);
    const Tensor x = full({2, 3}, g->rank() + 1.0).set_requires_grad(true);
    const auto step = [&] {
      net->zero_grad();
      const Piece whole{[&ddp](const Tensor& t) { return ddp(t); }, ddp.module().parameters()};
      const Tensor y = part(How::again, whole, x);
      y.sum().backward();
      return y;
    };
    step();
    give_head(net, nn::Sequential(nn::Linear(3, 4)));
    const Tensor y = step();
    expect_equal_on_all_ranks(g, net->parameters());
    EXPECT_TRUE(same_bits(y.detach(), ddp(x).detach()));
    expect_equal_on_all_ranks(g, gradients(*net));
    give_head(net, nn::Sequential(nn::Linear(3, 2)));
    if (g->rank() == 0) {  // evaluates alone
      const NoGradGuard off;
      part(How::again, {[&ddp](const Tensor& t) { return ddp(t); }, {}}, x);
    }
  });
}

struct Seeing final : ReduceStage {
  std::string description() const override { return "seeing"; }
  bool lossless() const override { return true; }
  void attach(const StageSetting& setting) override { parameters = setting.parameters; }
  void reduce(std::vector<StageValues>& list, const StageNext& next) override { next.reduce(list); }
  std::map<std::string, std::vector<int64_t>> parameters;
};

// It finds the present parameters.
TEST(ChangedModule, AStageThatComesLater) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DistributedDataParallel<Parts> ddp(net, g);
    give_head(net, nn::Sequential(nn::Linear(nn::LinearOptions(3, 4).bias(false))));
    ddp(ones({1, 3})).sum().backward();
    const auto stage = std::make_shared<Seeing>();
    ddp.register_comm_stage(stage);
    EXPECT_EQ(stage->parameters,
              (std::map<std::string, std::vector<int64_t>>{
                  {"body.0.weight", {3, 3}}, {"body.0.bias", {3}}, {"head.0.weight", {4, 3}}}));
  });
}

// What was ignored, or normalised, may be gone, and others may come to its address.
TEST(ChangedModule, PartsThatAreGone) {
  with_groups(2, seconds(60), [](const Group& g) {
    for (const bool replicated : {false, true}) {
      Parts net;
      give_head(net, nn::Sequential(nn::Linear(3, 2), nn::BatchNorm1d(2)));
      DdpOptions o;
      o.ignored.names = {"head.0"};
      Wrapped ddp(net, g, replicated, o);
      const Tensor x = full({2, 3}, g->rank() + 1.0);
      ddp(x).sum().backward();
      const void* const address = net->head->ptr(0).get();
      give_head(net, nn::Sequential(nn::ReLU()));
      ddp(x).sum().backward();
      std::vector<nn::Linear> others;
      while (others.size() < 200 && (others.empty() || others.back().ptr().get() != address))
        others.emplace_back(3, 2);
      net->head->push_back("last", others.back());
      net->zero_grad();
      ddp(x).sum().backward();
      expect_equal_on_all_ranks(g, gradients(*net));
    }
  });
}

// ---- errors -------------------------------------------------------------------------------------

using Change = std::function<void(const Group&, Parts&)>;

std::vector<std::string> errors_of(const Change& before, const Change& change) {
  std::vector<std::string> said(2);
  with_groups(2, seconds(60), [&](const Group& g) {
    Parts net;
    before(g, net);
    DistributedDataParallel<Parts> ddp(net, g);
    ddp(ones({2, 3})).sum().backward();
    change(g, net);
    said[static_cast<size_t>(g->rank())] = error_of([&] { ddp(ones({2, 3})).sum().backward(); });
  });
  return said;
}
const Change kPlain = [](const Group&, const Parts&) {};
const Change kWithNorm = [](const Group&, Parts& net) { net->body->push_back(nn::BatchNorm1d(3)); };

// The other one waits where its forward communicates with the ranks, or, evaluating, in its
// backward.
TEST(ChangedModule, OnOneRankAlone) {
  for (const auto& [before, evaluates] :
       {std::pair(kPlain, false), std::pair(kWithNorm, false), std::pair(kWithNorm, true)}) {
    const auto start = std::chrono::steady_clock::now();
    const auto said = errors_of(before, [evaluates](const Group& g, Parts& net) {
      if (evaluates) net->eval();
      if (g->rank() == 1) give_head(net, nn::Sequential(nn::Linear(3, 4)));
    });
    for (const std::string& text : said) expect_part(text, "changed module");
    EXPECT_LT(std::chrono::steady_clock::now() - start, in_time(seconds(1)));
  }
}

TEST(ChangedModule, DifferentPartsOnTheRanks) {
  for (const Change& before : {kPlain, kWithNorm}) {
    const auto said = errors_of(before, [](const Group& g, Parts& net) {
      give_head(net, nn::Sequential(nn::Linear(3, 4 + g->rank())));
    });
    for (const std::string& text : said) {
      expect_part(text, "the ranks have different models");
      expect_part(text, "'head.0.weight' of rank 1, float32[5, 3]");
    }
  }
}

TEST(ChangedModule, WithCommunicationStages) {
  with_groups(2, seconds(60), [](const Group& g) {
    Parts net;
    DistributedDataParallel<Parts> ddp(net, g);
    ddp.register_comm_stage(bf16_stage());
    give_head(net, nn::Sequential(nn::Linear(3, 4)));
    const std::string said = error_of([&] { ddp(ones({2, 3})); });
    expect_part(said, "the module has got 'head.0.weight' since it was wrapped");
    expect_part(said, "bf16");
  });
}

}  // namespace
}  // namespace ramet::distributed
