// Rows of the operation table: matrix products.
#include <algorithm>
#include <cmath>

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

// The sum of the operands' products over all index tuples of `extents`. Operand k is read at the
// places that `at[k]` names; the result has the first `kept` of them.
Plain summed(P x, const Index& extents, size_t kept, const std::vector<Index>& at) {
  const Index lead(extents.begin(), extents.begin() + static_cast<ptrdiff_t>(kept)),
      rest(extents.begin() + static_cast<ptrdiff_t>(kept), extents.end());
  return made(lead, [&](Index i) {
    double s = 0;
    made(rest, [&](const Index& j) {
      Index all = i;
      all.insert(all.end(), j.begin(), j.end());
      double term = 1;
      for (size_t k = 0; k < x.size(); ++k) {
        Index own;
        for (const int64_t d : at[k]) own.push_back(all[size_t(d)]);
        for (size_t d = 0; d < own.size(); ++d)
          if (x[k].sizes[d] == 1) own[d] = 0;
        term *= x[k].at(own);
      }
      s += term;
      return 0.0;
    });
    return s;
  });
}

void add_sums(Table& t) {
  const auto row = [&t](const char* name, Samples samples, Calls call, Reference reference,
                        Sample large, uint32_t batched) -> Row& {
    return t.row(name, kNumbers, std::move(samples), std::move(call), std::move(reference))
        .big(std::move(large), batched)
        .products();
  };
  const Sample matrices = {real({97, 101}), real({101, 103})},
               batches = {real({70, 23, 17}), real({70, 17, 19})};
  row("einsum", {{real({3, 4}), real({4, 2})}, {real({0, 4}), real({4, 2})}},
      CALL(einsum, "ij,jk->ik", x), multiplied, matrices, 1);
  row("einsum.batches",
      {{real({2, 3, 4}), real({2, 4, 2})},
       {real({3, 4}), real({5, 4, 2})},
       {real({2, 0, 4}), real({4, 2})}},
      CALL(einsum, "... i j, ...jk", x), multiplied, batches, 3);
  row("einsum.dot", {{real({5}), real({5})}, {real({0}), real({0})}}, CALL(einsum, "i,i", x),
      multiplied, {real({270000}), real({270000})}, 0);
  t.row("einsum.three", kAll,
        {{real({3, 1}), real({4, 2, 3}), real({5, 4})},
         {real({3, 4}), real({4, 0, 3}), real({5, 1})}},
        CALL(einsum, "ab,bca,db->da", x, IntArrayRef{0, 2, 0, 1}),
        [](P x) {
          return summed(
              x, {x[2].size(0), x[0].size(0), std::max(x[0].size(1), x[1].size(0)), x[1].size(1)},
              2, {{1, 2}, {2, 3, 1}, {0, 2}});
        })
      .big({real({40, 30}), real({30, 3, 40}), real({300, 30})})
      .small("letters are extents of two operands each")
      .only(kFloats)  // of integers the sums are int64, the products not
      .tame("sums are made before products")
      .within(4)
      .in_one("the first dimension is the last operand's");
  t.row("einsum.diagonal", kAll, shapes({{3, 3, 2}, {2, 2, 0}}), CALL(einsum, "iik->ki", {x[0]}),
        [](P x) {
          return made({x[0].size(2), x[0].size(0)}, [&](const Index& i) {
            return x[0].at({i[1], i[1], i[0]});
          });
        })
      .moves_nothing();
  t.row("einsum.sum", kAll, shapes({{3, 4, 2}, {3, 0, 2}}), CALL(einsum, "bij->jb", {x[0]}),
        [](P x) {
          return summed(x, {x[0].size(2), x[0].size(0), x[0].size(1)}, 2, {{1, 2, 0}});
        })
      .gives(widened)
      .big({real({97, 3, 131})})
      .in_one("the first dimension is the last one of the operand");
  row(
      "tensordot",
      {{real({3, 4, 2}), real({2, 5, 4})},
       {real({3, 1, 2}), real({2, 5, 4})},
       {real({3, 0, 2}), real({2, 5, 0})}},
      CALL(tensordot, x[0], x[1], {1, -1}, {-1, 0}),
      [](P x) {
        return summed(x, {x[0].size(0), x[1].size(1), x[1].size(2), x[0].size(2)}, 2,
                      {{0, 2, 3}, {3, 1, 2}});
      },
      {real({97, 17, 11}), real({11, 103, 17})}, 1)
      .within(4);
  row(
      "inner",
      {{real({3, 4}), real({2, 4})},
       {real({4}), real({4})},
       {real({2, 1, 4}), real({3, 4})},
       {real({0, 4}), real({2, 4})},
       {real({}), real({2, 4})}},
      CALL_OUT(inner, x[0], x[1]),
      [](P x) {
        if (x[0].rank() == 0)
          return made(x[1].sizes, [&](const Index& i) { return x[0].v[0] * x[1].at(i); });
        Index sizes(x[0].sizes.begin(), x[0].sizes.end() - 1);
        const size_t first = sizes.size();
        sizes.insert(sizes.end(), x[1].sizes.begin(), x[1].sizes.end());
        Index a, b;
        for (size_t d = 0; d < sizes.size(); ++d) (d < first ? a : b).push_back(int64_t(d));
        a.push_back(b.back());
        return summed(x, sizes, sizes.size() - 1, {a, b});
      },
      {real({97, 101}), real({103, 101})}, 1);
  row("vdot", {{real({5}), real({5})}, {real({0}), real({0})}}, EXPRESSION(x[0].vdot(x[1])),
      multiplied, {real({270000}), real({270000})}, 0)
      .writes(OUT(vdot, x[0], x[1]));
  t["tensordot"].writes(OUT(tensordot, x[0], x[1], {1, -1}, {-1, 0}));
#define CHAIN(name)                                                                             \
  row(                                                                                          \
      #name,                                                                                    \
      {{real({3, 4}), real({4, 2}), real({2, 5})}, {real({0, 4}), real({4, 2}), real({2, 3})}}, \
      EXPRESSION(name(x)), [](P x) { return product(product(x[0], x[1]), x[2]); },              \
      {real({97, 101}), real({101, 103}), real({103, 99})}, 0)                                  \
      .within(8)                                                                                \
      .in_one("how the product is bracketed depends on the sizes")                              \
      .writes([](Tensor& o, V x) { return name##_out(o, x); })
  CHAIN(chain_matmul);
  CHAIN(linalg_multi_dot);
#undef CHAIN
  t["linalg_multi_dot"].samples.push_back({real({4}), real({4, 2}), real({2})});
}

void add_added(Table& t) {
  const auto added = [](const Plain& self, const Plain& sum) { return plus(self, 2, sum, 3); };
  t.row("addmv", kNumbers,
        {{real({3}), real({3, 4}), real({4})},
         {real({}), real({3, 4}), real({4})},
         {real({1}), real({3, 0}), real({0})},
         {real({0}), real({0, 4}), real({4})}},
        CALL_OUT(addmv, x[0], x[1], x[2], 2, 3),
        [=](P x) { return added(x[0], product(x[1], x[2])); })
      .big({real({600}), real({600, 450}), real({450})}, 3)
      .small("what is added is a vector")
      .within(2)
      .products()
      .changes(EXPRESSION(addmv_(const_cast<Tensor&>(x[0]), x[1], x[2], 2, 3)));
  t.row("addr", kAll,
        {{real({3, 4}), real({3}), real({4})},
         {real({4}), real({3}), real({4})},
         {real({}), real({3}), real({4})},
         {real({1, 4}), real({0}), real({4})}},
        CALL_IN_PLACE_OUT(addr, x[0], x[1], x[2], 2, 3),
        [=](P x) {
          return added(x[0], made({x[1].size(0), x[2].size(0)}, [&](const Index& i) {
                         return x[1].at({i[0]}) * x[2].at({i[1]});
                       }));
        })
      .big({real({97, 131}), real({97}), real({131})}, 3);
  t.row("addbmm", kNumbers,
        {{real({3, 2}), real({5, 3, 4}), real({5, 4, 2})},
         {real({}), real({2, 3, 4}), real({2, 4, 2})},
         {real({2}), real({0, 3, 4}), real({0, 4, 2})}},
        CALL_IN_PLACE_OUT(addbmm, x[0], x[1], x[2], 2, 3),
        [=](P x) {
          return added(
              x[0], summed({x[1], x[2]}, {x[1].size(1), x[2].size(2), x[1].size(0), x[1].size(2)},
                           2, {{2, 0, 3}, {2, 3, 1}}));
        })
      .big({real({97, 103}), real({5, 97, 21}), real({5, 21, 103})})
      .within(2)
      .products()
      .sliced({0, 1, -1}, 0);
}

void add_matmul(Table& t) {
  // One element of work is one rounding; sums of integers are exact.
  const auto row = [&t](const char* name, Samples samples, Calls call, Reference reference,
                        Sample large, uint32_t batched) -> Row& {
    return t.row(name, kNumbers, std::move(samples), std::move(call), std::move(reference))
        .big(std::move(large), batched)
        .products();
  };
  const Sample matrices = {real({97, 101}), real({101, 103})},
               batches = {real({70, 23, 17}), real({70, 17, 19})};
  row("mm",
      {{real({3, 4}), real({4, 2})},
       {real({0, 4}), real({4, 2})},
       {real({3, 0}), real({0, 2})},
       {real({1, 1}), real({1, 1})},
       {real({9, 17}), real({17, 18})}},
      CALL_OUT(mm, x[0], x[1]), multiplied, matrices, 1);
  row("bmm",
      {{real({2, 3, 4}), real({2, 4, 2})},
       {real({0, 3, 4}), real({0, 4, 2})},
       {real({2, 3, 0}), real({2, 0, 2})}},
      CALL_OUT(bmm, x[0], x[1]), multiplied, batches, 3);
  row("mv", {{real({3, 4}), real({4})}, {real({0, 4}), real({4})}, {real({3, 0}), real({0})}},
      CALL_OUT(mv, x[0], x[1]), multiplied, {real({600, 450}), real({450})}, 1);
  row("dot", {{real({5}), real({5})}, {real({0}), real({0})}, {real({1}), real({1})}},
      CALL_OUT(dot, x[0], x[1]), multiplied, {real({270000}), real({270000})}, 0);
  row(
      "addmm",
      {{real({3, 2}), real({3, 4}), real({4, 2})},
       {real({2}), real({3, 4}), real({4, 2})},
       {real({3, 1}), real({3, 0}), real({0, 2})},
       {real({}), real({3, 4}), real({4, 2})},
       {real({2}), real({0, 4}), real({4, 2})}},
      CALL_IN_PLACE_OUT(addmm, x[0], x[1], x[2], 2, 3),
      [](P x) { return plus(x[0], 2, product(x[1], x[2]), 3); },
      {real({103}), real({97, 101}), real({101, 103})}, 2)
      .within(2);
  row(
      "baddbmm",
      {{real({2, 3, 2}), real({2, 3, 4}), real({2, 4, 2})},
       {real({2, 1, 2}), real({2, 3, 4}), real({2, 4, 2})},
       {real({}), real({2, 3, 4}), real({2, 4, 2})},
       {real({1, 2}), real({0, 3, 4}), real({0, 4, 2})}},
      CALL_IN_PLACE_OUT(baddbmm, x[0], x[1], x[2], 2, 3),
      [](P x) { return plus(x[0], 2, product(x[1], x[2]), 3); },
      {real({23, 19}), real({70, 23, 17}), real({70, 17, 19})}, 6)
      .within(2);
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
  row("matmul", ranks, CALL_OUT(matmul, x[0], x[1]), multiplied, batches, 3);
  const Reference affine = [](P x) { return plus(x[2], 1, product(x[0], transposed(x[1])), 1); };
  row("linear",
      {{real({3, 4}), real({2, 4}), real({2})},
       {real({2, 3, 4}), real({2, 4}), real({2})},
       {real({4}), real({2, 4}), real({2})},
       {real({0, 4}), real({2, 4}), real({2})},
       {real({3, 0}), real({2, 0}), real({2})}},
      CALL_OUT(linear, x[0], x[1], x[2]), affine, {real({97, 101}), real({103, 101}), real({103})},
      1)
      .slim({real({62500, 16}), real({10, 16}), real({10})})
      .within(2);
  const Reference mlp = [](P x) {
    Plain h = plus(x[2], 1, product(x[0], transposed(x[1])), 1);
    for (double& v : h.v)
      v = v / 2 *
          (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
    return plus(x[4], 1, product(h, transposed(x[3])), 1);
  };
  t.row("linear_gelu_linear", kFloats,
        {{real({3, 4}), real({5, 4}), real({5}), real({2, 5}), real({2})},
         {real({2, 3, 4}), real({5, 4}), real({5}), real({2, 5}), real({2})},
         {real({4}), real({5, 4}), real({5}), real({2, 5}), real({2})},
         {real({0, 4}), real({5, 4}), real({5}), real({2, 5}), real({2})},
         {real({3, 0}), real({5, 0}), real({5}), real({2, 5}), real({2})},
         {real({3, 4}), real({0, 4}), real({0}), real({2, 0}), real({2})}},
        CALL(linear_gelu_linear, x[0], x[1], x[2], x[3], x[4]), mlp)
      .big({real({97, 101}), real({103, 101}), real({103}), real({91, 103}), real({91})}, 1)
      .products()
      .within(8);
  row(
      "linear.plain",
      {{real({3, 4}), real({2, 4})}, {real({2, 3, 4}), real({2, 4})}, {real({0, 4}), real({2, 4})}},
      CALL_OUT(linear, x[0], x[1]), [](P x) { return product(x[0], transposed(x[1])); },
      {real({97, 101}), real({103, 101})}, 1);
}
RAMET_OP_TABLE(add_matmul, add_sums, add_added);

}  // namespace
}  // namespace op_table
}  // namespace ramet
