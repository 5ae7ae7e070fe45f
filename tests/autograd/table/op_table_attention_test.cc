// Rows of the operation table: attention, recurrent networks and their steps.
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
  t.row("fused_lstm_cell.hidden", kFloats, some, FIRST(fused_lstm_cell, x[0], x[1]),
        [](P x) { return made(x[1].sizes, [&](const Index& i) { return hidden_after(x, i); }); })
      .big(lstm(97, 131), 3)
      .within(4);
  t.row("fused_lstm_cell.cell", kFloats, some, SECOND(fused_lstm_cell, x[0], x[1]),
        [](P x) { return made(x[1].sizes, [&](const Index& i) { return cell_after(x, i); }); })
      .big(lstm(97, 131), 3)
      .within(4);
  t.row("fused_gru_cell", kFloats, {gru(3, 5), gru(2, 16), gru(0, 2), gru(2, 0)},
        CALL(fused_gru_cell, x[0], x[1], x[2]),
        [](P x) { return made(x[2].sizes, [&](const Index& i) { return gru_after(x, i); }); })
      .big(gru(97, 131), 7)
      .within(8);
}

// ---- recurrent networks, element by element

struct Network {
  int64_t gates;  // 4: LSTM, 3: GRU, else tanh or relu
  bool relu = false;
};
// One step of one sequence. x: the input's features; h, c: the states, which change.
using Values = std::vector<double>;
void step(const Network& net, const Plain& ih, const Plain& hh, const Plain& bi, const Plain& bh,
          const Values& x, Values* h, Values* c) {
  const auto n = int64_t(h->size());
  Values of_x(size_t(net.gates * n)), of_h(of_x.size());
  for (int64_t g = 0; g < net.gates * n; ++g) {
    double a = bi.at({g}), b = bh.at({g});
    for (size_t k = 0; k < x.size(); ++k) a += ih.at({g, int64_t(k)}) * x[k];
    for (int64_t k = 0; k < n; ++k) b += hh.at({g, k}) * (*h)[size_t(k)];
    of_x[size_t(g)] = a, of_h[size_t(g)] = b;
  }
  Values next(*h);
  for (int64_t j = 0; j < n; ++j) {
    const auto at = [&](const Values& v, int64_t part) { return v[size_t(part * n + j)]; };
    const auto sum = [&](int64_t part) { return at(of_x, part) + at(of_h, part); };
    double& y = next[size_t(j)];
    if (net.gates == 4) {
      double& cell = (*c)[size_t(j)];
      cell = sigma(sum(1)) * cell + sigma(sum(0)) * std::tanh(sum(2));
      y = sigma(sum(3)) * std::tanh(cell);
    } else if (net.gates == 3) {
      const double new_part = std::tanh(at(of_x, 2) + sigma(sum(0)) * at(of_h, 2));
      y = new_part + sigma(sum(1)) * (y - new_part);
    } else {
      y = net.relu ? (sum(0) < 0 ? 0 : sum(0)) : std::tanh(sum(0));
    }
  }
  *h = next;
}
Values line(const Plain& x, Index at) {
  Values v;
  at.push_back(0);
  for (; at.back() < x.size(-1); ++at.back()) v.push_back(x.at(at));
  return v;
}
// The operands are x, h, (c,) ih, hh, bi, bh. The states after a step, joined.
Plain cell_of(P in, const Network& net) {
  const bool lstm = net.gates == 4;
  const size_t w = lstm ? 3 : 2;
  Plain y{{in[0].size(0), (lstm ? 2 : 1) * in[1].size(1)}, {}};
  for (int64_t i = 0; i < in[0].size(0); ++i) {
    Values h = line(in[1], {i}), c = lstm ? line(in[2], {i}) : Values();
    step(net, in[w], in[w + 1], in[w + 2], in[w + 3], line(in[0], {i}), &h, &c);
    for (const Values* v : {&h, &c}) y.v.insert(y.v.end(), v->begin(), v->end());
  }
  return y;
}
// All outputs of [time, batch, features], followed by the last states.
Plain network_of(P in, const Network& net) {
  const bool lstm = net.gates == 4;
  const size_t w = lstm ? 3 : 2;
  const int64_t steps = in[0].size(0), batch = in[0].size(1), columns = in[1].size(2);
  std::vector<Values> h, c;
  for (int64_t b = 0; b < batch; ++b) {
    h.push_back(line(in[1], {0, b}));
    c.push_back(lstm ? line(in[2], {0, b}) : Values());
  }
  Plain y{{steps + (lstm ? 2 : 1), batch, columns}, {}};
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t b = 0; b < batch; ++b) {
      Values &hidden = h[size_t(b)], &cell = c[size_t(b)];
      step(net, in[w], in[w + 1], in[w + 2], in[w + 3], line(in[0], {t, b}), &hidden, &cell);
      y.v.insert(y.v.end(), hidden.begin(), hidden.end());
    }
  for (const auto* states : {&h, &c})
    for (const Values& v : *states) y.v.insert(y.v.end(), v.begin(), v.end());
  return y;
}

