// Rows of the operation table: counts, histograms, segments.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;

void add_counts(Table& t) {
  const char* const whole = "how many counts there are depends on the largest element";
  const auto sums = [](const Plain& x, const Plain* weights, int64_t least) {
    Plain out{{least}, Values(static_cast<size_t>(least))};
    for (size_t i = 0; i < x.v.size(); ++i) {
      const auto at = static_cast<size_t>(x.v[i]);
      if (at >= out.v.size()) out.v.resize(at + 1);
      out.v[at] += weights ? weights->v[i] : 1;
    }
    out.sizes[0] = static_cast<int64_t>(out.v.size());
    return out;
  };
  t.row("bincount", kInts, {{real({20}, 0, 9)}}, CALL_OUT(bincount, x[0], std::nullopt, 3),
        [=](P x) { return sums(x[0], nullptr, 3); })
      .gives(positions)
      .no_gradient()
      .not_empty("there is no largest element to be asked for")
      .not_scalar("refused: a number is no vector")
      .alone("counts are added up in the order of the elements")
      .in_one(whole)
      .waits("the largest element is asked for")
      .small("elements are sorted, which takes emulated threads long")
      .big({real({9000}, 0, 9)});
  t.row("bincount.weights", kAll, {{index({20}, 9), real({20})}}, CALL_OUT(bincount, x[0], x[1]),
        [=](P x) { return sums(x[0], &x[1], 0); })
      .gives([](ScalarType s) { return s == kFloat ? kFloat : kDouble; })
      .not_empty("int64 then, whatever the weights are")
      .not_scalar("refused: a number is no vector")
      .alone("weights are added up in the order of the elements")
      .in_one(whole)
      .waits("the largest element is asked for")
      .small("elements are sorted, which takes emulated threads long")
      .big({index({9000}, 9), real({9000})})
      .within(8);
  t.row("histc", kFloats, shapes({{4, 5}, {0}, {}}, -3, 3), CALL_OUT(histc, x[0], 5, -2, 2),
        [](P x) {
          Plain out{{5}, Values(5)};
          for (const double v : x[0].v)
            if (v >= -2 && v <= 2) ++out.v[static_cast<size_t>(std::min(4., (v + 2) * 5 / 4))];
          return out;
        })
      .only(kWide)  // in sixteen bits edges are rounded
      .no_gradient()
      .in_one("the counts are of all elements")
      .small("elements are sorted, which takes emulated threads long")
      .big({real({90, 140}, -3, 3)});
}

