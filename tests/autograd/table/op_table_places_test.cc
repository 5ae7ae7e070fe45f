// Rows of the operation table: places among sorted numbers, running products and extrema.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;

// Halving, as it is defined.
double place_among(const std::function<double(int64_t)>& boundary, int64_t n, double x,
                   bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const double b = boundary(middle);
    if (right ? b > x : b >= x) high = middle;
    else low = middle + 1;
  }
  return static_cast<double>(low);
}
Plain places_among(const Plain& lines, const Plain& x, bool right, const Plain* sorter) {
  return made(x.sizes, [&](Index i) {
    const double v = x.at(i);
    if (lines.rank() == 1) i = {0};
    return place_among(
        [&](int64_t k) {
          i.back() = k;
          if (sorter) i.back() = static_cast<int64_t>(sorter->at(i));
          return lines.at(i);
        },
        lines.size(-1), v, right);
  });
}

void add_searches(Table& t) {
  // Sequences in no order: what halving gives is defined for them, too.
  const auto row = [&](const char* name, Samples samples, Calls call, Reference f) -> Row& {
    return t.row(name, kNumbers, std::move(samples), std::move(call), std::move(f))
        .also(kTruth)
        .gives(positions)
        .no_gradient()
        .small("as many threads as there are values");
  };
  const Sample vector = {real({40}), real({90, 140})};
  row("searchsorted",
      {{real({7}), real({3, 5})},
       {real({7}), real({0, 5})},
       {real({0}), real({3})},
       {real({7}), real({})}},
      CALL_OUT(searchsorted, x[0], x[1]),
      [](P x) { return places_among(x[0], x[1], false, nullptr); })
      .big(vector, 2);
  row("searchsorted.lines",
      {{real({3, 7}), distinct({3, 7}, 7), real({3, 5})},
       {real({3, 0}), distinct({3, 0}, 7), real({3, 5})}},
      CALL(searchsorted, x[0], x[2], false, false, "right", x[1]),
      [](P x) { return places_among(x[0], x[2], true, &x[1]); })
      .big({real({90, 40}), distinct({90, 40}, 40), real({90, 140})}, 7)
      .writes(OUT(searchsorted, x[0], x[2], false, true, std::nullopt, x[1]));
  row("searchsorted.number", {{real({7})}, {real({0})}},
      CALL_OUT(searchsorted, x[0], Scalar(1), false, true),
      [](P x) {
        return places_among(x[0], Plain{{}, {1}}, true, nullptr);
      })
      .alone("one value")
      .in_one("there is one value")
      .not_scalar("refused: a number is no sequence")
      .big({real({9000})});
  row("bucketize", {{real({3, 5}), real({7})}, {real({0, 5}), real({7})}, {real({}), real({7})}},
      CALL_OUT(bucketize, x[0], x[1], true, true),
      [](P x) { return places_among(x[1], x[0], true, nullptr); })
      .gives([](ScalarType) { return kInt; })
      .big({real({90, 140}), real({40})}, 1);
  row("bucketize.number", {{real({7})}, {real({0})}}, CALL_OUT(bucketize, Scalar(1), x[0]),
      [](P x) {
        return places_among(x[0], Plain{{}, {1}}, false, nullptr);
      })
      .alone("one value")
      .in_one("there is one value")
      .not_scalar("refused: a number is no sequence")
      .big({real({9000})});
}

// Whole numbers; some are in both.
void add_memberships(Table& t) {
  const auto among = [](const Plain& tests, double x) {
    for (const double v : tests.v)
      if (std::nearbyint(v) == std::nearbyint(x)) return true;
    return false;
  };
  const auto row = [&](const char* name, Samples samples, Calls call, Reference f) -> Row& {
    return t.row(name, kNumbers, std::move(samples), std::move(call), std::move(f))
        .gives(boolean)
        .no_gradient();
  };
  const auto whole = [](const Tensor& x) { return x.round(); };
  row("isin",
      {{real({3, 5}, -9, 9), real({2, 6}, -9, 9)},
       {real({3, 0}, -9, 9), real({12}, -9, 9)},
       {real({}, -9, 9), real({12}, -9, 9)}},
      CALL_OUT(isin, whole(x[0]), whole(x[1])),
      [=](P x) {
        return made(x[0].sizes, [&](const Index& i) { return among(x[1], x[0].at(i)); });
      })
      .big({real({90, 140}, -90, 90), real({40}, -90, 90)}, 1)
      .small("as many threads as there are values");
  row(
      "isin.few",
      {{real({3, 5}, -3, 3), real({3}, -3, 3)},
       {real({3, 5}, -3, 3), real({0}, -3, 3)},
       {real({}, -3, 3), real({}, -3, 3)}},
      [=](V x) {
        const Tensor all = whole(x[0]);  // first: the large one is checked for kernels on a GPU
        return isin(all, whole(x[1]), true, true);
      },
      [=](P x) {
        return made(x[0].sizes, [&](const Index& i) { return !among(x[1], x[0].at(i)); });
      })
      .big({real({90, 140}, -9, 9), real({3}, -9, 9)}, 1)
      .writes(OUT(isin, whole(x[0]), whole(x[1]), true, true));
  row("isin.number", shapes({{3, 5}, {0}, {}}, -3, 3), CALL_OUT(isin, whole(x[0]), 1), [](P x) {
    return made(x[0].sizes,
                [&](const Index& i) { return double(std::nearbyint(x[0].at(i)) == 1); });
  }).big({real({90, 140}, -3, 3)}, 1);
  row("isin.element", shapes({{20}, {0}, {}}, -3, 3), CALL_OUT(isin, Scalar(1), whole(x[0])),
      [=](P x) {
        return Plain{{}, {double(among(x[0], 1))}};
      })
      .in_one("there is one value")
      .small("elements are sorted, which takes emulated threads long")
      .big({real({9000}, -3, 3)});
}

