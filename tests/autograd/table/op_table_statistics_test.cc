// Rows of the operation table: reductions that skip NaNs, quantiles, covariances, integrals,
// slopes.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;
using Reduce = std::function<double(const Values&)>;

Reference lines(int64_t dim, Line way, const Reduce& f) {
  return [=](P x) { return along(x[0], dim, way, [f](const Values& v) { return Values{f(v)}; }); };
}
Values numbers(Values v) {
  v.erase(std::remove_if(v.begin(), v.end(), [](double x) { return std::isnan(x); }), v.end());
  return v;
}
double sum_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}
double mean_of(const Values& v) { return sum_of(v) / static_cast<double>(v.size()); }
double nan_sum(const Values& v) { return sum_of(numbers(v)); }
double nan_mean(const Values& v) { return mean_of(numbers(v)); }
double count(const Values& v) {
  return double(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
}
double extremum(const Values& v, bool largest) {
  double found = v[0];
  for (const double x : v)
    if (std::isnan(x) || (!std::isnan(found) && (largest ? x > found : x < found))) found = x;
  return found;
}
double lowest(const Values& v) { return extremum(v, false); }
double highest(const Values& v) { return extremum(v, true); }

void add_reductions(Table& t) {
  const Samples s = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {2, 0}, {5}, {}}),
                not_of_nothing = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {5}, {}});
  const Sample large = {real({700, 131})};
  t.row("nansum", kAll, s, CALL_OUT(nansum, x[0], -1, true), lines(-1, Line::kKeep, nan_sum))
      .gives(widened)
      .big(large, 1);
  t.row("nanmean", kFloats, s, CALL_OUT(nanmean, x[0], -1, true), lines(-1, Line::kKeep, nan_mean))
      .big(large, 1);
  t.row("count_nonzero", kAll, s, CALL(count_nonzero, x[0], std::optional<int64_t>(-1)),
        lines(-1, Line::kDrop, count))
      .gives(positions)
      .no_gradient()
      .big(large, 1)
      .writes(OUT(count_nonzero, x[0], IntArrayRef{-1}));
  t.row("aminmax.min", kAll, not_of_nothing, FIRST_OUT(x[0].scalar_type(), aminmax, x[0], -1, true),
        lines(-1, Line::kKeep, lowest))
      .big(large, 1);
  t.row("aminmax.max", kAll, not_of_nothing, EXPRESSION(std::get<1>(x[0].aminmax(-1))),
        lines(-1, Line::kDrop, highest))
      .big(large, 1)
      .writes([](Tensor& o, V x) {
        Tensor min = empty({0}, o.options());
        return std::get<1>(aminmax_out(min, o, x[0], -1));
      });
}

// The q-quantile, between two elements as lerp, or the infinite one of them.
double quantile_of(Values v, double q, const std::string& way, bool skips) {
  const size_t all = v.size();
  v = numbers(v);
  if (v.empty() || (!skips && v.size() < all)) return NAN;
  std::sort(v.begin(), v.end());
  const double rank = q * double(v.size() - 1);
  const double a = v[size_t(std::floor(rank))], b = v[size_t(std::ceil(rank))];
  if (way == "lower") return a;
  if (way == "higher") return b;
  if (way == "nearest") return v[size_t(std::nearbyint(rank))];
  if (std::isinf(a) || std::isinf(b)) return a + b;
  const double w = way == "midpoint" ? 0.5 : rank - std::floor(rank);
  return w < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
}

void add_quantiles(Table& t) {
  const Sample large = {real({80, 67})};
  const auto row = [&](const char* name, Calls call, bool skips) -> Row& {
    return t
        .row(name, kWide, shapes({{4, 5}, {2, 3, 4}, {5}, {}}), std::move(call),
             lines(-1, Line::kKeep,
                   [=](const Values& v) { return quantile_of(v, 0.4, "linear", skips); }))
        .not_empty("it is refused")
        .big(large, 1)
        .small("which quantile is a number");
  };
  row("quantile", CALL_OUT(quantile, x[0], 0.4, -1, true), false);
  row("nanquantile", CALL_OUT(nanquantile, x[0], 0.4, -1, true), true);
  const Reference several = [](P x) {
    Plain out{{x[1].size(0)}, {}};
    const int64_t columns = x[0].rank() == 0 ? 1 : x[0].size(1);
    if (x[0].rank() > 0) out.sizes.push_back(columns);
    for (const double q : x[1].v)
      for (int64_t j = 0; j < columns; ++j) {
        Values v;
        for (size_t i = size_t(j); i < x[0].v.size(); i += size_t(columns)) v.push_back(x[0].v[i]);
        out.v.push_back(quantile_of(v, q, "linear", false));
      }
    return out;
  };
  t.row("quantile.several", kWide,
        {{real({4, 5}), real({3}, 0.1, 0.9)},
         {real({4, 5}), real({0}, 0, 1)},
         {real({}), real({2}, 0.1, 0.9)}},
        CALL_OUT(quantile, x[0], x[1], 0), several)
      .partly_tame(2, "q is from 0 to 1")
      .big({real({67, 80}), real({3}, 0.1, 0.9)})
      .small("which quantiles is a few numbers")
      .sliced({1, -1}, 1);
}