// Edges of bins: 0-dim where a sample is a number, [2, edges] of points in the plane.
void add_histograms(Table& t) {
  constexpr auto kTaken = static_cast<uint16_t>(kWide | set_of(kBFloat16));
  static const double edges[] = {-2, -0.5, 0, 0.5, 2};
  const auto given = [](const Tensor& x) {  // made where x is
    const Tensor k = arange(-2, 3, x.options());
    return k.mul(k.abs()).div(2);
  };
  const auto bin = [](double v) {  // -1: none
    if (!(v >= -2 && v <= 2)) return -1;
    int k = 0;
    while (k < 3 && v >= edges[k + 1]) ++k;
    return k;
  };
  // Samples from -3 to 2.5 of x's first input, in the dtype of the second.
  const auto half_steps = EXPRESSION(x[0].to(x[1].scalar_type()).sub(6).div(2));
  const auto steps_of = [](const Values& v) {
    Values out;
    for (const double k : v) out.push_back((k - 6) / 2);
    return out;
  };
  const auto counted = [](const std::vector<int>& bins, const Values& weights) {
    Plain out{{4}, Values(4)};
    for (size_t i = 0; i < bins.size(); ++i)
      if (bins[i] >= 0) out.v[static_cast<size_t>(bins[i])] += weights[i];
    return out;
  };
  const auto bins_of = [bin](const Values& v) {
    std::vector<int> out;
    for (const double x : v) out.push_back(bin(x));
    return out;
  };
  const char* const all = "the counts are of all elements";
  const char* const slow = "elements are sorted, which takes emulated threads long";
  t.row("histogram", kTaken, shapes({{4, 5}, {0}, {}}, -3, 3),
        EXPRESSION(std::get<0>(histogram(x[0], given(x[0])))),
        [=](P x) { return counted(bins_of(x[0].v), Values(x[0].v.size(), 1)); })
      .also(set_of(kHalf))
      .only(kWide)  // in sixteen bits edges and counts are rounded
      .no_gradient()
      .in_one(all)
      .small(slow)
      .big({real({90, 140}, -3, 3)})
      .writes([given](Tensor& o, V x) {
        Tensor places = empty({0}, x[0].options());
        return std::get<0>(histogram_out(o, places, x[0], given(x[0])));
      });
  t.row("histogram.weights", kTaken,
        {{index({4, 5}, 12), real({4, 5})}, {index({0}, 1), real({0})}},
        EXPRESSION(std::get<0>(histogram(half_steps(x), given(x[1]), x[1]))),
        [=](P x) { return counted(bins_of(steps_of(x[0].v)), x[1].v); })
      .also(set_of(kHalf))
      .only(kWide)  // in sixteen bits edges and counts are rounded
      .not_scalar("in histogram")
      .tame("a weight outside counts nothing")
      .in_one(all)
      .small(slow)
      .within(4)
      .big({index({90, 140}, 12), real({90, 140})});
  t.row("histogram.density", kTaken, {{index({4, 5}, 12), real({4, 5}, 1, 2)}},
        EXPRESSION(std::get<0>(histogram(half_steps(x), given(x[1]), x[1], true))),
        [=](P x) {
          Plain out = counted(bins_of(steps_of(x[0].v)), x[1].v);
          const double sum = std::accumulate(out.v.begin(), out.v.end(), 0.);
          for (size_t k = 0; k < 4; ++k) out.v[k] /= sum * (edges[k + 1] - edges[k]);
          return out;
        })
      .also(set_of(kHalf))
      .only(kWide)
      .not_empty("nothing is divided by nothing")
      .not_scalar("in histogram")
      .in_one(all)
      .tame("a weight outside counts nothing")
      .small(slow)
      .within(8)
      .big({index({90, 140}, 12), real({90, 140}, 1, 2)});
  t.row(
       "histogram.even", kTaken, shapes({{4, 5}, {0}, {}}, -3, 3),
       [](V x) {
         const double range[] = {-2, 2};
         return std::get<0>(histogram(x[0], 4, ArrayRef<double>(range)));
       },
       [](P x) {
         Plain out{{4}, Values(4)};
         for (const double v : x[0].v)
           if (v >= -2 && v <= 2) ++out.v[static_cast<size_t>(std::min(3., v + 2))];
         return out;
       })
      .also(set_of(kHalf))
      .only(kWide)  // in sixteen bits edges and counts are rounded
      .no_gradient()
      .in_one(all)
      .small(slow)
      .big({real({90, 140}, -3, 3)})
      .writes([](Tensor& o, V x) {
        const double range[] = {-2, 2};
        Tensor places = empty({0}, x[0].options());
        return std::get<0>(histogram_out(o, places, x[0], 4, ArrayRef<double>(range)));
      });
  // Each of [n, 2] in one of 4 x 4 bins, per area.
  t.row("histogramdd", kTaken, shapes({{9, 2}, {3, 4, 2}}, -1, 1),
        EXPRESSION(std::get<0>(histogramdd(x[0], {given(x[0]), given(x[0])}, {}, {}, true))),
        [bin](P x) {
          Plain out{{4, 4}, Values(16)};
          double sum = 0;
          for (size_t i = 0; i < x[0].v.size(); i += 2) {
            const int a = bin(x[0].v[i]), b = bin(x[0].v[i + 1]);
            if (a >= 0 && b >= 0) ++out.v[static_cast<size_t>(4 * a + b)], ++sum;
          }
          for (size_t k = 0; k < 16; ++k)
            out.v[k] /= sum * (edges[k / 4 + 1] - edges[k / 4]) * (edges[k % 4 + 1] - edges[k % 4]);
          return out;
        })
      .also(set_of(kHalf))
      .only(kWide)  // in sixteen bits edges and counts are rounded
      .no_gradient()
      .not_empty("per area of nothing is no number")
      .not_scalar("refused: points are rows")
      .tame("of no point inside is no number")
      .in_one(all)
      .small(slow)
      .big({real({9000, 2}, -1, 1)});
}

