// Rows of the operation table: what orders elements.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

using Values = std::vector<double>;
using Lines = std::function<Values(const Values&)>;

bool before(double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); }
// Positions of a line's elements in order: NaN is the largest, equals stay in theirs.
std::vector<size_t> order_of(const Values& v, bool descending) {
  std::vector<size_t> at(v.size());
  std::iota(at.begin(), at.end(), size_t{0});
  std::stable_sort(at.begin(), at.end(), [&](size_t a, size_t b) {
    return descending ? before(v[b], v[a]) : before(v[a], v[b]);
  });
  return at;
}
Lines first_values(bool descending, size_t k = SIZE_MAX) {
  return [=](const Values& v) {
    Values out;
    for (size_t i : order_of(v, descending))
      if (out.size() < k) out.push_back(v[i]);
    return out;
  };
}
Lines first_places(bool descending, size_t k = SIZE_MAX) {
  return [=](const Values& v) {
    Values out;
    for (size_t i : order_of(v, descending))
      if (out.size() < k) out.push_back(static_cast<double>(i));
    return out;
  };
}

const char* const kSlow = "emulated threads take long to sort it; sort and topk are tried";

struct Adder {
  Table& t;
  uint16_t dtypes;
  int64_t dim;  // -1 or 0
  Line way;
  Samples samples;
  Sample large = {real({300, 131}, -9, 9)};

  Row& operator()(const char* name, Calls call, const Lines& f) const {
    const bool last = dim == -1;
    return t
        .row(name, dtypes, samples, std::move(call),
             [dim = dim, way = way, f](P x) { return along(x[0], dim, way, f); })
        .big(large)
        .sliced({last ? 0 : 1}, last || way == Line::kDrop ? 0 : 1)
        .small(kSlow);
  }
  Row& places(const char* name, Calls call, const Lines& f) const {
    return (*this)(name, std::move(call), f).gives(positions).no_gradient();
  }
};

void add_sorts(Table& t) {
  const Samples some = shapes({{3, 5}, {2, 4, 3}, {0, 3}, {3, 0}, {4}, {}}, -9, 9);
  const Adder last{t, kAll, -1, Line::kResize, some}, top{t, kAll, 0, Line::kResize, some};
  last("sort", FIRST_OUT(kLong, sort, x[0]), first_values(false)).small("");
  last.places("sort.places", SECOND_OUT(sort, x[0]), first_places(false));
  const std::optional<bool> stable = true;
  top("sort.down", FIRST_OUT(kLong, sort, x[0], stable, 0, true), first_values(true));
  top.places("sort.down_places", SECOND_OUT(sort, x[0], stable, 0, true), first_places(true));
  last.places("argsort", CALL(argsort, x[0], -1, true), first_places(true));
  top.places("argsort.stable", CALL_OUT(argsort, x[0], true, 0, false), first_places(false));
  top("msort", CALL_OUT(msort, x[0]), first_values(false));
  // Few of many: those that cannot be among them are passed.
  const Samples long_enough = shapes({{3, 5}, {2, 4, 3}, {0, 3}, {3}}, -9, 9);
  const Adder of_last{t, kNumbers, -1, Line::kResize, long_enough, {real({100, 220}, -9, 9)}};
  const char* const number = "a number has no three elements";
  of_last("topk", FIRST_OUT(kLong, topk, x[0], 3), first_values(true, 3)).not_scalar(number);
  of_last.places("topk.places", SECOND_OUT(topk, x[0], 3), first_places(true, 3))
      .not_scalar(number);
  Samples tall = shapes({{5, 3}, {4, 2, 3}, {4, 0}, {7}}, -9, 9);
  const Adder of_tall{t, kNumbers, 0, Line::kResize, tall};
  of_tall("topk.smallest", FIRST_OUT(kLong, topk, x[0], 4, 0, false, false), first_values(false, 4))
      .not_scalar(number);
  of_tall
      .places("topk.smallest_places", SECOND_OUT(topk, x[0], 4, 0, false, false),
              first_places(false, 4))
      .not_scalar(number);
}

// ---- one of each line ---------------------------------------------------------------------------