// ---- running ------------------------------------------------------------------------------------

Values products(const Values& v) {
  Values out;
  for (const double x : v) out.push_back(x * (out.empty() ? 1 : out.back()));
  return out;
}
// Positions of the running extrema.
Values extrema(const Values& v, bool largest) {
  Values out;
  size_t best = 0;
  for (size_t i = 0; i < v.size(); ++i) {
    const bool better = largest ? v[i] >= v[best] : v[i] <= v[best];
    if (std::isnan(v[i]) || (!std::isnan(v[best]) && better)) best = i;
    out.push_back(static_cast<double>(best));
  }
  return out;
}
Values places_of_max(const Values& v) { return extrema(v, true); }
Values places_of_min(const Values& v) { return extrema(v, false); }
Values max_so_far(const Values& v) {
  Values out = extrema(v, true);
  for (double& x : out) x = v[static_cast<size_t>(x)];
  return out;
}
Values min_so_far(const Values& v) {
  Values out = extrema(v, false);
  for (double& x : out) x = v[static_cast<size_t>(x)];
  return out;
}
Values log_sums(const Values& v) {
  Values out;
  for (size_t i = 0; i < v.size(); ++i) {
    double top = -INFINITY, sum = 0;
    for (size_t k = 0; k <= i; ++k) top = std::isnan(v[k]) ? v[k] : std::max(top, v[k]);
    for (size_t k = 0; k <= i; ++k) sum += std::exp(v[k] - top);
    out.push_back(std::isinf(top) ? top : top + std::log(sum));
  }
  return out;
}

void add_running(Table& t) {
  const auto row = [&](const char* name, uint16_t dtypes, int64_t dim, double lo, double hi,
                       Calls call, Values (*f)(const Values&)) -> Row& {
    return t
        .row(name, dtypes, shapes({{3, 5}, {2, 4, 3}, {0, 3}, {3, 0}, {4}, {}}, lo, hi),
             std::move(call), [=](P x) { return along(x[0], dim, Line::kResize, f); })
        .big({real({120, 131}, lo, hi)})
        .sliced({dim == -1 ? 0 : 1}, dim == -1 ? 0 : 1);
  };
  const char* const asked = "whether there are zeros, which need n x n products";
  row("cumprod", kAll, -1, 0.5, 1.5, CALL_IN_PLACE_OUT(cumprod, x[0], -1), products)
      .gives(widened)
      .asks(asked);
  row("cumprod.first", kAll, 0, 0.5, 1.5, CALL_OUT(cumprod, x[0], 0), products)
      .gives(widened)
      .asks(asked);
  row("logcumsumexp", kFloats, -1, -3, 3, CALL_OUT(logcumsumexp, x[0], -1), log_sums);
  row("logcumsumexp.first", kFloats, 0, -3, 3, CALL_OUT(logcumsumexp, x[0], 0), log_sums);
  const char* const slow = "sums by index are sorted, which takes emulated threads long";
  row("cummax", kAll, -1, -9, 9, FIRST_OUT(kLong, cummax, x[0], -1), max_so_far).small(slow);
  row("cummin", kAll, 0, -9, 9, FIRST_OUT(kLong, cummin, x[0], 0), min_so_far).small(slow);
  row("cummax.places", kAll, 0, -9, 9, SECOND_OUT(cummax, x[0], 0), places_of_max)
      .gives(positions)
      .no_gradient();
  row("cummin.places", kAll, -1, -9, 9, SECOND_OUT(cummin, x[0], -1), places_of_min)
      .gives(positions)
      .no_gradient();
}

RAMET_OP_TABLE(add_searches, add_memberships, add_running);

}  // namespace
}  // namespace op_table
}  // namespace ramet
