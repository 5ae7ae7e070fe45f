// Rows of the operation table: products of vectors, element by element: outer, Kronecker's, cross,
// bilinear.
#include <algorithm>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

void add_products(Table& t) {
  t.row("outer", kAll, {{real({3}), real({4})}, {real({0}), real({4})}, {real({3}), real({0})}},
        CALL_OUT(outer, x[0], x[1]),
        [](P x) {
          return made({x[0].size(0), x[1].size(0)},
                      [&](const Index& i) { return x[0].at({i[0]}) * x[1].at({i[1]}); });
        })
      .big({real({97}), real({131})}, 1);
  t.row("kron", kAll,
        {{real({2, 3}), real({3, 2})},
         {real({2}), real({2, 1, 2})},
         {real({}), real({3})},
         {real({0, 2}), real({2, 2})}},
        CALL_OUT(kron, x[0], x[1]),
        [](P x) {
          const int64_t rank = std::max(x[0].rank(), x[1].rank());
          std::vector<Plain> p = x;
          for (Plain& each : p)
            while (each.rank() < rank) each.sizes.insert(each.sizes.begin(), 1);
          Index sizes;
          for (int64_t d = 0; d < rank; ++d) sizes.push_back(p[0].size(d) * p[1].size(d));
          return made(sizes, [&](const Index& i) {
            Index outer, inner;
            for (size_t d = 0; d < i.size(); ++d)
              outer.push_back(i[d] / p[1].sizes[d]), inner.push_back(i[d] % p[1].sizes[d]);
            return p[0].at(outer) * p[1].at(inner);
          });
        })
      .big({real({60, 70}), real({3, 4})})
      .in_one("a slice of an operand gives another number of slices");
  const Reference crossed = [](P x) {
    return made(common(x[0].sizes, x[1].sizes), [&](Index i) {
      const int64_t c = i[1];
      const auto times = [&](int64_t a, int64_t b) {
        i[1] = (c + a) % 3;
        const double v = x[0].broadcast(i);
        i[1] = (c + b) % 3;
        return v * x[1].broadcast(i);
      };
      const double first = times(1, 2);
      return first - times(2, 1);
    });
  };
  const Samples vectors = {{real({2, 3}), real({2, 3})},
                           {real({2, 3, 2}), real({1, 3, 2})},
                           {real({0, 3}), real({1, 3})}};
  const Sample many = {real({9000, 3}), real({9000, 3})};
  t.row("cross", kNumbers, vectors, CALL_OUT(cross, x[0], x[1]), crossed)
      .big(many)
      .in_one("the first dimension of 3 is taken");
  t.row("linalg_cross", kNumbers, vectors, CALL_OUT(linalg_cross, x[0], x[1], 1), crossed)
      .big(many, 3);
  t.row("bilinear", kNumbers,
        {{real({4, 3}), real({4, 2}), real({5, 3, 2}), real({5})},
         {real({3}), real({2}), real({5, 3, 2}), real({5})},
         {real({2, 0, 3}), real({2, 0, 2}), real({5, 3, 2}), real({5})}},
        CALL(bilinear, x[0], x[1], x[2], x[3]),
        [](P x) {
          Index sizes = x[0].sizes;
          sizes.back() = x[2].size(0);
          return made(sizes, [&](Index i) {
            const int64_t k = i.back();
            double y = 0;
            for (int64_t b = 0; b < x[1].size(-1); ++b) {
              double line = 0;
              for (int64_t a = 0; a < x[0].size(-1); ++a) {
                i.back() = a;
                line += x[0].at(i) * x[2].at({k, a, b});
              }
              i.back() = b;
              y += line * x[1].at(i);
            }
            return y + x[3].at({k});
          });
        })
      .big({real({300, 30}), real({300, 7}), real({9, 30, 7}), real({9})}, 3)
      .products()
      .small("a product of three, which emulated threads take 20 s for")
      .within(4);
}

RAMET_OP_TABLE(add_products);

}  // namespace
}  // namespace op_table
}  // namespace ramet
