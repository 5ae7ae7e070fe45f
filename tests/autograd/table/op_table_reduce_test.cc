// Rows of the operation table: reductions, running sums, softmax.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;
using Reduce = double (*)(const Values&);

bool better(double a, double b, bool largest) {
  return std::isnan(a) ? !std::isnan(b) : largest ? a > b : a < b;
}
double first_of(const Values& v, bool largest) {
  size_t at = 0;
  for (size_t i = 1; i < v.size(); ++i)
    if (better(v[i], v[at], largest)) at = i;
  return static_cast<double>(at);
}
double position_of_max(const Values& v) { return first_of(v, true); }
double position_of_min(const Values& v) { return first_of(v, false); }
double max_of(const Values& v) { return v[static_cast<size_t>(first_of(v, true))]; }
double min_of(const Values& v) { return v[static_cast<size_t>(first_of(v, false))]; }
double sum_of(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double product_of(const Values& v) {
  return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
}
double mean_of(const Values& v) { return sum_of(v) / static_cast<double>(v.size()); }
// The mean next to a variance: NaN, not infinite, in LibTorch too.
double finite_mean(const Values& v) {
  const double mean = mean_of(v);
  return std::isinf(mean) ? NAN : mean;
}
double variance(const Values& v, double correction) {
  const double mean = mean_of(v);
  double s = 0;
  for (double x : v) s += (x - mean) * (x - mean);
  return s / std::max(0.0, static_cast<double>(v.size()) - correction);
}
double unbiased(const Values& v) { return variance(v, 1); }
double biased(const Values& v) { return variance(v, 0); }
double deviation(const Values& v) { return std::sqrt(variance(v, 1)); }
double length_of(const Values& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}
double taxicab(const Values& v) {
  double s = 0;
  for (double x : v) s += std::fabs(x);
  return s;
}
double log_sum(const Values& v) {
  double s = 0, top = -INFINITY;
  for (double x : v) top = std::isnan(x) ? x : std::max(top, x);
  if (std::isinf(top)) return top;
  for (double x : v) s += std::exp(x - top);
  return top + std::log(s);
}
double any_of(const Values& v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; });
}
double all_of(const Values& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; });
}

Reference whole(Reduce f) {
  return [f](P x) { return Plain{{}, {f(x[0].v)}}; };
}
Reference lines(int64_t dim, Line way, Reduce f) {
  return [=](P x) { return along(x[0], dim, way, [f](const Values& v) { return Values{f(v)}; }); };
}

struct Adder {
  Table& t;
  const char* name;
  uint16_t dtypes;
  ScalarType (*result)(ScalarType);
  bool gradient;
  bool of_nothing;  ///< takes no elements
  double lo, hi;

  Row& finish(Row& r) const {
    r.gives(result);
    if (!gradient) r.no_gradient();
    return r;
  }
  // Along the last dimension, kept; rows are independent of each other.
  Row& last(const char* full, Calls call, Reduce f) const {
    Samples s = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {5}, {1, 1}, {}}, lo, hi);
    if (of_nothing) s.push_back({real({2, 0}, lo, hi)});
    return finish(t.row(full, dtypes, s, std::move(call), lines(-1, Line::kKeep, f)))
        .big({real({700, 131}, lo, hi)}, 1);
  }
  // Along the first dimension, dropped.
  Row& first(const char* full, Calls call, Reduce f) const {
    Samples s = shapes({{4, 5}, {3, 2, 4}, {3, 0}, {5}, {}}, lo, hi);
    if (of_nothing) s.push_back({real({0, 2}, lo, hi)});
    return finish(t.row(full, dtypes, s, std::move(call), lines(0, Line::kDrop, f)))
        .big({real({700, 131}, lo, hi)})
        .sliced({1}, 0, {real({120, 131}, lo, hi)})
        .slices_from(2, "one column alone is a line, whose sum has another order");
  }
  // Of all elements.
  Row& all(const char* full, Calls call, Reduce f) const {
    Samples s = shapes({{4, 5}, {2, 3, 4}, {}, {7}}, lo, hi);
    if (of_nothing) s.push_back({real({0}, lo, hi)});
    return finish(t.row(full, dtypes, s, std::move(call), whole(f)))
        .big({real({700, 131}, lo, hi)});
  }
};

