#include "autograd/ops/layers/recurrent.h"

#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/cat.h"
#include "autograd/ops/shape/view.h"
#include "kernels/pointwise/recurrent.h"

namespace ramet {

using namespace autograd;

namespace {

Tensor dense(const Tensor& t) { return t.defined() ? t.contiguous() : t; }
Tensor like(const Tensor& t, int64_t parts = 1) {
  return Tensor(TensorBase::empty({t.size(0), parts * t.size(1)}, t.scalar_type(), t.device()));
}

// Checks that `gates` is a matrix of `parts` times the state's columns, of its dtype and device.
void check_gates(const char* op, const char* name, const Tensor& gates, int64_t parts,
                 const Tensor& state) {
  check_defined(op, gates);
  RAMET_CHECK(gates.dim() == 2 && gates.size(0) == state.size(0) && gates.size(1) % parts == 0 &&
                  gates.size(1) / parts == state.size(1),
              op, name, ": got ", describe(gates), ", expected as many rows as, and ", parts,
              " times the columns of the state, ", describe(state));
  RAMET_CHECK(gates.scalar_type() == state.scalar_type(), op, name, ": got ", describe(gates),
              ", expected the dtype of the state, ", describe(state));
  check_same_device(op, state, gates, name);
}
void check_state(const char* op, const Tensor& state) {
  check_defined(op, state);
  RAMET_CHECK(state.dim() == 2 && is_floating(state.scalar_type()), op, "state: got ",
              describe(state), ", expected a matrix of a floating-point type");
}

// ---- the kernels' derivatives, written with differentiable operations ---------------------------
//
// A step keeps gates and states. In a derivative of the step's derivative they are results of its
// node, with slots of their own. So the node never needs the sums that they came from.

struct SavedStates {
  Saved gates, after;
};
// A kept tensor. While recording, it has the history of a result of `self`.
Tensor kept_result(const Node& self, const Saved& kept, uint32_t slot) {
  Tensor t = kept.get(self);
  if (!GradMode::is_enabled()) return t;
  t = t.shallow();
  attach(t, const_cast<Node*>(&self), slot);
  return t;
}
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return !a.defined() ? b : b.defined() ? a + b : a;
}
Tensor sigmoid_slope(const Tensor& g, const Tensor& y) { return g * y * (1 - y); }
Tensor tanh_slope(const Tensor& g, const Tensor& y) { return g * (1 - y * y); }

// From active, before, after and the gradients of hidden and cell: the gradients of sums and
// before.
std::vector<Tensor> lstm_gradients(const std::vector<Tensor>& in) {
  const std::vector<Tensor> y = in[0].chunk(4, 1);
  const Tensor &before = in[1], &dh = in[3], th = in[2].tanh(),
               dc = dh.defined() ? sum_of(tanh_slope(dh * y[3], th), in[4]) : in[4];
  return {cat({sigmoid_slope(dc * y[2], y[0]), sigmoid_slope(dc * before, y[1]),
               tanh_slope(dc * y[0], y[2]),
               dh.defined() ? sigmoid_slope(dh * th, y[3]) : zeros_like(dc)},
              1),
          dc * y[1]};
}
// From a gradient v of active: the gradient of the sums.
Tensor lstm_gate_gradients(const Tensor& v, const Tensor& active) {
  const std::vector<Tensor> g = v.chunk(4, 1), y = active.chunk(4, 1);
  return cat({sigmoid_slope(g[0], y[0]), sigmoid_slope(g[1], y[1]), tanh_slope(g[2], y[2]),
              sigmoid_slope(g[3], y[3])},
             1);
}

// From kept, before and the gradient of hidden: the gradients of the parts of input and state, and
// of before.
std::vector<Tensor> gru_gradients(const std::vector<Tensor>& in) {
  const std::vector<Tensor> y = in[0].chunk(4, 1);
  const Tensor &dh = in[2], dn = tanh_slope(dh * (1 - y[1]), y[2]),
               dr = sigmoid_slope(dn * y[3], y[0]), dz = sigmoid_slope(dh * (in[1] - y[2]), y[1]);
  return {cat({dr, dz, dn}, 1), cat({dr, dz, dn * y[0]}, 1), dh * y[1]};
}
// From a gradient v of kept: the gradients of the parts of input and state.
std::array<Tensor, 2> gru_gate_gradients(const Tensor& v, const Tensor& kept) {
  const std::vector<Tensor> g = v.chunk(4, 1), y = kept.chunk(4, 1);
  const Tensor dn = tanh_slope(g[2], y[2]), dr = sigmoid_slope(g[0] + dn * y[3], y[0]),
               dz = sigmoid_slope(g[1], y[1]);
  return {cat({dr, dz, dn}, 1), cat({dr, dz, g[3] + dn * y[0]}, 1)};
}

}  // namespace

