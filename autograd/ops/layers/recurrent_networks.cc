// Networks of recurrent cells: checks, layers and directions, and LibTorch's functions.
#include <algorithm>

#include "autograd/ops/front/autocast_internal.h"
#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/layers/recurrent.h"
#include "autograd/ops/layers/recurrent_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/random/dropout.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "autograd/ops/shape/view_parts.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {
namespace autograd {
namespace {

// Checks that t has these sizes, and the dtype and device of the input.
void check_part(const char* op, const char* name, const Tensor& t, IntArrayRef sizes,
                const Tensor& input) {
  RAMET_CHECK(t.defined() && t.sizes() == sizes, op, name, ": got ", describe(t), ", expected ",
              sizes);
  RAMET_CHECK(t.scalar_type() == input.scalar_type(), op, name, ": got ", describe(t),
              ", expected the dtype of the input, ", describe(input));
  check_same_device(op, input, t, name);
}

// The sizes that follow from the weights.
struct Sizes {
  int64_t gates, hidden, state;  // hidden: of a cell; state: of its output, other if projected
  int64_t directions;
  int64_t per;  // number of weights of a layer and direction
  bool projected;
};
Sizes sizes_of(const Recurrence& r, TensorList weights) {
  const auto count = static_cast<int64_t>(weights.size());
  RAMET_CHECK(r.num_layers > 0, r.op, "num_layers: got ", r.num_layers, ", expected at least 1");
  RAMET_CHECK(
      count >= 2 && weights[1].defined() && weights[1].dim() == 2 &&
          weights[1].size(0) % gates_of(r.cell) == 0,
      r.op, "weights: got ", count, " tensors",
      ", expected matrices ih [gates * hidden, input] and hh [gates * hidden, state] first");
  Sizes s{};
  s.gates = weights[1].size(0), s.state = weights[1].size(1);
  s.hidden = s.gates / gates_of(r.cell);
  s.directions = r.bidirectional ? 2 : 1;
  s.projected = r.cell == RecurrentCell::kLstm && s.state != s.hidden;
  s.per = 2 + (r.has_biases ? 2 : 0) + (s.projected ? 1 : 0);
  const int64_t layer = s.directions * s.per;
  RAMET_CHECK(count % layer == 0 && count / layer == r.num_layers, r.op, "weights: got ", count,
              " tensors, expected ", s.per, " for each of ", s.directions,
              " directions and each of ", r.num_layers, " layers");
  return s;
}
RecurrentWeights weights_at(const Recurrence& r, const Sizes& s, TensorList weights, int64_t at) {
  const Tensor* next = weights.begin() + at * s.per;
  RecurrentWeights w;
  w.ih = *next++, w.hh = *next++;
  if (r.has_biases) w.bias_ih = *next++, w.bias_hh = *next++;
  if (s.projected) w.hr = *next++;
  return w;
}
void check_weights(const Recurrence& r, const Sizes& s, TensorList weights, const Tensor& x) {
  for (int64_t at = 0; at < r.num_layers * s.directions; ++at) {
    const RecurrentWeights w = weights_at(r, s, weights, at);
    const bool first = at < s.directions;
    check_part(r.op, "weight_ih", w.ih, {s.gates, first ? x.size(-1) : s.state * s.directions}, x);
    check_part(r.op, "weight_hh", w.hh, {s.gates, s.state}, x);
    if (r.has_biases) {
      check_part(r.op, "bias_ih", w.bias_ih, s.gates, x);
      check_part(r.op, "bias_hh", w.bias_hh, s.gates, x);
    }
    if (s.projected) check_part(r.op, "weight_hr", w.hr, {s.state, s.hidden}, x);
  }
}
// A state that is checked for its shape; zeros where `given` is undefined.
Tensor first_state(const Recurrence& r, const Sizes& s, const char* name, const Tensor& given,
                   int64_t batch, int64_t size, const Tensor& input) {
  const std::vector<int64_t> shape{r.num_layers * s.directions, batch, size};
  if (!given.defined()) return zeros(shape, input.options());
  RAMET_CHECK(given.sizes() == IntArrayRef(shape), r.op, "Expected ", name, " size ",
              IntArrayRef(shape), ", got ", given.sizes());
  check_part(r.op, name, given, shape, input);
  return given;
}
void check_input(const Recurrence& r, TensorList weights, const Tensor& input, int64_t dim) {
  RAMET_CHECK(input.defined() && input.dim() == dim, r.op, "input must have ", dim,
              " dimensions: got ", describe(input));
  RAMET_CHECK(weights.empty() || !weights[0].defined() || weights[0].dim() != 2 ||
                  input.size(-1) == weights[0].size(1),
              r.op, "input.size(-1) must be equal to input_size. Expected ", weights[0].size(1),
              ", got ", input.size(-1));
  RAMET_CHECK(r.dropout >= 0 && r.dropout <= 1, r.op,
              "dropout probability has to be between 0 and 1, but got ", r.dropout);
}

RecurrentResult run_rows(const Recurrence& r, TensorList weights, RecurrentInput input,
                         const Tensor& given_hidden, const Tensor& given_cell) {
  RAMET_CHECK(!input.rows.empty(), r.op, "Expected sequence length to be larger than 0");
  const Sizes s = sizes_of(r, weights);
  const bool lstm = r.cell == RecurrentCell::kLstm;
  const int64_t batch = input.rows[0];
  check_weights(r, s, weights, input.data);
  const Tensor hidden =
      first_state(r, s, lstm ? "hidden[0]" : "hidden", given_hidden, batch, s.state, input.data);
  const Tensor cell =
      lstm ? first_state(r, s, "hidden[1]", given_cell, batch, s.hidden, input.data) : Tensor();
  std::vector<Tensor> hiddens, cells;
  for (int64_t layer = 0; layer < r.num_layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < s.directions; ++d) {
      const int64_t at = layer * s.directions + d;
      const RecurrentWeights w = weights_at(r, s, weights, at);
      const RecurrentState first{hidden.select(0, at), lstm ? cell.select(0, at) : Tensor(),
                                 !given_hidden.defined() && !given_cell.defined()};
      auto [output, last] = is_one_operation(r.cell, w, input)
                                ? run_as_one(r.cell, w, input, first, d == 1)
                                : run_steps(r.cell, w, input, first, d == 1);
      outputs.push_back(std::move(output));
      hiddens.push_back(std::move(last.hidden));
      if (lstm) cells.push_back(std::move(last.cell));
    }
    input.data = s.directions == 1 ? outputs[0] : cat(outputs, -1);
    if (r.dropout > 0 && r.train && layer + 1 < r.num_layers)
      input.data = dropout(input.data, r.dropout, true);
  }
  return {input.data, stack(hiddens), lstm ? stack(cells) : Tensor()};
}

RecurrentResult run_sequences(const Recurrence& r, TensorList weights, const Tensor& input,
                              bool batch_first, const Tensor& hidden, const Tensor& cell) {
  check_input(r, weights, input, 3);
  const Tensor x = batch_first ? input.transpose(0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  check_room(r.op, "input", static_cast<uint64_t>(steps), sizeof(int64_t));
  RecurrentResult y = run_rows(
      r, weights, {x.flatten(0, 1), std::vector<int64_t>(static_cast<size_t>(steps), batch)},
      hidden, cell);
  y.output = y.output.view({steps, batch, y.output.size(1)});
  if (batch_first) y.output = y.output.transpose(0, 1);
  return y;
}

RecurrentResult run_sequences(const Recurrence& r, TensorList weights, const Tensor& data,
                              const Tensor& batch_sizes, const Tensor& hidden, const Tensor& cell) {
  check_input(r, weights, data, 2);
  RAMET_CHECK(batch_sizes.defined() && batch_sizes.is_cpu() && batch_sizes.dim() == 1 &&
                  batch_sizes.scalar_type() == kLong,
              r.op, "batch_sizes: got ", describe(batch_sizes), ", expected a 1D CPU int64 tensor");
  capture::refuse(r.op, "the host reads batch_sizes of packed sequences");
  const Tensor sizes = batch_sizes.contiguous();
  const int64_t* at = sizes.const_data_ptr<int64_t>();
  RecurrentInput input{data, {at, at + sizes.numel()}};
  int64_t left = data.size(0), most = left;
  for (const int64_t n : input.rows) {
    RAMET_CHECK(n >= 0 && n <= most && n <= left, r.op, "batch_sizes: got ",
                IntArrayRef(input.rows), ", expected descending numbers that add up to ",
                data.size(0));
    most = n, left -= n;
  }
  RAMET_CHECK(left == 0 || input.rows.empty(), r.op, "batch_sizes: got ", IntArrayRef(input.rows),
              ", expected descending numbers that add up to ", data.size(0));
  return run_rows(r, weights, std::move(input), hidden, cell);
}

RecurrentState run_step(const char* op, RecurrentCell cell, const RecurrentWeights& w,
                        const Tensor& x, const RecurrentState& before) {
  RAMET_CHECK(x.defined() && x.dim() == 2, op, "Expected 2D input (batch x feature), but got ",
              describe(x));
  RAMET_CHECK(
      w.hh.defined() && w.hh.dim() == 2 && w.hh.size(0) > 0 && w.hh.size(0) % gates_of(cell) == 0,
      op, "weight_hh: got ", describe(w.hh), ", expected [gates * hidden, hidden]");
  const int64_t gates = w.hh.size(0), columns = gates / gates_of(cell);
  RAMET_CHECK(!w.ih.defined() || w.ih.dim() != 2 || w.ih.size(1) == x.size(1), op,
              "input has inconsistent input_size: got ", x.size(1), " expected ", w.ih.size(1));
  check_part(op, "weight_ih", w.ih, {gates, x.size(1)}, x);
  check_part(op, "weight_hh", w.hh, {gates, columns}, x);
  if (w.bias_ih.defined()) check_part(op, "bias_ih", w.bias_ih, gates, x);
  if (w.bias_hh.defined()) check_part(op, "bias_hh", w.bias_hh, gates, x);
  check_part(op, "hidden", before.hidden, {x.size(0), columns}, x);
  if (cell == RecurrentCell::kLstm) check_part(op, "cell", before.cell, {x.size(0), columns}, x);
  return recurrent_step(cell, w, input_gates(cell, w, x), before);
}

// Autocast's policies, LibTorch's. cuDNN casts all networks; on CPUs the states of gated units stay
// in their dtype.
CastPolicy policy_of(RecurrentCell cell, bool one_step, const Tensor& state) {
  const bool keeps = cell == RecurrentCell::kGru || (one_step && cell == RecurrentCell::kLstm);
  return keeps && state.defined() && !is_narrow(state.scalar_type()) ? CastPolicy::kWidest
                                                                     : CastPolicy::kLower;
}

// `form`: batch_first, or batch_sizes.
template <class Form>
RecurrentResult run_cast(const Recurrence& r, TensorList weights, const Tensor& input,
                         const Form& form, const Tensor& hidden, const Tensor& cell) {
  const auto body = [](const Recurrence& network, TensorList w, const Tensor& x, const Form& f,
                       const Tensor& h,
                       const Tensor& c) { return run_sequences(network, w, x, f, h, c); };
  if (RAMET_LIKELY(ramet::detail::tls.autocast == 0))
    return body(r, weights, input, form, hidden, cell);
  const CastPolicy policy = policy_of(r.cell, false, hidden.defined() ? hidden : input);
  return cast_call<RecurrentResult>(r.op, policy, CastPolicy::kLower, body, r, weights, input, form,
                                    hidden, cell);
}

}  // namespace

RecurrentResult run_recurrence(const Recurrence& r, TensorList weights, const Tensor& input,
                               bool batch_first, const Tensor& hidden, const Tensor& cell) {
  return run_cast(r, weights, input, batch_first, hidden, cell);
}
RecurrentResult run_recurrence(const Recurrence& r, TensorList weights, const Tensor& data,
                               const Tensor& batch_sizes, const Tensor& hidden,
                               const Tensor& cell) {
  return run_cast(r, weights, data, batch_sizes, hidden, cell);
}

RecurrentState run_cell(const char* op, RecurrentCell cell, const RecurrentWeights& w,
                        const Tensor& x, const RecurrentState& before) {
  if (RAMET_LIKELY(ramet::detail::tls.autocast == 0)) return run_step(op, cell, w, x, before);
  return cast_call<RecurrentState>(
      op, policy_of(cell, true, cell == RecurrentCell::kLstm ? before.cell : before.hidden),
      CastPolicy::kLower,
      [](const char* name, RecurrentCell kind, const Tensor& ih, const Tensor& hh,
         const Tensor& bias_ih, const Tensor& bias_hh, const Tensor& input, const Tensor& hidden,
         const Tensor& state) {
        return run_step(name, kind, {ih, hh, bias_ih, bias_hh, {}}, input, {hidden, state});
      },
      op, cell, w.ih, w.hh, w.bias_ih, w.bias_hh, x, before.hidden, before.cell);
}

}  // namespace autograd