void add_sums(Table& t) {
  const Adder sums{t, "sum", kAll, widened, true, true, -2, 2};
  sums.last("sum", CALL_OUT(sum, x[0], -1, true), sum_of);
  sums.first("sum.first", CALL_OUT(sum, x[0], 0), sum_of).slim({real({100000, 10})});
  sums.all("sum.all", CALL_OUT(sum, x[0]), sum_of);
  const Adder means{t, "mean", kFloats, same, true, true, -2, 2};
  means.last("mean", CALL_OUT(mean, x[0], -1, true), mean_of);
  means.first("mean.first", CALL_OUT(mean, x[0], 0), mean_of);
  means.all("mean.all", CALL_OUT(mean, x[0]), mean_of);
  // Products of so many numbers overflow, or come near to zero.
  const Sample near_one = {real({700, 131}, 0.999, 1.001)};
  const char* asked = "whether there is a zero: without one n x n elements are saved";
  const Adder products{t, "prod", kAll, widened, true, true, 0.5, 2};
  products.last("prod", CALL_OUT(prod, x[0], -1, true), product_of).big(near_one, 1).asks(asked);
  products.first("prod.first", CALL_OUT(prod, x[0], 0), product_of)
      .big(near_one)
      .sliced({1}, 0, {real({120, 131}, 0.5, 2)})
      .asks(asked);
  products.all("prod.all", CALL_OUT(prod, x[0]), product_of).big(near_one).asks(asked);
  const Adder variances{t, "var", kFloats, same, true, false, -2, 2};
  const auto two = [](Row& r) { r.samples = shapes({{4, 5}, {3, 2, 4}, {0, 3}, {}}); };
  two(variances.last("var", CALL_OUT(var, x[0], -1, true, true), unbiased));
  two(variances.first("var.biased", CALL_OUT(var, x[0], 0, false), biased));
  variances.all("var.all", CALL(var, x[0], false), biased)
      .writes(OUT(var, x[0], std::nullopt, Scalar(0)))
      .samples.push_back({real({0})});
  two(variances.last("std", EXPRESSION(ramet::std(x[0], -1, true, true)), deviation)
          .writes(OUT(std, x[0], -1, true, true)));
  two(variances.last("var_mean.var", FIRST(var_mean, x[0], -1, 1, true), unbiased));
  variances.last("var_mean.mean", SECOND(var_mean, x[0], -1, 1, true), finite_mean);
  two(variances.last("std_mean.std", FIRST(std_mean, x[0], -1, 1, true), deviation));
  variances.last("std_mean.mean", SECOND(std_mean, x[0], -1, 1, true), finite_mean);
  const Adder norms{t, "norm", kFloats, same, true, true, 0.2, 2};
  norms.last("norm", CALL_OUT(norm, x[0], Scalar(2), {-1}, true), length_of)
      .samples.pop_back();  // of nothing: 0, its derivative has no direction
  norms.first("norm.one", CALL_OUT(norm, x[0], Scalar(1), {0}), taxicab);
  norms.all("norm.all", CALL_OUT(norm, x[0]), length_of);
  const Adder logs{t, "logsumexp", kAll, floating, true, false, -2, 2};
  logs.last("logsumexp", CALL_OUT(logsumexp, x[0], {-1}, true), log_sum);
  logs.first("logsumexp.first", CALL_OUT(logsumexp, x[0], {0}), log_sum);
}

