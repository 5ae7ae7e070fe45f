// PowerSGD as a communication hook, with ranks as threads: compared with a naive reference in
// float64, what it sends, what it remembers.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "nn/serialize/archive.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

// ---- the reference: row-major matrices in float64, every product a triple loop ------------------

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> at;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), at(static_cast<size_t>(r * c)) {}
  explicit Matrix(const Tensor& t) : Matrix(t.size(0), t.numel() / t.size(0)) {
    const Tensor d = t.to(kDouble).contiguous();
    for (size_t i = 0; i < at.size(); ++i) at[i] = d.data_ptr<double>()[i];
  }
  double& operator()(int64_t i, int64_t j) { return at[static_cast<size_t>(i * columns + j)]; }
  double operator()(int64_t i, int64_t j) const { return at[static_cast<size_t>(i * columns + j)]; }
};
Matrix transposed(const Matrix& a) {
  Matrix out(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j) out(j, i) = a(i, j);
  return out;
}
Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.columns; ++j)
      for (int64_t k = 0; k < a.columns; ++k) out(i, j) += a(i, k) * b(k, j);
  return out;
}
// a + factor b
Matrix sum(Matrix a, const Matrix& b, double factor) {
  for (size_t i = 0; i < a.at.size(); ++i) a.at[i] += factor * b.at[i];
  return a;
}
Matrix mean(const std::vector<Matrix>& all) {
  Matrix out(all[0].rows, all[0].columns);
  for (const Matrix& m : all) out = sum(out, m, 1.0 / static_cast<double>(all.size()));
  return out;
}
// Classical Gram and Schmidt, column by column.
Matrix orthonormal(Matrix a) {
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t k = 0; k < j; ++k) {
      double dot = 0;
      for (int64_t i = 0; i < a.rows; ++i) dot += a(i, j) * a(i, k);
      for (int64_t i = 0; i < a.rows; ++i) a(i, j) -= dot * a(i, k);
    }
    double square = 0;
    for (int64_t i = 0; i < a.rows; ++i) square += a(i, j) * a(i, j);
    for (int64_t i = 0; i < a.rows; ++i) a(i, j) /= std::sqrt(square);
  }
  return a;
}
double largest(const Matrix& m) {
  double most = 0;
  for (double x : m.at) most = std::max(most, std::abs(x));
  return most;
}
void expect_near(const Matrix& a, const Matrix& b, double tolerance) {
  ASSERT_EQ(a.at.size(), b.at.size());
  EXPECT_LE(largest(sum(a, b, -1)), tolerance * std::max(1.0, largest(b)));
}

std::vector<Matrix> of_all_ranks(const Group& g, const Tensor& mine) {
  std::vector<Tensor> all;
  for (int r = 0; r < g->size(); ++r) all.push_back(empty(mine.sizes()));
  g->all_gather(all, mine.contiguous()).wait();
  std::vector<Matrix> out;
  for (const Tensor& t : all) out.emplace_back(t);
  return out;
}

// Algorithms 1 and 2 of the paper, from the state after the first step on.
TEST(PowerSgd, AgreesWithANaiveTwin) {
  for (const int ranks : {1, 2, 3})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      const Shapes shapes{{12, 20}};
      Given net(shapes);
      const auto stage = power_sgd_stage(low_rank(3, 0));
      GivenDdp ddp(net, g, with_stages({stage}));
      const Tensor first = reduced(ddp, net, random_gradients(shapes, g->rank(), 0))[0];
      {
        // Of rank 3, and the projection of the mean on its own columns.
        std::vector<Matrix> all;
        for (int r = 0; r < ranks; ++r) all.emplace_back(random_gradients(shapes, r, 0)[0]);
        const Matrix y(first), basis = orthonormal(Matrix(first.slice(1, 0, 3)));
        expect_near(basis * (transposed(basis) * mean(all)), y, 1e-4);
      }
      for (int step = 1; step < 6; ++step) {
        Matrix q = orthonormal(Matrix(stage->state().at("w0.q")));
        const std::vector<Matrix> before = of_all_ranks(g, stage->state().at("w0.error"));
        const Tensor got = reduced(ddp, net, random_gradients(shapes, g->rank(), step))[0];
        std::vector<Matrix> deltas, products;
        for (int r = 0; r < ranks; ++r) {
          deltas.push_back(
              sum(Matrix(random_gradients(shapes, r, step)[0]), before[static_cast<size_t>(r)], 1));
          products.push_back(deltas.back() * q);
        }
        const Matrix p = orthonormal(mean(products));
        std::vector<Matrix> factors;
        for (const Matrix& d : deltas) factors.push_back(transposed(d) * p);
        expect_near(Matrix(got), p * transposed(mean(factors)), 1e-4);
        const std::vector<Matrix> errors = of_all_ranks(g, stage->state().at("w0.error"));
        for (size_t r = 0; r < errors.size(); ++r)
          expect_near(errors[r], sum(deltas[r], p * transposed(factors[r]), -1), 1e-4);
      }
    });
}

