// RNN, LSTM, GRU: an operator a layer, with both directions.
#include "autograd/grad_mode.h"
#include "autograd/ops/shape_joins.h"
#include "nn/formats/onnx_layers_internal.h"
#include "nn/layers/recurrent.h"

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

// Output and, where `states` is asked for, the last hidden states.
template <class M>
std::vector<std::string> recurrent(OnnxGraph& g, const OnnxCall& c, M& m, const Kind& kind,
                                   bool states, OnnxAttributes attributes) {
  const NoGradGuard constants;
  const auto& base = m.options_base;
  if (base.proj_size() > 0) c.refuse("proj_size has no operator");
  const int64_t directions = base.bidirectional() ? 2 : 1, hidden = base.hidden_size();
  const OnnxOps o{g, c};
  attributes.integer("hidden_size", hidden);
  attributes.text("direction", directions == 2 ? "bidirectional" : "forward");
  std::string x = base.batch_first() ? o.moved(c.names[0], {1, 0, 2}) : c.names[0];
  const std::string initial = c.in.size() > 1 && c.in[1].defined() ? c.names[1] : "";
  const std::vector<Tensor> weights = m.all_weights();
  const size_t each = base.bias() ? 4 : 2;
  size_t next = 0;
  std::vector<std::string> last;
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
    if (!initial.empty()) {
      in.push_back("");  // lengths: all are whole
      in.push_back(o.op("Slice", {initial, o.integers({l * directions}),
                                  o.integers({(l + 1) * directions}), o.integers({0})}));
    }
    while (in.back().empty()) in.pop_back();
    // [time, directions, batch, hidden], [directions, batch, hidden]
    const std::vector<std::string> y = g.nodes(c.path, kind.op, in, 2, attributes);
    x = o.shaped(o.moved(y[0], {0, 2, 1, 3}), {0, 0, directions * hidden});
    last.push_back(y[1]);
  }
  std::vector<std::string> out{base.batch_first() ? o.moved(x, {1, 0, 2}) : x};
  if (states) {
    out.push_back(last.size() == 1 ? last[0]
                                   : o.op("Concat", last, OnnxAttributes().integer("axis", 0)));
  }
  return out;
}

}  // namespace

void add_recurrent_layers(OnnxLayers& layers) {
  layers[typeid(nn::LSTMImpl)].add = [](OnnxGraph& g, const OnnxCall& c, nn::Module& module) {
    auto& m = static_cast<nn::LSTMImpl&>(module);
    {  // states are no tensors among the arguments, so nobody saw them
      const NoGradGuard only_looked_at;
      if (!std::get<0>(m.forward(c.in[0])).equal(c.out[0]))
        c.refuse("an LSTM that is given its first states; expected lstm(x)");
    }
    return recurrent(g, c, m, {"LSTM", {0, 3, 1, 2}}, false, {});
  };
  layers[typeid(nn::GRUImpl)].add = [](OnnxGraph& g, const OnnxCall& c, nn::Module& module) {
    return recurrent(g, c, static_cast<nn::GRUImpl&>(module), {"GRU", {1, 0, 2}}, true,
                     OnnxAttributes().integer("linear_before_reset", 1));
  };
  layers[typeid(nn::RNNImpl)].add = [](OnnxGraph& g, const OnnxCall& c, nn::Module& module) {
    auto& m = static_cast<nn::RNNImpl&>(module);
    const bool relu = holds_alternative<enumtype::kReLU>(m.options.nonlinearity());
    const std::vector<std::string> each(m.options.bidirectional() ? 2 : 1, relu ? "Relu" : "Tanh");
    return recurrent(g, c, m, {"RNN", {0}}, true, OnnxAttributes().texts("activations", each));
  };
}

}  // namespace ramet::formats