// Segments of the first dimension, given by lengths.
void add_segments(Table& t) {
  const auto segments = [](const char* name, double start, double (*f)(double, double), bool mean) {
    return std::tuple(name, start, f, mean);
  };
  for (const auto& [name, start, f, mean] :
       {segments(
            "segment_reduce.sum", 0, [](double a, double b) { return a + b; }, false),
        segments(
            "segment_reduce.mean", 0, [](double a, double b) { return a + b; }, true),
        segments(
            "segment_reduce.prod", 1, [](double a, double b) { return a * b; }, false),
        segments(
            "segment_reduce.max", -INFINITY,
            [](double a, double b) { return std::isnan(a) || a > b ? a : b; }, false),
        segments(
            "segment_reduce.min", INFINITY,
            [](double a, double b) { return std::isnan(a) || a < b ? a : b; }, false)}) {
    t.row(
         name, kFloats, shapes({{5, 3}, {5}, {7, 2, 2}}, 0.5, 1.5),
         [reduce = std::string_view(name).substr(15)](V x) {
           const int64_t n = x[0].size(0);
           const auto of = [&](int64_t length) {
             return full({1}, length, TensorOptions(kLong).device(x[0].device()));
           };
           return segment_reduce(x[0], reduce, cat({of(2), of(n - 3), of(1)}));
         },
         [start = start, f = f, mean = mean](P x) {
           const int64_t n = x[0].size(0), ends[] = {0, 2, n - 1, n};
           Index sizes = x[0].sizes;
           sizes[0] = 3;
           return made(sizes, [&](Index i) {
             const int64_t part = i[0];
             double y = start;
             for (int64_t k = ends[part]; k < ends[part + 1]; ++k) i[0] = k, y = f(y, x[0].at(i));
             return mean ? y / static_cast<double>(ends[part + 1] - ends[part]) : y;
           });
         })
        .not_empty("segments without elements: Segments.AtTheEdges")
        .not_scalar("refused: there is no dimension")
        .within(8)
        .in_one("lengths are those of the whole")
        .small("sums by index are sorted, which takes emulated threads long")
        .big({real({140, 131}, 0.99, 1.01)});
  }
}

// Equal extrema share all of the gradient. What an empty segment would give does not matter, nor
// whether `initial` is one of the extrema.
TEST(Segments, ExtremaShareTheGradientOfTheData) {
  const auto check = [](const char* reduce, std::optional<Scalar> initial, Values want) {
    constexpr double inf = INFINITY, none = NAN;
    const Tensor x = tensor({3.0, 1.0, 3.0, -inf, -inf, 2.0, none}).requires_grad_();
    segment_reduce(x, reduce, tensor({3, 2, 0, 1, 1}), {}, {}, 0, false, initial)
        .mul(tensor({2.0, 4.0, 8.0, 16.0, 32.0}))
        .sum()
        .backward();
    expect_close(x.grad(), Plain{{7}, std::move(want)});
  };
  check("max", {}, {1, 0, 1, 2, 2, 16, 32});
  check("max", 2, {1, 0, 1, 0, 0, 16, 32});
  check("max", 3, {1, 0, 1, 0, 0, 0, 32});
  check("min", 2, {0, 2, 0, 2, 2, 16, 32});
  check("max", NAN, {0, 0, 0, 0, 0, 0, 32});
}

// Lengths with a sum that wraps around to the extent.
TEST(Segments, LengthsThatWrap) {
  EXPECT_THROW(segment_reduce(ones({8}), "sum", tensor({INT64_MAX, INT64_MAX, int64_t{10}})),
               Error);
}