void add_extrema(Table& t) {
  const Adder extrema{t, "amax", kAll, same, true, false, -9, 9};
  extrema.last("amax", CALL_OUT(amax, x[0], {-1}, true), max_of);
  extrema.first("amax.first", CALL_OUT(amax, x[0], {0}), max_of);
  extrema.last("amin", CALL_OUT(amin, x[0], {-1}, true), min_of);
  extrema.first("amin.first", CALL_OUT(amin, x[0], {0}), min_of);
  extrema.all("max", CALL_OUT(max, x[0]), max_of).not_empty("refused: of nothing there is none");
  extrema.all("min", CALL_OUT(min, x[0]), min_of).not_empty("refused: of nothing there is none");
  extrema.last("max.values", FIRST_OUT(kLong, max, x[0], -1, true), max_of);
  extrema.last("min.values", FIRST_OUT(kLong, min, x[0], -1, true), min_of);
  const Adder places{t, "max", kAll, positions, false, false, -9, 9};
  places.last("max.positions", SECOND_OUT(max, x[0], -1, true), position_of_max);
  places.first("min.positions", SECOND_OUT(min, x[0], 0), position_of_min);
  const Adder arguments{t, "argmax", kNumbers, positions, false, false, -9, 9};
  arguments.last("argmax", CALL_OUT(argmax, x[0], -1, true), position_of_max);
  arguments.first("argmin", CALL_OUT(argmin, x[0], 0), position_of_min);
  arguments.all("argmax.all", CALL_OUT(argmax, x[0]), position_of_max)
      .not_empty("refused: of nothing there is none");
  arguments.all("argmin.all", CALL_OUT(argmin, x[0]), position_of_min)
      .not_empty("refused: of nothing there is none");
  const Adder tests{t, "any", kAll, boolean_or_byte, false, true, -0.6, 1};
  tests.last("any", CALL_OUT(any, x[0], -1, true), any_of);
  tests.first("all", CALL_OUT(all, x[0], 0), all_of);
  tests.all("any.all", CALL_OUT(any, x[0]), any_of);
  tests.all("all.all", CALL_OUT(all, x[0]), all_of);
  tests.last("any.list", CALL_OUT(any, x[0], IntArrayRef({-1}), true), any_of);
  tests.first("all.list", CALL_OUT(all, x[0], IntArrayRef({0})), all_of);
}

Values running(const Values& v) {
  Values out;
  for (double x : v) out.push_back(x + (out.empty() ? 0 : out.back()));
  return out;
}
Values soft(const Values& v, bool log) {
  double s = 0, top = -INFINITY;
  for (double x : v) top = std::isnan(x) ? x : std::max(top, x);
  for (double x : v) s += std::exp(x - top);
  Values out;
  for (double x : v) out.push_back(log ? x - top - std::log(s) : std::exp(x - top) / s);
  return out;
}

void add_lines(Table& t) {
  const Samples some = shapes({{3, 5}, {2, 4, 3}, {0, 3}, {3, 0}, {4}, {}}, -3, 3);
  const auto row = [&](const char* name, uint16_t dtypes, int64_t dim, Calls call,
                       Values (*f)(const Values&)) -> Row& {
    return t
        .row(name, dtypes, some, std::move(call),
             [=](P x) { return along(x[0], dim, Line::kResize, f); })
        .big({real({120, 131}, -3, 3)}, 0)
        .sliced({dim == -1 ? 0 : 1}, dim == -1 ? 0 : 1);
  };
  row("cumsum", kAll, -1, CALL_IN_PLACE_OUT(cumsum, x[0], -1), running).gives(widened);
  row("cumsum.first", kAll, 0, CALL_OUT(cumsum, x[0], 0), running).gives(widened);
  const auto plain = [](const Values& v) { return soft(v, false); };
  const auto log = [](const Values& v) { return soft(v, true); };
  row("softmax", kFloats, -1, CALL_OUT(softmax, x[0], -1), plain).slim({real({8, 125000}, -3, 3)});
  row("softmax.first", kFloats, 0, CALL_OUT(softmax, x[0], 0), plain);
  row("log_softmax", kFloats, -1, CALL_OUT(log_softmax, x[0], -1), log);
  row("log_softmax.first", kFloats, 0, CALL_OUT(log_softmax, x[0], 0), log);
  // One line that is as long as it can be.
  const auto line = [&](const char* name, uint16_t dtypes, Calls call,
                        Values (*f)(const Values&)) -> Row& {
    return t
        .row(name, dtypes, shapes({{5}, {0}, {}}, -3, 3), std::move(call),
             [=](P x) { return along(x[0], -1, Line::kResize, f); })
        .big({real({16000}, -3, 3)})
        .alone("a line is one thread's")
        .in_one("there is one line");
  };
  line("cumsum.line", kAll, CALL(cumsum, x[0], -1), running).gives(widened);
  line("softmax.line", kFloats, CALL(softmax, x[0], -1), plain)
      .narrow("a line belongs to one block, however long it is");
  line("log_softmax.line", kFloats, CALL(log_softmax, x[0], -1), log)
      .narrow("a line belongs to one block, however long it is");
}

RAMET_OP_TABLE(add_sums, add_extrema, add_lines);

}  // namespace
}  // namespace op_table
}  // namespace ramet
