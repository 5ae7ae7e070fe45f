// DistributedDataParallel: what a gradient holds when it is reduced, and with which weight. Ranks
// are threads.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "nn/layers/basic/linear.h"
#include "parallel/distributed/ddp/replicate.h"
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/shard/given_gradients.h"

namespace ramet::distributed {
namespace {

using Ddp = DistributedDataParallel<nn::Linear>;

// y = w x.
nn::Linear scale() { return nn::Linear(nn::LinearOptions(1, 1).bias(false)); }
double gradient_of(nn::Linear& net) { return net->weight.grad().item<double>(); }
DdpOptions options_of(Average average) {
  DdpOptions o;
  o.average = average;
  return o;
}
void backward(Ddp& ddp, const Tensor& x, bool sync = true) {
  if (sync) return ddp(x).mean().backward();
  const auto off = ddp.no_sync();
  ddp(x).mean().backward();
}
void backward(Ddp& ddp, double x, bool sync = true) { backward(ddp, full({1, 1}, x), sync); }

// The first reduction has all that is there, as PyTorch's has: the ranks must not go on with
// different gradients.
TEST(HeldGradients, OfBeforeTheModuleWasWrapped) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net = scale();
    const double r = g->rank();
    net(full({1, 1}, 10 * (r + 1))).sum().backward();
    Ddp ddp(net, g);
    backward(ddp, 1 + r);
    EXPECT_EQ(gradient_of(net), (10 + 20 + 1 + 2) / 2.0);
  });
}

TEST(HeldGradients, ThatTheProgramPutsThere) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net = scale();
    Ddp ddp(net, g);
    const double r = g->rank();
    for (int step = 0; step < 2; ++step) {
      const Tensor penalty = (net->weight * (10 * (r + 1))).sum();
      net->weight.mutable_grad() = autograd::grad({penalty}, {net->weight})[0];
      backward(ddp, 1 + r);
      EXPECT_EQ(gradient_of(net), (10 + 20 + 1 + 2) / 2.0) << step;
    }
    // What all ranks have already is not reduced again.
    backward(ddp, 1 + r);
    EXPECT_EQ(gradient_of(net), (10 + 20 + 1 + 2 + 1 + 2) / 2.0);
  });
}

// Gradients that another wrapper left there have no owner once that wrapper is gone.
TEST(HeldGradients, OfAnEarlierWrapper) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net = scale();
    const double r = g->rank();
    {
      Ddp ddp(net, g);
      backward(ddp, 1 + r);
    }
    net(full({1, 1}, 10 * (r + 1))).sum().backward();
    Ddp ddp(net, g);
    backward(ddp, 1 + r);
    EXPECT_EQ(gradient_of(net), (1 + 2 + 10 + 20 + 1 + 2) / 2.0);
  });
}

TEST(HeldGradients, ReducedOnesThenLocalOnes) {
  with_groups_of(2, [](const Group& g) {
    for (const Average average : {Average::mean, Average::sum}) {
      nn::Linear net = scale();
      Ddp ddp(net, g, options_of(average));
      const double r = g->rank(), n = average == Average::mean ? 2 : 1;
      backward(ddp, 1 + r);
      backward(ddp, 10 + r, /*sync=*/false);
      if (average == Average::mean) {
        backward(ddp, 100 + r);
        EXPECT_EQ(gradient_of(net), (3 + 21 + 201) / n);
        continue;
      }
      // A sum would count the first sum once for each rank.
      EXPECT_EQ(gradient_of(net), 3 + 10 + r);
      net->zero_grad();
      backward(ddp, 10 + r, /*sync=*/false);
      backward(ddp, 100 + r);
      EXPECT_EQ(gradient_of(net), 21 + 201);
      backward(ddp, 10 + r, /*sync=*/false);
      EXPECT_ERROR_TEXT(backward(ddp, 100 + r),
                        g->rank() ? "" : "cannot be told apart any more: expected zero_grad()");
    }
  });
}

