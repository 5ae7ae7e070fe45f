// Checkpoints of ranks that are threads. Some ranks save, other ranks load in other parts. What
// does not fit is the same error on all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "parallel/distributed/checkpoint/checkpoint.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "tests/parallel/distributed/checkpoint/checkpoint_support.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

struct Named {
  std::string name;
  std::vector<int64_t> sizes;
  ScalarType dtype;
};
// "embedding" has more than one block of kBlock bytes; some have fewer elements than ranks.
const std::vector<Named> kTensors = {{"embedding", {700, 601}, kFloat},
                                     {"weight", {7, 11}, kFloat},
                                     {"deep", {3, 4, 5}, kDouble},
                                     {"half", {6, 6}, kBFloat16},
                                     {"mask", {5, 3}, kBool},
                                     {"ids", {2, 3}, kLong},
                                     {"scalar", {}, kFloat},
                                     {"nothing", {0, 3}, kFloat}};

// Tensor i is spread in the way `first + i`.
std::vector<TensorPart> parts(int first, int rank, int ranks) {
  std::vector<TensorPart> all;
  for (size_t i = 0; i < kTensors.size(); ++i) {
    const Named& t = kTensors[i];
    const auto spread = static_cast<Spread>((static_cast<size_t>(first) + i) % 5);
    all.push_back(
        part_of(t.name, numbered(t.sizes, t.dtype, static_cast<int64_t>(i)), spread, rank, ranks));
  }
  return all;
}
std::vector<TensorPart> blanks(int first, int rank, int ranks) {
  std::vector<TensorPart> all = parts(first, rank, ranks);
  for (TensorPart& p : all) p = blank(p);
  return all;
}
void expect_equal(const std::vector<TensorPart>& got, const std::vector<TensorPart>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(same_bits(got[i].local, expected[i].local)) << got[i].name;
}
DistributedCheckpoint checkpoint_of(const Group& g, const std::vector<TensorPart>& tensors) {
  DistributedCheckpoint c(g);
  c.add_tensors("t", tensors);
  return c;
}

TEST(Checkpoints, SavedByFourLoadedByAnyInOtherParts) {
  for (int saved = 0; saved < 5; ++saved) {
    TempFolder folder;
    with_groups(4, seconds(60), [&](const Group& g) {
      checkpoint_of(g, parts(saved, g->rank(), 4)).save(folder.path("c"), 17);
    });
    for (int ranks = 1; ranks <= 4; ++ranks) {
      with_groups(ranks, seconds(60), [&](const Group& g) {
        const int loaded = (saved + ranks) % 5;
        const auto mine = blanks(loaded, g->rank(), ranks);
        const LoadReport report = checkpoint_of(g, mine).load(folder.path("c"));
        expect_equal(mine, parts(loaded, g->rank(), ranks));
        EXPECT_EQ(report.step, 17);
        EXPECT_EQ(report.world_size, 4);
        EXPECT_TRUE(report.passed_over.empty());
      });
    }
  }
}

// Also from fewer ranks to more.
TEST(Checkpoints, SavedByOneOrThree) {
  for (const int savers : {1, 3}) {
    TempFolder folder;
    with_groups(savers, seconds(60), [&](const Group& g) {
      checkpoint_of(g, parts(1, g->rank(), savers)).save(folder.path("c"), 1);
    });
    with_groups(4, seconds(60), [&](const Group& g) {
      const auto mine = blanks(3, g->rank(), 4);
      checkpoint_of(g, mine).load(folder.path("c"));
      expect_equal(mine, parts(3, g->rank(), 4));
    });
  }
}