void add_networks(Table& t) {
  const char* const kProducts = "on a GPU a product's order of sums depends on its rows";
  const auto operands = [](Index x, Index h, const Network& net, int64_t features) {
    Sample s = {real(x, -1, 1), real(h, -1, 1)};
    const int64_t columns = h.back(), gates = net.gates * columns;
    if (net.gates == 4) s.push_back(real(h, -1, 1));
    for (const Index& w : {Index{gates, features}, {gates, columns}, {gates}, {gates}})
      s.push_back(real(w, -0.5, 0.5));
    return s;
  };
  const auto cell = [&](const char* name, const Network& net, Calls call) -> Row& {
    const auto sample = [&](int64_t n, int64_t features, int64_t columns) {
      return operands({n, features}, {n, columns}, net, features);
    };
    return t
        .row(name, kFloats, {sample(3, 2, 4), sample(0, 2, 3), sample(2, 0, 3)}, std::move(call),
             [=](P x) { return cell_of(x, net); })
        .big(sample(300, 20, 31))
        .in_one(kProducts)
        .small("a product of small matrices")
        .within(8);
  };
  cell("lstm_cell", {4}, [](V x) {
    const auto [h, c] = lstm_cell(x[0], {x[1], x[2]}, x[3], x[4], x[5], x[6]);
    return cat({h, c}, 1);
  });
  cell("gru_cell", {3}, CALL(gru_cell, x[0], x[1], x[2], x[3], x[4], x[5]));
  cell("rnn_tanh_cell", {1}, CALL(rnn_tanh_cell, x[0], x[1], x[2], x[3], x[4], x[5]))
      .gives(floating)
      .dtypes = kNumbers;
  cell("rnn_relu_cell", {1, true}, CALL(rnn_relu_cell, x[0], x[1], x[2], x[3], x[4], x[5])).dtypes =
      kNumbers;
  const auto network = [&](const char* name, const Network& net, Calls call) -> Row& {
    const auto sample = [&](int64_t steps, int64_t n, int64_t features, int64_t columns) {
      return operands({steps, n, features}, {1, n, columns}, net, features);
    };
    return t
        .row(name, kFloats, {sample(3, 2, 2, 4), sample(2, 0, 2, 3), sample(1, 2, 0, 3)},
             std::move(call), [=](P x) { return network_of(x, net); })
        .big(sample(2, 300, 20, 31))
        .in_one(kProducts)
        .small("products of small matrices")
        .within(16);
  };
  const auto weights = [](V x, size_t from) {
    return std::vector<Tensor>(x.begin() + from, x.end());
  };
  // As packed sequences of one length.
  const char* const kRead = "the sizes of the steps are read";
  const auto rows = [](const Tensor& x) { return x.flatten(0, 1); };
  const auto sizes = [](const Tensor& x) { return full({x.size(0)}, x.size(1), kLong); };
  network("lstm", {4}, [=](V x) {
    const auto [y, h, c] = lstm(x[0], {x[1], x[2]}, weights(x, 3), true, 1, 0, false, false, false);
    return cat({y, h, c});
  });
  network("lstm.packed", {4}, [=](V x) {
    const auto [y, h, c] =
        lstm(rows(x[0]), sizes(x[0]), {x[1], x[2]}, weights(x, 3), true, 1, 0, false, false);
    return cat({y.view({x[0].size(0), h.size(1), h.size(2)}), h, c});
  }).uncapturable(kRead);
#define NETWORK(name, gates, relu, types)                                                     \
  network(#name, {gates, relu}, [=](V x) {                                                    \
    const auto [y, h] = name(x[0], x[1], weights(x, 2), true, 1, 0, false, false, false);     \
    return cat({y, h});                                                                       \
  }).dtypes = types;                                                                          \
  network(#name ".packed", {gates, relu},                                                     \
          [=](V x) {                                                                          \
            const auto [y, h] =                                                               \
                name(rows(x[0]), sizes(x[0]), x[1], weights(x, 2), true, 1, 0, false, false); \
            return cat({y.view({x[0].size(0), h.size(1), h.size(2)}), h});                    \
          })                                                                                  \
      .uncapturable(kRead)                                                                    \
      .dtypes = types
  NETWORK(gru, 3, false, kFloats);
  NETWORK(rnn_tanh, 1, false, kFloats);
  NETWORK(rnn_relu, 1, true, kNumbers);