TEST(PowerSgd, FullRankLosesNothing) {
  for (const int ranks : {1, 3})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      const Shapes shapes{{6, 4}, {4, 6}, {5, 5}};
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({power_sgd_stage(low_rank(100, 0, 0))}));
      for (int step = 0; step < 3; ++step) {
        const auto got = reduced(ddp, net, random_gradients(shapes, g->rank(), step));
        for (size_t i = 0; i < shapes.size(); ++i) {
          std::vector<Matrix> all;
          for (int r = 0; r < ranks; ++r) all.emplace_back(random_gradients(shapes, r, step)[i]);
          expect_near(Matrix(got[i]), mean(all), 1e-5);
        }
      }
    });
}

// The same gradient again and again. Warm starts are a power iteration, which ends in the best
// approximation of this rank; cold ones differ from step to step.
TEST(PowerSgd, WarmStartsConverge) {
  with_groups(1, seconds(60), [](const Group& g) {
    const Shapes shapes{{10, 12}};
    const auto mine = random_gradients(shapes, 0, 0);
    const Matrix m(mine[0]);
    Matrix v(random_gradients({{12, 2}}, 0, 1)[0]);
    for (int i = 0; i < 500; ++i) v = orthonormal(transposed(m) * (m * v));
    const Matrix best = (m * v) * transposed(v);
    for (const bool warm : {true, false}) {
      PowerSgdOptions o = low_rank(2, 0);
      o.error_feedback = false;
      o.warm_start = warm;
      Given net(shapes);
      GivenDdp ddp(net, g, with_stages({power_sgd_stage(o)}));
      Tensor before, now;
      for (int step = 0; step < 300; ++step) {
        before = now;
        now = reduced(ddp, net, mine)[0];
      }
      const double change = (now - before).abs().max().item<double>(),
                   distance = largest(sum(Matrix(now), best, -1));
      if (warm) {
        EXPECT_LE(change, 1e-4);
        EXPECT_LE(distance, 1e-3);
      } else {
        EXPECT_GT(change, 0.1);
        EXPECT_GT(distance, 0.1);
      }
    }
  });
}

// What is compressed follows the paper's rule; the rest has the bits of no stage. What travels are
// the factors.
TEST(PowerSgd, WhatTravels) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Shapes shapes{{64, 32}, {64}, {4, 4}, {8, 4, 4, 4}};
    const auto mine = random_gradients(shapes, g->rank(), 0);
    Given net(shapes);
    std::vector<Tensor> plain;
    {
      GivenDdp ddp(net, g);
      plain = reduced(ddp, net, mine);
    }
    const auto run = [&](std::vector<std::shared_ptr<CommStage>> stages, int64_t steps) {
      GivenDdp ddp(net, g, with_stages(std::move(stages)));
      std::vector<Tensor> got;
      for (int64_t i = 0; i < steps; ++i) {
        g->reset_wire_bytes();
        got = reduced(ddp, net, mine);
      }
      return got;
    };
    const uint64_t rest = 64 + 16, factors = (64 + 32) * 2 + (8 + 64) * 2;
    const auto got = run({power_sgd_stage(low_rank(2, 0))}, 1);
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 4 * (rest + factors));
    EXPECT_FALSE(same_bits(got[0], plain[0]));
    EXPECT_FALSE(same_bits(got[3], plain[3]));
    EXPECT_TRUE(same_bits(got[1], plain[1]));
    EXPECT_TRUE(same_bits(got[2], plain[2]));
    run({power_sgd_stage(low_rank(2, 0)), fp16_stage()}, 1);
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 2 * (rest + factors));
    // It begins in step number `start`.
    const auto before = run({power_sgd_stage(low_rank(2, 2))}, 2);
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 4u * (64 * 32 + 64 + 16 + 512));
    for (size_t i = 0; i < shapes.size(); ++i) EXPECT_TRUE(same_bits(before[i], plain[i])) << i;
    run({power_sgd_stage(low_rank(2, 2))}, 3);
    EXPECT_EQ(g->wire_bytes("all_reduce_stages"), 4 * (rest + factors));
  });
}

