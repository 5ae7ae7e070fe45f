#include <cmath>

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/layers/recurrent_steps_internal.h"

// Formulas, with sigma the logistic function and h, c the states before:
//   RNN   h' = tanh(W x + b + W_h h + b_h), or relu
//   LSTM  i, f, g, o = W x + b + W_h h + b_h; c' = sigma(f) c + sigma(i) tanh(g);
//         h' = sigma(o) tanh(c'), projected by W_r (Sak et al. 2014) where there is one
//   GRU   r, z, n = W x + b and W_h h + b_h: r, z = sigma of the sums, n = tanh(n + r n_h),
//         h' = (1 - z) n + z h (Cho et al. 2014, with the bias of n_h inside, as cuDNN has it)

namespace ramet::nn::detail {
namespace {

bool is_lstm(const RNNOptionsBase& o) { return std::holds_alternative<enumtype::kLSTM>(o.mode()); }
bool is_gru(const RNNOptionsBase& o) { return std::holds_alternative<enumtype::kGRU>(o.mode()); }

// Rows of states that end before others, or begin after them.
class Rows {
 public:
  Rows(RecurrentState first, bool reverse) : first_(std::move(first)), reverse_(reverse) {
    now_ = first_;
  }
  // The states of the `n` sequences that have the next step.
  const RecurrentState& for_step(int64_t n) {
    if (reverse_ && !begun_) {
      now_ = part(first_, 0, n);
    } else if (const int64_t have = now_.hidden.size(0); n < have) {
      ended_.push_back(part(now_, n, have - n));
      now_ = part(now_, 0, n);
    } else if (n > have) {
      now_ = join(now_, part(first_, have, n - have));
    }
    begun_ = true;
    return now_;
  }
  void after_step(RecurrentState next) { now_ = std::move(next); }
  RecurrentState last() {
    RecurrentState all = now_;
    while (!ended_.empty()) {
      all = join(all, ended_.back());
      ended_.pop_back();
    }
    return all;
  }

 private:
  static RecurrentState part(const RecurrentState& s, int64_t begin, int64_t n) {
    const auto of = [&](const Tensor& t) { return t.defined() ? t.narrow(0, begin, n) : t; };
    return {of(s.hidden), of(s.cell)};
  }
  static RecurrentState join(const RecurrentState& a, const RecurrentState& b) {
    return {cat({a.hidden, b.hidden}), a.cell.defined() ? cat({a.cell, b.cell}) : Tensor()};
  }
  const RecurrentState first_;
  const bool reverse_;
  bool begun_ = false;
  RecurrentState now_;
  std::vector<RecurrentState> ended_;
};

}  // namespace

void reset_recurrent(const std::vector<Tensor>& weights, int64_t hidden_size) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  for (const Tensor& weight : weights) init::uniform_(weight, -bound, bound);
}

Tensor input_gates(const RNNOptionsBase& o, const RecurrentWeights& w, const Tensor& x) {
  if (!w.bias_ih.defined()) return linear(x, w.ih);
  return linear(x, w.ih, is_gru(o) ? w.bias_ih : w.bias_ih + w.bias_hh);
}

RecurrentState recurrent_step(const RNNOptionsBase& o, const RecurrentWeights& w,
                              const Tensor& gates, const RecurrentState& before) {
  const Tensor& h = before.hidden;
  if (is_gru(o)) return {fused_gru_cell(gates, linear(h, w.hh, w.bias_hh), h), {}};
  const Tensor sum = addmm(gates, h, w.hh.t());
  if (is_lstm(o)) {
    const auto [hidden, cell] = fused_lstm_cell(sum, before.cell);
    return {w.hr.defined() ? linear(hidden, w.hr) : hidden, cell};
  }
  return {std::holds_alternative<enumtype::kRNN_RELU>(o.mode()) ? sum.relu() : sum.tanh(), {}};
}

std::pair<Tensor, RecurrentState> run_steps(const RNNOptionsBase& o, const RecurrentWeights& w,
                                            const RecurrentInput& input, RecurrentState first,
                                            bool reverse) {
  const std::vector<Tensor> gates = input_gates(o, w, input.data).split_with_sizes(input.rows);
  const size_t steps = input.rows.size();
  std::vector<Tensor> outputs(steps);
  Rows rows(std::move(first), reverse);
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    RecurrentState next = recurrent_step(o, w, gates[t], rows.for_step(input.rows[t]));
    outputs[t] = next.hidden;
    rows.after_step(std::move(next));
  }
  return {cat(outputs), rows.last()};
}

RecurrentResult run_recurrent(const RNNOptionsBase& o, const std::vector<Tensor>& weights,
                              RecurrentInput input, const Tensor& hidden, const Tensor& cell,
                              bool training) {
  const int64_t directions = o.bidirectional() ? 2 : 1;
  std::vector<Tensor> hiddens, cells;
  auto weight = weights.begin();
  for (int64_t layer = 0; layer < o.num_layers(); ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      RecurrentWeights w;
      w.ih = *weight++, w.hh = *weight++;
      if (o.bias()) w.bias_ih = *weight++, w.bias_hh = *weight++;
      if (o.proj_size() > 0) w.hr = *weight++;
      const int64_t at = layer * directions + d;
      const RecurrentState first{hidden.select(0, at),
                                 cell.defined() ? cell.select(0, at) : Tensor()};
      auto [output, last] = is_one_operation(o, w, input, first)
                                ? run_as_one(o, w, input, first, d == 1)
                                : run_steps(o, w, input, first, d == 1);
      outputs.push_back(std::move(output));
      hiddens.push_back(std::move(last.hidden));
      if (last.cell.defined()) cells.push_back(std::move(last.cell));
    }
    input.data = directions == 1 ? outputs[0] : cat(outputs, -1);
    if (o.dropout() > 0 && training && layer + 1 < o.num_layers())
      input.data = dropout(input.data, o.dropout(), true);
  }
  return {input.data, stack(hiddens), cells.empty() ? Tensor() : stack(cells)};
}

}  // namespace ramet::nn::detail