std::tuple<Tensor, Tensor> fused_lstm_cell(const Tensor& gates, const Tensor& cell) {
  const char* const op = "fused_lstm_cell";
  check_state(op, cell);
  check_gates(op, "gates", gates, 4, cell);
  const Tensor sums = dense(gates), b = dense(cell), active = like(cell, 4);
  std::vector<Tensor> results = {like(cell), like(cell)};
  kernels::lstm_step(cell.stream(),
                     {sums.ptr(), b.ptr(), active.ptr(), results[1].ptr(), results[0].ptr(),
                      cell.size(0), cell.size(1), cell.scalar_type()});
  if (!recording(gates, cell)) return {results[0], results[1]};
  SavedStates kept{Saved(active), Saved(results[1].shallow())};
  results.resize(3);  // and active
  record_results("FusedLstmCellBackward0", {gates, cell}, results,
                 [kept, before = save(cell)](const Node& self, const std::vector<Tensor>& v,
                                             std::vector<Tensor>& grads) {
                   const Tensor y = kept_result(self, kept.gates, 2);
                   if (v[0].defined() || v[1].defined()) {
                     const Tensor &b = before.get(self), c = kept_result(self, kept.after, 1);
                     grads[0] = like(b, 4);
                     if (self.needs(1)) grads[1] = like(b);
                     {
                       const NoGradGuard off;
                       const Tensor from = dense(b), dh = dense(v[0]), dc = dense(v[1]);
                       kernels::lstm_step_backward(
                           b.stream(), {y.ptr(), from.ptr(), c.ptr(), pointer(dh), nullptr,
                                        pointer(dc), grads[0].ptr(), pointer(grads[1]), b.size(0),
                                        b.size(1), b.scalar_type()});
                     }
                     if (!self.needs(0)) grads[0] = Tensor();
                     if (GradMode::is_enabled())
                       record_composed_results("FusedLstmCellBackwardBackward0", grads,
                                               lstm_gradients, {y, b, c, v[0], v[1]});
                   }
                   if (v[2].defined() && self.needs(0))
                     grads[0] = sum_of(grads[0], lstm_gate_gradients(v[2], y));
                 });
  return {results[0], results[1]};
}

Tensor fused_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hidden) {
  const char* const op = "fused_gru_cell";
  check_state(op, hidden);
  check_gates(op, "input_gates", input_gates, 3, hidden);
  check_gates(op, "hidden_gates", hidden_gates, 3, hidden);
  const bool records = recording(input_gates, hidden_gates, hidden);
  const Tensor x = dense(input_gates), s = dense(hidden_gates), b = dense(hidden),
               kept = records ? like(hidden, 4) : Tensor();
  std::vector<Tensor> results = {like(hidden)};
  kernels::gru_step(hidden.stream(), {x.ptr(), s.ptr(), b.ptr(), pointer(kept), results[0].ptr(),
                                      hidden.size(0), hidden.size(1), hidden.scalar_type()});
  if (!records) return results[0];
  results.resize(2);  // and kept
  record_results("FusedGruCellBackward0", {input_gates, hidden_gates, hidden}, results,
                 [kept = Saved(kept), before = save(hidden)](
                     const Node& self, const std::vector<Tensor>& v, std::vector<Tensor>& grads) {
                   const Tensor y = kept_result(self, kept, 1);
                   if (v[0].defined()) {
                     const Tensor& b = before.get(self);
                     grads[0] = like(b, 3), grads[1] = like(b, 3);
                     if (self.needs(2)) grads[2] = like(b);
                     {
                       const NoGradGuard off;
                       const Tensor from = dense(b), dh = dense(v[0]);
                       kernels::gru_step_backward(
                           b.stream(),
                           {y.ptr(), from.ptr(), dh.ptr(), nullptr, grads[0].ptr(), grads[1].ptr(),
                            pointer(grads[2]), b.size(0), b.size(1), b.scalar_type()});
                     }
                     for (int i : {0, 1})
                       if (!self.needs(i)) grads[static_cast<size_t>(i)] = Tensor();
                     if (GradMode::is_enabled())
                       record_composed_results("FusedGruCellBackwardBackward0", grads,
                                               gru_gradients, {y, b, v[0]});
                   }
                   if (!v[1].defined()) return;
                   const std::array<Tensor, 2> more = gru_gate_gradients(v[1], y);
                   for (size_t i : {0u, 1u})
                     if (self.needs(static_cast<int>(i))) grads[i] = sum_of(grads[i], more[i]);
                 });
  return results[0];
}

}  // namespace ramet
