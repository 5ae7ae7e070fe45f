// Rows of the operation table: attention, steps of recurrent networks.
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

// ---- steps of recurrent networks: columns of gates are those of the state, one after the other

double sigma(double x) { return 1 / (1 + std::exp(-x)); }
double gate(const Plain& x, const Index& i, int64_t part, int64_t parts) {
  return x.at({i[0], part * (x.size(1) / parts) + i[1]});
}
double cell_after(P in, const Index& i) {
  return sigma(gate(in[0], i, 1, 4)) * in[1].at(i) +
         sigma(gate(in[0], i, 0, 4)) * std::tanh(gate(in[0], i, 2, 4));
}
double hidden_after(P in, const Index& i) {
  return sigma(gate(in[0], i, 3, 4)) * std::tanh(cell_after(in, i));
}
double gru_after(P in, const Index& i) {
  const auto sum = [&](int64_t part) { return gate(in[0], i, part, 3) + gate(in[1], i, part, 3); };
  const double n = std::tanh(gate(in[0], i, 2, 3) + sigma(sum(0)) * gate(in[1], i, 2, 3));
  return n + sigma(sum(1)) * (in[2].at(i) - n);
}

void add_steps(Table& t) {
  const auto lstm = [](int64_t rows, int64_t cols) {
    return Sample{real({rows, 4 * cols}), real({rows, cols})};
  };
  const auto gru = [](int64_t rows, int64_t cols) {
    return Sample{real({rows, 3 * cols}), real({rows, 3 * cols}), real({rows, cols})};
  };
  const Samples some = {lstm(3, 5), lstm(2, 16), lstm(0, 2), lstm(2, 0)};
  t.row(
       "fused_lstm_cell", kFloats, some,
       [](V x) {
         const auto [hidden, cell] = fused_lstm_cell(x[0], x[1]);
         return hidden.mul(cell).add(cell);
       },
       [](P x) {
         return made(x[1].sizes, [&](const Index& i) {
           const double c = cell_after(x, i);
           return hidden_after(x, i) * c + c;
         });
       })
      .big(lstm(97, 131), 3)
      .within(8);
  t.row(
       "fused_lstm_cell.hidden", kFloats, some,
       [](V x) { return std::get<0>(fused_lstm_cell(x[0], x[1])); },
       [](P x) { return made(x[1].sizes, [&](const Index& i) { return hidden_after(x, i); }); })
      .big(lstm(97, 131), 3)
      .within(4);
  t.row(
       "fused_lstm_cell.cell", kFloats, some,
       [](V x) { return std::get<1>(fused_lstm_cell(x[0], x[1])); },
       [](P x) { return made(x[1].sizes, [&](const Index& i) { return cell_after(x, i); }); })
      .big(lstm(97, 131), 3)
      .within(4);
  t.row(
       "fused_gru_cell", kFloats, {gru(3, 5), gru(2, 16), gru(0, 2), gru(2, 0)},
       [](V x) { return fused_gru_cell(x[0], x[1], x[2]); },
       [](P x) { return made(x[2].sizes, [&](const Index& i) { return gru_after(x, i); }); })
      .big(gru(97, 131), 7)
      .within(8);
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
  add_steps(t);
  return t.rows();
}
RAMET_OP_TABLE(rows());

}  // namespace
}  // namespace op_table
}  // namespace ramet