// With weights of the observations, which are columns.
Plain covariance(const Plain& x, const Values& w, double divisor) {
  const int64_t rows = x.rank() < 2 ? 1 : x.size(0), n = x.rank() == 0 ? 1 : x.size(-1);
  std::vector<Values> apart;
  double total = sum_of(w);
  for (int64_t r = 0; r < rows; ++r) {
    Values line(x.v.begin() + r * n, x.v.begin() + (r + 1) * n);
    double mean = 0;
    for (size_t i = 0; i < line.size(); ++i) mean += line[i] * w[i] / total;
    for (double& v : line) v -= mean;
    apart.push_back(line);
  }
  const Plain out = made({rows, rows}, [&](const Index& i) {
    double s = 0;
    for (size_t k = 0; k < w.size(); ++k)
      s += apart[size_t(i[0])][k] * w[k] * apart[size_t(i[1])][k];
    return s / divisor;
  });
  return rows == 1 ? Plain{{}, out.v} : out;
}
double observations(const Plain& x) { return x.rank() == 0 ? 1 : double(x.size(-1)); }

void add_covariances(Table& t) {
  t.row("cov", kNumbers, shapes({{3, 7}, {7}, {3, 0}, {}}), CALL(cov, x[0], 0),
        [](P x) {
          const double n = observations(x[0]);
          return covariance(x[0], Values(size_t(n), 1), n);
        })
      .gives(floating)
      .within(2)
      .big({real({131, 700})})
      .in_one("all rows with all");
  t.row("cov.weights", kFloats, {{real({3, 7}), index({7}, 4), real({7}, 0.5, 2)}},
        CALL(cov, x[0], 1, x[1], x[2]),
        [](P x) {
          Values w = x[1].v;
          double weighted = 0;
          for (size_t i = 0; i < w.size(); ++i) w[i] *= x[2].v[i], weighted += w[i] * x[2].v[i];
          return covariance(x[0], w, sum_of(w) - weighted / sum_of(w));
        })
      .within(4)
      .tame("weights are finite")
      .not_empty("weights that add up to nothing are refused")
      .not_scalar("there are several observations")
      .big({real({131, 700}), index({700}, 4), real({700}, 0.5, 2)})
      .small("weights are a vector")
      .in_one("all rows with all");
  t.row("corrcoef", kNumbers, shapes({{3, 7}, {7}, {3, 0}}), CALL(corrcoef, x[0]),
        [](P x) {
          const double n = observations(x[0]);
          const Plain c = covariance(x[0], Values(size_t(n), 1), n - 1);
          if (c.rank() == 0) return Plain{{}, {c.v[0] / c.v[0]}};
          return made(c.sizes, [&](const Index& i) {
            return c.at(i) / std::sqrt(c.at({i[0], i[0]})) / std::sqrt(c.at({i[1], i[1]}));
          });
        })
      .gives(floating)
      .within(4)
      .not_scalar("one observation deviates from nothing")
      .big({real({131, 700})})
      .in_one("all rows with all");
}

