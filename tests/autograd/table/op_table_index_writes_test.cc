// Rows of the operation table: values joined, put or filled in at named positions.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using To = std::function<Index(const Index&, P)>;

size_t flat_of(const Plain& x, const Index& at) {
  int64_t flat = 0;
  for (size_t d = 0; d < at.size(); ++d) flat = flat * x.sizes[d] + at[d];
  return static_cast<size_t>(flat);
}
// x[0] with the values x[2], element i of them at to(i), replaced or joined.
Reference joined(bool include_self, To to, const std::string& how) {
  return [=](P x) {
    Plain out = x[0];
    std::vector<double> count(out.v.size(), include_self ? 1 : 0);
    made(x[2].sizes, [&](const Index& i) {
      const size_t at = flat_of(out, to(i, x));
      double &old = out.v[at], v = x[2].at(i);
      const bool first = count[at]++ == 0;
      if (first || how == "copy") return old = v;
      if (how == "amax") return old = std::isnan(old) || old > v ? old : v;
      if (how == "amin") return old = std::isnan(old) || old < v ? old : v;
      return old = how == "prod" ? old * v : old + v;
    });
    if (how == "mean")
      for (size_t i = 0; i < count.size(); ++i) out.v[i] /= std::max(count[i], 1.0);
    return out;
  };
}
// The element along dimension 1 that an index of the values' sizes, or a vector, names.
Index by_element(Index i, P x) {
  const auto to = static_cast<int64_t>(x[1].at(i));
  i[1] = to;
  return i;
}
Index by_slice(Index i, P x) {
  i[1] = static_cast<int64_t>(x[1].at({i[1]}));
  return i;
}

struct Mode {
  const char *name, *how;
  bool include_self = true;
};
const Mode kScatters[] = {{"scatter_reduce.sum", "sum"},
                          {"scatter_reduce.sum_alone", "sum", false},
                          {"scatter_reduce.prod", "prod"},
                          {"scatter_reduce.mean", "mean"},
                          {"scatter_reduce.mean_alone", "mean", false},
                          {"scatter_reduce.amax", "amax"},
                          {"scatter_reduce.amin_alone", "amin", false}},
           kSlices[] = {{"index_reduce.prod_alone", "prod", false},
                        {"index_reduce.mean", "mean"},
                        {"index_reduce.amax_alone", "amax", false},
                        {"index_reduce.amin", "amin"}};

void add_joins(Table& t) {
  for (const auto& [name, how, self_too] : kScatters) {
    const bool mean = how == std::string("mean");
    Row& row = t.row(name, mean ? kNumbers : kAll,
                     {{real({3, 5}), index({3, 4}, 5), real({3, 4})},
                      {real({3, 5}), index({2, 9}, 3), real({2, 9})},
                      {real({3, 5}), index({2, 0}, 5), real({2, 0})}},
                     CALL_IN_PLACE_OUT(scatter_reduce, x[0], 1, x[1], x[2], how, self_too),
                     joined(self_too, by_element, how));
    row.big({real({97, 131}), index({97, 150}, 131), real({97, 150})}, 7).within(2);
    if (mean) row.only(kFloats);  // those of integers are rounded: a test below
  }
  for (const auto& [name, how, self_too] : kSlices) {
    Row& row = t.row(name, kNumbers,
                     {{real({3, 5}), index({4}, 5), real({3, 4})},
                      {real({3, 5}), index({9}, 3), real({3, 9})},
                      {real({3, 5}), index({0}, 5), real({3, 0})}},
                     CALL_IN_PLACE_OUT(index_reduce, x[0], 1, x[1], x[2], how, self_too),
                     joined(self_too, by_slice, how));
    row.big({real({97, 131}), index({150}, 131), real({97, 150})}, 5).within(2);
    if (how == std::string("mean")) row.only(kFloats);
  }
}

