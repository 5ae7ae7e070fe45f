// Numbers at the ends of their types: squares, counts and products that no type holds.
#include <cmath>
#include <functional>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

// The norm of column c of x [n, m], and its deviation, in long double.
long double norm_of(const std::vector<double>& x, int64_t m, int64_t c, double p) {
  long double sum = 0;
  for (size_t i = static_cast<size_t>(c); i < x.size(); i += static_cast<size_t>(m))
    sum += std::pow(std::fabs(static_cast<long double>(x[i])), static_cast<long double>(p));
  return std::pow(sum, 1 / static_cast<long double>(p));
}
long double deviation_of(const std::vector<double>& x, int64_t m, int64_t c) {
  long double mean = 0, sum = 0, n = 0;
  for (size_t i = static_cast<size_t>(c); i < x.size(); i += static_cast<size_t>(m), ++n)
    mean += x[i];
  mean /= n;
  for (size_t i = static_cast<size_t>(c); i < x.size(); i += static_cast<size_t>(m))
    sum += (x[i] - mean) * (x[i] - mean);
  return std::sqrt(sum / (n - 1));
}

// Rows, columns, and blocks of one sequence of very different sizes.
TEST(Extremes, NormsOfWhatHasNoSquare) {
  manual_seed(2);
  struct Case {
    ScalarType type;
    std::vector<double> sizes;
    double within;
  };
  for (const Case& c : {Case{kDouble, {1e300, 1e200, 1e-200, 1e-300, 1}, 1e-13},
                        Case{kFloat, {1e35, 1e20, 1e-20, 1e-30, 1}, 1e-6},
                        Case{kBFloat16, {1e35, 1e20, 1e-20, 1e-30, 1}, 1e-2}})
    for (const double first : c.sizes)
      for (const double second : c.sizes)
        for (const int64_t n : {1, 7, 1100}) {
          Tensor x = randn({2 * n, 70}, kDouble);
          x.narrow(0, 0, n).mul_(first);
          x.narrow(0, n, n).mul_(second);
          x.select(1, 3).zero_();
          x = x.to(c.type);
          const std::vector<double> v = values(x.to(kDouble));
          const Tensor columns = x.norm(2, 0).to(kDouble),
                       rows = x.t().contiguous().norm(2, 1).to(kDouble);
          for (const int64_t k : {0, 3, 65, 69}) {
            const double want = static_cast<double>(norm_of(v, 70, k, 2));
            EXPECT_NEAR(columns[k].item<double>(), want, c.within * want) << first << second << n;
            EXPECT_NEAR(rows[k].item<double>(), want, c.within * want) << first << second << n;
          }
          const double all = static_cast<double>(norm_of(v, 1, 0, 2));
          EXPECT_NEAR(x.norm().item<double>(), all, c.within * all) << first << second << n;
        }
  EXPECT_EQ(tensor({1e200, kInf}, kDouble).norm().item<double>(), kInf);
  EXPECT_TRUE(std::isnan(tensor({1e-200, std::nan("")}, kDouble).norm().item<double>()));
  EXPECT_EQ(zeros({3}, kDouble).norm().item<double>(), 0);
}

// Powers and deviations of floats are those of doubles.
TEST(Extremes, PowersAndDeviationsOfFloats) {
  manual_seed(4);
  for (const double size : {1e36, 1e20, 1e-20, 1e-30})
    for (const int64_t n : {2, 40, 5000}) {
      const Tensor x = rand({n, 20}).mul(2).sub(.9).mul(size);
      const std::vector<double> v = values(x);
      for (const int64_t k : {0, 17}) {
        const double third = static_cast<double>(norm_of(v, 20, k, 3)),
                     deviation = static_cast<double>(deviation_of(v, 20, k));
        for (const Tensor& y : {x, x.t().contiguous().t()}) {
          EXPECT_NEAR(y.norm(3, 0)[k].item<double>(), third, 1e-5 * third) << size << n;
          EXPECT_NEAR(y.std(0)[k].item<double>(), deviation, 1e-5 * deviation) << size << n;
        }
      }
    }
}

