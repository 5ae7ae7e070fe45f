// CosineSimilarity and PairwiseDistance: what tests/nn/goldens does not have. Numbers are from
// PyTorch 2.15 in float64.
#include "nn/layers/loss/distance.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;

Tensor one() { return sines(12).view({3, 4}); }
Tensor other() { return sines(12, 0.91, 0.5).view({3, 4}); }

// No norm, and those of two ends: the golden has p = 3.
TEST(Distances, OrdersOfTheNorm) {
  const auto of = [](double p) {
    return F::pairwise_distance(one(), other(), F::PairwiseDistanceFuncOptions().p(p).eps(1e-3));
  };
  expect_values(of(0), {4, 4, 4});
  expect_values(of(1), {1.94140870885111, 4.88048968502358, 2.35637405937972});
  expect_values(of(INFINITY), {1.02839158450168, 1.86976018942407, 0.96342073599464});
}

TEST(Distances, OptionsAndZeros) {
  using C = CosineSimilarityOptions;
  // No norm is below eps.
  expect_values(F::cosine_similarity(one(), other(), C().dim(0).eps(2)),
                {-0.179122010638538, -0.153565722240248, 0.10694351940252, 0.228933081254128});
  expect_values(F::cosine_similarity(zeros({1, 2}, kDouble), ones({1, 2}, kDouble)), {0});
  EXPECT_TRUE(same_bits(CosineSimilarity(C().dim(0))(one(), other()),
                        F::cosine_similarity(one(), other(), C().dim(0))));
  EXPECT_TRUE(
      same_bits(PairwiseDistance(PairwiseDistanceOptions().p(1))(one(), other()),
                F::pairwise_distance(one(), other(), F::PairwiseDistanceFuncOptions().p(1))));
}

// Many rows go in pieces: the same as pair by pair, to the second derivative.
TEST(Distances, PairsInPieces) {
  for (const double p : {0.5, 1., 2., 3., double(INFINITY)}) {
    const int64_t n = 173, d = 23;
    Tensor x = sines(n * d, 0.7391).view({n, d}).detach().requires_grad_();
    const Tensor pairs = combinations(arange(n, kLong), 2);
    const auto rows = [&](int64_t k) { return x.index_select(0, pairs.select(1, k)); };
    const Tensor weight = sines(n * (n - 1) / 2, 0.317), along = sines(n * d, 0.551).view({n, d});
    std::vector<Tensor> got[2];
    for (int way = 0; way < 2; ++way) {
      const Tensor y =
          way ? norm(rows(0).sub(rows(1)), std::optional<Scalar>(p), 1, false) : F::pdist(x, p);
      const Tensor first =
          autograd::grad({y.mul(weight).sum()}, {x}, {}, std::nullopt, /*create_graph=*/true)[0];
      got[way] = {y.detach(), first.detach()};
      if (first.requires_grad())
        got[way].push_back(autograd::grad({first.mul(along).sum()}, {x}, {}, std::nullopt, false,
                                          /*allow_unused=*/true)[0]);
    }
    ASSERT_EQ(got[0][0].sizes(), IntArrayRef({n * (n - 1) / 2}));
    for (size_t k = 0; k < std::min(got[0].size(), got[1].size()); ++k) {
      if (!got[1][k].defined()) continue;
      ASSERT_TRUE(got[0][k].defined());
      const double scale = got[1][k].abs().max().item<double>() + 1;
      EXPECT_LT((got[0][k] - got[1][k]).abs().max().item<double>() / scale, 1e-12)
          << "p " << p << ", derivative " << k;
    }
  }
}

TEST(Distances, Refuse) {
  const Tensor x = ones({4, 6});
  EXPECT_ERROR_TEXT(F::cosine_similarity(x, x, F::CosineSimilarityFuncOptions().dim(2)),
                    "imension");
  EXPECT_ERROR_TEXT(F::cosine_similarity(x, ones({3})), "[4, 6]");
  EXPECT_ERROR_TEXT(F::cosine_similarity(x.to(kLong), x.to(kLong)),
                    "expected common dtype to be floating point");
  EXPECT_ERROR_TEXT(F::pairwise_distance(x, ones({3})), "[4, 6]");
  EXPECT_ERROR_TEXT(F::cosine_similarity(x, Tensor()), "undefined tensor");
  EXPECT_ERROR_TEXT(F::pairwise_distance(Tensor(), x), "undefined tensor");
}

}  // namespace
}  // namespace ramet::nn