// Read back as plain safetensors: what all ranks have is written once, spread evenly, in whole
// tensors where they are small.
TEST(Checkpoints, WhatAllHoldIsWrittenOnce) {
  TempFolder folder;
  const auto tensors = [] {
    std::vector<TensorPart> all = parts(0, 0, 1);
    for (int i = 0; i < 40; ++i)
      all.push_back(
          part_of("b" + std::to_string(i), numbered({300, 300}, kFloat, i), Spread::whole, 0, 1));
    return all;
  }();
  int64_t bytes = 0;
  std::map<std::string, const TensorPart*> expected;
  for (const TensorPart& p : tensors)
    bytes += static_cast<int64_t>(p.local.nbytes()), expected["t." + p.name] = &p;
  with_groups(4, seconds(60),
              [&](const Group& g) { checkpoint_of(g, tensors).save(folder.path("c"), 0); });
  int64_t found = 0;
  int files = 0;
  std::map<std::string, int64_t> elements;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("c"))) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    int64_t here = 0;
    for (const auto& [name, t] : serialize::load_safetensors(entry.path().string()).tensors) {
      here += static_cast<int64_t>(t.nbytes());
      elements[name] += t.numel();
      ASSERT_TRUE(expected.count(name)) << name;
      if (name != "t.embedding") { EXPECT_TRUE(same_bits(t, expected[name]->local)) << name; }
    }
    EXPECT_NEAR(static_cast<double>(here), static_cast<double>(bytes) / 4, 4 * 300 * 300);
    found += here;
  }
  EXPECT_EQ(files, 4);
  EXPECT_EQ(found, bytes);
  EXPECT_EQ(elements.size(), tensors.size());
  EXPECT_EQ(elements["t.embedding"], 700 * 601);
}

// A module with flat shards as parameters, as fully_shard leaves them, and an optimizer over those;
// or the whole module. AdamW works element by element, so both compute the same bits.
struct ShardsImpl : nn::Module {
  ShardsImpl(const std::vector<TensorPart>& parts) {
    for (const TensorPart& p : parts) {
      Tensor t = p.local.detach().clone();
      weights.push_back(register_parameter(p.name, t));
    }
  }
  std::vector<Tensor> weights;
};
const std::vector<Named> kModel = {{"first", {9, 5}, kFloat}, {"second", {3}, kFloat}};
struct Sharded {
  Sharded(int rank, int ranks, Spread spread, bool reversed) {
    for (size_t i = 0; i < kModel.size(); ++i)
      cuts.push_back(
          part_of(kModel[i].name, numbered(kModel[i].sizes, kFloat, 3), spread, rank, ranks));
    net = std::make_shared<ShardsImpl>(cuts);
    for (size_t i = 0; i < cuts.size(); ++i) cuts[i].local = net->weights[i];
    std::vector<Tensor> order = net->weights;
    if (reversed) std::swap(order[0], order[1]);
    adam = std::make_unique<optim::AdamW>(order, optim::AdamWOptions(0.1).amsgrad(true));
    schedule = std::make_unique<optim::CosineAnnealingLR>(*adam, 10);
    this->spread = spread, this->rank = rank, this->ranks = ranks;
  }
  void step(int64_t number) {
    for (size_t i = 0; i < cuts.size(); ++i) {
      const Tensor whole = numbered(kModel[i].sizes, kFloat, 100 * number) - 125;
      net->weights[i].mutable_grad() =
          part_of("", whole, spread, rank, ranks).local.view(net->weights[i].sizes());
    }
    adam->step();
    schedule->step();
    steps = number;
  }
  DistributedCheckpoint checkpoint(const Group& g) {
    DistributedCheckpoint c(g);
    c.add("model", *net, cuts).add("adam", *adam, cuts).add("schedule", *schedule);
    c.add("steps", steps);
    return c;
  }
  std::vector<TensorPart> cuts;
  std::shared_ptr<ShardsImpl> net;
  std::unique_ptr<optim::AdamW> adam;
  std::unique_ptr<optim::CosineAnnealingLR> schedule;
  int64_t steps = 0;
  Spread spread;
  int rank, ranks;
};

