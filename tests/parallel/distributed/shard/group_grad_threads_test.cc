// Gradients over the ranks that have a history: against the whole batch in one place, and against
// differences of its values.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/basic/linear.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/shard/group_grad.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

const TensorOptions kExact(kDouble);

Tensor fixed(int64_t rows, int64_t columns, double step) {
  return (arange(rows * columns, kExact) * step).sin().view({rows, columns});
}
Tensor rows_of(const Tensor& all, int rank, int ranks) {
  const int64_t each = all.size(0) / ranks;
  return all.slice(0, rank * each, (rank + 1) * each);
}
Tensor mean_loss(const Tensor& w, const Tensor& x) { return x.matmul(w).tanh().pow(2).mean(); }
Tensor penalty(const Tensor& gradient) { return (gradient.pow(2).sum() - 0.01).pow(2); }

// The penalty on the gradient of the mean of all ranks' losses.
TEST(GroupGrad, PenaltyOnTheGradientOfTheWholeBatch) {
  const Tensor x = fixed(8, 3, 0.7), w0 = fixed(3, 2, 0.4);
  const auto penalty_at = [&](const Tensor& at) {
    const Tensor w = at.detach().clone().requires_grad_(true);
    return penalty(autograd::grad({mean_loss(w, x)}, {w})[0]).item<double>();
  };
  const Tensor whole = w0.clone().requires_grad_(true);
  const Tensor of_whole =
      autograd::grad({mean_loss(whole, x)}, {whole}, {}, true, /*create_graph=*/true)[0];
  const Tensor expected = autograd::grad({penalty(of_whole)}, {whole})[0];
  for (int64_t i = 0; i < w0.numel(); ++i) {
    Tensor up = w0.clone(), down = w0.clone();
    up.view({-1})[i].add_(1e-5), down.view({-1})[i].sub_(1e-5);
    EXPECT_NEAR((penalty_at(up) - penalty_at(down)) / 2e-5, expected.view({-1})[i].item<double>(),
                1e-8);
  }
  for (const int ranks : {1, 2, 4})
    with_groups(ranks, seconds(60), [&](const Group& g) {
      const Tensor w = w0.clone().requires_grad_(true);
      const Tensor loss = mean_loss(w, rows_of(x, g->rank(), ranks));
      const Tensor gradient = grad(g, {loss}, {w}, {}, true, /*create_graph=*/true)[0];
      EXPECT_TRUE(gradient.allclose(of_whole.detach(), 1e-12, 1e-14));
      EXPECT_FALSE(w.grad().defined());
      // What comes back to this rank is its part of the sum over the ranks.
      penalty(gradient).backward();
      Tensor total = w.grad();
      g->all_reduce(total, ReduceOp::average).wait();
      EXPECT_TRUE(total.allclose(expected, 1e-12, 1e-14)) << total << expected;
    });
}

// Inside a data-parallel step, which adds the ranks' parts up.
TEST(GroupGrad, UnderDistributedDataParallel) {
  const Tensor x = fixed(8, 3, 0.7);
  const auto loss_of = [](const Tensor& y) { return y.tanh().pow(2).mean(); };
  const auto model = [] {
    nn::Linear net(3, 2);
    net->to(kDouble);
    const NoGradGuard off;
    net->weight.copy_(fixed(2, 3, 0.4));
    net->bias.copy_(fixed(1, 2, 0.9)[0]);
    return net;
  };
  nn::Linear alone = model();
  const Tensor loss = loss_of(alone(x));
  const std::vector<Tensor> of_alone =
      autograd::grad({loss}, {alone->weight, alone->bias}, {}, true, true);
  (loss + penalty(of_alone[0]) + penalty(of_alone[1])).backward();
  with_groups(2, seconds(60), [&](const Group& g) {
    nn::Linear net = model();
    DistributedDataParallel<nn::Linear> ddp(net, g);
    for (int round = 0; round < 2; ++round) {
      net->zero_grad();
      const Tensor mine = loss_of(ddp(rows_of(x, g->rank(), 2)));
      const auto gradients = grad(g, {mine}, {net->weight, net->bias}, {}, true, true);
      (mine + penalty(gradients[0]) + penalty(gradients[1])).backward();
      EXPECT_TRUE(net->weight.grad().allclose(alone->weight.grad(), 1e-12, 1e-14));
      EXPECT_TRUE(net->bias.grad().allclose(alone->bias.grad(), 1e-12, 1e-14));
    }
  });
}

TEST(GroupGrad, SumsUnusedInputsAndErrors) {
  with_groups(2, seconds(60), [](const Group& g) {
    const double r = g->rank();
    const Tensor a = full({2}, 3.0, kExact).requires_grad_(true),
                 b = full({2}, 5.0, kExact).requires_grad_(true),
                 c = full({2}, 7.0, kExact).requires_grad_(true);
    // Rank 0 alone uses b, no rank uses c.
    const auto outputs = [&] { return std::vector<Tensor>{(a * (r + 1) + (r ? 0 * a : b)).sum()}; };
    auto got = grad(g, outputs(), {a, b, c}, {}, false, false, /*allow_unused=*/true);
    EXPECT_TRUE(same_bits(got[0], full({2}, 1.5, kExact)));
    EXPECT_TRUE(same_bits(got[1], full({2}, 0.5, kExact)));
    EXPECT_FALSE(got[0].requires_grad());
    EXPECT_FALSE(got[2].defined());
    got = grad(g, outputs(), {a}, {}, false, false, false, ReduceOp::sum);
    EXPECT_TRUE(same_bits(got[0], full({2}, 3.0, kExact)));

    EXPECT_ERROR_TEXT(grad(g, outputs(), {a, c}), "input 1 takes no part");
    // One rank's own error is an error on all ranks.
    const std::string said =
        error_of([&] { grad(g, {r ? full({2}, 1.0, kExact).mul(a) : outputs()[0]}, {a}); });
    expect_part(said, "rank 1: ");
    EXPECT_ERROR_TEXT(grad(g, outputs(), {a}, {}, {}, false, false, ReduceOp::min),
                      "expected average or sum");
    EXPECT_ERROR_TEXT(sum_over_group(a, nullptr), "group: got an empty pointer");
    EXPECT_ERROR_TEXT(sum_over_group(Tensor(), g), "x is undefined");
  });
}

}  // namespace
}  // namespace ramet::distributed
