// Rows of the operation table: tensors joined into one.
#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// Inputs one behind the other along a dimension.
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
  const auto row = [&t](const char* name, const std::vector<std::vector<Index>>& sizes, Call call,
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
  row(
      "cat", rows, [](V x) { return cat(x); }, joined(0), large)
      .sliced({1, 1}, 1)
      .writes([](Tensor& o, V x) { return cat_out(o, x); });
  row(
      "cat.columns", columns, [](V x) { return cat(x, -1); }, joined(1), large, 3);
  row(
      "concat", columns, [](V x) { return concat(x, 1); }, joined(1), large, 3)
      .writes([](Tensor& o, V x) { return concat_out(o, x, 1); });
  row(
      "hstack", columns, [](V x) { return hstack(x); }, joined(1), large, 3)
      .not_scalar("hstack.vectors has one")
      .writes([](Tensor& o, V x) { return hstack_out(o, x); });
  // A 0-dim tensor is a line of one element.
  const auto as_lines = [](size_t rank, Reference f) {
    return [=](P x) {
      std::vector<Plain> lines = x;
      for (Plain& p : lines)
        if (p.rank() == 0) p.sizes.assign(rank, 1);
      return f(lines);
    };
  };
  row(
      "hstack.vectors", {{{2}, {3}}, {{0}, {1}}, {{}, {}}}, [](V x) { return hstack(x); },
      as_lines(1, joined(0)), vectors)
      .in_one("joined along the only dimension");
  row(
      "vstack", with_numbers, [](V x) { return vstack(x); }, as_lines(2, joined(0)), large)
      .sliced({1, 1}, 1)
      .writes([](Tensor& o, V x) { return vstack_out(o, x); });
  const auto stacked = [](P x) {
    Index sizes = x[0].sizes;
    sizes.insert(sizes.begin(), int64_t(x.size()));
    return made(sizes,
                [&](const Index& i) { return x[size_t(i[0])].at(Index(i.begin() + 1, i.end())); });
  };
  row(
      "stack", {{{2, 3}, {2, 3}}, {{}, {}}, {{0, 2}, {0, 2}}}, [](V x) { return stack(x); },
      stacked, large)
      .sliced({0, 0}, 1)
      .writes([](Tensor& o, V x) { return stack_out(o, x); });
  row(
      "stack.last", {{{3}, {3}, {3}}, {{0}, {0}}, {{}, {}}}, [](V x) { return stack(x, -1); },
      [](P x) {
        Index sizes = x[0].sizes;
        sizes.push_back(int64_t(x.size()));
        return made(sizes, [&](const Index& i) {
          return x[size_t(i.back())].at(Index(i.begin(), i.end() - 1));
        });
      },
      vectors, 3);
}

std::vector<Row> rows() {
  Table t;
  add_joins(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
