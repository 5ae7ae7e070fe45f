#include "autograd/ops/layers/recurrent.h"
#include "autograd/ops/layers/recurrent_internal.h"
#include "autograd/ops/matrix/addmm.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"

// Formulas, with sigma the logistic function and h, c the states before:
//   RNN   h' = tanh(W x + b + W_h h + b_h), or relu
//   LSTM  i, f, g, o = W x + b + W_h h + b_h; c' = sigma(f) c + sigma(i) tanh(g);
//         h' = sigma(o) tanh(c'), projected by W_r (Sak et al. 2014) where there is one
//   GRU   r, z, n = W x + b and W_h h + b_h: r, z = sigma of the sums, n = tanh(n + r n_h),
//         h' = (1 - z) n + z h (Cho et al. 2014, with the bias of n_h inside, as cuDNN has it)

namespace ramet {
namespace autograd {
namespace {

// Rows of states, for sequences that end before others, or (in reverse) begin after them.
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

int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::kLstm ? 4 : cell == RecurrentCell::kGru ? 3 : 1;
}

Tensor input_gates(RecurrentCell cell, const RecurrentWeights& w, const Tensor& x) {
  if (cell == RecurrentCell::kGru || !w.bias_hh.defined()) return linear(x, w.ih, w.bias_ih);
  return linear(x, w.ih, w.bias_ih.defined() ? w.bias_ih + w.bias_hh : w.bias_hh);
}

RecurrentState recurrent_step(RecurrentCell cell, const RecurrentWeights& w, const Tensor& gates,
                              const RecurrentState& before) {
  const Tensor& h = before.hidden;
  if (cell == RecurrentCell::kGru)
    return {fused_gru_cell(gates, linear(h, w.hh, w.bias_hh), h), {}};
  const Tensor sum = addmm(gates, h, w.hh.t());
  if (cell == RecurrentCell::kLstm) {
    const auto [hidden, next] = fused_lstm_cell(sum, before.cell);
    return {w.hr.defined() ? linear(hidden, w.hr) : hidden, next};
  }
  return {cell == RecurrentCell::kRelu ? sum.relu() : sum.tanh(), {}};
}

std::pair<Tensor, RecurrentState> run_steps(RecurrentCell cell, const RecurrentWeights& w,
                                            const RecurrentInput& input, RecurrentState first,
                                            bool reverse) {
  const std::vector<Tensor> gates = input_gates(cell, w, input.data).split_with_sizes(input.rows);
  const size_t steps = input.rows.size();
  std::vector<Tensor> outputs(steps);
  Rows rows(std::move(first), reverse);
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    RecurrentState next = recurrent_step(cell, w, gates[t], rows.for_step(input.rows[t]));
    outputs[t] = next.hidden;
    rows.after_step(std::move(next));
  }
  return {cat(outputs), rows.last()};
}

}  // namespace autograd
}  // namespace ramet
