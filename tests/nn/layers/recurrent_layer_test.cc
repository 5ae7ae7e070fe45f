// A layer of an LSTM or GRU as one operation, against each sequence alone, step by step, with plain
// operations.
#include <algorithm>
#include <functional>
#include <type_traits>

#include "autograd/autograd.h"
#include "autograd/graph/captured.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "nn/layers/sequence/recurrent.h"
#include "runtime/base/thread_pool.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

using utils::rnn::PackedSequence;
using States = std::tuple<Tensor, Tensor>;
using List = std::vector<Tensor>;

constexpr int64_t kIn = 2, kSize = 3;

// One step of one sequence; w: weights and biases of input and state.
void step(const Tensor& x, Tensor& h, Tensor& c, const Tensor* w) {
  const Tensor of_x = w[0].mv(x) + w[2], of_h = w[1].mv(h) + w[3];
  if (c.defined()) {
    const List g = (of_x + of_h).view({4, kSize}).unbind();
    c = g[1].sigmoid() * c + g[0].sigmoid() * g[2].tanh();
    h = g[3].sigmoid() * c.tanh();
  } else {
    const Tensor a = of_x.view({3, kSize}), b = of_h.view({3, kSize}), z = (a[1] + b[1]).sigmoid(),
                 n = (a[2] + (a[0] + b[0]).sigmoid() * b[2]).tanh();
    h = (1 - z) * n + z * h;
  }
}
// Output, last hidden and (of an LSTM) cell states of a bidirectional layer.
List by_sequences(const Tensor& data, const std::vector<int64_t>& rows, const Tensor& h0,
                  const Tensor& c0, const List& weights) {
  std::vector<int64_t> begin = {0};
  for (const int64_t n : rows) begin.push_back(begin.back() + n);
  std::vector<List> out(static_cast<size_t>(begin.back()));
  List last[2];
  for (int64_t d = 0; d < 2; ++d)
    for (int64_t b = 0; b < rows[0]; ++b) {
      Tensor h = h0[d][b], c = c0.defined() ? c0[d][b] : Tensor();
      const auto steps = std::count_if(rows.begin(), rows.end(), [b](int64_t n) { return n > b; });
      for (int64_t i = 0; i < steps; ++i) {
        const int64_t at = begin[static_cast<size_t>(d == 0 ? i : steps - 1 - i)] + b;
        step(data[at], h, c, &weights[static_cast<size_t>(4 * d)]);
        out[static_cast<size_t>(at)].push_back(h);
      }
      last[0].push_back(h);
      if (c.defined()) last[1].push_back(c);
    }
  List lines;
  for (const List& both : out) lines.push_back(cat(both));
  List results = {stack(lines)};
  for (const List& states : last)
    if (!states.empty()) results.push_back(stack(states).view({2, rows[0], kSize}));
  return results;
}

// What of it is used, and what wants a gradient.
struct Use {
  const char* what;
  std::vector<size_t> results, wanted;  // wanted: data, first states, then weights
};
// Gradients of a weighed sum, and those of a weighed sum of their squares.
struct Gradients {
  List first, second;
};
Tensor weighed(const List& list) {
  Tensor sum = zeros({}, TensorOptions(kDouble));
  double start = 1;
  for (const Tensor& t : list)
    if (t.defined()) sum = sum + (t * sines(t.numel(), .7, start++).view(t.sizes())).sum();
  return sum;
}
Gradients gradients(const Use& use, const List& inputs, const std::function<List()>& f) {
  List wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool here = std::count(use.wanted.begin(), use.wanted.end(), i) > 0;
    inputs[i].requires_grad_(here);
    if (here) wanted.push_back(inputs[i]);
  }
  const List all = f();
  List used;
  for (const size_t i : use.results)
    if (i < all.size()) used.push_back(all[i]);
  const Tensor sum = weighed(used);
  Gradients g;
  const List plain = autograd::grad({sum}, wanted, {}, true, false, true);
  g.first = autograd::grad({sum}, wanted, {}, true, true, true);
  List squares;
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(g.first[i].defined(), plain[i].defined());
    if (!plain[i].defined()) continue;
    EXPECT_TRUE(same_bits(g.first[i], plain[i])) << "create_graph changes gradient " << i;
    squares.push_back(g.first[i].square());
  }
  g.second = autograd::grad({weighed(squares)}, wanted, {}, false, false, true);
  return g;
}
void expect_alike(const List& got, const List& want, const char* what) {
  SCOPED_TRACE(what);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    ASSERT_EQ(got[i].defined(), want[i].defined());
    if (got[i].defined()) expect_values(got[i], values(want[i]), 1e-11);
  }
}