// Over all ranks nothing is lost, whichever ranks have a gradient: what did not arrive is in the
// errors.
TEST(PowerSgd, ErrorsKeepWhatDidNotArrive) {
  for (const Average average : {Average::mean, Average::sum})
    with_groups(3, seconds(60), [&](const Group& g) {
      const Shapes shapes{{16, 24}, {2}};  // all ranks have the second one
      Given net(shapes);
      const auto stage = power_sgd_stage(low_rank(2, 0));
      GivenDdp ddp(net, g, with_stages({stage}, average));
      Matrix given(16, 24), arrived(16, 24);
      for (int step = 0; step < 6; ++step) {
        const auto has = [&](int rank) { return (step + rank) % 3 != 0; };
        auto mine = random_gradients(shapes, g->rank(), step);
        const auto held = stage->state();
        const bool kept = held.count("w0.error") > 0;
        if (!has(g->rank())) mine[0] = Tensor();
        const Tensor got = reduced(ddp, net, mine)[0];
        if (!has(g->rank()) && kept) {
          EXPECT_TRUE(same_bits(stage->state().at("w0.error"), held.at("w0.error")));
        }
        for (int r = 0; r < 3; ++r)
          if (has(r)) given = sum(given, Matrix(random_gradients(shapes, r, step)[0]), 1);
        arrived = sum(arrived, Matrix(got), average == Average::mean ? 3 : 1);
      }
      Matrix left(16, 24);
      for (const Matrix& e : of_all_ranks(g, stage->state().at("w0.error"))) left = sum(left, e, 1);
      expect_near(sum(arrived, left, 1), given, 1e-4);
      EXPECT_GT(largest(left), 0.5);
    });
}

TEST(PowerSgd, GradientsThatAreNotFiniteAndZeros) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Shapes shapes{{10, 12}, {12, 10}};
    Given net(shapes);
    const auto stage = power_sgd_stage(low_rank(2, 0));
    GivenDdp ddp(net, g, with_stages({stage}));
    const auto step = [&](int i) {
      return reduced(ddp, net, random_gradients(shapes, g->rank(), i));
    };
    step(0);
    const auto before = stage->state();
    auto bad = random_gradients(shapes, g->rank(), 1);
    if (g->rank() == 1) bad[0].view({-1}).select(0, 7).fill_(INFINITY);
    const auto got = reduced(ddp, net, bad);
    EXPECT_TRUE(got[0].isnan().all().item<bool>());
    EXPECT_TRUE(got[1].isfinite().all().item<bool>());
    EXPECT_TRUE(same_bits(stage->state().at("w0.q"), before.at("w0.q")));
    EXPECT_TRUE(same_bits(stage->state().at("w0.error"), before.at("w0.error")));
    EXPECT_FALSE(same_bits(stage->state().at("w1.error"), before.at("w1.error")));
    EXPECT_TRUE(step(2)[0].isfinite().all().item<bool>());
  });
  // Zeros leave a factor of zeros, which does not stay.
  with_groups(1, seconds(60), [](const Group& g) {
    const Shapes shapes{{10, 12}};
    Given net(shapes);
    PowerSgdOptions o = low_rank(2, 0);
    o.error_feedback = false;
    GivenDdp ddp(net, g, with_stages({power_sgd_stage(o)}));
    EXPECT_TRUE(same_bits(reduced(ddp, net, {zeros({10, 12})})[0], zeros({10, 12})));
    // Of fewer columns than the approximation has.
    const Tensor rank1 = randn({10, 1}).matmul(randn({1, 12}));
    for (int i = 0; i < 3; ++i)
      expect_near(Matrix(reduced(ddp, net, {rank1})[0]), Matrix(rank1), 1e-5);
    const Tensor rank2 = rank1 + randn({10, 1}).matmul(randn({1, 12}));
    for (int i = 0; i < 3; ++i)
      expect_near(Matrix(reduced(ddp, net, {rank2})[0]), Matrix(rank2), 1e-5);
  });
}

// A factor that lost a direction keeps the others.
TEST(PowerSgd, OneDirectionThatVanished) {
  with_groups(1, seconds(60), [](const Group& g) {
    Given net(Shapes{{10, 12}});
    std::vector<Tensor> results;
    for (const uint64_t seed : {3, 3, 4}) {
      PowerSgdOptions o = low_rank(2, 0);
      o.error_feedback = false;
      o.seed = seed;
      GivenDdp ddp(net, g, with_stages({power_sgd_stage(o)}));
      const Tensor one_row = zeros({10, 12}), row = random_gradients({{12}}, 0, 0)[0];
      one_row.select(0, 3).copy_(row);
      reduced(ddp, net, {one_row});  // the only direction it has
      const Tensor m = random_gradients({{10, 12}}, 0, 1)[0];
      results.push_back(reduced(ddp, net, {m})[0]);
      const Matrix basis = orthonormal(Matrix(results.back().slice(1, 0, 2)));
      const Matrix along = Matrix(m) * Matrix(row.view({12, 1}));
      expect_near(basis * (transposed(basis) * along), along, 1e-4);
    }
    EXPECT_TRUE(same_bits(results[0], results[1]));
    EXPECT_FALSE(same_bits(results[0], results[2]));
  });
}