TEST(Segments, AtTheEdges) {
  const Tensor x = tensor({1.0, 2.0, 2.5, 4.0}), lengths = tensor({1, 0, 3});
  const auto check = [&](const char* reduce, Values want, std::optional<Scalar> initial = {}) {
    SCOPED_TRACE(reduce);
    expect_close(segment_reduce(x, reduce, lengths, {}, {}, 0, false, initial), Plain{{3}, want});
    expect_close(segment_reduce(x, reduce, {}, {}, tensor({0, 1, 1, 4}, kInt), 0, false, initial),
                 Plain{{3}, want});
  };
  // Numbers of PyTorch's.
  check("sum", {1, 0, 8.5});
  check("mean", {1, NAN, 8.5 / 3});
  check("prod", {1, 1, 20});
  check("max", {1, -INFINITY, 4});
  check("min", {1, INFINITY, 2});
  check("sum", {3, 2, 10.5}, 2);
  check("mean", {3, 2, 3.5}, 2);
  check("max", {2, 2, 4}, 2);
  expect_close(segment_reduce(x, "sum", tensor({1, 2}), {}, {}, 0, true), Plain{{2}, {1, 4.5}});
  expect_close(segment_reduce(x, "sum", {}, {}, tensor({1, 3})), Plain{{1}, {4.5}});
  expect_close(segment_reduce(x.view({2, 2}), "sum", tensor({{1, 1}, {2, 0}}), {}, {}, 1),
               Plain{{2, 2}, {1, 2, 6.5, 0}});
  EXPECT_EQ(segment_reduce(x.narrow(0, 0, 0), "sum", zeros({0}, kLong)).numel(), 0);
  EXPECT_THROW(segment_reduce(x, "sum", tensor({1, 2})), Error);
  EXPECT_THROW(segment_reduce(x, "sum", tensor({-1, 5})), Error);
  EXPECT_THROW(segment_reduce(x, "sum", tensor({1.0, 3.0})), Error);
  EXPECT_THROW(segment_reduce(x, "sum"), Error);
  EXPECT_THROW(segment_reduce(x, "any", lengths), Error);
  EXPECT_THROW(segment_reduce(x.view({2, 2}), "sum", tensor({1, 1}), {}, {}, 1), Error);
}

// PyTorch's numbers, ranges and errors.
TEST(Histograms, AtTheEdges) {
  const Tensor x = tensor({1.0, 2.0, 2.5, 4.0});
  const auto check = [](const std::tuple<Tensor, Tensor>& got, Values counts, Values edges) {
    const auto n = static_cast<int64_t>(counts.size());
    expect_close(std::get<0>(got), Plain{{n}, counts});
    expect_close(std::get<1>(got), Plain{{n + 1}, edges});
  };
  const auto range = [&](double low, double high, int64_t bins) {
    const double ends[] = {low, high};
    return histogram(x, bins, ArrayRef<double>(ends));
  };
  check(histogram(x, 3), {1, 2, 1}, {1, 2, 3, 4});
  check(range(0, 2, 2), {0, 2}, {0, 1, 2});
  check(range(2, 2, 2), {0, 2}, {1.5, 2, 2.5});
  check(histogram(ones({3}), 2), {0, 3}, {0.5, 1, 1.5});
  check(histogram(ones({0}), 2), {0, 0}, {0, 0.5, 1});
  check(histogram(x, tensor({1.0, 2.0, 4.0}), {}, true), {0.25, 0.375}, {1, 2, 4});
  check(histogram(x, 3, {}, x, true), {2 / 19., 9 / 19., 8 / 19.}, {1, 2, 3, 4});
  const double ends[] = {0, 2};
  check(histogram(tensor({1.0, double(NAN)}), 2, ArrayRef<double>(ends)), {0, 1}, {0, 1, 2});
  const auto [counts, edges] = histogramdd(x.view({2, 2}), {2, 3}, {}, tensor({1.0, 2.0}));
  expect_close(counts, Plain{{2, 3}, {1, 0, 0, 0, 0, 2}});
  expect_close(edges[0], Plain{{3}, {1, 1.75, 2.5}});
  expect_close(edges[1], Plain{{4}, {2, 8 / 3., 10 / 3., 4}});
  EXPECT_EQ(std::get<0>(histogramdd(x.view({2, 2}), 3)).sizes().vec(), (Index{3, 3}));
  EXPECT_EQ(std::get<0>(histogramdd(ones({2, 0}), IntArrayRef())).dim(), 0);
  EXPECT_THROW(range(2, 0, 2), Error);
  EXPECT_THROW(range(0, INFINITY, 2), Error);
  EXPECT_THROW(histogram(tensor({1.0, double(NAN)}), 2), Error);
  EXPECT_THROW(histogram(x, 0), Error);
  EXPECT_THROW(histogram(x, ones({1})), Error);
  EXPECT_THROW(histogram(x, ones({2, 2})), Error);
  EXPECT_THROW(histogram(x, ones({2}, kDouble)), Error);
  EXPECT_THROW(histogram(x, 3, {}, ones({3})), Error);
  EXPECT_THROW(histogram(x, 3, {}, x.to(kDouble)), Error);
  EXPECT_THROW(histogramdd(x, IntArrayRef{2}), Error);
  EXPECT_THROW(histogramdd(x.view({2, 2}), IntArrayRef{2}), Error);
}

RAMET_OP_TABLE(add_counts, add_histograms, add_segments);

}  // namespace
}  // namespace op_table
}  // namespace ramet