#undef NETWORK
}

TEST(RecurrentRows, Refuse) {
  const Tensor x = zeros({3, 2, 4}), h = zeros({1, 2, 5}), ih = zeros({20, 4}), hh = zeros({20, 5});
  const std::vector<Tensor> w = {ih, hh};
  const auto run = [&](TensorList hx, TensorList weights, bool biases = false, int64_t layers = 1,
                       double drop = 0) {
    lstm(x, hx, weights, biases, layers, drop, true, false, false);
  };
  run({h, h}, w);
  EXPECT_THROW(run({h}, w), Error);
  EXPECT_THROW(run({h, Tensor()}, w), Error);
  EXPECT_THROW(run({h, zeros({1, 3, 5})}, w), Error);
  EXPECT_THROW(run({h, h.to(kDouble)}, w), Error);
  EXPECT_THROW(run({h, h}, {}), Error);
  EXPECT_THROW(run({h, h}, {ih}), Error);
  EXPECT_THROW(run({h, h}, {ih, Tensor()}), Error);
  EXPECT_THROW(run({h, h}, {Tensor(), hh}), Error);
  EXPECT_THROW(run({h, h}, {zeros({20, 3}), hh}), Error);
  EXPECT_THROW(run({h, h}, {ih, zeros({21, 5})}), Error);
  EXPECT_THROW(run({h, h}, {ih, zeros({0, 5})}), Error);
  EXPECT_THROW(run({h, h}, w, true), Error);
  EXPECT_THROW(run({h, h}, w, false, 2), Error);
  EXPECT_THROW(run({h, h}, w, false, INT64_MAX), Error);
  EXPECT_THROW(run({h, h}, w, false, INT64_MIN), Error);
  EXPECT_THROW(run({h, h}, w, false, 1, 1.5), Error);
  EXPECT_THROW(run({h, h}, w, false, 1, std::nan("")), Error);
  const auto packed = [&](const Tensor& sizes) {
    lstm(x.flatten(0, 1), sizes, {h, h}, w, false, 1, 0, false, false);
  };
  packed(tensor(std::vector<int64_t>{2, 2, 2}));
  EXPECT_THROW(packed(Tensor()), Error);
  EXPECT_THROW(packed(tensor(std::vector<int64_t>{2, 2, 2}).to(kInt)), Error);
  EXPECT_THROW(packed(tensor(std::vector<int64_t>{2, 1, 3})), Error);
  EXPECT_THROW(packed(zeros({0}, kLong)), Error);
  EXPECT_THROW(gru(x, Tensor(), {zeros({15, 4}), zeros({15, 5})}, false, 1, 0, false, false, false),
               Error);
  EXPECT_THROW(gru_cell(x[0], h[0], zeros({15, 4}), zeros({15, 6})), Error);
  EXPECT_THROW(gru_cell(x[0], h[0], zeros({15, 4}), zeros({15, 5}), zeros({14})), Error);
  EXPECT_THROW(gru_cell(x[0][0], h[0], zeros({15, 4}), zeros({15, 5})), Error);
  EXPECT_THROW(rnn_tanh_cell(x[0], h, zeros({5, 4}), zeros({5, 5})), Error);
  EXPECT_THROW(lstm_cell(x[0], {h[0]}, ih, hh), Error);
  // One bias alone is added, as by LibTorch.
  EXPECT_TRUE(equal(rnn_tanh_cell(x[0], h[0], zeros({5, 4}), zeros({5, 5}), {}, ones({5})),
                    tanh(ones({2, 5}))));
}

