// Rows of the operation table: gathering, scattering, masks and index lists.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Which element along dimension 1 an index names.
Index renamed(Index i, const Plain& index) {
  const double to = index.at(i);
  i[1] = static_cast<int64_t>(to);
  return i;
}
// x with element to(i) replaced by f(old, value i), for all i of `values`, in order.
Plain changed(Plain x, const Plain& values, const std::function<Index(const Index&)>& to,
              double (*f)(double, double)) {
  made(values.sizes, [&](const Index& i) {
    const Index at = to(i);
    int64_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d) flat = flat * x.sizes[d] + at[d];
    double& v = x.v[static_cast<size_t>(flat)];
    return v = f(v, values.at(i));
  });
  return x;
}
double replace(double, double value) { return value; }
double plus(double old, double value) { return old + value; }

void add_gathers(Table& t) {
  const Sample wide = {real({97, 131}), index({97, 50}, 131)};
  t.row("gather", kAll,
        {{real({3, 5}), index({3, 4}, 5)},
         {real({3, 5}), index({2, 0}, 5)},
         {real({4, 5}), index({2, 6}, 5)}},
        CALL_OUT(gather, x[0], 1, x[1]),
        [](P x) {
          return made(x[1].sizes, [&](const Index& i) { return x[0].at(renamed(i, x[1])); });
        })
      .big(wide, 3);
  t.row("gather.first", kAll,
        {{real({5, 3}), index({4, 3}, 5)},
         {real({5, 0}), index({2, 0}, 5)},
         {real({}), index({}, 1)}},
        CALL(gather, x[0], 0, x[1]),
        [](P x) {
          return made(x[1].sizes, [&](Index i) {
            if (!i.empty()) i[0] = static_cast<int64_t>(x[1].at(Index(i)));
            return x[0].at(i);
          });
        })
      .big({real({40, 701}), index({20, 701}, 40)})
      .sliced({1, 1}, 1);
  const auto scattered = [](double (*f)(double, double)) {
    return [f](P x) {
      return changed(
          x[0], x[2], [&](const Index& i) { return renamed(i, x[1]); }, f);
    };
  };
  t.row("scatter", kAll,
        {{real({3, 5}), distinct({3, 4}, 5), real({3, 4})},
         {real({3, 5}), distinct({2, 0}, 5), real({2, 0})}},
        CALL_IN_PLACE_OUT(scatter, x[0], 1, x[1], x[2]), scattered(replace))
      .big({real({97, 131}), distinct({97, 50}, 131), real({97, 50})}, 7);
  t.row("scatter.number", kAll,
        {{real({3, 5}), index({3, 4}, 5)}, {real({3, 5}), index({2, 0}, 5)}},
        CALL_IN_PLACE_OUT(scatter, x[0], 1, x[1], Scalar(1)),
        [](P x) {
          const Plain ones = made(x[1].sizes, [](const Index&) { return 1.0; });
          return changed(
              x[0], ones, [&](const Index& i) { return renamed(i, x[1]); }, replace);
        })
      .big(wide, 3);
  t.row("scatter_add", kAll,
        {{real({3, 5}), index({3, 4}, 5), real({3, 4})},
         {real({3, 5}), index({2, 0}, 5), real({2, 0})}},
        CALL_IN_PLACE_OUT(scatter_add, x[0], 1, x[1], x[2]), scattered(plus))
      .big({real({97, 131}), index({97, 150}, 131), real({97, 150})}, 7)
      .within(2);
  t.row("index_select", kAll,
        {{real({3, 5}), index({4}, 5)},
         {real({3, 5}), index({0}, 5)},
         {real({0, 5}), index({2}, 5)}},
        CALL_OUT(index_select, x[0], 1, x[1]),
        [](P x) {
          return made({x[0].size(0), x[1].size(0)}, [&](const Index& i) {
            return x[0].at({i[0], static_cast<int64_t>(x[1].at({i[1]}))});
          });
        })
      .big({real({97, 131}), index({140}, 131)}, 1);
  t.row("index_add", kAll,
        {{real({3, 5}), index({4}, 5), real({3, 4})}, {real({3, 5}), index({0}, 5), real({3, 0})}},
        CALL_IN_PLACE_OUT(index_add, x[0], 1, x[1], x[2]),
        [](P x) {
          return changed(
              x[0], x[2],
              [&](const Index& i) {
                return Index{i[0], static_cast<int64_t>(x[1].at({i[1]}))};
              },
              plus);
        })
      .big({real({97, 131}), index({140}, 131), real({97, 140})}, 5)
      .within(2);
  t.row("take", kAll,
        {{real({3, 5}), index({2, 4}, 15)}, {real({3}), index({0}, 3)}, {real({3}), index({}, 3)}},
        CALL_OUT(take, x[0], x[1]),
        [](P x) {
          return made(x[1].sizes,
                      [&](const Index& i) { return x[0].v[static_cast<size_t>(x[1].at(i))]; });
        })
      .big({real({97, 131}), index({9000}, 97 * 131)}, 2);
  t.row("embedding", kAll,
        {{real({5, 3}), index({4}, 5)},
         {real({5, 3}), index({2, 4}, 5)},
         {real({5, 3}), index({}, 5)},
         {real({5, 3}), index({0}, 5)},
         {real({5, 0}), index({2}, 5)}},
        CALL_OUT(embedding, x[0], x[1]),
        [](P x) {
          Index sizes = x[1].sizes;
          sizes.push_back(x[0].size(1));
          return made(sizes, [&](const Index& i) {
            const Index at(i.begin(), i.end() - 1);
            return x[0].at({static_cast<int64_t>(x[1].at(at)), i.back()});
          });
        })
      .big({real({50, 131}), index({90}, 50)}, 2);
}