TEST(Checkpoints, ReplicatedToShardedAndBackWithTheOptimizer) {
  // What 8 steps in one piece give.
  Sharded undisturbed(0, 1, Spread::whole, false);
  for (int64_t i = 1; i <= 8; ++i) undisturbed.step(i);
  const auto continued = [&](Spread first, int savers, Spread second, int loaders) {
    TempFolder folder;
    with_groups(savers, seconds(60), [&](const Group& g) {
      Sharded s(g->rank(), savers, first, false);
      for (int64_t i = 1; i <= 5; ++i) s.step(i);
      s.checkpoint(g).save(folder.path("c"), s.steps);
    });
    with_groups(loaders, seconds(60), [&](const Group& g) {
      Sharded s(g->rank(), loaders, second, true);
      s.checkpoint(g).load(folder.path("c"));
      ASSERT_EQ(s.steps, 5);
      for (int64_t i = 6; i <= 8; ++i) s.step(i);
      for (size_t i = 0; i < kModel.size(); ++i) {
        const Tensor whole = undisturbed.net->weights[i].detach();
        const Tensor expected = part_of("", whole, second, g->rank(), loaders).local;
        EXPECT_TRUE(same_bits(s.net->weights[i].detach(), expected)) << kModel[i].name;
      }
    });
  };
  continued(Spread::whole, 2, Spread::flat, 3);
  continued(Spread::flat, 3, Spread::whole, 1);
  continued(Spread::flat, 4, Spread::columns, 2);
  continued(Spread::rows, 4, Spread::flat, 4);  // rank 3 has nothing of "second"
}

struct Position {
  int64_t at = 0;
  Tensor order = zeros({2});
  void save(serialize::OutputArchive& a) const {
    a.write("at", IValue(at));
    a.write("order", order);
  }
  void load(serialize::InputArchive& a) {
    IValue v;
    a.read("at", v);
    at = v.toInt();
    a.read("order", order);
  }
};

TEST(Checkpoints, WhatEachRankHasForItself) {
  TempFolder folder;
  const auto of = [](const Group& g, Position& mine, Position& alike) {
    DistributedCheckpoint c(g);
    c.add_own("mine", mine).add_own("alike", alike);
    return c;
  };
  with_groups(3, seconds(60), [&](const Group& g) {
    Position mine{g->rank() + 10, full({2}, g->rank() + 0.5)}, alike{7, ones({2})};
    of(g, mine, alike).save(folder.path("c"), 1);
  });
  for (const int ranks : {3, 2}) {
    with_groups(ranks, seconds(60), [&](const Group& g) {
      Position mine{-1, zeros({2})}, alike{-1, zeros({2})};
      const LoadReport report = of(g, mine, alike).load(folder.path("c"));
      EXPECT_EQ(alike.at, 7);
      EXPECT_TRUE(alike.order.equal(ones({2})));
      if (ranks == 3) {
        EXPECT_EQ(mine.at, g->rank() + 10);
        EXPECT_TRUE(mine.order.equal(full({2}, g->rank() + 0.5)));
        EXPECT_TRUE(report.not_restored.empty());
      } else {
        EXPECT_EQ(mine.at, -1);
        EXPECT_TRUE(mine.order.equal(zeros({2})));
        EXPECT_EQ(report.not_restored, std::vector<std::string>{"mine"});
      }
    });
  }
}

