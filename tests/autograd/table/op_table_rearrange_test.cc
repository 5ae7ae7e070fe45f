// Rows of the operation table: triangles, diagonals, and copies with elements moved or repeated.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Rank 2 and more: how far right of the main diagonal.
int64_t right_of(const Index& i) { return i[i.size() - 1] - i[i.size() - 2]; }

void add_triangles(Table& t) {
  const Samples some = shapes({{3, 4}, {0, 3}, {2, 4, 3}, {2, 0, 0}}, -9, 9);
  const Sample batch = {real({75, 40, 41}, -9, 9)};
  t.row("triu", kAll, some, CALL_IN_PLACE_OUT(triu, x[0], 1), [](P x) {
     return made(x[0].sizes, [&](const Index& i) { return right_of(i) >= 1 ? x[0].at(i) : 0; });
   }).big(batch, 1);
  t.row("tril", kAll, some, CALL_IN_PLACE_OUT(tril, x[0], -1), [](P x) {
     return made(x[0].sizes, [&](const Index& i) { return right_of(i) <= -1 ? x[0].at(i) : 0; });
   }).big(batch, 1);
}

void add_diagonals(Table& t) {
  // A vector on a diagonal.
  const auto spread = [](int64_t offset) {
    return [offset](P x) {
      const int64_t n = count(x[0].sizes), all = n + std::abs(offset);
      return made({all, all}, [&](const Index& i) {
        const size_t at = size_t(std::min(i[0], i[1]));
        return i[1] - i[0] == offset ? x[0].v[at] : 0;
      });
    };
  };
  t.row("diag", kAll, shapes({{3}, {1}, {0}}, -9, 9), CALL_OUT(diag, x[0], -1), spread(-1))
      .big({real({400})})
      .in_one("a square of the input's length")
      .small("a square of the input's length");
  t.row("diag.matrix", kAll, shapes({{3, 4}, {4, 2}, {0, 3}}, -9, 9), CALL(diag, x[0], 1),
        [](P x) {
          const int64_t n = std::max<int64_t>(std::min(x[0].size(0), x[0].size(1) - 1), 0);
          return made({n}, [&](const Index& i) { return x[0].at({i[0], i[0] + 1}); });
        })
      .big({real({200, 200})})
      .alone("a diagonal is short")
      .narrow("a diagonal is short")
      .in_one("a diagonal moves with the slice");
  t.row("diagflat", kAll, shapes({{2, 2}, {3}, {0}, {}}, -9, 9), CALL(diagflat, x[0], 2), spread(2))
      .big({real({20, 20})})
      .in_one("a square of the input's length")
      .small("a square of the input's length");
  t.row("diag_embed", kAll, shapes({{3}, {2, 3}, {0, 2}, {2, 0}}, -9, 9),
        CALL_OUT(diag_embed, x[0], 1),
        [](P x) {
          Index sizes = x[0].sizes;
          sizes.back() += 1;
          sizes.push_back(sizes.back());
          return made(sizes, [&](const Index& i) {
            return right_of(i) == 1 ? x[0].at(Index(i.begin(), i.end() - 1)) : 0;
          });
        })
      .big({real({75, 40})}, 1);
  // The new dimensions first and last, the second of them the rows.
  t.row("diag_embed.dims", kAll, shapes({{2, 3}, {2, 0}}, -9, 9), CALL(diag_embed, x[0], -1, 2, 0),
        [](P x) {
          const int64_t n = x[0].size(1) + 1;
          return made({n, x[0].size(0), n}, [&](const Index& i) {
            return i[0] - i[2] == -1 ? x[0].at({i[1], i[0]}) : 0;
          });
        })
      .big({real({75, 40})})
      .sliced({0}, 1);
  t.row("diagonal_scatter", kAll,
        {{real({3, 4}), real({3})}, {real({0, 3}), real({0})}, {real({2, 3, 3}), real({2, 2})}},
        CALL_OUT(diagonal_scatter, x[0], x[1], 1, -2, -1),
        [](P x) {
          return made(x[0].sizes, [&](const Index& i) {
            return right_of(i) == 1 ? x[1].at(Index(i.begin(), i.end() - 1)) : x[0].at(i);
          });
        })
      .big({real({75, 16, 18}), real({75, 16})}, 3);
  // Of a matrix, of one higher than wide by rows that wrap, and of a cube.
  const auto filled = [](bool wrap) {
    return [wrap](P x) {
      return made(x[0].sizes, [&](const Index& i) {
        bool on = i.size() == 2 && wrap && i[0] % (x[0].size(1) + 1) == i[1];
        on |= std::all_of(i.begin(), i.end(), [&](int64_t k) { return k == i[0]; });
        return on ? 3 : x[0].at(i);
      });
    };
  };
  for (const bool wrap : {false, true})
    t.row(
         wrap ? "clone.diagonals" : "clone.diagonal", kAll,
         shapes({{3, 4}, {7, 2}, {0, 3}, {3, 3, 3}, {1, 1}, {3, 1}}, -9, 9),
         [wrap](V x) {
           const Tensor y = x[0].clone();
           y.fill_diagonal_(3, wrap);
           return y;
         },
         filled(wrap))
        .big({real({300, 131})})
        .in_one("a diagonal moves with the slice")
        .changes(EXPRESSION(x[0].fill_diagonal_(3, wrap)));
  t.row("trace", kNumbers, shapes({{3, 4}, {4, 3}, {0, 3}}, -9, 9), CALL_OUT(trace, x[0]),
        [](P x) {
          double sum = 0;
          for (int64_t i = 0; i < std::min(x[0].size(0), x[0].size(1)); ++i) sum += x[0].at({i, i});
          return Plain{{}, {sum}};
        })
      .gives(widened)
      .big({real({200, 200})})
      .alone("a diagonal is short")
      .narrow("a diagonal is short");
}