void add_masks(Table& t) {
  const Samples masked = {{real({3, 4}), mask({3, 4})},
                          {real({3, 4}), mask({4})},
                          {real({0, 4}), mask({0, 4})},
                          {real({}), mask({})}};
  t.row("masked_select", kAll, masked, CALL_OUT(masked_select, x[0], x[1]),
        [](P x) {
          Plain out{{0}, {}};
          made(common(x[0].sizes, x[1].sizes), [&](const Index& i) {
            if (x[1].broadcast(i)) out.v.push_back(x[0].broadcast(i));
            return 0.0;
          });
          out.sizes[0] = static_cast<int64_t>(out.v.size());
          return out;
        })
      .big({real({300, 131}), mask({300, 131})})
      .in_one("how many elements there are depends on the mask")
      .waits("the size of the result is asked for");
  t.row("masked_scatter", kAll,
        {{real({3, 4}), mask({3, 4}), real({12})},
         {real({3, 4}), mask({4}), real({3, 4})},
         {real({0, 4}), mask({0, 4}), real({0})},
         {real({}), mask({}), real({1})}},
        CALL_IN_PLACE_OUT(masked_scatter, x[0], x[1], x[2]),
        [](P x) {
          size_t next = 0;
          return made(x[0].sizes, [&](const Index& i) {
            return x[1].broadcast(i) ? x[2].v[next++] : x[0].at(i);
          });
        })
      .big({real({300, 131}), mask({300, 131}), real({300, 131})})
      .in_one("which value goes where depends on the mask before it")
      .waits("whether the values suffice is asked for");
  t.row("masked_fill.tensor", kAll,
        {{real({2, 3}), mask({3}), real({})},
         {real({0, 3}), mask({3}), real({})},
         {real({}), mask({}), real({})}},
        CALL_IN_PLACE_OUT(masked_fill, x[0], x[1], x[2]),
        [](P x) {
          return made(x[0].sizes,
                      [&](const Index& i) { return x[1].broadcast(i) ? x[2].v[0] : x[0].at(i); });
        })
      .big({real({97, 131}), mask({97, 131}), real({})}, 3);
  const auto places = [](P x) {
    std::vector<Index> found;
    made(x[0].sizes, [&](const Index& i) {
      if (x[0].at(i) != 0) found.push_back(i);
      return 0.0;
    });
    return made({static_cast<int64_t>(found.size()), x[0].rank()}, [&](const Index& i) {
      return double(found[static_cast<size_t>(i[0])][static_cast<size_t>(i[1])]);
    });
  };
  t.row("nonzero", kAll, shapes({{3, 4}, {0, 4}, {5}, {}}), CALL_OUT(nonzero, x[0]), places)
      .gives(positions)
      .no_gradient()
      .big({real({300, 131})})
      .in_one("how many rows there are depends on the values")
      .waits("the size of the result is asked for");
  t.row("argwhere", kAll, shapes({{3, 4}, {0, 4}, {5}, {}}), CALL(argwhere, x[0]), places)
      .gives(positions)
      .no_gradient()
      .big({real({300, 131})})
      .in_one("how many rows there are depends on the values")
      .waits("the size of the result is asked for");
  const auto first = [&](const char* name, int64_t n) {
    t.row(name, kAll, shapes({{3, 4}, {0, 4}, {5}, {}}), CALL_OUT(nonzero_static, x[0], n, -7),
          [n, places](P x) {
            const Plain all = places(x);
            return made({n, x[0].rank()},
                        [&](const Index& i) { return i[0] < all.size(0) ? all.at(i) : -7; });
          })
        .gives(positions)
        .no_gradient()
        .big({real({300, 131})})
        .in_one("a position depends on those before")
        .small("all that is behind meets in one row, which takes emulated threads long");
  };
  first("nonzero_static", 4);  // fewer than there are, and more
  first("nonzero_static.filled", 20);
  t.row("nonzero_numpy", kAll, shapes({{3, 4}, {0, 4}, {5}, {}}),
        EXPRESSION(nonzero_numpy(x[0]).back()),
        [places](P x) {
          const Plain line = x[0].rank() ? x[0] : Plain{{1}, x[0].v}, all = places({line});
          return made({all.size(0)}, [&](const Index& i) {
            return all.at({i[0], all.size(1) - 1});
          });
        })
      .big({real({300, 131})})
      .in_one("how many rows there are depends on the values")
      .waits("the size of the result is asked for")
      .gives(positions)
      .no_gradient();
  t.row("one_hot", set_of(kLong), {{index({3, 2}, 4)}, {index({}, 4)}, {index({0}, 4)}},
        CALL(one_hot, x[0], 4),
        [](P x) {
          Index sizes = x[0].sizes;
          sizes.push_back(4);
          return made(sizes, [&](const Index& i) {
            return double(x[0].at(Index(i.begin(), i.end() - 1)) == double(i.back()));
          });
        })
      .big({index({9000}, 4)}, 1)
      .no_gradient();
}

