// Rows of the operation table: matrix products.
#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// The product of a and b as matmul defines it, leading dimensions broadcast.
Plain product(const Plain& a, const Plain& b) {
  if (a.rank() == 1) {
    Plain out = product(Plain{{1, a.size(0)}, a.v}, b);
    out.sizes.erase(out.sizes.end() - (b.rank() == 1 ? 1 : 2));
    return out;
  }
  if (b.rank() == 1) {
    Plain out = product(a, Plain{{b.size(0), 1}, b.v});
    out.sizes.pop_back();
    return out;
  }
  const int64_t k = a.size(-1);
  Index sizes =
      common(Index(a.sizes.begin(), a.sizes.end() - 2), Index(b.sizes.begin(), b.sizes.end() - 2));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  // Leading dimensions broadcast by themselves: an extent of 1 of a matrix must not.
  const auto of = [](const Plain& x, Index i, int64_t row, int64_t column) {
    Index own(i.end() - x.rank(), i.end());
    for (size_t d = 0; d + 2 < own.size(); ++d)
      if (x.sizes[d] == 1) own[d] = 0;
    own[own.size() - 2] = row;
    own[own.size() - 1] = column;
    return x.at(own);
  };
  return made(sizes, [&](const Index& i) {
    double s = 0;
    for (int64_t l = 0; l < k; ++l) s += of(a, i, i[i.size() - 2], l) * of(b, i, l, i.back());
    return s;
  });
}
Plain plus(const Plain& a, double alpha, const Plain& b, double beta) {
  return made(b.sizes, [&](const Index& i) {
    return alpha * a.broadcast(i) + (beta == 0 ? 0 : beta * b.at(i));
  });
}
Plain transposed(const Plain& a) {
  return made({a.size(1), a.size(0)}, [&](const Index& i) { return a.at({i[1], i[0]}); });
}
Plain multiplied(P x) { return product(x[0], x[1]); }