// Errors that PowerSGD feeds back are each rank's own.
TEST(Checkpoints, CommunicationStages) {
  struct Run {
    explicit Run(const Group& g) {
      DdpOptions o;
      PowerSgdOptions low_rank;
      low_rank.rank = 1, low_rank.start = 0, low_rank.min_compression_rate = 1;
      o.stages = {power_sgd_stage(low_rank)};
      net->weight.detach().copy_(numbered({8, 12}, kFloat, 3) / 251);
      net->bias.detach().zero_();
      ddp = std::make_unique<DistributedDataParallel<nn::Linear>>(net, g, o);
      sgd = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions(0.01).momentum(0.9));
    }
    void steps(const Group& g, int64_t until) {
      for (; step < until; ++step) {
        sgd->zero_grad();
        const Tensor x = numbered({5, 12}, kFloat, 10 * step + g->rank()) / 251;
        (*ddp)(x).square().mean().backward();
        sgd->step();
      }
    }
    DistributedCheckpoint checkpoint(const Group& g) {
      DistributedCheckpoint c(g);
      c.add("net", *net).add("sgd", *sgd, *net).add("step", step);
      c.add_own("stages", ddp->comm_stages());
      return c;
    }
    nn::Linear net{12, 8};
    std::unique_ptr<DistributedDataParallel<nn::Linear>> ddp;
    std::unique_ptr<optim::SGD> sgd;
    int64_t step = 0;
  };
  TempFolder folder;
  with_groups(2, seconds(60), [&](const Group& g) {
    Run whole(g);
    whole.steps(g, 5);
    whole.checkpoint(g).save(folder.path("c"), 5);
    whole.steps(g, 10);
    Run second(g);
    EXPECT_TRUE(second.checkpoint(g).load(folder.path("c")).not_restored.empty());
    second.steps(g, 10);
    EXPECT_TRUE(same_bits(second.net->weight.detach(), whole.net->weight.detach()));
    Run forgetful(g);  // what the errors are worth
    DistributedCheckpoint c(g);
    c.add("net", *forgetful.net).add("sgd", *forgetful.sgd, *forgetful.net);
    c.add("step", forgetful.step).load(folder.path("c"));
    forgetful.steps(g, 10);
    EXPECT_FALSE(same_bits(forgetful.net->weight.detach(), whole.net->weight.detach()));
  });
  with_groups(3, seconds(60), [&](const Group& g) {
    Run run(g);
    EXPECT_EQ(run.checkpoint(g).load(folder.path("c")).not_restored,
              std::vector<std::string>{"stages"});
    run.steps(g, 6);
  });
}

// What has a plan, as DistributedDataParallel: setting it is collective.
struct Planned {
  Group group;
  DistributedCheckpoint::Plan buckets;
  DistributedCheckpoint::Plan plan() const { return buckets; }
  void set_plan(const DistributedCheckpoint::Plan& p) {
    group->barrier("set_plan").wait();
    buckets = p;
  }
};

TEST(Checkpoints, ThePlanOfTheBuckets) {
  TempFolder folder;
  const DistributedCheckpoint::Plan buckets = {{"fc.bias", "fc.weight"}, {"conv weight"}, {}};
  with_groups(3, seconds(60), [&](const Group& g) {
    Planned p{g, buckets};
    DistributedCheckpoint(g).add_plan("plan", p).save(folder.path("c"), 1);
  });
  with_groups(2, seconds(60), [&](const Group& g) {
    Planned p{g, {{"fc.bias"}}};
    DistributedCheckpoint(g).add_plan("plan", p).load(folder.path("c"));
    EXPECT_EQ(p.buckets, buckets);
    // A rank that fails before does not leave the others in set_plan.
    TensorPart other = part_of("w", ones({3}), Spread::whole, 0, 1);
    DistributedCheckpoint c(g);
    if (g->rank() == 1) c.add_tensors("t", {other});
    c.add_plan("plan", p);
    EXPECT_ERROR_TEXT(c.load(folder.path("c")), "it lacks t.w");
    g->barrier().wait();
  });
}

