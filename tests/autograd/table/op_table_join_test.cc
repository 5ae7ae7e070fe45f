// Rows of the operation table: tensors joined into one, cut into several, and made ready for it.
#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Inputs one after the other along a dimension.
Reference joined(int64_t dim) {
  return [dim](P x) {
    Plain out;
    for (const Plain& p : x) {
      const Plain& before = out;
      if (out.sizes.empty()) {
        out = p;
        continue;
      }
      Index sizes = before.sizes;
      sizes[size_t(dim)] += p.size(dim);
      out = made(sizes, [&](Index i) {
        const int64_t first = before.size(dim);
        if (i[size_t(dim)] < first) return before.at(i);
        i[size_t(dim)] -= first;
        return p.at(i);
      });
    }
    return out;
  };
}

void add_joins(Table& t) {
  const auto row = [&t](const char* name, const std::vector<std::vector<Index>>& sizes, Calls call,
                        Reference reference, const Sample& large, uint32_t batched = 0) -> Row& {
    Samples samples;
    for (const std::vector<Index>& each : sizes) {
      samples.emplace_back();
      for (const Index& s : each) samples.back().push_back(real(s, -9, 9));
    }
    return t.row(name, kAll, samples, std::move(call), std::move(reference)).big(large, batched);
  };
  const Sample large = {real({140, 131}, -9, 9), real({140, 131}, -9, 9)},
               vectors = {real({20000}, -9, 9), real({20000}, -9, 9)};
  const std::vector<std::vector<Index>> rows = {{{2, 3}, {1, 3}},
                                                {{0, 3}, {2, 3}},
                                                {{2, 0}, {1, 0}}},
                                        columns = {{{2, 3}, {2, 1}}, {{2, 0}, {2, 3}}};
  std::vector<std::vector<Index>> with_numbers = rows;
  with_numbers.push_back({{}, {}});
  row("cat", rows, CALL_OUT(cat, x), joined(0), large).sliced({1, 1}, 1);
  row("cat.columns", columns, CALL(cat, x, -1), joined(1), large, 3);
  row("concat", columns, CALL_OUT(concat, x, 1), joined(1), large, 3);
  row("hstack", columns, CALL_OUT(hstack, x), joined(1), large, 3)
      .not_scalar("hstack.vectors has one");
  // A 0-dim tensor is a line of one element.
  const auto as_lines = [](size_t rank, Reference f) {
    return [=](P x) {
      std::vector<Plain> lines = x;
      for (Plain& p : lines)
        if (p.rank() == 0) p.sizes.assign(rank, 1);
      return f(lines);
    };
  };
  row("hstack.vectors", {{{2}, {3}}, {{0}, {1}}, {{}, {}}}, CALL(hstack, x), as_lines(1, joined(0)),
      vectors)
      .in_one("joined along the only dimension");
  row("vstack", with_numbers, CALL_OUT(vstack, x), as_lines(2, joined(0)), large).sliced({1, 1}, 1);
  row("concatenate", columns, CALL_OUT(concatenate, x, 1), joined(1), large, 3);
  row("row_stack", with_numbers, CALL_OUT(row_stack, x), as_lines(2, joined(0)), large)
      .sliced({1, 1}, 1);
  row(
      "dstack", {{{2, 3}, {2, 3, 2}}, {{3}, {3}}, {{0, 1, 1}, {0, 1}}, {{}, {}}},
      CALL_OUT(dstack, x),
      [](P x) {
        std::vector<Plain> blocks = x;
        for (Plain& p : blocks) {
          if (p.rank() < 2) p.sizes.insert(p.sizes.begin(), 1);
          while (p.rank() < 3) p.sizes.push_back(1);
        }
        return joined(2)(blocks);
      },
      large, 3);
  row(
      "column_stack", {{{3}, {3, 2}}, {{0}, {0, 2}}, {{}, {}}}, CALL_OUT(column_stack, x),
      [](P x) {
        std::vector<Plain> blocks = x;
        for (Plain& p : blocks)
          if (p.rank() < 2) p.sizes = {count(p.sizes), 1};
        return joined(1)(blocks);
      },
      large, 3);
  row("block_diag", {{{2, 3}, {1, 2}}, {{}, {2}}, {{0, 2}, {2, 0}}, {{3}, {2, 1}}},
      CALL_OUT(block_diag, x),
      [](P x) {
        std::vector<Plain> blocks = x;
        Index sizes = {0, 0}, second;
        for (Plain& p : blocks) {
          while (p.rank() < 2) p.sizes.insert(p.sizes.begin(), 1);
          second = sizes;
          sizes[0] += p.size(0), sizes[1] += p.size(1);
        }
        return made(sizes, [&](Index i) {
          const bool low = i[0] >= second[0], right = i[1] >= second[1];
          if (low) i[0] -= second[0], i[1] -= second[1];
          return low == right ? blocks[low].at(i) : 0.0;
        });
      },
      {real({140, 131}, -9, 9), real({10, 131}, -9, 9)})
      .in_one("blocks behind move with the slice");
  row("cartesian_prod", {{{2}, {3}}, {{0}, {3}}, {{2}, {1}, {2}}}, CALL(cartesian_prod, x),
      [](P x) {
        Index sizes;
        for (const Plain& p : x) sizes.push_back(p.size(0));
        return made({count(sizes), int64_t(x.size())}, [&](const Index& i) {
          int64_t at = i[0];
          for (size_t k = x.size() - 1; k > size_t(i[1]); --k) at /= sizes[k];
          return x[size_t(i[1])].v[size_t(at % sizes[size_t(i[1])])];
        });
      },
      {real({150}, -9, 9), real({131}, -9, 9)})
      .in_one("rows of one element are no slice");
  const auto chosen = [](bool again) {
    return [again](P x) {
      std::vector<double> v;
      const auto n = x[0].v.size();
      for (size_t i = 0; i < n; ++i)
        for (size_t j = again ? i : i + 1; j < n; ++j)
          for (size_t k = again ? j : j + 1; k < n; ++k)
            v.insert(v.end(), {x[0].v[i], x[0].v[j], x[0].v[k]});
      return Plain{{int64_t(v.size()) / 3, 3}, v};
    };
  };
  row("combinations", {{{4}}, {{5}}, {{3}}, {{2}}, {{0}}}, CALL(combinations, x[0], 3),
      chosen(false), {real({40}, -9, 9)})
      .in_one("a choice looks at all elements")
      .small("choices grow with the third power");
  row("combinations.again", {{{4}}, {{2}}, {{1}}, {{0}}}, CALL(combinations, x[0], 3, true),
      chosen(true), {real({40}, -9, 9)})
      .in_one("a choice looks at all elements")
      .small("choices grow with the third power");
  const auto stacked = [](P x) {
    Index sizes = x[0].sizes;
    sizes.insert(sizes.begin(), int64_t(x.size()));
    return made(sizes,
                [&](const Index& i) { return x[size_t(i[0])].at(Index(i.begin() + 1, i.end())); });
  };
  row("stack", {{{2, 3}, {2, 3}}, {{}, {}}, {{0, 2}, {0, 2}}}, CALL_OUT(stack, x), stacked, large)
      .sliced({0, 0}, 1);
  row(
      "stack.last", {{{3}, {3}, {3}}, {{0}, {0}}, {{}, {}}}, CALL(stack, x, -1),
      [](P x) {
        Index sizes = x[0].sizes;
        sizes.push_back(int64_t(x.size()));
        return made(sizes, [&](const Index& i) {
          return x[size_t(i.back())].at(Index(i.begin(), i.end() - 1));
        });
      },
      vectors, 3);
}

