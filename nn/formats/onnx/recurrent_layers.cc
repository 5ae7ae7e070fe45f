// RNN, LSTM, GRU: an operator a layer, with both directions. Their cells.
#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/operations_internal.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"

namespace ramet::formats {
namespace {

// One operator. Its gate k is PyTorch's gate order[k].
struct Kind {
  const char* op;
  std::vector<int64_t> order;
  size_t states;  // hidden ones and, of an LSTM, cells
};
Kind lstm() { return {"LSTM", {0, 3, 1, 2}, 2}; }
Kind gru() { return {"GRU", {1, 0, 2}, 1}; }
Kind rnn() { return {"RNN", {0}, 1}; }

// The gates along dimension 0, in ONNX's order, with a dimension for the directions in front.
Tensor reordered(const Tensor& t, IntArrayRef order) {
  const std::vector<Tensor> gates = t.chunk(static_cast<int64_t>(order.size()), 0);
  std::vector<Tensor> in_order;
  for (int64_t k : order) in_order.push_back(gates[static_cast<size_t>(k)]);
  return cat(in_order, 0).unsqueeze(0);
}

Tensor reordered_biases(const Tensor& ih, const Tensor& hh, const Kind& kind) {
  return cat({reordered(ih, kind.order), reordered(hh, kind.order)}, 1);
}

// Output and the last states.
template <class M>
std::vector<std::string> recurrent(OnnxGraph& g, const OnnxCall& c, M& m, const Kind& kind,
                                   OnnxAttributes attributes) {
  const NoGradGuard constants;
  const auto& base = m.options_base;
  if (base.proj_size() > 0) c.refuse("proj_size has no operator");
  if (c.in[0].dim() != 3)
    c.refuse(kind.op, " of ", c.in[0].sizes(),
             ", expected 3 dimensions: time and batch, not a packed sequence");
  const int64_t directions = base.bidirectional() ? 2 : 1, hidden = base.hidden_size();
  const OnnxOps o{g, c};
  attributes.integer("hidden_size", hidden);
  attributes.text("direction", directions == 2 ? "bidirectional" : "forward");
  std::string x = base.batch_first() ? o.moved(c.names[0], {1, 0, 2}) : c.names[0];
  std::vector<std::string> initial;  // of all layers
  for (size_t i = 1; i < c.in.size(); ++i)
    if (c.in[i].defined()) initial.push_back(c.names[i]);
  const std::vector<Tensor> weights = m.all_weights();
  const size_t each = base.bias() ? 4 : 2;
  size_t next = 0;
  std::vector<std::vector<std::string>> last(kind.states);
  for (int64_t l = 0; l < base.num_layers(); ++l) {
    std::vector<Tensor> w, r, b;
    for (int64_t d = 0; d < directions; ++d, next += each) {
      w.push_back(reordered(weights[next], kind.order));
      r.push_back(reordered(weights[next + 1], kind.order));
      if (base.bias()) b.push_back(reordered_biases(weights[next + 2], weights[next + 3], kind));
    }
    const std::string layer = "_l" + std::to_string(l);
    std::vector<std::string> in{x, g.tensor(c.own("W" + layer), cat(w, 0)),
                                g.tensor(c.own("R" + layer), cat(r, 0))};
    in.push_back(b.empty() ? "" : g.tensor(c.own("B" + layer), cat(b, 0)));
    if (!initial.empty()) in.push_back("");  // lengths: all are whole
    for (const std::string& state : initial)
      in.push_back(o.slice(state, 0, l * directions, (l + 1) * directions));
    while (in.back().empty()) in.pop_back();
    // [time, directions, batch, hidden], [directions, batch, hidden]
    const std::vector<std::string> y = g.nodes(c.path, kind.op, in, 1 + kind.states, attributes);
    x = o.shaped(o.moved(y[0], {0, 2, 1, 3}), {0, 0, directions * hidden});
    for (size_t i = 0; i < kind.states; ++i) last[i].push_back(y[1 + i]);
  }
  std::vector<std::string> out{base.batch_first() ? o.moved(x, {1, 0, 2}) : x};
  for (const std::vector<std::string>& state : last) out.push_back(o.concat(state, 0));
  return out;
}

// One step: the operator over a sequence of one.
template <class M>
std::vector<std::string> cell(OnnxGraph& g, const OnnxCall& c, M& m, const Kind& kind,
                              OnnxAttributes attributes) {
  const NoGradGuard constants;
  if (c.in[0].dim() != 2)
    c.refuse(kind.op, " cell of ", c.in[0].sizes(), ", expected 2 dimensions: with a batch");
  const OnnxOps o{g, c};
  const std::string front = o.integers({0});
  std::vector<std::string> in{o.op("Unsqueeze", {c.names[0], front}),
                              g.tensor(c.own("W"), reordered(m.weight_ih, kind.order)),
                              g.tensor(c.own("R"), reordered(m.weight_hh, kind.order))};
  in.push_back(m.bias_ih.defined()
                   ? g.tensor(c.own("B"), reordered_biases(m.bias_ih, m.bias_hh, kind))
                   : "");
  in.push_back("");
  for (size_t i = 1; i < c.in.size(); ++i)
    if (c.in[i].defined()) in.push_back(o.op("Unsqueeze", {c.names[i], front}));
  while (in.back().empty()) in.pop_back();
  attributes.integer("hidden_size", m.options.hidden_size());
  const std::vector<std::string> y = g.nodes(c.path, kind.op, in, 1 + c.out.size(), attributes);
  std::vector<std::string> states;
  for (size_t i = 0; i < c.out.size(); ++i) states.push_back(o.op("Squeeze", {y[1 + i], front}));
  return states;
}

}  // namespace

std::vector<std::string> onnx_recurrent_layer(const OnnxOperation& o) {
  enum : size_t { kX, kHidden, kCell, kIh, kHh, kBiasIh, kBiasHh };
  const bool is_lstm = o.node == "LstmLayerBackward0";
  const Kind kind = is_lstm ? lstm() : gru();
  const std::vector<int64_t>& rows = o.arguments.integers("rows");
  if (rows.empty() || rows.front() != rows.back())
    o.call.refuse("a packed sequence, expected sequences of one length");
  for (const size_t i : {kIh, kHh, kBiasIh, kBiasHh})
    if (!o.call.names[i].empty()) o.call.refuse("a weight that is computed");
  const OnnxOps ops = o.ops();
  const auto steps = static_cast<int64_t>(rows.size()), hidden = o.in(kHh).size(1);
  std::vector<std::string> in{ops.shaped(o.name(), {steps, -1, o.in(kX).size(1)}),
                              o.graph.tensor(o.call.own("W"), reordered(o.in(kIh), kind.order)),
                              o.graph.tensor(o.call.own("R"), reordered(o.in(kHh), kind.order)), "",
                              ""};
  if (o.in(kBiasIh).defined())
    in[3] = o.graph.tensor(o.call.own("B"), reordered_biases(o.in(kBiasIh), o.in(kBiasHh), kind));
  const std::string front = ops.integers({0});
  if (!o.arguments.flag("zeros"))  // of any batch
    for (size_t i = 0; i < kind.states; ++i)
      in.push_back(ops.op("Unsqueeze", {o.name(kHidden + i), front}));
  while (in.back().empty()) in.pop_back();
  OnnxAttributes a;
  a.integer("hidden_size", hidden);
  a.text("direction", o.arguments.flag("reverse") ? "reverse" : "forward");
  if (!is_lstm) a.integer("linear_before_reset", 1);
  const std::vector<std::string> y = o.graph.nodes(o.call.path, kind.op, in, 1 + kind.states, a);
  std::vector<std::string> out{ops.shaped(y[0], {-1, hidden})};
  for (size_t i = 0; i < kind.states; ++i) out.push_back(ops.op("Squeeze", {y[1 + i], front}));
  out.resize(o.call.out.size());
  return out;
}

void add_recurrent_layers(OnnxLayers& layers) {
  using Graph = OnnxGraph&;
  using Call = const OnnxCall&;
  const auto after = OnnxAttributes().integer("linear_before_reset", 1);
  const auto activations = [](const auto& options, size_t directions) {
    const bool relu = holds_alternative<enumtype::kReLU>(options.nonlinearity());
    return OnnxAttributes().texts("activations",
                                  std::vector<std::string>(directions, relu ? "Relu" : "Tanh"));
  };
  add_layer<nn::LSTMImpl>(layers,
                          [](Graph g, Call c, auto& m) { return recurrent(g, c, m, lstm(), {}); });
  add_layer<nn::GRUImpl>(
      layers, [after](Graph g, Call c, auto& m) { return recurrent(g, c, m, gru(), after); });
  add_layer<nn::RNNImpl>(layers, [activations](Graph g, Call c, auto& m) {
    return recurrent(g, c, m, rnn(), activations(m.options, m.options.bidirectional() ? 2 : 1));
  });
  add_layer<nn::LSTMCellImpl>(layers,
                              [](Graph g, Call c, auto& m) { return cell(g, c, m, lstm(), {}); });
  add_layer<nn::GRUCellImpl>(
      layers, [after](Graph g, Call c, auto& m) { return cell(g, c, m, gru(), after); });
  add_layer<nn::RNNCellImpl>(layers, [activations](Graph g, Call c, auto& m) {
    return cell(g, c, m, rnn(), activations(m.options, 1));
  });
}

}  // namespace ramet::formats