void add_repeats(Table& t) {
  const Sample large = {real({140, 131}, -9, 9)};
  t.row("tile", kAll, shapes({{2, 3}, {0, 3}, {}}, -9, 9), CALL(tile, x[0], {3}), [](P x) {
     Index sizes = x[0].sizes;
     if (sizes.empty()) sizes.push_back(1);
     sizes.back() *= 3;
     return made(sizes, [&](Index i) {
       if (x[0].rank() == 0) return x[0].v[0];
       i.back() %= x[0].size(-1);
       return x[0].at(i);
     });
   }).big(large, 1);
  t.row("repeat_interleave", kAll, shapes({{2, 3}, {0, 3}, {2, 0}}, -9, 9),
        CALL(repeat_interleave, x[0], 2, 1),
        [](P x) {
          return made({x[0].size(0), 2 * x[0].size(1)}, [&](const Index& i) {
            return x[0].at({i[0], i[1] / 2});
          });
        })
      .big(large, 1);
  t.row("repeat_interleave.flat", kAll, shapes({{2, 3}, {3}, {0}, {}}, -9, 9),
        CALL(repeat_interleave, x[0], 3),
        [](P x) {
          return made({3 * count(x[0].sizes)},
                      [&](const Index& i) { return x[0].v[size_t(i[0] / 3)]; });
        })
      .big(large)
      .in_one("the result is longer");
  // Column c repeats[c] times.
  const auto columns = [](const Plain& x, const std::vector<double>& repeats) {
    std::vector<int64_t> from;
    for (size_t c = 0; c < repeats.size(); ++c)
      from.insert(from.end(), size_t(repeats[c]), int64_t(c));
    return made({x.size(0), int64_t(from.size())}, [&](const Index& i) {
      return x.at({i[0], from[size_t(i[1])]});
    });
  };
  t.row("repeat_interleave.tensor", kAll,
        {{real({2, 3}), index({3}, 4)}, {real({0, 3}), index({3}, 4)}},
        CALL(repeat_interleave, x[0], x[1], 1), [=](P x) { return columns(x[0], x[1].v); })
      .big({real({97, 131}), index({131}, 4)}, 1)
      .small("repeats are as many as columns")
      .waits("the sum of repeats is read")
      .uncapturable("the sum of repeats is read");
  t.row(
       "repeat_interleave.output_size", kAll, shapes({{2, 4}, {3, 1}, {0, 3}}, -9, 9),
       [](V x) {
         const int64_t n = x[0].size(1);
         const Tensor repeats = arange(n, TensorOptions(kLong).device(x[0].device()));
         return repeat_interleave(x[0], repeats, 1, n * (n - 1) / 2);
       },
       [=](P x) {
         std::vector<double> repeats;
         for (int64_t c = 0; c < x[0].size(1); ++c) repeats.push_back(double(c));
         return columns(x[0], repeats);
       })
      .big({real({97, 40})}, 1)
      .small("repeats are as many as columns");
  t.row("repeat_interleave.positions", set_of(kLong), {{index({4}, 4)}, {index({7}, 2)}},
        CALL_OUT(repeat_interleave, x[0]),
        [](P x) {
          Plain out;
          for (int64_t i = 0; i < x[0].size(0); ++i)
            out.v.insert(out.v.end(), size_t(x[0].v[size_t(i)]), double(i));
          out.sizes = {int64_t(out.v.size())};
          return out;
        })
      .big({index({9000}, 4)})
      .no_gradient()
      .in_one("a position depends on those before")
      .small("marks are sorted, which takes emulated threads long")
      .not_empty("of none nothing is read: Repeats.AtTheEdges")
      .waits("the sum of repeats is read")
      .uncapturable("the sum of repeats is read");
}

