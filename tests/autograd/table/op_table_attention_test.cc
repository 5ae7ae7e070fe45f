// Rows of the operation table: attention.
#include <cmath>

#include "autograd/ops.h"
#include "tests/autograd/table/op_table_suite.h"

namespace ramet {
namespace op_table {
namespace {

// The whole matrix of scores; `mask` is added to it, or null.
Plain attended(P in, const Plain* mask, bool causal, double scale) {
  const Plain &q = in[0], &k = in[1], &v = in[2];
  Index sizes = q.sizes;
  sizes.back() = v.size(-1);
  return made(sizes, [&](const Index& i) {
    const size_t row = i.size() - 2;
    Index a = i, b = i;
    std::vector<double> s;
    for (int64_t j = 0; j < k.size(-2); ++j) {
      double dot = 0;
      b[row] = j;
      for (int64_t c = 0; c < k.size(-1); ++c) {
        a.back() = b.back() = c;
        dot += q.at(a) * k.at(b);
      }
      s.push_back(causal && j > i[row] ? -INFINITY
                                       : dot * scale + (mask ? mask->at({i[row], j}) : 0));
    }
    double most = -INFINITY, sum = 0, y = 0;
    for (double x : s) most = x > most ? x : most;
    b.back() = i.back();
    for (int64_t j = 0; j < k.size(-2); ++j) {
      const double p = std::exp(s[static_cast<size_t>(j)] - (most == -INFINITY ? 0 : most));
      sum += p;
      b[row] = j;
      y += p * v.at(b);
    }
    return sum == 0 ? y : y / sum;  // of nothing 0
  });
}

Sample operands_of(Index leading, int64_t l, int64_t s, int64_t e) {
  Index q = leading, k = leading;
  q.insert(q.end(), {l, e}), k.insert(k.end(), {s, e});
  return {real(q), real(k), real(k)};
}

std::vector<Row> rows() {
  Table t;
  const Samples some = {operands_of({2, 2}, 3, 4, 4), operands_of({}, 4, 3, 5),
                        operands_of({2}, 2, 3, 1), operands_of({0, 2}, 3, 4, 4),
                        operands_of({2}, 3, 0, 4)};
  t.row(
       "scaled_dot_product_attention", kFloats, some,
       [](V x) { return scaled_dot_product_attention(x[0], x[1], x[2]); },
       [](P x) { return attended(x, nullptr, false, 1 / std::sqrt(double(x[0].size(-1)))); })
      .big(operands_of({90, 2}, 9, 11, 8), 7)
      .within(8);
  t.row(
       "scaled_dot_product_attention.causal", kFloats, some,
       [](V x) { return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, true, 0.3); },
       [](P x) { return attended(x, nullptr, true, 0.3); })
      .big(operands_of({90, 2}, 9, 11, 8), 7)
      .within(8)
      .partly_tame(4, "an infinite value that is not seen meets a probability of 0");
  Samples masked;
  for (Sample s : {operands_of({2, 2}, 3, 4, 4), operands_of({0}, 3, 4, 2)}) {
    s.push_back(real({3, 4}));
    masked.push_back(s);
  }
  Sample large = operands_of({90, 2}, 9, 11, 8);
  large.push_back(real({9, 11}));
  t.row(
       "scaled_dot_product_attention.mask", kFloats, masked,
       [](V x) { return scaled_dot_product_attention(x[0], x[1], x[2], x[3]); },
       [](P x) { return attended(x, &x[3], false, 1 / std::sqrt(double(x[0].size(-1)))); })
      .big(large, 7)
      .within(8);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