void add_views(Table& t) {
  const auto row = [&t](const char* name, const std::vector<Index>& sizes, Calls call,
                        Reference reference) -> Row& {
    return t.row(name, kAll, shapes(sizes, -9, 9), std::move(call), std::move(reference))
        .moves_nothing();
  };
  // A vector along the second dimension of two.
  row("meshgrid", {{3}, {0}, {}}, EXPRESSION(meshgrid({x[0], zeros({2}, x[0].options())}, "xy")[0]),
      moved(SIZES(2, x.rank() ? x.size(0) : 1),
            [](const Index& i, const Plain& x) { return x.rank() ? Index{i[1]} : Index{}; }));
  row("meshgrid.ij", {{3}, {0}, {}}, EXPRESSION(meshgrid({x[0], zeros({2}, x[0].options())})[0]),
      moved(SIZES(x.rank() ? x.size(0) : 1, 2),
            [](const Index& i, const Plain& x) { return x.rank() ? Index{i[0]} : Index{}; }));
  row("atleast_1d", {{3, 4}, {3}, {0}, {}}, CALL(atleast_1d, x[0]),
      as([](const Plain& x) { return x.rank() ? x.sizes : Index{1}; }));
  row("atleast_2d", {{3, 4}, {3}, {0}, {}}, EXPRESSION(atleast_2d(TensorList(x[0]))[0]),
      as([](const Plain& x) {
        Index sizes = x.sizes;
        while (sizes.size() < 2) sizes.insert(sizes.begin(), 1);
        return sizes;
      }));
  row("atleast_3d", {{3, 4}, {3}, {0}, {}, {2, 1, 3}}, CALL(atleast_3d, x[0]),
      as([](const Plain& x) {
        Index sizes = x.sizes;
        if (sizes.size() < 2) sizes.insert(sizes.begin(), 1);
        while (sizes.size() < 3) sizes.push_back(1);
        return sizes;
      }));
  // 5 rows in 3 parts, then the same places by name.
  row("tensor_split", {{5, 2}, {3, 0}}, EXPRESSION(tensor_split(x[0], 3)[1]),
      moved(SIZES((x.size(0) + 1) / 3, x.size(1)), FROM(i[0] + (x.size(0) + 2) / 3, i[1])));
  row("tensor_split.places", {{2, 5}, {0, 5}}, EXPRESSION(tensor_split(x[0], {1, -1}, 1)[1]),
      moved(SIZES(x.size(0), x.size(1) - 2), FROM(i[0], i[1] + 1)));
  row("hsplit", {{2, 4}, {0, 4}}, EXPRESSION(hsplit(x[0], 2)[1]),
      moved(SIZES(x.size(0), 2), FROM(i[0], i[1] + 2)));
  row("hsplit.vector", {{4}}, EXPRESSION(hsplit(x[0], IntArrayRef(int64_t{3}))[0]),
      moved(SIZES(3), [](const Index& i, const Plain&) { return i; }))
      .not_empty("hsplit has one");
  row("vsplit", {{4, 2}, {4, 0}}, EXPRESSION(vsplit(x[0], 2)[1]),
      moved(SIZES(2, x.size(1)), FROM(i[0] + 2, i[1])));
  row("dsplit", {{2, 1, 4}, {0, 2, 4}}, EXPRESSION(dsplit(x[0], {1, 3})[1]),
      moved(SIZES(x.size(0), x.size(1), 2), FROM(i[0], i[1], i[2] + 1)));
}

RAMET_OP_TABLE(add_joins, add_views);

}  // namespace
}  // namespace op_table
}  // namespace ramet
