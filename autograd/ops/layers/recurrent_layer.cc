// A layer of an LSTM or GRU in one direction as one operation. The forward runs one product for the
// inputs of all steps, then one product and one kernel for each step. The backward runs one of each
// for each step, then one product for each weight matrix. It keeps inputs, activated gates and
// states.
#include <algorithm>
#include <array>

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/front/matmul_internal.h"
#include "autograd/ops/layers/recurrent_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "kernels/pointwise/recurrent.h"

namespace ramet {
namespace autograd {

namespace {

// The positions of the inputs, also among the gradients.
enum : int { kX, kHidden, kCell, kIh, kHh, kBiasIh, kBiasHh, kInputs };
using Inputs = std::array<Tensor, kInputs>;

struct Layer {
  RecurrentCell cell;
  int64_t columns;                   // of a state
  std::vector<int64_t> rows, begin;  // of each step
  bool lstm, reverse;
  bool even;  // all steps have all sequences
  int64_t total = 0;

  Layer(RecurrentCell kind, int64_t width, std::vector<int64_t> steps, bool backwards)
      : cell(kind),
        columns(width),
        rows(std::move(steps)),
        lstm(kind == RecurrentCell::kLstm),
        reverse(backwards),
        even(std::all_of(rows.begin(), rows.end(), [&](int64_t n) { return n == rows[0]; })) {
    begin.reserve(rows.size());
    for (const int64_t n : rows) begin.push_back(total), total += n;
  }
  int64_t batch() const { return rows[0]; }
  size_t steps() const { return rows.size(); }
  // The i-th step to run.
  size_t at(size_t i) const { return reverse ? rows.size() - 1 - i : i; }
};

// Rows of a dense matrix, without history.
Tensor part(const Tensor& t, int64_t begin, int64_t n) {
  return Tensor(t.view_impl({n, t.size(1)}, t.raw_strides(), begin * t.size(1)));
}
Tensor matrix(const Tensor& like, int64_t rows, int64_t columns) {
  return Tensor(TensorBase::empty({rows, columns}, like.scalar_type(), like.device()));
}
Tensor dense(const Tensor& t) { return t.defined() ? t.contiguous() : t; }

// A state before and after each step, in the row order of the input. Where all steps have the same
// sequences, the state after one step is the state before the next: they share one memory.
struct Track {
  Tensor before, after;
  Track(const Layer& l, const Tensor& first) : first_(dense(first)) {
    const int64_t n = l.even ? l.batch() : 0;
    if (l.even) {
      const Tensor all = matrix(first, l.total + n, l.columns);
      before = part(all, l.reverse ? n : 0, l.total);
      after = part(all, l.reverse ? 0 : n, l.total);
    } else {
      before = matrix(first, l.total, l.columns);
      after = matrix(first, l.total, l.columns);
    }
  }
  // Fills in the state before the i-th step to run.
  void enter(const Layer& l, size_t i) {
    const size_t t = l.at(i);
    int64_t have = 0;
    if (i > 0) {
      if (l.even) return;
      const size_t last = l.at(i - 1);
      have = std::min(l.rows[t], l.rows[last]);
      copy_values(part(before, l.begin[t], have), part(after, l.begin[last], have));
    }
    if (const int64_t more = l.rows[t] - have; more > 0)
      copy_values(part(before, l.begin[t] + have, more), part(first_, have, more));
  }
  // The state of each sequence after its last step.
  Tensor last(const Layer& l) const {
    if (l.even || l.reverse) return part(after, l.begin[l.at(l.steps() - 1)], l.batch());
    Tensor all = matrix(after, l.batch(), l.columns);
    for (size_t t = 0; t < l.steps(); ++t) {
      const int64_t go_on = t + 1 < l.steps() ? l.rows[t + 1] : 0, end = l.rows[t] - go_on;
      if (end > 0) copy_values(part(all, go_on, end), part(after, l.begin[t] + go_on, end));
    }
    return all;
  }