double number_of(const Values& v, size_t place) { return v[order_of(v, false)[place]]; }
double place_of(const Values& v, size_t place) {
  return static_cast<double>(order_of(v, false)[place]);
}
size_t nans_of(const Values& v) {
  return static_cast<size_t>(
      std::count_if(v.begin(), v.end(), [](double x) { return std::isnan(x); }));
}
size_t median_of(const Values& v) {
  const size_t n = v.size(), nans = nans_of(v);
  return nans ? n - nans : (n - 1) / 2;
}
size_t nanmedian_of(const Values& v) {
  const size_t n = v.size(), nans = nans_of(v);
  return nans == n ? 0 : (n - nans - 1) / 2;
}
// In the order: the last of the longest run.
size_t mode_of(const Values& v) {
  const std::vector<size_t> order = order_of(v, false);
  size_t best = 0, most = 0, run = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    run = i > 0 && v[order[i]] == v[order[i - 1]] ? run + 1 : 1;
    if (run > most) best = i, most = run;
  }
  return best;
}
size_t second_of(const Values&) { return 1; }

Lines one_value(size_t (*place)(const Values&)) {
  return [=](const Values& v) { return Values{number_of(v, place(v))}; };
}
Lines one_place(size_t (*place)(const Values&)) {
  return [=](const Values& v) { return Values{place_of(v, place(v))}; };
}

void add_picks(Table& t) {
  const Samples some = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {5}, {1, 1}, {}}, -9, 9),
                top_ones = shapes({{4, 5}, {3, 2, 4}, {3, 0}, {5}, {}}, -9, 9),
                two_at_least = shapes({{4, 5}, {2, 3, 4}, {0, 3}, {5}}, -9, 9);
  const Adder last{t, kNumbers, -1, Line::kKeep, some}, top{t, kNumbers, 0, Line::kDrop, top_ones},
      of_two{t, kNumbers, -1, Line::kKeep, two_at_least}, any_last{t, kAll, -1, Line::kKeep, some},
      any_top{t, kAll, 0, Line::kDrop, top_ones};
  // The values and the places of a function with two results.
#define PICK(name, word, adder, place, ...)                                 \
  adder(#name word, FIRST_OUT(kLong, name, __VA_ARGS__), one_value(place)); \
  adder.places(#name word "_places", SECOND_OUT(name, __VA_ARGS__), one_place(place));
  PICK(kthvalue, ".last", of_two, second_of, x[0], 2, -1, true)
  PICK(median, ".last", last, median_of, x[0], -1, true)
  PICK(median, ".first", top, median_of, x[0], 0)
  PICK(nanmedian, ".last", last, nanmedian_of, x[0], -1, true)
  PICK(nanmedian, ".first", top, nanmedian_of, x[0], 0)
  PICK(mode, ".last", any_last, mode_of, x[0], -1, true)
  PICK(mode, ".first", any_top, mode_of, x[0], 0)
#undef PICK
  for (const char* row : {"kthvalue.last", "kthvalue.last_places"})
    t[row].not_scalar("a number has no second element");
  const auto whole = [&](const char* name, Calls call, size_t (*place)(const Values&)) -> Row& {
    return t
        .row(name, kNumbers, shapes({{4, 5}, {2, 3, 4}, {}, {7}}, -9, 9), std::move(call),
             [=](P x) {
               return Plain{{}, {number_of(x[0].v, place(x[0].v))}};
             })
        .big({real({90, 95}, -9, 9)})
        .not_empty("NaN, of integers what NaN is cast to")
        .alone("all elements are one line")
        .in_one("there is one result")
        .small(kSlow);
  };
  whole("median", CALL_OUT(median, x[0]), median_of);
  whole("nanmedian", CALL_OUT(nanmedian, x[0]), nanmedian_of);
}

// ---- without repetitions ------------------------------------------------------------------------

// Slices of dimension 0 as lines; runs of equal ones in an order of them.
struct Runs {
  std::vector<size_t> begin, number, length;  // number: of the run of each slice
};
Runs runs_of(const std::vector<Values>& slices, bool sorts) {
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (sorts)
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::lexicographical_compare(slices[a].begin(), slices[a].end(), slices[b].begin(),
                                          slices[b].end(), before);
    });
  Runs r;
  r.number.resize(slices.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices[order[i]] != slices[order[i - 1]])
      r.begin.push_back(order[i]), r.length.push_back(0);
    r.number[order[i]] = r.begin.size() - 1;
    ++r.length.back();
  }
  return r;
}
std::vector<Values> slices_of(const Plain& x, int64_t dim) {
  std::vector<Values> out(static_cast<size_t>(x.size(dim)));
  made(x.sizes, [&](const Index& i) {
    out[static_cast<size_t>(i[static_cast<size_t>(dim)])].push_back(x.at(i));
    return 0.0;
  });
  return out;
}
std::vector<Values> elements_of(const Plain& x) {
  std::vector<Values> out;
  for (double v : x.v) out.push_back({v});
  return out;
}
Plain numbers(const std::vector<size_t>& v) {
  return made({static_cast<int64_t>(v.size())},
              [&](const Index& i) { return static_cast<double>(v[static_cast<size_t>(i[0])]); });
}

