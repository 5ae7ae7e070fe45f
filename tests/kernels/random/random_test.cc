// The random kernels against Philox written plainly, the published known answers, and the
// distributions.
#include "kernels/random/random.h"

#include <algorithm>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <functional>

#include "kernels/random/counts.h"
#include "tests/kernels/random/philox.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;

TEST(Random, PhiloxKnownAnswers) {  // kat_vectors of Random123 1.09, philox 4x32, 10 rounds
  EXPECT_EQ(philox({0, 0, 0, 0}, 0, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~0u, ~0u),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
  // and through the kernels: 64-bit numbers, range 0 gives them raw
  raw::for_each_variant([](Variant) {
    auto raw_words = [](RandomKey key) {
      Buffer out(32, kLong);
      random_integers(raw::kCpuStream, {out.data(), 32, key, 0, 0, kLong});
      const auto* v = out.as<uint64_t>();
      return Block{static_cast<uint32_t>(v[0] >> 32), static_cast<uint32_t>(v[0]),
                   static_cast<uint32_t>(v[16] >> 32), static_cast<uint32_t>(v[16])};
    };
    EXPECT_EQ(raw_words({0, 0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    // Counter (j, stream): block 0 of this stream has the low counter words 0, so the pi vector is
    // reached by another base.
    const RandomKey pi{0x299f31d0a4093822ull, 0x0370734413198a2eull, 0};
    EXPECT_EQ(raw_words(pi), block_of(0, pi));
  });
}

const RandomKey kKeys[] = {{0, 0, 0},
                           {42, 7, 0},
                           {0x123456789abcdefull, 0xfedcba987654321ull, 5},
                           {1, 2, 63},
                           {9, 9, (int64_t{1} << 40) + 17}};

TEST(Random, EveryElementFromItsIndexAlone) {
  raw::for_each_variant([](Variant) {
    for (const RandomKey& key : kKeys)
      for (int64_t n : {0, 1, 15, 16, 17, 63, 64, 65, 300}) {
        Buffer f(n, kFloat), d(n, kDouble), i(n, kLong), h(n, kHalf), b(n, kBool);
        random_uniform(raw::kCpuStream, {f.data(), n, key, 0, 1, kFloat});
        random_uniform(raw::kCpuStream, {d.data(), n, key, -2, 3, kDouble});
        random_uniform(raw::kCpuStream, {h.data(), n, key, 0, 1, kHalf});
        random_integers(raw::kCpuStream, {i.data(), n, key, -5, 13, kLong});
        random_bernoulli(raw::kCpuStream, {b.data(), nullptr, n, key, 0.3, kBool, kFloat});
        for (int64_t k = 0; k < n; ++k) {
          const uint64_t e = static_cast<uint64_t>(key.base + k);
          const uint32_t w = word(e, key);
          const uint64_t r = two_words(e, key);
          ASSERT_EQ(f[k], static_cast<double>(w >> 8) * 0x1p-24);
          ASSERT_EQ(h[k], static_cast<double>(w >> 21) * 0x1p-11);
          ASSERT_EQ(b[k], static_cast<double>(w >> 8) * 0x1p-24 < 0.3);
          ASSERT_EQ(d[k], -2 + 5 * (static_cast<double>(r >> 11) * 0x1p-53));
          ASSERT_EQ(i[k],
                    static_cast<double>(
                        -5 + static_cast<int64_t>((static_cast<unsigned __int128>(r) * 13) >> 64)));
        }
        EXPECT_TRUE(f.guards_intact() && d.guards_intact() && i.guards_intact() &&
                    h.guards_intact() && b.guards_intact());
      }
  });
}

TEST(Random, NormalsAreBoxAndMuller) {
  raw::for_each_variant([](Variant) {
    for (const RandomKey& key : kKeys) {
      Buffer f(200, kFloat), d(200, kDouble);
      random_normal(raw::kCpuStream, {f.data(), 200, key, 1, 2, kFloat});
      random_normal(raw::kCpuStream, {d.data(), 200, key, 0, 1, kDouble});
      for (int64_t k = 0; k < 200; ++k) {
        const uint64_t e = static_cast<uint64_t>(key.base + k);
        const Block b = block_of(e / 64 * 16 + e % 16, key);
        const uint64_t q = e / 32 % 2 * 2;  // words q, q + 1
        const double u1 = (b[q] + 1.0) * 0x1p-32, u2 = b[q + 1] * 0x1p-32,
                     pi = 3.14159265358979323846;
        const double z = std::sqrt(-2 * std::log(u1)) *
                         (e / 16 % 2 ? std::sin(2 * pi * u2) : std::cos(2 * pi * u2));
        ASSERT_NEAR(f[k], 1 + 2 * z, 1e-6);
        const Block c = block_of(e / 32 * 16 + e % 16, key);
        auto unit = [](uint32_t high, uint32_t low) {
          return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
        };
        const double v1 = unit(c[0], c[1]) + 0x1p-53, v2 = unit(c[2], c[3]);
        ASSERT_NEAR(d[k],
                    std::sqrt(-2 * std::log(v1)) *
                        (e / 16 % 2 ? std::sin(2 * pi * v2) : std::cos(2 * pi * v2)),
                    1e-13);
      }
    }
  });
}

TEST(Random, OneStreamForAnyCutThreadsAndVariant) {
  for (ScalarType t : {kFloat, kDouble, kBFloat16}) {
    const RandomKey key{3, 4, 11};
    Buffer all(70001, t), lowest(70001, t);
    raw::expect_same_bits(all, [&](Buffer& y) {
      random_normal(raw::kCpuStream, {y.data(), y.size, key, 0, 1, t});
    });
    set_variant(testing::variants_here().front());
    random_normal(raw::kCpuStream, {lowest.data(), all.size, key, 0, 1, t});
    EXPECT_TRUE(all.same_bits(lowest)) << "the baseline draws the same numbers too";
    for (int64_t begin : {1, 64, 500, 40000}) {  // a shard draws by global index
      Buffer part(777, t);
      random_normal(raw::kCpuStream, {part.data(), 777, {3, 4, 11 + begin}, 0, 1, t});
      EXPECT_EQ(
          std::memcmp(part.data(),
                      static_cast<char*>(all.data()) + static_cast<size_t>(begin) * item_size(t),
                      777 * item_size(t)),
          0);
    }
  }
  Buffer u(70001, kFloat), i(70001, kInt);
  raw::expect_same_bits(u, [](Buffer& y) {
    random_uniform(raw::kCpuStream, {y.data(), y.size, {1, 1, 3}, -1, 1, kFloat});
  });
  raw::expect_same_bits(i, [](Buffer& y) {
    random_integers(raw::kCpuStream, {y.data(), y.size, {1, 1, 3}, 0, 1000, kInt});
  });
}

TEST(Random, Distributions) {
  const int64_t n = 1 << 20;
  const double root = std::sqrt(static_cast<double>(n));
  Buffer x(n, kFloat), d(n, kDouble);
  random_uniform(raw::kCpuStream, {x.data(), n, {11, 0, 0}, 0, 1, kFloat});
  double mean = 0, square = 0, low = 1, high = 0;
  for (int64_t i = 0; i < n; ++i)
    mean += x[i], square += x[i] * x[i], low = std::min(low, x[i]), high = std::max(high, x[i]);
  EXPECT_NEAR(mean / n, 0.5, 5 * 0.2887 / root);
  EXPECT_NEAR(square / n, 1.0 / 3, 5 * 0.3 / root);
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  for (Buffer* z : {&x, &d}) {
    random_normal(raw::kCpuStream, {z->data(), n, {12, 5, 0}, 0, 1, z->dtype});
    double m[5] = {};
    int64_t inside = 0;
    for (int64_t i = 0; i < n; ++i) {
      double p = 1;
      for (double& moment : m) moment += p, p *= (*z)[i];
      inside += std::fabs((*z)[i]) < 1;
    }
    EXPECT_NEAR(m[1] / n, 0, 5 / root);
    EXPECT_NEAR(m[2] / n, 1, 5 * std::sqrt(2.0) / root);
    EXPECT_NEAR(m[3] / n, 0, 5 * std::sqrt(15.0) / root);
    EXPECT_NEAR(m[4] / n, 3, 5 * std::sqrt(96.0) / root);
    EXPECT_NEAR(static_cast<double>(inside) / n, 0.682689492, 5 * 0.4655 / root);
  }
  Buffer k(n, kByte);
  random_integers(raw::kCpuStream, {k.data(), n, {13, 0, 0}, 10, 7, kByte});
  int64_t count[7] = {};
  for (int64_t i = 0; i < n; ++i) ++count[static_cast<int>(k[i]) - 10];
  for (int64_t c : count) EXPECT_NEAR(static_cast<double>(c) / n, 1.0 / 7, 5 * 0.35 / root);
}

TEST(Random, UniformStaysBelowItsUpperBound) {
  Buffer x(1 << 18, kFloat);
  // four floats wide: rounding would reach b
  random_uniform(raw::kCpuStream, {x.data(), x.size, {2, 2, 0}, 1, 1 + 0x1p-22, kFloat});
  for (int64_t i = 0; i < x.size; ++i) ASSERT_TRUE(x[i] >= 1 && x[i] < 1 + 0x1p-22);
  random_uniform(raw::kCpuStream, {x.data(), x.size, {2, 2, 0}, 3, 3, kFloat});
  EXPECT_EQ(x[17], 3);
}

// 16 bits round once more, at the store.
TEST(Random, UniformStaysBelowItsUpperBoundInEveryType) {
  const std::pair<double, double> bounds[] = {
      {0, 1},    {0.1, 0.7}, {1, 1.01},   {-5, -4.9}, {1000, 1001},  {1000, 1000.1},
      {0, 1e-7}, {-1e-7, 0}, {-0.1, 0.1}, {-1, 0},    {60000, 65504}};
  raw::for_each_variant([&](Variant) {
    for (ScalarType t : {kHalf, kBFloat16, kFloat, kDouble})
      for (const auto& [a, b] : bounds) {
        SCOPED_TRACE(::testing::Message() << short_name_of(t) << " " << a << " " << b);
        Buffer x(5000, t), ends(2, t);
        ends.set(0, a), ends.set(1, b);
        random_uniform(raw::kCpuStream, {x.data(), x.size, {2, 2, 7}, a, b, t});
        for (int64_t i = 0; i < x.size; ++i) {
          ASSERT_GE(x[i], ends[0]);
          if (ends[0] < ends[1]) ASSERT_LT(x[i], ends[1]);
          else ASSERT_EQ(x[i], ends[0]);
        }
      }
  });
}

// Sums that grow and fall by rounding alone, as a GPU's may (CumulativeSumArgs), and the draws
// between two of them. No draw picks what has no probability.
TEST(Random, PicksNothingWithoutProbability) {
  struct Row {
    std::vector<double> sums, probabilities;
    double draw;
    int64_t want;
  };
  const double ulp = 0x1p-54;  // of 1/4
  for (const Row& r : {
           Row{{0.25, 0.25 + ulp, 0.5, 1}, {0.25, 0, 0.25, 0.5}, 0.25, 2},
           Row{{0.25, 0.25 + ulp, 0.25 + ulp, 0.25 + 2 * ulp, 1}, {0.25, 0, 0, 0, 0.75}, 0.25, 4},
           Row{{0, ulp, 0.25, 1}, {0, 0, 0.25, 0.75}, 0, 2},
           Row{{0.5, 1, 1 + 0x1p-52}, {0.5, 0.5, 0}, 1 - 0x1p-52, 1},
           Row{{0, 1, 1 + 0x1p-52, 1 + 0x1p-52}, {0, 1, 0, 0}, 1 - 0x1p-52, 1},
           Row{{0.25, 0.25 - ulp, 1}, {0.25, 0, 0.75}, 0.25 - ulp, 2},
           Row{{0.25, 0.75, 1}, {0.25, 0.5, 0.25}, 0.25, 1},
           Row{{0.25, 0.75, 1}, {0.25, 0.5, 0.25}, 0.25 - ulp, 0},
           Row{{0x1p-1074}, {0x1p-1074}, 0.75, 0},  // 3/4 of this are rounded to all of it
       }) {
    const int64_t n = static_cast<int64_t>(r.sums.size());
    // The second of two rows.
    std::vector<double> sums(r.sums.size(), 1), probabilities(r.sums.size(), 1);
    sums.insert(sums.end(), r.sums.begin(), r.sums.end());
    probabilities.insert(probabilities.end(), r.probabilities.begin(), r.probabilities.end());
    const double draws[] = {0, r.draw};
    int64_t both[] = {-1, -1};
    random_pick(raw::kCpuStream, {sums.data(), probabilities.data(), draws, both, 2, n, 1});
    EXPECT_EQ(both[1], r.want) << "of " << n << " at " << r.draw;
    EXPECT_EQ(both[0], 0);
  }
}

TEST(Random, BernoulliWithATensorOfProbabilities) {
  Buffer p(100000, kDouble), out(100000, kFloat);
  for (int64_t i = 0; i < p.size; ++i)
    p.set(i, i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : i % 4 == 2 ? 0.25 : 0.75);
  const RandomKey key{8, 1, 3};
  raw::expect_same_bits(out, [&](Buffer& y) {
    random_bernoulli(raw::kCpuStream, {y.data(), p.data(), y.size, key, 0, kFloat, kDouble});
  });
  double sum[4] = {};
  for (int64_t i = 0; i < p.size; ++i) {
    ASSERT_EQ(out[i],
              static_cast<double>(word(static_cast<uint64_t>(3 + i), key) >> 8) * 0x1p-24 < p[i]);
    sum[i % 4] += out[i];
  }
  EXPECT_EQ(sum[0], 0);
  EXPECT_EQ(sum[1], 25000);
}

// ---- counts -------------------------------------------------------------------------------------

// Draws of one mean, or of one number of trials and one probability, or of one shape.
Buffer drawn(int64_t n, const RandomKey& key, double a, double p,
             const Kernel<RandomCountsArgs>& draw) {
  Buffer first(n, kDouble), second(n, kDouble), out(n, kDouble);
  first.fill(a), second.fill(p);
  draw(raw::kCpuStream, {out.data(), first.data(), second.data(), n, key, kDouble});
  return out;
}

// How far counts[k] are from n * probability(k). Every k that is expected 10 times or more has a
// bin, and one bin has the others. Returns chi squared less its degrees of freedom, in its
// deviations.
double chi_deviations(const Buffer& counts, const std::function<long double(int64_t)>& log_pmf) {
  const double n = static_cast<double>(counts.size);
  const auto [least, most] = [&] {
    double low = counts[0], high = counts[0];
    for (int64_t i = 0; i < counts.size; ++i)
      low = std::min(low, counts[i]), high = std::max(high, counts[i]);
    return std::pair(static_cast<int64_t>(low), static_cast<int64_t>(high));
  }();
  std::vector<double> seen(static_cast<size_t>(most - least + 1));
  for (int64_t i = 0; i < counts.size; ++i)
    ++seen[static_cast<size_t>(counts[i] - static_cast<double>(least))];
  double sum = 0, rest_seen = n, rest = n;
  int degrees = 0;
  for (int64_t k = least; k <= most; ++k) {
    const double expected = n * static_cast<double>(std::exp(log_pmf(k))),
                 got = seen[static_cast<size_t>(k - least)];
    if (expected < 10) continue;
    sum += (got - expected) * (got - expected) / expected;
    rest -= expected, rest_seen -= got, ++degrees;
  }
  sum += (rest_seen - rest) * (rest_seen - rest) / std::max(rest, 1.0);
  return (sum - degrees) / std::sqrt(2.0 * std::max(degrees, 1));
}

TEST(RandomCounts, PoissonsProbabilities) {
  for (const double mean : {0.01, 0.7, 3.0, 9.99, 10.0, 14.3, 60.0, 2500.0, 1e5}) {
    SCOPED_TRACE(mean);
    const auto log_pmf = [l = static_cast<long double>(mean)](int64_t k) {
      const auto x = static_cast<long double>(k);
      return x * std::log(l) - l - std::lgamma(x + 1);
    };
    const Buffer out = drawn(400000, {17, 3, 9}, mean, 0, random_poisson);
    EXPECT_LT(std::fabs(chi_deviations(out, log_pmf)), 5);
  }
}

TEST(RandomCounts, BinomialProbabilities) {
  const std::pair<double, double> cases[] = {{1, 0.3},   {7, 0.5},      {40, 0.02},  {40, 0.25},
                                             {40, 0.98}, {1000, 0.011}, {1000, 0.6}, {1e6, 1e-6},
                                             {1e6, 0.5}, {30, 0.34},    {25, 0.4}};
  for (const auto& [trials, p] : cases) {
    SCOPED_TRACE(::testing::Message() << trials << " trials of " << p);
    const auto log_pmf = [n = static_cast<long double>(trials),
                          q = static_cast<long double>(p)](int64_t k) {
      const auto x = static_cast<long double>(k);
      return std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) + x * std::log(q) +
             (n - x) * std::log1p(-q);
    };
    const Buffer out = drawn(400000, {18, 3, 9}, trials, p, random_binomial);
    EXPECT_LT(std::fabs(chi_deviations(out, log_pmf)), 5);
  }
}

// Moments where there are too many counts for bins.
void expect_moments(const Buffer& x, double expected, double variance) {
  const auto n = static_cast<double>(x.size);
  double m = 0, v = 0;
  for (int64_t i = 0; i < x.size; ++i) m += x[i] - expected;
  m /= n;
  for (int64_t i = 0; i < x.size; ++i) v += (x[i] - expected - m) * (x[i] - expected - m) / n;
  EXPECT_LT(std::fabs(m), 5 * std::sqrt(variance / n));
  EXPECT_NEAR(v / variance, 1, 5 * std::sqrt(2.0 / n));
}
TEST(RandomCounts, LargeMeans) {
  for (const double mean : {1e9, 1e13, 1e18}) {
    SCOPED_TRACE(mean);
    expect_moments(drawn(100000, {1, 1, 0}, mean, 0, random_poisson), mean, mean);
  }
}
TEST(RandomCounts, ManyTrials) {
  for (const auto& [trials, p] : {std::pair{1e9, 0.25},
                                  {1e13, 0.25},
                                  {1e17, 0.25},
                                  {1e20, 0.75},
                                  {1e25, 0.5},
                                  {1e18, 1e-16}}) {
    SCOPED_TRACE(::testing::Message() << trials << " trials of " << p);
    expect_moments(drawn(100000, {1, 2, 0}, trials, p, random_binomial), trials * p,
                   trials * p * (1 - p));
  }
}

// Kolmogorov's distance to the distribution function, which is Boost's.
TEST(RandomLogGamma, IsDistributedAsTheGammaFunctionSays) {
  for (const double shape : {1e-3, 0.05, 0.3, 0.999, 1.0, 2.5, 30.0, 1e4}) {
    SCOPED_TRACE(shape);
    Buffer out = drawn(20000, {11, 2, 5}, shape, 0, random_log_gamma);
    double* x = out.as<double>();
    std::sort(x, x + out.size);
    const auto n = static_cast<double>(out.size);
    double distance = 0;
    for (int64_t i = 0; i < out.size; ++i) {
      // Of numbers that double has not, the leading term of the series.
      const double p = x[i] < -600 ? std::exp(shape * x[i] - std::lgamma(shape + 1))
                                   : boost::math::gamma_p(shape, std::exp(x[i]));
      distance =
          std::max({distance, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
    }
    EXPECT_LT(distance * std::sqrt(n), 1.95);  // exceeded once in a thousand draws
  }
}
TEST(RandomLogGamma, IsFiniteForEveryFiniteShape) {
  for (const double shape : {5e-324, 1e-300, 1e-38, 1e-10, 1e15, 1e100, 1.7e308}) {
    const Buffer out = drawn(1000, {1, 1, 0}, shape, 0, random_log_gamma);
    for (int64_t i = 0; i < out.size; ++i) {
      ASSERT_TRUE(std::isfinite(out[i])) << shape;
      // Nearly no spread around the shape.
      if (shape > 1e14) { ASSERT_NEAR(out[i], std::log(shape), 1e-6) << shape; }
    }
  }
}

TEST(RandomCounts, EveryElementFromItsIndexAlone) {
  for (ScalarType t : {kFloat, kDouble, kHalf}) {
    Buffer a(20001, t), p(20001, t), all(20001, t), lowest(20001, t);
    for (int64_t i = 0; i < a.size; ++i) a.set(i, (i % 90) / 3), p.set(i, (i % 17) / 16.0);
    for (const auto draw : {random_poisson, random_binomial, random_log_gamma}) {
      raw::expect_same_bits(all, [&](Buffer& y) {
        draw(raw::kCpuStream, {y.data(), a.data(), p.data(), y.size, {3, 4, 11}, t});
      });
      set_variant(testing::variants_here().front());
      draw(raw::kCpuStream, {lowest.data(), a.data(), p.data(), a.size, {3, 4, 11}, t});
      EXPECT_TRUE(all.same_bits(lowest)) << "the baseline draws the same numbers too";
      for (int64_t begin : {1, 63, 4096, 9999}) {  // a shard draws by global index
        Buffer part(777, t);
        const auto from = [&](Buffer& b) {
          return static_cast<char*>(b.data()) + static_cast<size_t>(begin) * item_size(t);
        };
        draw(raw::kCpuStream, {part.data(), from(a), from(p), 777, {3, 4, 11 + begin}, t});
        EXPECT_EQ(std::memcmp(part.data(), from(all), 777 * item_size(t)), 0);
        EXPECT_TRUE(part.guards_intact());
      }
    }
  }
}

TEST(RandomCounts, AtTheEdges) {
  const double inf = INFINITY;
  const auto poisson = [](double mean) { return drawn(1, {5, 5, 0}, mean, 0, random_poisson)[0]; };
  EXPECT_EQ(poisson(0), 0);
  EXPECT_EQ(poisson(1e-300), 0);
  EXPECT_EQ(poisson(inf), inf);
  EXPECT_TRUE(std::isnan(poisson(NAN)));
  EXPECT_NEAR(poisson(1e200) / 1e200, 1, 1e-12);
  const auto binomial = [](double n, double p) {
    return drawn(1, {5, 5, 0}, n, p, random_binomial)[0];
  };
  EXPECT_EQ(binomial(0, 0.5), 0);
  EXPECT_EQ(binomial(-3, 0.5), 0);
  EXPECT_EQ(binomial(3, 0), 0);
  EXPECT_EQ(binomial(3, -1), 0);
  EXPECT_EQ(binomial(3, 1), 3);
  EXPECT_EQ(binomial(3.7, 1.5), 3);
  EXPECT_EQ(binomial(inf, 0.5), inf);
  EXPECT_EQ(binomial(1e6, 1e-300), 0);
  EXPECT_EQ(binomial(1e6, 1 - 0x1p-53), 1e6);
  EXPECT_TRUE(std::isnan(binomial(3, NAN)) && std::isnan(binomial(NAN, 0.5)));
}

TEST(Random, DropoutScalesAndRemembers) {
  for (ScalarType t : {kFloat, kDouble, kHalf}) {
    Buffer x(50001, t), y(50001, t), mask(50001, kBool);
    raw::Values v(3);
    x.fill(v);
    const RandomKey key{21, 5, 1000};
    raw::expect_same_bits(y, [&](Buffer& out) {
      dropout_forward(raw::kCpuStream,
                      {x.data(), out.data(), mask.data(), x.size, key, 0.75, 1 / 0.75, t});
    });
    EXPECT_TRUE(mask.guards_intact());
    double kept = 0;
    for (int64_t i = 0; i < x.size; ++i) {
      const bool keep =
          static_cast<double>(word(static_cast<uint64_t>(1000 + i), key) >> 8) * 0x1p-24 < 0.75;
      ASSERT_EQ(mask[i], keep);
      ASSERT_NEAR(y[i], keep ? x[i] / 0.75 : 0, t == kHalf ? 1e-3 : 1e-6);
      kept += keep;
    }
    EXPECT_NEAR(kept / static_cast<double>(x.size), 0.75, 0.01);
    dropout_forward(raw::kCpuStream,
                    {x.data(), x.data(), mask.data(), x.size, key, 0.75, 1 / 0.75, t});  // in place
    EXPECT_TRUE(x.same_bits(y));
  }
}

}  // namespace
}  // namespace ramet::kernels