// Every rank's text of a save that fails; the folder is as before.
std::string refused(int ranks, const std::function<void(const Group&, const std::string&)>& save) {
  TempFolder folder;
  const std::string c = folder.path("c");
  with_groups(ranks, seconds(60),
              [&](const Group& g) { checkpoint_of(g, parts(0, g->rank(), ranks)).save(c, 1); });
  std::vector<std::string> before, after, said(static_cast<size_t>(ranks));
  const auto files = [&](std::vector<std::string>& into) {
    for (const auto& e : std::filesystem::directory_iterator(c)) into.push_back(e.path().string());
    std::sort(into.begin(), into.end());
  };
  files(before);
  with_groups(ranks, seconds(60), [&](const Group& g) {
    said[static_cast<size_t>(g->rank())] = error_of([&] { save(g, c); });
    // The group works on, and so does the checkpoint.
    const auto mine = blanks(1, g->rank(), ranks);
    EXPECT_EQ(checkpoint_of(g, mine).load(c).step, 1);
    expect_equal(mine, parts(1, g->rank(), ranks));
  });
  files(after);
  EXPECT_EQ(before, after);
  for (const std::string& text : said) EXPECT_EQ(text, said[0]);
  return said[0];
}

TEST(Checkpoints, RanksThatDiffer) {
  const auto save = [](const Group& g, const std::string& c, const TensorPart& p,
                       int64_t step = 2) { checkpoint_of(g, {p}).save(c, step); };
  const Tensor w = numbered({4, 6}, kFloat, 1);
  expect_part(refused(3,
                      [&](const Group& g, const std::string& c) {
                        save(g, c, part_of("w", g->rank() == 2 ? w + 1 : w, Spread::whole, 0, 1));
                      }),
              "\"t.w\", float32[4, 6]: rank 2 has other values than rank 0");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        save(g, c,
                             part_of("w", g->rank() ? w.t().contiguous() : w, Spread::whole, 0, 1));
                      }),
              "\"t.w\": got float32[6, 4] on rank 1, expected float32[4, 6] as on rank 0");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        save(g, c, part_of("w", w, Spread::flat, g->rank(), 3));
                      }),
              "\"t.w\", float32[4, 6]: no rank holds elements 16 to 23");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        save(g, c, part_of("w", w, Spread::whole, 0, 1), 2 + g->rank());
                      }),
              "step: got 3 on rank 1, expected 2 as on rank 0");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        int64_t epoch = 5 + g->rank();
                        DistributedCheckpoint(g).add("epoch", epoch).save(c, 2);
                      }),
              "value \"epoch\": got 6 on rank 1, expected 5 as on rank 0");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        Position mine;
                        DistributedCheckpoint d(g);
                        if (g->rank()) d.add_own("mine", mine);
                        d.save(c, 2);
                      }),
              "own parts: got {");
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        SaveOptions o;
                        o.keep = g->rank();
                        checkpoint_of(g, {part_of("w", w, Spread::whole, 0, 1)}).save(c, 2, o);
                      }),
              "rank 0: [DistributedCheckpoint.save] keep: got 0, expected at least 1");
}

TEST(Checkpoints, ARankThatCannotWrite) {
  // More than what one rank has to write.
  const auto big = [](const Group&) {
    return std::vector<TensorPart>{
        part_of("w", numbered({900, 900}, kFloat, 1), Spread::whole, 0, 1)};
  };
  expect_part(refused(3,
                      [&](const Group& g, const std::string& c) {
                        checkpoint_of(g, big(g)).save(g->rank() == 1 ? c + "/missing" : c, 2);
                      }),
              "rank 1: [write_file] cannot make a file");
  TempFolder elsewhere;
  std::filesystem::create_directory(elsewhere.path("d"));
  expect_part(refused(2,
                      [&](const Group& g, const std::string& c) {
                        SaveOptions o;
                        o.at = [&](const std::string& stage) {
                          if (g->rank() == 1 && stage == "data written") fail("disk", "it is full");
                        };
                        checkpoint_of(g, big(g)).save(c, 2, o);
                      }),
              "rank 1: [disk] it is full");
  // A folder that is not the others'; its file stays there, where no save of theirs searches.
  std::string said;
  TempFolder folder;
  with_groups(2, seconds(60), [&](const Group& g) {
    const std::string mine = error_of([&] {
      checkpoint_of(g, big(g)).save(g->rank() ? elsewhere.path("d") : folder.path("c"), 2);
    });
    if (g->rank()) said = mine;
  });
  expect_part(said, "of another rank, expected a folder that all ranks share");
}