void add_writes(Table& t) {
  t.row("index_copy", kAll,
        {{real({3, 5}), distinct({3}, 5), real({3, 3})},
         {real({3, 5}), distinct({0}, 5), real({3, 0})}},
        CALL_IN_PLACE_OUT(index_copy, x[0], 1, x[1], x[2]), joined(true, by_slice, "copy"))
      .big({real({97, 131}), distinct({131}, 131), real({97, 131})}, 5);
  const auto filled = [](double (*value)(P)) {
    return [value](P x) {
      Plain out = x[0];
      made({out.size(0), x[1].size(0)}, [&](const Index& i) {
        const auto named = static_cast<int64_t>(x[1].at({i[1]}));
        return out.v[flat_of(out, {i[0], named < 0 ? named + out.size(1) : named})] = value(x);
      });
      return out;
    };
  };
  const Input places = {{4}, -5, 5, Kind::kIndex};
  t.row("index_fill", kAll,
        {{real({3, 5}), places}, {real({3, 5}), index({0}, 5)}, {real({0, 5}), places}},
        CALL_IN_PLACE_OUT(index_fill, x[0], 1, x[1], 1), filled([](P) { return 1.0; }))
      .not_scalar("a test below has one: dimension 0")
      .big({real({97, 131}), index({90}, 131)}, 1);
  t.row("index_fill.tensor", kAll,
        {{real({3, 5}), places, real({})}, {real({3, 5}), index({0}, 5), real({})}},
        CALL_IN_PLACE_OUT(index_fill, x[0], 1, x[1], x[2]), filled([](P x) { return x[2].v[0]; }))
      .big({real({97, 131}), index({90}, 131), real({})}, 1);
  const auto put_at = [](const char* how) {
    return joined(
        true,
        [](const Index& i, P x) {
          auto at = static_cast<int64_t>(x[1].at(i));
          Index place(x[0].sizes.size());
          for (size_t d = place.size(); d-- > 0; at /= x[0].sizes[d]) place[d] = at % x[0].sizes[d];
          return place;
        },
        how);
  };
  t.row("put", kAll,
        {{real({3, 5}), distinct({2, 4}, 14), real({2, 4})},
         {real({3, 5}), distinct({0}, 14), real({0})},
         {real({}), index({1}, 1), real({1})}},
        CALL_IN_PLACE_OUT(put, x[0], x[1], x[2]), put_at("copy"))
      .big({real({97, 131}), distinct({97 * 131}, 97 * 131), real({97 * 131})})
      .in_one("what is replaced is spread over the whole input")
      .alone("indices may name one element twice");
  t.row("put.accumulate", kAll,
        {{real({3, 5}), index({2, 9}, 15), real({2, 9})},
         {real({3, 5}), index({0}, 15), real({0})},
         {real({}), index({1}, 1), real({1})}},
        CALL_IN_PLACE_OUT(put, x[0], x[1], x[2], true), put_at("sum"))
      .big({real({97, 131}), index({9000}, 97 * 131), real({9000})})
      .in_one("what is added is spread over the whole input")
      .alone("indices may name one element twice")
      .within(4);
  t.row("select_scatter", kAll, {{real({3, 5}), real({3})}, {real({0, 5}), real({0})}},
        CALL_OUT(select_scatter, x[0], x[1], 1, -2),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            return i[1] == x[0].size(1) - 2 ? x[1].at({i[0]}) : x[0].at(i);
          });
        })
      .big({real({300, 131}), real({300})}, 3);
  t.row("slice_scatter", kAll, {{real({3, 5}), real({3, 2})}, {real({0, 5}), real({0, 2})}},
        CALL_OUT(slice_scatter, x[0], x[1], 1, 1, -1, 2),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            const bool in = i[1] % 2 == 1 && i[1] < x[0].size(1) - 1;
            return in ? x[1].at({i[0], i[1] / 2}) : x[0].at(i);
          });
        })
      .big({real({300, 131}), real({300, 65})}, 3);
}

// PyTorch 2.15's numbers.
TEST(IndexWrites, WholeMeansAndTies) {
  const Tensor at = tensor({0, 0}, kLong), x = tensor({-1, -2}, kLong), v = tensor({-1, -3}, kLong);
  expect_close(scatter_reduce(x, 0, at, v, "mean"), Plain{{2}, {-2, -2}});
  expect_close(index_reduce(x, 0, at, v, "mean"), Plain{{2}, {-2, -2}});
  expect_close(scatter_reduce(x, 0, at, v, "mean", false), Plain{{2}, {-2, -2}});
  // Of equal extrema each gets a share; two zeros of a product leave nothing to the others.
  const auto gradients_of = [](const char* how, std::vector<double> a, std::vector<double> b) {
    return gradients(
        [=](V in) {
          return scatter_reduce(in[0], 0, tensor({0, 0, 1}, kLong), in[1], how).sum();
        },
        {tensor(a, kDouble), tensor(b, kDouble)});
  };
  std::vector<Tensor> g = gradients_of("prod", {1, 2, 3}, {0, 0, 2});
  const double s = 1 / gradients_of("sum", {1, 2, 3}, {0, 0, 2})[0][0].item<double>();
  expect_close(g[0] * s, Plain{{3}, {0, 2, 1}});
  expect_close(g[1] * s, Plain{{3}, {0, 0, 2}});
  g = gradients_of("amax", {5, 2, 3}, {5, 5, 2});
  expect_close(g[0] * s, Plain{{3}, {1 / 3., 0.5, 1}});
  expect_close(g[1] * s, Plain{{3}, {1 / 3., 1 / 3., 0.5}});
}
TEST(IndexWrites, Edges) {
  EXPECT_EQ(index_fill(tensor(1.5), 0, tensor({-1}, kLong), 5).item<double>(), 5);
  expect_close(index_copy(ones({3}), 0, tensor({1}, kLong), tensor({0.f})), Plain{{3}, {1, 0, 1}});
  const Tensor x = ones({3}), at = tensor({1}, kLong), v = zeros({1});
  EXPECT_THROW(scatter_reduce(x, 0, at, v, "max"), Error);
  EXPECT_THROW(index_reduce(x, 0, at, v, "sum"), Error);
  EXPECT_THROW(scatter_reduce(x, 0, at, v.to(kDouble), "sum"), Error);
  EXPECT_THROW(scatter_reduce(x, 0, tensor({3}, kLong), v, "sum"), IndexError);
  EXPECT_THROW(put(zeros({0}), tensor({0}, kLong), v), IndexError);
  EXPECT_THROW(put(x, tensor({1, 2}, kLong), v), Error);
  EXPECT_THROW(put(x, tensor({int64_t{INT64_MIN}}, kLong), v), IndexError);
  EXPECT_THROW(index_fill(x, 0, tensor({-4}, kLong), 5), IndexError);
  EXPECT_THROW(index_fill(x, 0, at, v), Error);
  EXPECT_THROW(select_scatter(ones({2, 3}), zeros({2}), 0, 0), Error);
  EXPECT_THROW(slice_scatter(ones({2, 3}), zeros({2, 1}), 1, 1), Error);
}

RAMET_OP_TABLE(add_joins, add_writes);

}  // namespace
}  // namespace op_table
}  // namespace ramet