std::vector<Row> rows() {
  Table t;
  // One element of work is one rounding; sums of integers are exact.
  const auto row = [&t](const char* name, Samples samples, Call call, Reference reference,
                        Sample large, uint32_t batched) -> Row& {
    return t.row(name, kNumbers, std::move(samples), std::move(call), std::move(reference))
        .big(std::move(large), batched)
        .products();
  };
  const Sample matrices = {real({97, 101}), real({101, 103})},
               batches = {real({70, 23, 17}), real({70, 17, 19})};
  row(
      "mm",
      {{real({3, 4}), real({4, 2})},
       {real({0, 4}), real({4, 2})},
       {real({3, 0}), real({0, 2})},
       {real({1, 1}), real({1, 1})},
       {real({9, 17}), real({17, 18})}},
      [](V x) { return mm(x[0], x[1]); }, multiplied, matrices, 1)
      .writes([](Tensor& o, V x) { return mm_out(o, x[0], x[1]); });
  row(
      "bmm",
      {{real({2, 3, 4}), real({2, 4, 2})},
       {real({0, 3, 4}), real({0, 4, 2})},
       {real({2, 3, 0}), real({2, 0, 2})}},
      [](V x) { return bmm(x[0], x[1]); }, multiplied, batches, 3)
      .writes([](Tensor& o, V x) { return bmm_out(o, x[0], x[1]); });
  row(
      "mv", {{real({3, 4}), real({4})}, {real({0, 4}), real({4})}, {real({3, 0}), real({0})}},
      [](V x) { return mv(x[0], x[1]); }, multiplied, {real({600, 450}), real({450})}, 1)
      .writes([](Tensor& o, V x) { return mv_out(o, x[0], x[1]); });
  row(
      "dot", {{real({5}), real({5})}, {real({0}), real({0})}, {real({1}), real({1})}},
      [](V x) { return dot(x[0], x[1]); }, multiplied, {real({270000}), real({270000})}, 0)
      .writes([](Tensor& o, V x) { return dot_out(o, x[0], x[1]); });
  t.row(
       "outer", kAll, {{real({3}), real({4})}, {real({0}), real({4})}, {real({3}), real({0})}},
       [](V x) { return outer(x[0], x[1]); },
       [](P x) {
         return made({x[0].size(0), x[1].size(0)},
                     [&](const Index& i) { return x[0].at({i[0]}) * x[1].at({i[1]}); });
       })
      .big({real({97}), real({131})}, 1)
      .writes([](Tensor& o, V x) { return outer_out(o, x[0], x[1]); });
  row(
      "addmm",
      {{real({3, 2}), real({3, 4}), real({4, 2})},
       {real({2}), real({3, 4}), real({4, 2})},
       {real({3, 1}), real({3, 0}), real({0, 2})},
       {real({}), real({3, 4}), real({4, 2})},
       {real({2}), real({0, 4}), real({4, 2})}},
      [](V x) { return addmm(x[0], x[1], x[2], 2, 3); },
      [](P x) { return plus(x[0], 2, product(x[1], x[2]), 3); },
      {real({103}), real({97, 101}), real({101, 103})}, 2)
      .within(2)
      .changes([](V x) { return x[0].addmm_(x[1], x[2], 2, 3); })
      .writes([](Tensor& o, V x) { return addmm_out(o, x[0], x[1], x[2], 2, 3); });
  row(
      "baddbmm",
      {{real({2, 3, 2}), real({2, 3, 4}), real({2, 4, 2})},
       {real({2, 1, 2}), real({2, 3, 4}), real({2, 4, 2})},
       {real({}), real({2, 3, 4}), real({2, 4, 2})},
       {real({1, 2}), real({0, 3, 4}), real({0, 4, 2})}},
      [](V x) { return baddbmm(x[0], x[1], x[2], 2, 3); },
      [](P x) { return plus(x[0], 2, product(x[1], x[2]), 3); },
      {real({23, 19}), real({70, 23, 17}), real({70, 17, 19})}, 6)
      .within(2)
      .writes([](Tensor& o, V x) { return baddbmm_out(o, x[0], x[1], x[2], 2, 3); });
  const Samples ranks = {{real({2, 3, 4}), real({4, 2})},
                         {real({3, 4}), real({4, 2})},
                         {real({4}), real({4})},
                         {real({3, 4}), real({4})},
                         {real({4}), real({4, 2})},
                         {real({2, 3, 4}), real({4})},
                         {real({4}), real({2, 4, 3})},
                         {real({2, 1, 3, 4}), real({5, 4, 2})},
                         {real({1, 3, 4}), real({3, 1, 4, 2})},
                         {real({0, 3, 4}), real({4, 2})},
                         {real({2, 3, 0}), real({0, 2})}};
  row(
      "matmul", ranks, [](V x) { return matmul(x[0], x[1]); }, multiplied, batches, 3)
      .writes([](Tensor& o, V x) { return matmul_out(o, x[0], x[1]); });
  const Reference affine = [](P x) { return plus(x[2], 1, product(x[0], transposed(x[1])), 1); };
  row(
      "linear",
      {{real({3, 4}), real({2, 4}), real({2})},
       {real({2, 3, 4}), real({2, 4}), real({2})},
       {real({4}), real({2, 4}), real({2})},
       {real({0, 4}), real({2, 4}), real({2})},
       {real({3, 0}), real({2, 0}), real({2})}},
      [](V x) { return linear(x[0], x[1], x[2]); }, affine,
      {real({97, 101}), real({103, 101}), real({103})}, 1)
      .slim({real({62500, 16}), real({10, 16}), real({10})})
      .within(2)
      .writes([](Tensor& o, V x) { return linear_out(o, x[0], x[1], x[2]); });
  row(
      "linear.plain",
      {{real({3, 4}), real({2, 4})}, {real({2, 3, 4}), real({2, 4})}, {real({0, 4}), real({2, 4})}},
      [](V x) { return linear(x[0], x[1]); }, [](P x) { return product(x[0], transposed(x[1])); },
      {real({97, 101}), real({103, 101})}, 1)
      .writes([](Tensor& o, V x) { return linear_out(o, x[0], x[1]); });
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