// An evaluation between a forward and its backward has no weight in that.
TEST(HeldGradients, WeightedByTheForwardsOfTheBackward) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net = scale();
    Ddp ddp(net, g, options_of(Average::weighted));
    const int64_t rows = g->rank() ? 3 : 1;
    const double v = g->rank() ? 6 : 2;
    const Tensor loss = ddp(full({rows, 1}, v)).mean();
    if (g->rank() == 0) {
      const NoGradGuard off;
      ddp(ones({100, 1}));
    }
    loss.backward();
    EXPECT_FLOAT_EQ(gradient_of(net), 5);

    // Two forwards, then a backward for each, and one for both.
    for (const bool both : {false, true}) {
      const Tensor a = ddp(full({4, 1}, v)).mean(), b = ddp(full({rows, 1}, v)).mean();
      net->zero_grad();
      if (both) {
        (a + b).backward();  // weights 5 and 7
        EXPECT_FLOAT_EQ(gradient_of(net), 2 * (5 * 2 + 7 * 6) / 12.0);
        continue;
      }
      a.backward();
      EXPECT_FLOAT_EQ(gradient_of(net), 4);
      net->zero_grad();
      b.backward();
      EXPECT_FLOAT_EQ(gradient_of(net), 5);
    }
  });
}

TEST(HeldGradients, WeightedAccumulation) {
  with_groups_of(2, [](const Group& g) {
    nn::Linear net = scale();
    Ddp ddp(net, g, options_of(Average::weighted));
    const double v = g->rank() ? 6 : 2;
    const auto run = [&](int64_t rows, bool sync) { backward(ddp, full({rows, 1}, v), sync); };
    const int64_t rows = g->rank() ? 3 : 1;
    for (const bool sync : {false, false, true}) run(rows, sync);
    EXPECT_FLOAT_EQ(gradient_of(net), 3 * 5);
    // One that was dropped does not count.
    run(7, false);
    net->zero_grad();
    run(rows, false);
    run(rows, true);
    EXPECT_FLOAT_EQ(gradient_of(net), 2 * 5);
    net->zero_grad();
    run(4, false);
    EXPECT_ERROR_TEXT(
        run(rows, true),
        "gradients of backwards without synchronisation, of 4 rows, and this backward is of");
  });
}

// Not times zero, which makes a gradient that is not a number one for all.
TEST(HeldGradients, WeightedRanksWithoutRows) {
  with_groups_of(3, [](const Group& g) {
    nn::Linear net = scale();
    Ddp ddp(net, g, options_of(Average::weighted));
    const auto run = [&](int64_t rows) {
      net->zero_grad();
      ddp(full({rows, 1}, g->rank() + 1.0)).mean().backward();
    };
    run(g->rank() == 1 ? 0 : g->rank() + 1);  // rows 1, 0, 3 of 1, 2, 3
    EXPECT_FLOAT_EQ(gradient_of(net), (1 * 1 + 3 * 3) / 4.0);
    run(0);
    EXPECT_FALSE(net->weight.grad().defined());
    EXPECT_EQ(ddp.unused_parameters(), std::vector<std::string>{"weight"});
  });
}

TEST(HeldGradients, WeightedWithoutRowsAtAll) {
  with_groups_of(2, [](const Group& g) {
    Given net(Shapes{{4}});
    GivenDdp ddp(net, g, options_of(Average::weighted));
    const nn::parallel::NoScatter<std::vector<Tensor>> gradients({ones({4})});
    const nn::parallel::Broadcast<Tensor> rows(ones({3, 1}));
    EXPECT_ERROR_TEXT(ddp(rows, gradients), "got no argument that has rows");

    nn::Linear alone = scale();
    ReplicateOptions o;
    o.average = Average::weighted;
    replicate(alone, g, o);
    alone(full({1, 1}, 2.0)).sum().backward();
    EXPECT_EQ(gradient_of(alone), 2);
  });
}

}  // namespace
}  // namespace ramet::distributed