TEST(Extremes, DirectionsOfHugeVectors) {
  for (const auto& [type, size] : {std::pair{kFloat, 1e20}, std::pair{kDouble, 1e200}}) {
    const Tensor a = tensor({size, 0., 2 * size}, kDouble).to(type),
                 b = tensor({size, size, size}, kDouble).to(type);
    expect_values(cosine_similarity(a, a, 0), {1}, 1e-6);
    expect_values(cosine_similarity(a, b, 0), {3 / std::sqrt(15)}, 1e-6);
    expect_values(pairwise_distance(a, b).div(size), {std::sqrt(2)}, 1e-6);
    expect_values(cdist(a.unsqueeze(0), b.unsqueeze(0)).div(size), {std::sqrt(2)}, 1e-6);
    expect_values(pdist(stack({a, b})).div(size), {std::sqrt(2)}, 1e-6);
    const double root = std::sqrt(5);
    expect_values(stack({a, b}).renorm(2, 0, 1)[0], {1 / root, 0, 2 / root}, 1e-6);
    const Tensor x = a.clone().requires_grad_();
    expect_values(autograd::grad({x.norm()}, {x})[0], {1 / root, 0, 2 / root}, 1e-6);
    if (type == kDouble) continue;  // |a|^-2 is no number
    // Of (1, 1, 1) and (1, 0, 2): (b / |b| - cos a / |a|) / |a|.
    const double cosine = 3 / std::sqrt(15);
    std::vector<double> want;
    for (const double e : {1., 0., 2.})
      want.push_back((1 / std::sqrt(3) - cosine * e / root) / root);
    expect_values(autograd::grad({cosine_similarity(x, b, 0)}, {x})[0].mul(size), want, 1e-4);
  }
}

// Counts and sums of more values than sixteen bits count.
TEST(Extremes, MeansOfManySixteenBitValues) {
  const int64_t n = 70000;
  for (const ScalarType type : {kHalf, kBFloat16}) {
    const Tensor x = ones({n, 2}, type).requires_grad_();
    const Tensor y = segment_reduce(x, "mean", tensor({n - 1, int64_t{1}}));
    expect_values(y.to(kFloat), {1, 1, 1, 1}, 0);
    const Tensor g = autograd::grad({y.mul(256).sum()}, {x})[0].to(kFloat);
    expect_values(g[0].mul(n / 256.), {1, 1}, 4e-3);
    expect_values(
        segment_reduce(x, "mean", std::nullopt, std::nullopt, tensor({int64_t{0}, n})).to(kFloat),
        {1, 1}, 0);
    const Tensor at = zeros({n}, kLong), one = x.detach().select(1, 0);
    expect_values(zeros({1}, type).scatter_reduce(0, at, one, "mean", false).to(kFloat), {1}, 0);
    expect_values(zeros({1}, type).index_reduce(0, at, one, "mean", false).to(kFloat), {1}, 0);
  }
  expect_values(segment_reduce(zeros({0}, kHalf), "mean", tensor({int64_t{0}}), std::nullopt,
                               std::nullopt, 0, false, 3.)
                    .to(kFloat),
                {3});
}

TEST(Extremes, GradientsOfSumsThatBeginWithNothing) {
  const Tensor x = tensor({-kInf, -kInf, 1., 2.}, kDouble);
  const double e = std::exp(1.), first = 1 / (1 + e);
  for (const bool again : {false, true}) {
    const Tensor a = x.clone().requires_grad_();
    const auto of = [&](const Tensor& y) {
      return autograd::grad({y}, {a}, {}, std::nullopt, again)[0];
    };
    expect_values(of(logcumsumexp(a, 0)[3]), {0, 0, first, 1 - first});
    expect_values(of(logcumsumexp(a, 0).sum()), {0, 0, 1 + first, 1 - first});
    expect_values(of(logcumsumexp(a.expand({2, 4}).t(), 0)[3][1]), {0, 0, first, 1 - first});
  }
}