void add_unique(Table& t) {
  const auto row = [&](const char* name, const std::vector<Index>& sizes, Calls call,
                       Reference f) -> Row& {
    return t.row(name, kAll, shapes(sizes, -2, 2), std::move(call), std::move(f))
        .big({real({300, 131}, -2, 2)})
        .in_one("which are different is asked of all")
        .waits("how many are different is asked for")
        .no_gradient()
        .small(kSlow);
  };
  const std::vector<Index> any = {{3, 5}, {0, 4}, {9}, {}};
  using Unique = std::tuple<Tensor, Tensor, Tensor> (*)(const Tensor&);
  const auto of_elements = [&](const std::string& name, bool sorts, Unique f) {
    row(name.c_str(), any, EXPRESSION(std::get<0>(f(x[0]))), [=](P x) {
      Plain out = numbers(runs_of(elements_of(x[0]), sorts).begin);
      for (double& v : out.v) v = x[0].v[static_cast<size_t>(v)];
      return out;
    });
    row((name + ".inverse").c_str(), any, EXPRESSION(std::get<1>(f(x[0]))), [=](P x) {
      return Plain{x[0].sizes, numbers(runs_of(elements_of(x[0]), sorts).number).v};
    }).gives(positions);
    row((name + ".counts").c_str(), any, EXPRESSION(std::get<2>(f(x[0]))), [=](P x) {
      return numbers(runs_of(elements_of(x[0]), sorts).length);
    }).gives(positions);
  };
  of_elements("_unique2", true, [](const Tensor& x) { return _unique2(x, true, true, true); });
  of_elements("unique_consecutive", false,
              [](const Tensor& x) { return unique_consecutive(x, true, true); });
  using UniqueSlices = std::tuple<Tensor, Tensor, Tensor> (*)(const Tensor&, int64_t);
  const auto of_slices = [&](const std::string& name, bool sorts, UniqueSlices f) {
    row(name.c_str(), {{6, 2}, {0, 4}, {9}}, EXPRESSION(std::get<0>(f(x[0], 0))), [=](P x) {
      const Runs runs = runs_of(slices_of(x[0], 0), sorts);
      Index sizes = x[0].sizes;
      sizes[0] = static_cast<int64_t>(runs.begin.size());
      return made(sizes, [&](Index i) {
        i[0] = static_cast<int64_t>(runs.begin[static_cast<size_t>(i[0])]);
        return x[0].at(i);
      });
    }).not_scalar("refused: a number has no slices");
    const std::vector<Index> second = {{2, 7, 2}, {4, 0}, {2, 9}};
    row((name + ".inverse").c_str(), second, EXPRESSION(std::get<1>(f(x[0], 1))), [=](P x) {
      return numbers(runs_of(slices_of(x[0], 1), sorts).number);
    }).gives(positions);
    row((name + ".counts").c_str(), second, EXPRESSION(std::get<2>(f(x[0], 1))), [=](P x) {
      return numbers(runs_of(slices_of(x[0], 1), sorts).length);
    }).gives(positions);
  };
  of_slices("unique_dim", true, [](const Tensor& x, int64_t d) { return unique_dim(x, d); });
  of_slices("unique_dim_consecutive", false,
            [](const Tensor& x, int64_t d) { return unique_dim_consecutive(x, d); });
  row("_unique", any, SECOND(_unique, x[0], true, true), [](P x) {
    return Plain{x[0].sizes, numbers(runs_of(elements_of(x[0]), true).number).v};
  }).gives(positions);
}

RAMET_OP_TABLE(add_sorts, add_picks, add_unique);

}  // namespace
}  // namespace op_table
}  // namespace ramet
