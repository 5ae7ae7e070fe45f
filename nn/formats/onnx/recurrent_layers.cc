// RNN, LSTM, GRU: an operator a layer, with both directions. Their cells.
#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/operations_internal.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"

namespace ramet::formats {
namespace {

// The gates along dimension 0, in ONNX's order, with a dimension for the directions in front.
Tensor reordered(const Tensor& t, IntArrayRef order) {
  const std::vector<Tensor> gates = t.chunk(static_cast<int64_t>(order.size()), 0);
  std::vector<Tensor> in_order;
  for (int64_t k : order) in_order.push_back(gates[static_cast<size_t>(k)]);
  return cat(in_order, 0).unsqueeze(0);
}

struct Kind {
  const char* op;
  std::vector<int64_t> order;  // ONNX's gate k is PyTorch's gate order[k]
};

// Output and the last states: hidden ones and, of an LSTM, cells.
template <class M>
std::vector<std::string> recurrent(OnnxGraph& g, const OnnxCall& c, M& m, const Kind& kind,
                                   OnnxAttributes attributes) {
  const NoGradGuard constants;
  const size_t states = kind.op == std::string("LSTM") ? 2 : 1;
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
  std::vector<std::vector<std::string>> last(states);
  for (int64_t l = 0; l < base.num_layers(); ++l) {
    std::vector<Tensor> w, r, b;
    for (int64_t d = 0; d < directions; ++d, next += each) {
      w.push_back(reordered(weights[next], kind.order));
      r.push_back(reordered(weights[next + 1], kind.order));
      if (base.bias())
        b.push_back(cat(
            {reordered(weights[next + 2], kind.order), reordered(weights[next + 3], kind.order)},
            1));
    }
    const std::string layer = "_l" + std::to_string(l);
    std::vector<std::string> in{x, g.tensor(c.own("W" + layer), cat(w, 0)),
                                g.tensor(c.own("R" + layer), cat(r, 0))};
    in.push_back(b.empty() ? "" : g.tensor(c.own("B" + layer), cat(b, 0)));
    if (!initial.empty()) in.push_back("");  // lengths: all are whole
    for (const std::string& state : initial)
      in.push_back(o.op("Slice", {state, o.integers({l * directions}),
                                  o.integers({(l + 1) * directions}), o.integers({0})}));
    while (in.back().empty()) in.pop_back();
    // [time, directions, batch, hidden], [directions, batch, hidden]
    const std::vector<std::string> y = g.nodes(c.path, kind.op, in, 1 + states, attributes);
    x = o.shaped(o.moved(y[0], {0, 2, 1, 3}), {0, 0, directions * hidden});
    for (size_t i = 0; i < states; ++i) last[i].push_back(y[1 + i]);
  }
  std::vector<std::string> out{base.batch_first() ? o.moved(x, {1, 0, 2}) : x};
  for (const std::vector<std::string>& state : last) {
    out.push_back(state.size() == 1 ? state[0]
                                    : o.op("Concat", state, OnnxAttributes().integer("axis", 0)));
  }
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
  const bool bias = m.bias_ih.defined();
  in.push_back(
      bias ? g.tensor(c.own("B"),
                      cat({reordered(m.bias_ih, kind.order), reordered(m.bias_hh, kind.order)}, 1))
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
  const bool lstm = o.node == "LstmLayerBackward0";
  const std::vector<int64_t>& rows = o.arguments.integers("rows");
  if (rows.empty() || rows.front() != rows.back())
    o.call.refuse("a packed sequence, expected sequences of one length");
  for (const size_t i : {kIh, kHh, kBiasIh, kBiasHh})
    if (!o.call.names[i].empty()) o.call.refuse("a weight that is computed");
  const std::vector<int64_t> order =
      lstm ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{1, 0, 2};
  const OnnxOps ops = o.ops();
  const auto steps = static_cast<int64_t>(rows.size()), hidden = o.in(kHh).size(1);
  std::vector<std::string> in{ops.shaped(o.name(), {steps, -1, o.in(kX).size(1)}),
                              o.graph.tensor(o.call.own("W"), reordered(o.in(kIh), order)),
                              o.graph.tensor(o.call.own("R"), reordered(o.in(kHh), order)), "", ""};
  if (o.in(kBiasIh).defined())
    in[3] =
        o.graph.tensor(o.call.own("B"),
                       cat({reordered(o.in(kBiasIh), order), reordered(o.in(kBiasHh), order)}, 1));
  const std::string front = ops.integers({0});
  if (!o.arguments.flag("zeros"))  // of any batch
    for (size_t i = kHidden; i <= (lstm ? kCell : kHidden); ++i)
      in.push_back(ops.op("Unsqueeze", {o.name(i), front}));
  while (in.back().empty()) in.pop_back();
  OnnxAttributes a;
  a.integer("hidden_size", hidden);
  a.text("direction", o.arguments.flag("reverse") ? "reverse" : "forward");
  if (!lstm) a.integer("linear_before_reset", 1);
  const size_t states = lstm ? 2 : 1;
  const std::vector<std::string> y =
      o.graph.nodes(o.call.path, lstm ? "LSTM" : "GRU", in, 1 + states, a);
  std::vector<std::string> out{ops.shaped(y[0], {-1, hidden})};
  for (size_t i = 0; i < states; ++i) out.push_back(ops.op("Squeeze", {y[1 + i], front}));
  out.resize(o.call.out.size());
  return out;
}

void add_recurrent_layers(OnnxLayers& layers) {
  const Kind lstm{"LSTM", {0, 3, 1, 2}}, gru{"GRU", {1, 0, 2}}, rnn{"RNN", {0}};
  const auto after = OnnxAttributes().integer("linear_before_reset", 1);
  const auto activations = [](const auto& options, size_t directions) {
    const bool relu = holds_alternative<enumtype::kReLU>(options.nonlinearity());
    return OnnxAttributes().texts("activations",
                                  std::vector<std::string>(directions, relu ? "Relu" : "Tanh"));
  };
  layers[typeid(nn::LSTMImpl)].add = [lstm](OnnxGraph& g, const OnnxCall& c, nn::Module& m) {
    return recurrent(g, c, static_cast<nn::LSTMImpl&>(m), lstm, {});
  };
  layers[typeid(nn::GRUImpl)].add = [gru, after](OnnxGraph& g, const OnnxCall& c, nn::Module& m) {
    return recurrent(g, c, static_cast<nn::GRUImpl&>(m), gru, after);
  };
  layers[typeid(nn::RNNImpl)].add = [rnn, activations](OnnxGraph& g, const OnnxCall& c,
                                                       nn::Module& module) {
    auto& m = static_cast<nn::RNNImpl&>(module);
    return recurrent(g, c, m, rnn, activations(m.options, m.options.bidirectional() ? 2 : 1));
  };
  layers[typeid(nn::LSTMCellImpl)].add = [lstm](OnnxGraph& g, const OnnxCall& c, nn::Module& m) {
    return cell(g, c, static_cast<nn::LSTMCellImpl&>(m), lstm, {});
  };
  layers[typeid(nn::GRUCellImpl)].add = [gru, after](OnnxGraph& g, const OnnxCall& c,
                                                     nn::Module& m) {
    return cell(g, c, static_cast<nn::GRUCellImpl&>(m), gru, after);
  };
  layers[typeid(nn::RNNCellImpl)].add = [rnn, activations](OnnxGraph& g, const OnnxCall& c,
                                                           nn::Module& module) {
    auto& m = static_cast<nn::RNNCellImpl&>(module);
    return cell(g, c, m, rnn, activations(m.options, 1));
  };
}

}  // namespace ramet::formats