void add_turns(Table& t) {
  const Sample large = {real({140, 131}, -9, 9)};
  t.row("roll", kAll, shapes({{3, 4}, {0, 2}, {2, 5, 1}}, -9, 9),
        CALL_OUT(roll, x[0], {2, -1}, {1, 0}),
        [](P x) {
          return made(x[0].sizes, [&](Index i) {
            i[1] = (i[1] + 2 * x[0].size(1) - 2) % x[0].size(1);
            i[0] = (i[0] + 1) % x[0].size(0);
            return x[0].at(i);
          });
        })
      .big(large)
      .in_one("rolled along both dimensions");
  t.row("roll.flat", kAll, shapes({{3, 4}, {0}, {5}, {}}, -9, 9),
        CALL(roll, x[0], x[0].numel() / 2),
        [](P x) {
          Plain out = x[0];
          std::rotate(out.v.begin(), out.v.end() - int64_t(out.v.size() / 2), out.v.end());
          return out;
        })
      .big({real({400, 131}, -9, 9)})
      .in_one("rolled along all of it");
  t.row("rot90", kAll, shapes({{2, 3}, {0, 2}, {3, 2, 2}}, -9, 9), CALL_OUT(rot90, x[0]),
        [](P x) {
          Index sizes = x[0].sizes;
          std::swap(sizes[0], sizes[1]);
          return made(sizes, [&](Index i) {
            std::swap(i[0], i[1]);
            i[1] = x[0].size(1) - 1 - i[1];
            return x[0].at(i);
          });
        })
      .big(large)
      .sliced({0}, 1);
  const auto flipped = [](size_t dim) {
    return [dim](P x) {
      return made(x[0].sizes, [&](Index i) {
        i[dim] = x[0].sizes[dim] - 1 - i[dim];
        return x[0].at(i);
      });
    };
  };
  t.row("fliplr", kAll, shapes({{3, 4}, {0, 2}, {2, 3, 1}}, -9, 9), CALL(fliplr, x[0]), flipped(1))
      .big(large, 1);
  t.row("flipud", kAll, shapes({{3, 4}, {0, 2}, {5}}, -9, 9), CALL(flipud, x[0]), flipped(0))
      .big(large)
      .sliced({1}, 1);
}

void add_lines(Table& t) {
  t.row("take_along_dim", kAll,
        {{real({3, 5}), index({3, 4}, 5)},
         {real({3, 5}), index({1, 4}, 5)},
         {real({1, 5}), index({3, 2}, 5)},
         {real({3, 5}), index({3, 0}, 5)}},
        CALL_OUT(take_along_dim, x[0], x[1].sub(x[0].size(1)), 1),
        [](P x) {
          const int64_t rows = std::max(x[0].size(0), x[1].size(0));
          return made({rows, x[1].size(1)}, [&](const Index& i) {
            const auto at = static_cast<int64_t>(x[1].broadcast(i));
            return x[0].at({x[0].size(0) == 1 ? 0 : i[0], at});
          });
        })
      .big({real({97, 131}), index({97, 150}, 131)}, 3);
  t.row("take_along_dim.flat", kAll,
        {{real({3, 4}), index({5}, 12)}, {real({3}), index({0}, 3)}, {real({}), index({}, 1)}},
        CALL(take_along_dim, x[0], x[1]),
        [](P x) {
          return made({count(x[1].sizes)}, [&](const Index& i) {
            return x[0].v[static_cast<size_t>(x[1].v[size_t(i[0])])];
          });
        })
      .big({real({140, 131}), index({9000}, 140 * 131)})
      .sliced({-1, 0}, 0);
  const auto stepped = [](double (*f)(double, double)) {
    return [f](P x) {
      Index sizes = x[0].sizes;
      sizes.back() = std::max<int64_t>(sizes.back() - 1, 0);
      return made(sizes, [&](Index i) {
        const double before = x[0].at(i);
        ++i.back();
        return f(x[0].at(i), before);
      });
    };
  };
  const Samples some = shapes({{3, 4}, {0, 3}, {5}, {2, 1}}, -9, 9);
  const Sample large = {real({140, 131}, -9, 9)};
  t.row("diff", kAll, some, CALL_OUT(diff, x[0]), stepped([](double a, double b) { return a - b; }))
      .only(kNumbers)
      .big(large, 1);
  t.row("diff.bool", kAll, some, CALL(diff, x[0]),
        stepped([](double a, double b) { return double(a != b); }))
      .only(kTruth)
      .no_gradient()
      .big(large, 1);
  // Of b | a | b. Twice is in Lines.AtTheEdges: 16 bits round in between.
  t.row("diff.joined", kAll, {{real({3, 4}), real({3, 1})}, {real({0, 4}), real({0, 1})}},
        CALL(diff, x[0], 1, 1, x[1], x[1]),
        [](P x) {
          const auto at = [&](int64_t r, int64_t c) {
            return c == 0 || c > x[0].size(1) ? x[1].at({r, 0}) : x[0].at({r, c - 1});
          };
          return made({x[0].size(0), x[0].size(1) + 1},
                      [&](const Index& i) { return at(i[0], i[1] + 1) - at(i[0], i[1]); });
        })
      .only(kNumbers)
      .big({real({140, 131}), real({140, 1})}, 3);
}

RAMET_OP_TABLE(add_triangles, add_diagonals, add_repeats, add_turns, add_lines);

}  // namespace
}  // namespace op_table
}  // namespace ramet