const Use kUses[] = {
    {"all of all", {0, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
    {"output, by weights", {0}, {3, 4, 5, 6, 7, 8}},
    {"last hidden states, by data", {1}, {0}},
    {"last states, by first states and a bias", {1, 2}, {1, 2, 6}},
    {"last cell states, by input weights", {2}, {3, 7}},
};

template <class M> M filled(M module) {
  module->to(kDouble);
  const NoGradGuard off;
  double k = 0;
  for (const Tensor& p : module->parameters())
    p.copy_(sines(p.numel(), 1.1, .2 + k++).view(p.sizes()) * .7);
  return module;
}

template <class M> void expect_as_sequences(M made) {
  constexpr bool kLstm = std::is_same_v<M, LSTM>;
  M module = filled(std::move(made));
  for (const std::vector<int64_t>& rows :
       std::vector<std::vector<int64_t>>{{2, 2, 2}, {3, 3, 2, 1}, {1}}) {
    const Tensor sizes = tensor(rows);
    const int64_t total = sizes.sum().item<int64_t>(), batch = rows[0];
    const Tensor x = sines(total * kIn, .9).view({total, kIn}),
                 h = sines(2 * batch * kSize, .3).view({2, batch, kSize}),
                 c = sines(2 * batch * kSize, .4, 2).view({2, batch, kSize});
    const List weights = module->all_weights();
    List inputs = {x, h, c};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    const auto by_module = [&]() -> List {
      const PackedSequence packed(x, sizes);
      if constexpr (kLstm) {
        const auto [y, last] = module->forward_with_packed_input(packed, States(h, c));
        return {y.data(), std::get<0>(last), std::get<1>(last)};
      } else {
        const auto [y, last] = module->forward_with_packed_input(packed, h);
        return {y.data(), last};
      }
    };
    for (const Use& use : kUses) {
      SCOPED_TRACE(std::string(use.what) + ", steps of " + text_of(IntArrayRef(rows)));
      if (!kLstm && use.results[0] == 2) continue;
      const auto by_steps = [&] { return by_sequences(x, rows, h, kLstm ? c : Tensor(), weights); };
      expect_alike(by_module(), by_steps(), "results");
      const Gradients got = gradients(use, inputs, by_module),
                      want = gradients(use, inputs, by_steps);
      expect_alike(got.first, want.first, "gradients");
      expect_alike(got.second, want.second, "gradients of gradients");
      const NoGradGuard off;  // where nothing is kept for a backward
      expect_alike(by_module(), by_steps(), "results without gradients");
    }
  }
}

TEST(RecurrentLayer, LstmAsSequencesAlone) {
  expect_as_sequences(LSTM(LSTMOptions(kIn, kSize).bidirectional(true)));
}
TEST(RecurrentLayer, GruAsSequencesAlone) {
  expect_as_sequences(GRU(GRUOptions(kIn, kSize).bidirectional(true)));
}

TEST(RecurrentLayer, IsOneNode) {
  LSTM lstm = filled(LSTM(kIn, kSize));
  const Tensor x = sines(12).view({3, 2, kIn});
  Tensor y = std::get<0>(lstm->forward(x));
  EXPECT_EQ(y.grad_fn()->next_edge(0).function->name(), "LstmLayerBackward0");
  // The output is the caller's.
  const Tensor twice = y * 2;
  twice.sum().backward();
  const List want = {lstm->all_weights()[0].grad().clone(), lstm->all_weights()[1].grad().clone()};
  EXPECT_ERROR_TEXT(twice.sum().backward(), "Trying to backward through the graph a second time");
  lstm->zero_grad();
  y = std::get<0>(lstm->forward(x));
  y.mul_(2).sum().backward();
  expect_values(lstm->all_weights()[0].grad(), values(want[0]));
  expect_values(lstm->all_weights()[1].grad(), values(want[1]));
  // Weights are not.
  y = std::get<0>(lstm->forward(x));
  {
    const NoGradGuard off;
    lstm->all_weights()[1].mul_(2);
  }
  EXPECT_ERROR_TEXT(y.sum().backward(), "modified by an inplace operation");
}

TEST(RecurrentLayer, WhatDoesNotFitIsRefused) {
  LSTM lstm(kIn, kSize);
  const Tensor x = zeros({3, 2, kIn}), h = zeros({1, 2, kSize});
  EXPECT_ERROR_TEXT(lstm->forward(x.to(kDouble)), "expected the dtype of the input");
  EXPECT_ERROR_TEXT(lstm->forward(x, States(h.to(kDouble), h)), "expected the dtype of the input");
  EXPECT_ERROR_TEXT(lstm->forward(x, States(h, h.to(kDouble))), "expected the dtype of the input");
  const auto steps = [&](const std::vector<int64_t>& rows) {
    lstm->forward_with_packed_input(PackedSequence(zeros({4, kIn}), tensor(rows)));
  };
  for (const std::vector<int64_t>& rows : std::vector<std::vector<int64_t>>{
           {1, 3}, {3, 2}, {2, 1}, {3, 2, -1}, {INT64_MAX, 2}, {4, INT64_MIN}, {0, 4}})
    EXPECT_ERROR_TEXT(steps(rows), "expected descending numbers that add up to 4");
  EXPECT_ERROR_TEXT(steps({}), "Expected sequence length to be larger than 0");
  std::get<0>(lstm->forward(zeros({3, 0, kIn}))).sum().backward();  // of no sequences
  for (const Tensor& w : lstm->all_weights())
    expect_values(w.grad(), std::vector<double>(static_cast<size_t>(w.numel()), 0));
  lstm->all_weights()[1].set_data(zeros({4 * kSize, kSize + 1}));
  EXPECT_ERROR_TEXT(lstm->forward(x), "expected 5 for each of 1 directions");
}

// Enough for threads to share the steps.
TEST(RecurrentLayer, SameBitsForAnyNumberOfThreads) {
  LSTM lstm(24, 40);
  GRU gru(GRUOptions(40, 40).bidirectional(true));
  const Tensor x = sines(5 * 90 * 24).view({5, 90, 24}).to(kFloat);
  const int before = get_num_threads();
  List want;
  for (const int n : {1, 2, 3}) {
    set_num_threads(n);
    lstm->zero_grad(), gru->zero_grad();
    const Tensor y = std::get<0>(gru->forward(std::get<0>(lstm->forward(x))));
    y.square().sum().backward();
    List all = {y.detach()};
    for (const Tensor& p : lstm->parameters()) all.push_back(p.grad());
    for (const Tensor& p : gru->parameters()) all.push_back(p.grad());
    if (want.empty()) want = all;
    for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(same_bits(all[i], want[i])) << i;
  }
  set_num_threads(before);
}

TEST(RecurrentLayer, HalvesAreRoundedOnceAStep) {
  LSTM lstm(8, 16), wide(8, 16);
  GRU gru(16, 16), wide_gru(16, 16);
  const auto as_half = [](auto& half, auto& exact) {
    half->to(kHalf), exact->to(kDouble);
    for (size_t i = 0; i < half->all_weights().size(); ++i)
      exact->all_weights()[i].set_data(half->all_weights()[i].detach().to(kDouble));
  };
  as_half(lstm, wide), as_half(gru, wide_gru);
  const Tensor x = sines(6 * 4 * 8).view({6, 4, 8}).to(kHalf);
  const Tensor y = std::get<0>(gru->forward(std::get<0>(lstm->forward(x)))),
               want = std::get<0>(wide_gru->forward(std::get<0>(wide->forward(x.to(kDouble)))));
  EXPECT_EQ(y.scalar_type(), kHalf);
  y.sum().backward(), want.sum().backward();
  expect_values(y, values(want), 3e-3);
  for (size_t i = 0; i < 4; ++i) {
    const Tensor& exact = wide->all_weights()[i].grad();
    EXPECT_LT((lstm->all_weights()[i].grad().to(kDouble) - exact).abs().max().item<double>(),
              5e-3 * (1 + exact.abs().max().item<double>()));
  }
}

TEST(RecurrentLayer, StepsAreCaptured) {
  const auto trained = [](bool captured) {
    LSTM lstm = filled(LSTM(LSTMOptions(kIn, kSize).num_layers(2).bidirectional(true)));
    GRU gru = filled(GRU(2 * kSize, kSize));
    const auto step = [&](const Tensor& x) {
      lstm->zero_grad(), gru->zero_grad();
      const Tensor loss = std::get<0>(gru->forward(std::get<0>(lstm->forward(x)))).square().sum();
      loss.backward();
      const NoGradGuard off;
      for (const Tensor& p : lstm->parameters()) p.sub_(p.grad(), .1);
      for (const Tensor& p : gru->parameters()) p.sub_(p.grad(), .1);
      return loss;
    };
    Captured replayed(step);
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = sines(5 * 3 * kIn, .3, i).view({5, 3, kIn});
      losses.push_back((captured ? replayed(x) : step(x)).item<double>());
    }
    // The second call finds gradients, which is another capture.
    EXPECT_EQ(replayed.counters().replays, captured ? 3u : 0u);
    return losses;
  };
  EXPECT_EQ(trained(true), trained(false));
}

}  // namespace
}  // namespace ramet::nn