 private:
  const Tensor first_;
};

struct Kept {
  Tensor gates;  // activated: i, f, g, o, or r, z, n and the hidden part of n
  Tensor hidden_before, cell_before, cell_after;
};

// Returns output, hidden, cell. `kept` is null where no backward follows.
std::vector<Tensor> run_forward(const Layer& l, const Inputs& in, Kept* kept) {
  const NoGradGuard off;
  const Tensor &x = in[kX], &ih = in[kIh], &hh = in[kHh];
  const int64_t columns = l.columns;
  const ScalarType type = x.scalar_type();
  const Tensor bias_hh = dense(in[kBiasHh]),
               bias = l.lstm && bias_hh.defined() ? in[kBiasIh] + bias_hh : dense(in[kBiasIh]);
  const auto with = [](const Tensor& b) { return ProductTerms{1, 0, b.defined() ? &b : nullptr}; };
  const Tensor gates = product(x, false, ih, true, with(bias));
  // The product of a step reads the weight by columns. On a CPU each product would copy it for
  // that.
  const bool turns = l.steps() > 1 && x.device().is_cpu() && type == kFloat;
  const Tensor turned = turns ? hh.t().contiguous() : Tensor();
  const Matrix of_hidden = turns ? matrix_of(turned) : matrix_of(hh, true);
  Track hidden(l, in[kHidden]);
  std::optional<Track> cells;
  Tensor cell, of_state;
  if (l.lstm && kept) cells.emplace(l, in[kCell]);
  else if (l.lstm) cell = in[kCell].clone(MemoryFormat::Contiguous);
  else of_state = matrix(x, l.batch(), 3 * columns);
  if (kept) kept->gates = l.lstm ? gates : matrix(x, l.total, 4 * columns);
  for (size_t i = 0; i < l.steps(); ++i) {
    const size_t t = l.at(i);
    const int64_t begin = l.begin[t], n = l.rows[t];
    hidden.enter(l, i);
    const Tensor g = part(gates, begin, n), before = part(hidden.before, begin, n),
                 after = part(hidden.after, begin, n);
    if (l.lstm) {
      product_into(g, matrix_of(before), of_hidden, {1, 1, nullptr});
      if (cells) cells->enter(l, i);
      const Tensor c = cells ? part(cells->before, begin, n) : part(cell, 0, n),
                   next = cells ? part(cells->after, begin, n) : c;
      kernels::lstm_step(x.stream(),
                         {g.ptr(), c.ptr(), g.ptr(), next.ptr(), after.ptr(), n, columns, type});
    } else {
      const Tensor s = part(of_state, 0, n);
      product_into(s, matrix_of(before), of_hidden, with(bias_hh));
      const Tensor all = kept ? part(kept->gates, begin, n) : Tensor();
      kernels::gru_step(x.stream(), {g.ptr(), s.ptr(), before.ptr(), pointer(all), after.ptr(), n,
                                     columns, type});
    }
  }
  std::vector<Tensor> results = {hidden.after, hidden.last(l), Tensor()};
  if (l.lstm) results[2] = cells ? cells->last(l) : cell;
  if (!kept) return results;
  results[0] = results[0].clone();  // the caller's own, which it may write
  kept->hidden_before = hidden.before;
  if (cells) kept->cell_before = cells->before, kept->cell_after = cells->after;
  return results;
}

// The gradients of the gates' parts from the input and from the state (for an LSTM the same), and
// of the first states.
struct Deltas {
  Tensor input, state, hidden, cell;
};
Deltas run_backward(const Layer& l, const Kept& kept, const Tensor& hh, bool of_hidden,
                    const std::vector<Tensor>& v) {
  const NoGradGuard off;
  const int64_t columns = l.columns;
  const ScalarType type = hh.scalar_type();
  const auto begun = [&](const Tensor& given) {
    return given.defined() ? given.clone(MemoryFormat::Contiguous)
                           : zeros({l.batch(), columns}, hh.options());
  };
  Deltas d;
  d.input = matrix(hh, l.total, hh.size(0));
  d.state = l.lstm ? d.input : matrix(hh, l.total, hh.size(0));
  d.hidden = begun(v[1]);
  if (l.lstm) d.cell = begun(v[2]);
  const Tensor output = dense(v[0]);
  for (size_t i = l.steps(); i-- > 0;) {
    const size_t t = l.at(i);
    const int64_t begin = l.begin[t], n = l.rows[t];
    const Tensor y = part(kept.gates, begin, n),
                 dy = output.defined() ? part(output, begin, n) : Tensor(),
                 dx = part(d.input, begin, n), ds = part(d.state, begin, n),
                 dh = part(d.hidden, 0, n);
    if (l.lstm) {
      const Tensor before = part(kept.cell_before, begin, n),
                   after = part(kept.cell_after, begin, n), dc = part(d.cell, 0, n);
      kernels::lstm_step_backward(
          hh.stream(), {y.ptr(), before.ptr(), after.ptr(), pointer(dy), dh.ptr(), dc.ptr(),
                        dx.ptr(), dc.ptr(), n, columns, type});
    } else {
      const Tensor before = part(kept.hidden_before, begin, n);
      kernels::gru_step_backward(hh.stream(), {y.ptr(), before.ptr(), pointer(dy), dh.ptr(),
                                               dx.ptr(), ds.ptr(), dh.ptr(), n, columns, type});
    }
    if (i > 0 || of_hidden)
      product_into(dh, matrix_of(ds), matrix_of(hh), {1, l.lstm ? 0 : 1, nullptr});
  }
  return d;
}

// run_forward, written with differentiable operations.
std::vector<Tensor> composed(const Layer& l, const std::vector<Tensor>& in) {
  const RecurrentWeights w{in[kIh], in[kHh], in[kBiasIh], in[kBiasHh], {}};
  auto [output, last] = run_steps(l.cell, w, {in[kX], l.rows}, {in[kHidden], in[kCell]}, l.reverse);
  return {std::move(output), std::move(last.hidden), std::move(last.cell)};
}

void backward(const Node& self, const std::shared_ptr<const Layer>& l, const Kept& kept,
              const std::array<Saved, kInputs>& saved, const std::vector<Tensor>& v,
              std::vector<Tensor>& grads) {
  std::vector<Tensor> in;
  for (const Saved& s : saved) in.push_back(s.get(self));
  // Before shallow(): a read of its memory gathers a sharded weight.
  (void)in[kIh].ptr(), (void)in[kHh].ptr();
  const Tensor x = in[kX].shallow(), ih = in[kIh].shallow(), hh = in[kHh].shallow();
  Deltas d = run_backward(*l, kept, hh, self.needs(kHidden), v);
  const auto of = [&](int i, const Tensor& a, bool flip_a, const Tensor& b) {
    if (self.needs(i))
      grads[static_cast<size_t>(i)] = product_gradient(self, i, a, flip_a, b, false);
  };
  of(kX, d.input, false, ih);
  of(kIh, d.input, true, x);
  of(kHh, d.state, true, kept.hidden_before);
  if (self.needs(kBiasIh)) grads[kBiasIh] = bias_gradient(self, kBiasIh, d.input);
  if (self.needs(kBiasHh)) grads[kBiasHh] = bias_gradient(self, kBiasHh, d.state);
  if (self.needs(kHidden)) grads[kHidden] = std::move(d.hidden);
  if (self.needs(kCell)) grads[kCell] = std::move(d.cell);
  if (!GradMode::is_enabled()) return;
  std::vector<bool> needed;
  for (const Tensor& g : grads) needed.push_back(g.defined());
  in.insert(in.end(), v.begin(), v.end());
  record_composed_results(
      l->lstm ? "LstmLayerBackwardBackward0" : "GruLayerBackwardBackward0", grads,
      [l, needed](const std::vector<Tensor>& all) {
        const auto given = all.begin() + kInputs;
        return composed_gradients(
            needed, [&l](const std::vector<Tensor>& inputs) { return composed(*l, inputs); },
            {all.begin(), given}, {given, all.end()}, /*again=*/true);
      },
      in);
}

}  // namespace

bool is_one_operation(RecurrentCell cell, const RecurrentWeights& w, const RecurrentInput& input) {
  return !w.hr.defined() && (cell == RecurrentCell::kLstm || cell == RecurrentCell::kGru) &&
         is_floating(input.data.scalar_type());
}

std::pair<Tensor, RecurrentState> run_as_one(RecurrentCell cell, const RecurrentWeights& w,
                                             const RecurrentInput& input,
                                             const RecurrentState& first, bool reverse) {
  const auto l = std::make_shared<const Layer>(cell, w.hh.size(1), input.rows, reverse);
  const Inputs in = {input.data, first.hidden, first.cell, w.ih, w.hh, w.bias_ih, w.bias_hh};
  const bool records =
      std::any_of(in.begin(), in.end(), [](const Tensor& t) { return recording(t); });
  Kept kept;
  std::vector<Tensor> results = run_forward(*l, in, records ? &kept : nullptr);
  if (records) {
    std::array<Saved, kInputs> saved;
    for (size_t i = 0; i < in.size(); ++i) saved[i] = save_if(in[i].defined(), in[i]);
    record_results(
        l->lstm ? "LstmLayerBackward0" : "GruLayerBackward0", in, results,
        [l, kept, saved](const Node& self, const std::vector<Tensor>& v,
                         std::vector<Tensor>& grads) { backward(self, l, kept, saved, v, grads); },
        [&](Arguments& to) {
          to("rows", l->rows), to("reverse", l->reverse), to("zeros", first.zeros);
        });
  }
  return {results[0], {results[1], results[2], false}};
}

}  // namespace autograd
}  // namespace ramet