// ---- LibTorch's functions -----------------------------------------------------------------------

using namespace autograd;

namespace {

Tensor given(const std::optional<Tensor>& t) { return t ? *t : Tensor(); }

RecurrentState states_of(const char* op, TensorList hx) {
  RAMET_CHECK(hx.size() == 2, op, op, " expects two hidden states: got ", hx.size());
  check_defined(op, hx[0]);
  check_defined(op, hx[1]);
  return {hx[0], hx[1]};
}
std::tuple<Tensor, Tensor, Tensor> all_of(const RecurrentResult& r) {
  return {r.output, r.hidden, r.cell};
}
std::tuple<Tensor, Tensor> two_of(const RecurrentResult& r) { return {r.output, r.hidden}; }

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx, TensorList params,
                                        bool has_biases, int64_t num_layers, double dropout,
                                        bool train, bool bidirectional, bool batch_first) {
  const RecurrentState first = states_of("lstm", hx);
  return all_of(run_recurrence(
      {"lstm", RecurrentCell::kLstm, has_biases, num_layers, dropout, train, bidirectional}, params,
      input, batch_first, first.hidden, first.cell));
}
std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes,
                                        TensorList hx, TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train,
                                        bool bidirectional) {
  const RecurrentState first = states_of("lstm", hx);
  return all_of(run_recurrence(
      {"lstm", RecurrentCell::kLstm, has_biases, num_layers, dropout, train, bidirectional}, params,
      data, batch_sizes, first.hidden, first.cell));
}
std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx, const Tensor& w_ih,
                                     const Tensor& w_hh, const std::optional<Tensor>& b_ih,
                                     const std::optional<Tensor>& b_hh) {
  const RecurrentState after =
      run_cell("lstm_cell", RecurrentCell::kLstm, {w_ih, w_hh, given(b_ih), given(b_hh), {}}, input,
               states_of("lstm_cell", hx));
  return {after.hidden, after.cell};
}