TEST(Checkpoints, PartsThatDoNotFit) {
  TempFolder folder;
  nn::Linear saved(3, 2);
  with_groups(1, seconds(60), [&](const Group& g) {
    DistributedCheckpoint(g).add("net", *saved).save(folder.path("c"), 4);
  });
  with_groups(2, seconds(60), [&](const Group& g) {
    const auto load = [&](nn::Module& net, bool strict = true) {
      LoadOptions o;
      o.strict = strict;
      DistributedCheckpoint c(g);
      c.add("net", net);
      return c.load(folder.path("c"), o);
    };
    nn::Linear wide(4, 2), plain(nn::LinearOptions(3, 2).bias(false));
    nn::Sequential other(nn::Linear(3, 2));
    EXPECT_ERROR_TEXT(load(*wide),
                      "\"net.weight\": got float32[2, 3] in step 4, expected float32[2, 4]");
    EXPECT_ERROR_TEXT(
        load(*other),
        "step 4 is of other parts: it lacks net.0.bias, net.0.weight; it has besides net.bias, "
        "net.weight");
    EXPECT_ERROR_TEXT(load(*plain), "it has besides net.bias");
    EXPECT_EQ(load(*plain, false).surplus, std::vector<std::string>{"net.bias"});
    EXPECT_TRUE(plain->weight.equal(saved->weight));
    const Tensor before = other[0]->as<nn::Linear>()->weight.detach().clone();
    EXPECT_EQ(load(*other, false).missing,
              (std::vector<std::string>{"net.0.bias", "net.0.weight"}));
    EXPECT_TRUE(other[0]->as<nn::Linear>()->weight.equal(before));
    nn::Linear half(3, 2);
    half->to(kDouble);
    EXPECT_ERROR_TEXT(load(*half), "got float32[2] in step 4, expected float64[2]");

    // What is added in a wrong way.
    nn::Linear net(3, 2), stranger(3, 2);
    optim::SGD sgd(stranger->parameters(), optim::SGDOptions(0.1));
    DistributedCheckpoint c(g);
    c.add("net", *net).add("sgd", sgd, *net);
    EXPECT_ERROR_TEXT(c.save(folder.path("c"), 5), "optimizer \"sgd\": got parameter 0, ");
    EXPECT_ERROR_TEXT(c.add("net", *net), "\"net\" twice");
    EXPECT_ERROR_TEXT(c.add("a@b", *net), "expected one without @");
    EXPECT_ERROR_TEXT(c.add("n", *net, {part_of("bias2", ones({4}), Spread::whole, 0, 1)}),
                      "got a tensor \"bias2\", which is no parameter or buffer of the module");
    TensorPart wrong = part_of("bias", ones({4}), Spread::flat, 0, 2);
    wrong.local = ones({3});
    EXPECT_ERROR_TEXT(c.add("n", *net, {wrong}), "expected the 2 elements of its part");
  });
}

TEST(Checkpoints, NothingThere) {
  TempFolder folder;
  with_groups(2, seconds(60), [&](const Group& g) {
    const auto mine = parts(0, g->rank(), 2);
    DistributedCheckpoint c = checkpoint_of(g, mine);
    EXPECT_FALSE(c.try_load(folder.path("none")));
    EXPECT_ERROR_TEXT(c.load(folder.path("none")), "got no checkpoint in ");
    LoadOptions o;
    o.step = g->rank();
    EXPECT_ERROR_TEXT(
        c.load(folder.path("none"), o),
        "got step 1, strict true on rank 1, expected step 0, strict true as on rank 0");
  });
}

}  // namespace
}  // namespace ramet::distributed
