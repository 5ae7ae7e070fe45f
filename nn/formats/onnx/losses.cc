// Losses: of a prediction and a target. The others consist of operations between layers, or are
// refused.
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/loss/ctc_loss.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/loss/margin_loss.h"

namespace ramet::formats {
namespace {

// The loss of each element, reduced.
template <class Options>
std::string reduced(const OnnxOps& o, const std::string& each, const Options& options) {
  const auto& how = options.reduction();
  if (holds_alternative<enumtype::kNone>(how)) return each;
  const bool mean = holds_alternative<enumtype::kMean>(how);
  return o.op(mean ? "ReduceMean" : "ReduceSum", {each}, OnnxAttributes().integer("keepdims", 0));
}
std::string weighted(const OnnxOps& o, const std::string& each, const Tensor& weight) {
  return weight.defined() ? o.op("Mul", {each, o.g.tensor(o.c.own("weight"), weight)}) : each;
}

// f(o, x, target, module): the loss of each element
template <class M, class F> void add_loss(OnnxLayers& layers, F f) {
  add_layer<M>(layers, [f](OnnxGraph& g, const OnnxCall& c, M& m) {
    const OnnxOps o{g, c};
    return reduced(o, f(o, c.names[0], c.names[1], m), m.options);
  });
}

std::string distance(const OnnxOps& o, const std::string& x, const std::string& y) {
  return o.op("Abs", {o.op("Sub", {x, y})});
}
// d^2 / 2 below the edge, else edge (d - edge / 2)
std::string huber(const OnnxOps& o, const std::string& d, double edge) {
  const std::string inside = o.op("Mul", {o.op("Mul", {d, d}), o.number(0.5)});
  const std::string outside = o.op("Mul", {o.op("Sub", {d, o.number(edge / 2)}), o.number(edge)});
  return o.op("Where", {o.op("Less", {d, o.number(edge)}), inside, outside});
}

std::string bce(const OnnxOps& o, const std::string& x, const std::string& y, nn::BCELossImpl& m) {
  const auto log = [&](const std::string& of) {  // at least -100
    return o.op("Clip", {o.op("Log", {of}), o.number(-100)});
  };
  const std::string yes = o.op("Mul", {y, log(x)});
  const std::string no =
      o.op("Mul", {o.op("Sub", {o.number(1), y}), log(o.op("Sub", {o.number(1), x}))});
  return weighted(o, o.op("Neg", {o.op("Add", {yes, no})}), m.options.weight());
}
// (1 - y) x + softplus(-x) (1 + (pos_weight - 1) y)
std::string bce_logits(const OnnxOps& o, const std::string& x, const std::string& y,
                       nn::BCEWithLogitsLossImpl& m) {
  std::string soft = o.op("Softplus", {o.op("Neg", {x})});
  if (m.pos_weight.defined()) {
    const std::string w = o.g.tensor(o.c.own("pos_weight"), m.pos_weight);
    const std::string more = o.op("Mul", {o.op("Sub", {w, o.number(1)}), y});
    soft = o.op("Mul", {soft, o.op("Add", {more, o.number(1)})});
  }
  const std::string rest = o.op("Mul", {o.op("Sub", {o.number(1), y}), x});
  return weighted(o, o.op("Add", {rest, soft}), m.weight);
}

std::string kl_div(OnnxGraph& g, const OnnxCall& c, nn::KLDivLossImpl& m) {
  const OnnxOps o{g, c};
  const std::string &x = c.names[0], &y = c.names[1];
  std::string each;
  if (m.options.log_target()) {
    each = o.op("Mul", {o.op("Exp", {y}), o.op("Sub", {y, x})});
  } else {  // 0 log 0 = 0
    const std::string safe = o.op("Where", {o.op("LessOrEqual", {y, o.number(0)}), o.number(1), y});
    each = o.op("Sub", {o.op("Mul", {o.op("Log", {safe}), y}), o.op("Mul", {y, x})});
  }
  const std::string sum = reduced(o, each, m.options);
  if (!holds_alternative<enumtype::kBatchMean>(m.options.reduction())) return sum;
  return o.op("Div", {sum, o.number(static_cast<double>(c.in[0].size(0)))});
}

// Of classes: an operator.
template <class M> std::string of_classes(OnnxGraph& g, const OnnxCall& c, M& m, const char* op) {
  if (c.in[0].dim() < 2) c.refuse("a loss of ", c.in[0].sizes(), ", expected a batch of scores");
  std::vector<std::string> in{c.names[0], c.names[1]};
  if (m.weight.defined()) in.push_back(g.tensor(c.own("weight"), m.weight));
  const auto& how = m.options.reduction();
  OnnxAttributes a;
  a.text("reduction", holds_alternative<enumtype::kNone>(how)   ? "none"
                      : holds_alternative<enumtype::kMean>(how) ? "mean"
                                                                : "sum");
  return g.node(c.path, op, in, with_options(m, {{"ignore_index"}}, a));
}
std::string cross_entropy(OnnxGraph& g, const OnnxCall& c, nn::CrossEntropyLossImpl& m) {
  if (m.options.label_smoothing() != 0) c.refuse("label_smoothing has no operator");
  if (c.in[1].is_floating_point())
    c.refuse("targets that are probabilities have no operator, expected classes");
  return of_classes(g, c, m, "SoftmaxCrossEntropyLoss");
}

}  // namespace

void add_losses(OnnxLayers& layers) {
  using Text = const std::string&;
  add_loss<nn::L1LossImpl>(
      layers, [](const OnnxOps& o, Text x, Text y, auto&) { return distance(o, x, y); });
  add_loss<nn::MSELossImpl>(layers, [](const OnnxOps& o, Text x, Text y, auto&) {
    const std::string d = o.op("Sub", {x, y});
    return o.op("Mul", {d, d});
  });
  add_loss<nn::SmoothL1LossImpl>(layers, [](const OnnxOps& o, Text x, Text y, auto& m) {
    const double beta = m.options.beta().value_or(1);
    const std::string d = distance(o, x, y);
    return beta == 0 ? d : o.op("Div", {huber(o, d, beta), o.number(beta)});
  });
  add_loss<nn::HuberLossImpl>(layers, [](const OnnxOps& o, Text x, Text y, auto& m) {
    return huber(o, distance(o, x, y), m.options.delta());
  });
  add_loss<nn::HingeEmbeddingLossImpl>(layers, [](const OnnxOps& o, Text x, Text y, auto& m) {
    const std::string zero = o.number(0);
    const std::string apart = o.op("Sub", {o.number(m.options.margin()), x});
    const std::string far =
        o.op("Where", {o.op("Equal", {y, o.number(1)}), zero, o.op("Relu", {apart})});
    return o.op("Add", {far, o.op("Where", {o.op("Equal", {y, o.number(-1)}), zero, x})});
  });
  add_loss<nn::BCELossImpl>(layers, bce);
  add_loss<nn::BCEWithLogitsLossImpl>(layers, bce_logits);
  add_layer<nn::KLDivLossImpl>(layers, kl_div);
  add_layer<nn::NLLLossImpl>(layers, [](OnnxGraph& g, const OnnxCall& c, auto& m) {
    return of_classes(g, c, m, "NegativeLogLikelihoodLoss");
  });
  add_layer<nn::CrossEntropyLossImpl>(layers, cross_entropy);
  add_refused<nn::CTCLossImpl>(layers, "this loss is not exported");
  add_refused<nn::MultiMarginLossImpl>(layers, "this loss is not exported");
  add_refused<nn::MultiLabelMarginLossImpl>(layers, "this loss is not exported");
  add_refused<nn::CosineEmbeddingLossImpl>(layers, "this loss is not exported");
}

}  // namespace ramet::formats