void add_integrals(Table& t) {
  const Samples s = shapes({{4, 5}, {5}, {1}, {0, 5}}), with_x = {{real({4, 5}), real({5})},
                                                                  {real({4, 5}), real({4, 5})},
                                                                  {real({0, 5}), real({5})}};
  const Sample large = {real({700, 131})}, large_x = {real({700, 131}), real({131})};
  const auto trapezoids = [](const Values& y, const Values& x) {
    Values out;
    double sum = 0;
    for (size_t i = 1; i < y.size(); ++i)
      out.push_back(sum += (y[i] + y[i - 1]) * (x[i] - x[i - 1]) / 2);
    return out;
  };
  // The lines of y with those of x, a vector or as large; all running values or the last.
  const auto by_x = [=](bool running) {
    return [=](P x) -> Plain {
      size_t line = 0;
      if (running && x[0].v.empty()) return Plain{{0, x[0].size(-1) - 1}, {}};
      return along(x[0], -1, running ? Line::kResize : Line::kDrop, [&](const Values& y) {
        const size_t at = x[1].rank() == 1 ? 0 : line++ * y.size();
        const Values places(x[1].v.begin() + ptrdiff_t(at),
                            x[1].v.begin() + ptrdiff_t(at + y.size()));
        const Values all = trapezoids(y, places);
        return running ? all : Values{all.empty() ? 0 : all.back()};
      });
    };
  };
  const auto by_step = [=](bool running) {
    return [=](P x) {
      Plain places{{std::max<int64_t>(x[0].size(-1), 0)}, {}};
      for (int64_t i = 0; i < places.sizes[0]; ++i) places.v.push_back(2 * double(i));
      return by_x(running)({x[0], places});
    };
  };
  const uint16_t kept = kFloats | kSigned;  // differences of bytes wrap
  t.row("trapezoid", kNumbers, with_x, CALL(trapezoid, x[0], x[1]), by_x(false))
      .gives(floating)
      .within(4)
      .only(kept)
      .big(large_x, 1)
      .small("what lies between points is a vector");
  t.row("trapezoid.step", kNumbers, s, CALL(trapezoid, x[0], 2), by_step(false))
      .gives(floating)
      .within(4)
      .tame("the ends are subtracted")
      .only(kept)
      .big(large, 1);
  t.row("trapz", kNumbers, with_x, CALL(trapz, x[0], x[1]), by_x(false))
      .gives(floating)
      .within(4)
      .only(kept)
      .big(large_x, 1)
      .small("what lies between points is a vector");
  t.row("cumulative_trapezoid", kNumbers, with_x, CALL(cumulative_trapezoid, x[0], x[1]),
        by_x(true))
      .gives(floating)
      .within(4)
      .only(kept)
      .big(large_x, 1)
      .small("what lies between points is a vector");
  t.row("cumulative_trapezoid.step", kNumbers, s, CALL(cumulative_trapezoid, x[0], 2),
        by_step(true))
      .gives(floating)
      .within(4)
      .only(kept)
      .big(large, 1);
}

// Derivatives of samples: at a point from its neighbours, of a parabola exactly.
void add_slopes(Table& t) {
  // `at(k)`: where sample k of the last dimension lies.
  const auto slopes = [](double (*at)(double), int64_t order) {
    return [at, order](P x) {
      const int64_t n = x[0].size(-1);
      return made(x[0].sizes, [&](Index i) {
        const int64_t here = i.back();
        const bool first = here == 0, last = here == n - 1;
        if (order == 1 && (first || last)) {
          double y[2];
          for (int64_t k = 0; k < 2; ++k) i.back() = first ? k : n - 2 + k, y[k] = x[0].at(i);
          const double a = static_cast<double>(first ? 0 : n - 2);
          return (y[1] - y[0]) / (at(a + 1) - at(a));
        }
        // Lagrange's parabola through three samples, derived at this one.
        const int64_t from = first ? 0 : last ? n - 3 : here - 1;
        double p[3], sum = 0;
        for (int k = 0; k < 3; ++k) p[k] = at(static_cast<double>(from + k));
        const double z = at(static_cast<double>(here));
        for (int k = 0; k < 3; ++k) {
          const double b = p[(k + 1) % 3], c = p[(k + 2) % 3];
          i.back() = from + k;
          sum += x[0].at(i) * (2 * z - b - c) / ((p[k] - b) * (p[k] - c));
        }
        return sum;
      });
    };
  };
  const Samples some = shapes({{3, 4}, {0, 3}, {5}}, -9, 9);
  const Sample large = {real({140, 131}, -9, 9)};
  const char* const coarse = "what is far away from 0 is subtracted";
  const auto taken = static_cast<uint16_t>(kNumbers & ~set_of(kByte));
  t.row("gradient", taken, some, EXPRESSION(gradient(x[0], Scalar(2), IntArrayRef{-1})[0]),
        slopes([](double k) { return 2 * k; }, 1))
      .gives(floating)
      .within(8)
      .tame(coarse)
      .big(large, 1);
  t.row("gradient.second", taken, some,
        EXPRESSION(gradient(x[0], ArrayRef<Scalar>(Scalar(0.5)), IntArrayRef{-1}, 2)[0]),
        slopes([](double k) { return k / 2; }, 2))
      .gives(floating)
      .within(16)  // of sixteen bits three terms nearly cancel

      .tame(coarse)
      .big(large, 1);
  for (const int64_t order : {1, 2})
    t.row(
         order == 1 ? "gradient.places" : "gradient.places_second", taken, some,
         [order](V x) {
           const Tensor k = arange(x[0].size(-1), x[0].options());
           return gradient(x[0], TensorList(k.mul(k).add(k)), IntArrayRef{-1}, order)[0];
         },
         slopes([](double k) { return k * k + k; }, order))
        .only(kWide)  // the places of many samples are more than 16 bits hold
        .within(8)
        .small("coordinates are few, as are the threads that subtract them")
        .tame(coarse)
        .big({real({1400, 13}, -9, 9)}, 1);
}