TEST(Extremes, ProbabilitiesOfZero) {
  const Tensor x = tensor({-kInf, -1., kInf}, kDouble).requires_grad_(),
               t = tensor({0., 1., 0.}, kDouble);
  expect_values(kl_div(x, t, Reduction::None), {0, 1, 0});
  expect_values(autograd::grad({kl_div(x, t, Reduction::Sum)}, {x})[0], {0, -1, 0});
  expect_values(kl_div(x, t.log(), Reduction::None, true), {0, 1, 0});
  expect_values(autograd::grad({kl_div(x, t.log(), Reduction::Sum, true)}, {x})[0], {0, -1, 0});
  expect_values(kl_div(tensor({-kInf}, kDouble), tensor({.5}, kDouble), Reduction::None), {kInf});
}

TEST(Extremes, QuantilesBesideInfinity) {
  const Tensor q = tensor({0., .25, .5, .75, 1.}, kDouble);
  const auto of = [&](std::vector<double> v, std::string_view way) {
    return quantile(tensor(v, kDouble), q, 0, false, way);
  };
  const double nan = std::nan("");
  for (const std::string_view way : {"linear", "midpoint"}) {
    expect_values(of({1, kInf}, way), {1, kInf, kInf, kInf, kInf});
    expect_values(of({-kInf, 1}, way), {-kInf, -kInf, -kInf, -kInf, 1});
    expect_values(of({kInf, kInf}, way), {kInf, kInf, kInf, kInf, kInf});
    expect_values(of({-kInf, kInf}, way), {-kInf, nan, nan, nan, kInf});
    expect_values(of({2, kInf, 1}, way), {1, 1.5, 2, kInf, kInf});
  }
  const Tensor x = tensor({1., 4., kInf}, kDouble).requires_grad_();
  expect_values(autograd::grad({nanquantile(x, .25)}, {x})[0], {.5, .5, 0});
  expect_derivatives(OF_X(quantile(x[0], x[1])),
                     {tensor({3., 1., 4., 1.5}, kDouble).requires_grad_(),
                      tensor({.3, .7}, kDouble).requires_grad_()});
}

// A quotient of the product would be a rounding error or NaN.
TEST(Extremes, OneNumberIsItsOwnProduct) {
  using Product = std::function<Tensor(const Tensor&)>;
  const Product products[] = {[](const Tensor& x) { return x.prod(); },
                              [](const Tensor& x) { return x.prod(-1); },
                              [](const Tensor& x) { return x.cumprod(-1); }};
  for (const Product& product : products)
    for (const double value : {3e-5, 0., 1e30, kInf, -kInf})
      for (const bool scalar : {true, false}) {
        const Tensor x = (scalar ? tensor(value, kFloat) : tensor({value}, kFloat));
        x.requires_grad_();
        for (const bool create_graph : {false, true}) {
          const Tensor g =
              autograd::grad({product(x).mul(1e6).sum()}, {x}, {}, create_graph, create_graph)[0];
          expect_values(g, {1e6});
          if (create_graph) expect_values(autograd::grad({g.sum()}, {x})[0], {0});
        }
      }
}

TEST(Extremes, WeightsOfPositivesHaveADerivative) {
  const Tensor x = tensor({.3, -.2, 2., -1., .5, 0.}, kDouble).view({2, 3}).requires_grad_(),
               t = tensor({1., .4, 0., .7, .1, 1.}, kDouble).view({2, 3}),
               p = tensor({2., .5, 3.}, kDouble).requires_grad_();
  // Of each column the mean over all of -t log sigmoid(x).
  const std::vector<double> v = values(x), u = values(t);
  std::vector<double> want(3);
  for (size_t i = 0; i < 6; ++i) want[i % 3] += u[i] * std::log1p(std::exp(-v[i])) / 6;
  expect_values(autograd::grad({binary_cross_entropy_with_logits(x, t, {}, p)}, {p})[0], want);
  const Tensor fixed = t.clone().requires_grad_();
  expect_derivatives(OF_X(binary_cross_entropy_with_logits(x[0], x[1], {}, x[2])), {x, fixed, p});
  // Alone.
  expect_derivatives(
      [&](const std::vector<Tensor>& in) {
        return binary_cross_entropy_with_logits(x.detach(), t, {}, in[0], Reduction::Sum);
      },
      {p});
}

}  // namespace
}  // namespace ramet