#define RAMET_RECURRENT(name, kind)                                                                \
  std::tuple<Tensor, Tensor> name(const Tensor& input, const Tensor& hx, TensorList params,        \
                                  bool has_biases, int64_t num_layers, double dropout, bool train, \
                                  bool bidirectional, bool batch_first) {                          \
    check_defined(#name, hx);                                                                      \
    return two_of(run_recurrence(                                                                  \
        {#name, RecurrentCell::kind, has_biases, num_layers, dropout, train, bidirectional},       \
        params, input, batch_first, hx, {}));                                                      \
  }                                                                                                \
  std::tuple<Tensor, Tensor> name(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, \
                                  TensorList params, bool has_biases, int64_t num_layers,          \
                                  double dropout, bool train, bool bidirectional) {                \
    check_defined(#name, hx);                                                                      \
    return two_of(run_recurrence(                                                                  \
        {#name, RecurrentCell::kind, has_biases, num_layers, dropout, train, bidirectional},       \
        params, data, batch_sizes, hx, {}));                                                       \
  }                                                                                                \
  Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,                    \
                     const Tensor& w_hh, const std::optional<Tensor>& b_ih,                        \
                     const std::optional<Tensor>& b_hh) {                                          \
    return run_cell(#name "_cell", RecurrentCell::kind,                                            \
                    {w_ih, w_hh, given(b_ih), given(b_hh), {}}, input, {hx, {}})                   \
        .hidden;                                                                                   \
  }
RAMET_RECURRENT(gru, kGru)
RAMET_RECURRENT(rnn_tanh, kTanh)
RAMET_RECURRENT(rnn_relu, kRelu)
#undef RAMET_RECURRENT

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/recurrent.inc"

}  // namespace ramet