// PyTorch 2.15's numbers and refusals.
TEST(Statistics, Edges) {
  const Tensor x = tensor({1., 2., std::nan(""), 4.}), none = zeros({0}), whole = tensor({3, 1, 2});
  EXPECT_TRUE(std::isnan(quantile(x, 0.5).item<double>()));
  EXPECT_EQ(nanquantile(x, 0.5).item<double>(), 2);
  expect_close(nanquantile(x, tensor({0.25, 1.})), Plain{{2}, {1.5, 4}});
  for (const char* way : {"linear", "lower", "higher", "midpoint", "nearest"}) {
    SCOPED_TRACE(way);
    const Values v = {7, -4, 1, 2};
    for (const double q : {0., 0.25, 0.5, 0.9, 1.})
      EXPECT_NEAR(quantile(tensor(v, kDouble), q, 0, false, way).item<double>(),
                  quantile_of(v, q, way, false), 1e-12);
  }
  EXPECT_EQ(quantile(x, 0.5, 0, true).sizes().vec(), Index{1});
  EXPECT_EQ(quantile(ones({2, 3}), tensor({0., 1.}), 1, true).sizes().vec(), (Index{2, 2, 1}));
  EXPECT_THROW(quantile(none, 0.5), Error);
  EXPECT_THROW(quantile(whole, 0.5), Error);
  EXPECT_THROW(quantile(x, 1.5), Error);
  EXPECT_THROW(quantile(x, tensor({0.5, -0.1})), Error);
  EXPECT_THROW(quantile(x, tensor({0.5}, kDouble)), Error);
  EXPECT_EQ(x.scalar_type(), kFloat);
  EXPECT_THROW(quantile(x, 0.5, 0, false, "cubic"), Error);
  EXPECT_THROW(quantile(x, 0.5, 1), IndexError);
  EXPECT_THROW(nanmean(whole), Error);
  EXPECT_EQ(nansum(whole).scalar_type(), kLong);
  EXPECT_THROW(aminmax(none), Error);
  // One observation: nothing is left to divide by.
  EXPECT_TRUE(std::isnan(cov(tensor(2.)).item<double>()));
  EXPECT_EQ(cov(tensor({1., 2., 4.}), 0).dim(), 0);
  EXPECT_THROW(cov(ones({2, 3, 4})), Error);
  EXPECT_THROW(cov(ones({2, 3}), 1, tensor({1, 2})), Error);
  EXPECT_THROW(cov(ones({2, 3}), 1, tensor({1, 2, -1})), Error);
  EXPECT_THROW(cov(ones({2, 3}), 1, tensor({0, 0, 0})), Error);
  EXPECT_TRUE(std::isinf(cov(tensor({1., 2., 4.}), INT64_MAX).item<double>()));
  EXPECT_EQ(cov(tensor({1., 2., 4.}), INT64_MIN).item<double>() > 0, true);
  EXPECT_EQ(trapezoid(zeros({4, 0}, kInt)).scalar_type(), kInt);
  EXPECT_EQ(cumulative_trapezoid(zeros({4, 0})).sizes().vec(), (Index{4, 0}));
  EXPECT_EQ(trapz(tensor({1., 3.}), 2).item<double>(), 4);
  EXPECT_THROW(trapezoid(ones({2, 3}), ones({2})), Error);
  EXPECT_THROW(trapezoid(tensor(1.)), Error);
}

RAMET_OP_TABLE(add_reductions, add_quantiles, add_covariances, add_integrals, add_slopes);

}  // namespace
}  // namespace op_table
}  // namespace ramet