void add_attention(Table& t) {
  const Samples some = {operands_of({2, 2}, 3, 4, 4), operands_of({}, 4, 3, 5),
                        operands_of({2}, 2, 3, 1), operands_of({0, 2}, 3, 4, 4),
                        operands_of({2}, 3, 0, 4)};
  t.row("scaled_dot_product_attention", kFloats, some,
        CALL(scaled_dot_product_attention, x[0], x[1], x[2]),
        [](P x) { return attended(x, nullptr, false, 1 / std::sqrt(double(x[0].size(-1)))); })
      .big(operands_of({90, 2}, 9, 11, 8), 7)
      .within(8);
  t.row("scaled_dot_product_attention.causal", kFloats, some,
        CALL(scaled_dot_product_attention, x[0], x[1], x[2], {}, 0, true, 0.3),
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
  t.row("scaled_dot_product_attention.mask", kFloats, masked,
        CALL(scaled_dot_product_attention, x[0], x[1], x[2], x[3]),
        [](P x) { return attended(x, &x[3], false, 1 / std::sqrt(double(x[0].size(-1)))); })
      .big(large, 7)
      .within(8);
}

// Query, key and value in one tensor [batch, rows, 3, heads, columns].
void add_packed_attention(Table& t) {
  const auto row = [&](const char* name, bool causal, Calls call) -> Row& {
    return t
        .row(name, kFloats,
             {{real({2, 3, 3, 2, 4})},
              {real({1, 1, 3, 1, 1})},
              {real({0, 3, 3, 2, 4})},
              {real({2, 0, 3, 1, 3})}},
             std::move(call),
             [causal](P x) {
               const Plain& packed = x[0];
               std::vector<Plain> parts;
               for (int64_t part = 0; part < 3; ++part)
                 parts.push_back(
                     made({packed.size(0), packed.size(3), packed.size(1), packed.size(4)},
                          [&](const Index& i) {
                            return packed.at({i[0], i[2], part, i[1], i[3]});
                          }));
               const Plain y = attended(parts, nullptr, causal,
                                        causal ? 0.3 : 1 / std::sqrt(double(packed.size(4))));
               return made({packed.size(0), packed.size(1), packed.size(3), packed.size(4)},
                           [&](const Index& i) {
                             return y.at({i[0], i[2], i[1], i[3]});
                           });
             })
        .big({real({90, 9, 3, 2, 8})}, 1)
        .within(8);
  };
  row("packed_scaled_dot_product_attention", false,
      CALL(packed_scaled_dot_product_attention, x[0]));
  row("packed_scaled_dot_product_attention.causal", true,
      CALL(packed_scaled_dot_product_attention, x[0], true, 0, 0.3))
      .tame("an infinite value that is not seen meets a probability of 0");
}
RAMET_OP_TABLE(add_attention, add_packed_attention, add_steps, add_networks);

}  // namespace
}  // namespace op_table
}  // namespace ramet