using List = std::vector<std::optional<Tensor>>;
int64_t whole(double v) { return static_cast<int64_t>(v); }

void add_lists(Table& t) {
  t.row("index", kAll,
        {{real({4, 5}), index({3}, 4), index({3}, 5)},
         {real({4, 5}), index({2, 1}, 4), index({3}, 5)},
         {real({4, 5}), index({0}, 4), index({1}, 5)}},
        EXPRESSION(ramet::index(x[0], List{x[1], x[2]})),
        [](P x) {
          return made(common(x[1].sizes, x[2].sizes), [&](const Index& i) {
            return x[0].at({whole(x[1].broadcast(i)), whole(x[2].broadcast(i))});
          });
        })
      .big({real({97, 131}), index({9000}, 97), index({9000}, 131)}, 6)
      .writes(OUT(index, x[0], List{x[1], x[2]}));
  t.row("index.second", kAll, {{real({4, 5}), index({3}, 5)}, {real({0, 5}), index({3}, 5)}},
        EXPRESSION(ramet::index(x[0], List{std::nullopt, x[1]})),
        [](P x) {
          return made({x[0].size(0), x[1].size(0)}, [&](const Index& i) {
            return x[0].at({i[0], whole(x[1].at({i[1]}))});
          });
        })
      .big({real({97, 131}), index({90}, 131)}, 1);
  t.row("index.mask", kAll, {{real({4, 5}), mask({4})}, {real({0, 5}), mask({0})}},
        EXPRESSION(ramet::index(x[0], List{x[1]})),
        [](P x) {
          Plain out{{0, x[0].size(1)}, {}};
          for (int64_t i = 0; i < x[0].size(0); ++i) {
            if (!x[1].at({i})) continue;
            ++out.sizes[0];
            for (int64_t j = 0; j < x[0].size(1); ++j) out.v.push_back(x[0].at({i, j}));
          }
          return out;
        })
      .big({real({300, 131}), mask({300})})
      .in_one("how many rows there are depends on the mask")
      .waits("the size of the result is asked for");
  const auto put = [](double (*f)(double, double)) {
    return [f](P x) {
      const Plain values = made({x[1].size(0)}, [&](const Index& i) { return x[3].broadcast(i); });
      return changed(
          x[0], values,
          [&](const Index& i) {
            return Index{whole(x[1].at(i)), whole(x[2].at(i))};
          },
          f);
    };
  };
  t.row("index_put", kAll,
        {{real({4, 5}), index({3}, 4), distinct({3}, 5), real({3})},
         {real({4, 5}), index({3}, 4), distinct({3}, 5), real({1})},
         {real({4, 5}), index({0}, 4), index({0}, 5), real({0})}},
        CALL_FUNCTION_IN_PLACE(index_put, x[0], List{x[1], x[2]}, x[3]), put(replace))
      .big({real({97, 131}), index({131}, 97), distinct({131}, 131), real({131})})
      .in_one("what is replaced is spread over the whole input")
      .alone("indices may name one element twice");
  t.row("index_put.accumulate", kAll,
        {{real({4, 5}), index({9}, 2), index({9}, 2), real({9})},
         {real({4, 5}), index({3}, 4), index({3}, 5), real({1})},
         {real({4, 5}), index({0}, 4), index({0}, 5), real({0})}},
        CALL_FUNCTION_IN_PLACE(index_put, x[0], List{x[1], x[2]}, x[3], true), put(plus))
      .big({real({97, 131}), index({9000}, 97), index({9000}, 131), real({9000})})
      .in_one("what is added is spread over the whole input")
      .alone("indices may name one element twice")
      .within(4);
  t.row("index_put.second", kAll,
        {{real({4, 5}), distinct({3}, 5), real({4, 3})},
         {real({4, 5}), distinct({3}, 5), real({3})},
         {real({4, 5}), distinct({3}, 5), real({})},
         {real({4, 5}), distinct({0}, 5), real({4, 0})},
         {real({0, 5}), distinct({3}, 5), real({0, 3})}},
        CALL_FUNCTION_IN_PLACE(index_put, x[0], List{std::nullopt, x[1]}, x[2]),
        [](P x) {
          const Plain values =
              made({x[0].size(0), x[1].size(0)}, [&](const Index& i) { return x[2].broadcast(i); });
          return changed(
              x[0], values,
              [&](const Index& i) {
                return Index{i[0], whole(x[1].at({i[1]}))};
              },
              replace);
        })
      .big({real({97, 131}), distinct({131}, 131), real({97, 131})}, 5);
}

RAMET_OP_TABLE(add_gathers, add_masks, add_lists);

}  // namespace
}  // namespace op_table
}  // namespace ramet