// ---- checkpoints --------------------------------------------------------------------------------

struct NetImpl : nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override {
    fc1 = register_module("fc1", nn::Linear(30, 40));
    fc2 = register_module("fc2", nn::Linear(40, 36));
    fc3 = register_module("fc3", nn::Linear(36, 4));
  }
  Tensor forward(const Tensor& x) { return fc3(fc2(fc1(x).relu()).relu()); }
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};
RAMET_MODULE(Net);
using NetDdp = DistributedDataParallel<Net>;

struct Trainer {
  Net net;
  std::unique_ptr<NetDdp> ddp;
  Trainer(const Group& g, const Net& from, int64_t bucket_bytes, bool int8)
      : net(std::dynamic_pointer_cast<NetImpl>(from->clone())) {
    DdpOptions o = with_stages({power_sgd_stage(low_rank(2, 2))});
    if (int8) o.stages.push_back(int8_stage(16, 4));
    o.bucket_bytes = bucket_bytes;
    ddp = std::make_unique<NetDdp>(net, g, o);
  }
  void steps(const Group& g, int from, int to) {
    for (int step = from; step < to; ++step) {
      const Tensor x = random_gradients({{6, 30}}, g->rank(), step)[0];
      net->zero_grad();
      (*ddp)(x).square().mean().backward();
      const NoGradGuard off;
      for (const Tensor& p : net->parameters()) p.sub_(p.grad() * 0.05);
    }
  }
};

TEST(PowerSgd, ARunGoesOnWithOtherBuckets) {
  for (const int ranks : {2, 3})
    for (const bool int8 : {false, true}) {
      manual_seed(9);
      const Net start;
      with_groups(ranks, seconds(60), [&](const Group& g) {
        Trainer whole(g, start, 1 << 20, int8);
        whole.steps(g, 0, 10);

        std::stringstream file;
        Trainer first(g, start, 1 << 20, int8);
        first.steps(g, 0, 5);
        {
          serialize::OutputArchive archive;
          first.ddp->comm_stages().save(archive);
          archive.save_to(file);
        }
        Trainer second(g, first.net, 1, int8);
        serialize::InputArchive archive;
        archive.load_from(file);
        second.ddp->comm_stages().load(archive);
        second.steps(g, 5, 10);
        const auto a = whole.net->named_parameters();
        const auto b = second.net->named_parameters();
        for (const auto& p : a) { EXPECT_TRUE(same_bits(p.value(), b[p.key()])) << p.key(); }

        // Without its state it is another run.
        Trainer forgetful(g, first.net, 1 << 20, int8);
        forgetful.steps(g, 5, 10);
        EXPECT_FALSE(same_bits(forgetful.net->fc1->weight, whole.net->fc1->weight));
      });
    }
}

TEST(PowerSgd, StatesOfOthers) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Shapes shapes{{16, 24}};
    const auto saved = [&](GivenDdp& ddp) {
      serialize::OutputArchive archive;
      ddp.comm_stages().save(archive);
      std::stringstream file;
      archive.save_to(file);
      return file.str();
    };
    const auto load = [&](GivenDdp& ddp, const std::string& bytes) {
      serialize::InputArchive archive;
      archive.load_from(bytes.data(), bytes.size());
      ddp.comm_stages().load(archive);
    };
    Given net(shapes);
    GivenDdp ddp(net, g, with_stages({power_sgd_stage(low_rank(2, 0))}));
    reduced(ddp, net, random_gradients(shapes, g->rank(), 0));
    const std::string mine = saved(ddp);
    const std::string theirs = g->exchange(mine)[static_cast<size_t>(1 - g->rank())];
    EXPECT_ERROR_TEXT(load(ddp, theirs), "got the state of rank ");
    {
      Given other(Shapes{{24, 16}});
      GivenDdp d(other, g, with_stages({power_sgd_stage(low_rank(2, 0))}));
      EXPECT_ERROR_TEXT(load(d, mine), "'w0.error': got float32[16, 24]");
      EXPECT_EQ(d.comm_stages().step(), 0);
    }
    {
      Given other(Shapes{{4}});
      GivenDdp d(other, g, with_stages({power_sgd_stage(low_rank(2, 0))}));
      EXPECT_ERROR_TEXT(load(d, mine), "none: the parameter is not compressed");
    }
    {
      Given other(shapes);
      GivenDdp d(other, g, with_stages({power_sgd_stage(low_rank(3, 0))}));
      EXPECT_ERROR_TEXT(load(d, mine), "got the state of other stages");
    }
    load(ddp, mine);
    EXPECT_EQ(ddp.comm_stages().step(), 1);
  });
}

}  // namespace
}  // namespace ramet::distributed
