// Linear maps, embeddings, shapes, activations.
#include <algorithm>

#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/lora.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/sequence/embedding.h"

namespace ramet::formats {
namespace {

std::string linear(OnnxGraph& g, const OnnxCall& c, nn::LinearImpl& m) {
  const OnnxOps o{g, c};
  const std::string weight = g.tensor(c.own("weight"), m.merged_weight());
  const std::string bias = m.bias.defined() ? g.tensor(c.own("bias"), m.bias) : "";
  if (c.in[0].dim() == 2) {
    std::vector<std::string> in{c.names[0], weight};
    if (!bias.empty()) in.push_back(bias);
    return o.op("Gemm", in, OnnxAttributes().integer("transB", 1));
  }
  const std::string y = o.op("MatMul", {c.names[0], o.moved(weight, {1, 0})});
  return bias.empty() ? y : o.op("Add", {y, bias});
}

std::string embedding(OnnxGraph& g, const OnnxCall& c, nn::EmbeddingImpl& m) {
  if (m.options.max_norm()) c.refuse("an embedding with max_norm writes its weight");
  return g.node(c.path, "Gather", {g.tensor(c.own("weight"), m.weight), c.names[0]});
}

std::string reshaped(OnnxGraph& g, const OnnxCall& c, nn::Module&) {
  return OnnxOps{g, c}.shaped(c.names[0], reshape_sizes(c.in[0].sizes(), c.out[0].sizes()));
}

std::string pixel_shuffle(OnnxGraph& g, const OnnxCall& c, nn::PixelShuffleImpl& m) {
  if (c.in[0].dim() != 4) c.refuse("PixelShuffle of ", c.in[0].sizes(), ", expected 4 dimensions");
  return g.node(c.path, "DepthToSpace", {c.names[0]},
                with_options(m, {{"blocksize", "upscale_factor"}}).text("mode", "CRD"));
}
std::string pixel_unshuffle(OnnxGraph& g, const OnnxCall& c, nn::PixelUnshuffleImpl& m) {
  const Tensor& x = c.in[0];
  if (x.dim() != 4) c.refuse("PixelUnshuffle of ", x.sizes(), ", expected 4 dimensions");
  const int64_t r = m.options.downscale_factor(), channels = x.size(1);
  const OnnxOps o{g, c};
  const std::string cut = o.shaped(c.names[0], {0, channels, x.size(2) / r, r, x.size(3) / r, r});
  return o.shaped(o.moved(cut, {0, 1, 3, 5, 2, 4}),
                  {0, channels * r * r, x.size(2) / r, x.size(3) / r});
}

// ---- activations --------------------------------------------------------------------------------

// A formula.
template <class M, class F> void add_formula(OnnxLayers& layers, F f) {
  add_layer<M>(layers, [f](OnnxGraph& g, const OnnxCall& c, M& m) {
    return f(OnnxOps{g, c}, c.names[0], m);
  });
}

std::string softplus(const OnnxOps& o, const std::string& x, nn::SoftplusImpl& m) {
  const double beta = m.options.beta(), threshold = m.options.threshold();
  const std::string scaled = beta == 1 ? x : o.op("Mul", {x, o.number(beta)});
  std::string y = o.op("Softplus", {scaled});
  if (beta != 1) y = o.op("Div", {y, o.number(beta)});
  return o.op("Where", {o.op("Greater", {scaled, o.number(threshold)}), x, y});
}

std::string prelu(OnnxGraph& g, const OnnxCall& c, nn::PReLUImpl& m) {
  std::string slope = g.tensor(c.own("weight"), m.weight);
  if (m.weight.numel() > 1 && c.in[0].dim() > 2)
    slope = OnnxOps{g, c}.shaped(slope, along_channels(m.weight.numel(), c.in[0].dim()));
  return g.node(c.path, "PRelu", {c.names[0], slope});
}

void add_activations(OnnxLayers& layers) {
  add_operator<nn::TanhImpl>(layers, "Tanh");
  add_operator<nn::SigmoidImpl>(layers, "Sigmoid");
  add_operator<nn::SoftsignImpl>(layers, "Softsign");
  add_operator<nn::ReLUImpl>(layers, "Relu");
  add_operator<nn::SELUImpl>(layers, "Selu");
  add_operator<nn::ELUImpl>(layers, "Elu", {{"alpha"}});
  add_operator<nn::CELUImpl>(layers, "Celu", {{"alpha"}});
  add_operator<nn::LeakyReLUImpl>(layers, "LeakyRelu", {{"alpha", "negative_slope"}});
  add_operator<nn::SoftmaxImpl>(layers, "Softmax", {{"axis", "dim"}});
  add_operator<nn::LogSoftmaxImpl>(layers, "LogSoftmax", {{"axis", "dim"}});
  add_operator<nn::SoftshrinkImpl>(layers, "Shrink", {{"lambd", "lambda"}, {"bias", "lambda"}});
  add_formula<nn::HardshrinkImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return o.op("Shrink", {x}, with_options(m, {{"lambd", "lambda"}}).real("bias", 0));
  });
  add_formula<nn::RReLUImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    const double slope = (m.options.lower() + m.options.upper()) / 2;
    return o.op("LeakyRelu", {x}, OnnxAttributes().real("alpha", slope));
  });
  add_formula<nn::Softmax2dImpl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Softmax", {x}, onnx_axis(-3));
  });
  add_formula<nn::SoftminImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return o.op("Softmax", {o.op("Neg", {x})}, with_options(m, {{"axis", "dim"}}));
  });
  add_formula<nn::LogSigmoidImpl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Neg", {o.op("Softplus", {o.op("Neg", {x})})});
  });
  add_formula<nn::SiLUImpl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Mul", {x, o.op("Sigmoid", {x})});
  });
  add_formula<nn::MishImpl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Mul", {x, o.op("Tanh", {o.op("Softplus", {x})})});
  });
  add_formula<nn::TanhshrinkImpl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Sub", {x, o.op("Tanh", {x})});
  });
  add_formula<nn::ReLU6Impl>(layers, [](const OnnxOps& o, const std::string& x, auto&) {
    return o.op("Clip", {x, o.number(0), o.number(6)});
  });
  add_formula<nn::HardtanhImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return o.op("Clip", {x, o.number(m.options.min_val()), o.number(m.options.max_val())});
  });
  add_formula<nn::ThresholdImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    const std::string low = o.op("LessOrEqual", {x, o.number(m.options.threshold())});
    return o.op("Where", {low, o.number(m.options.value()), x});
  });
  add_formula<nn::GLUImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    const std::vector<std::string> halves =
        o.g.nodes(o.c.path, "Split", {x}, 2, with_options(m, {{"axis", "dim"}}));
    return o.op("Mul", {halves[0], o.op("Sigmoid", {halves[1]})});
  });
  add_formula<nn::GELUImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return gelu_operators(o, x, m.options.approximate() == "tanh");
  });
  add_formula<nn::SoftplusImpl>(layers, softplus);
  add_layer<nn::PReLUImpl>(layers, prelu);
}

template <class M> void add_identity(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph&, const OnnxCall& c, M&) { return c.names[0]; });
}

}  // namespace

void add_options(OnnxAttributes& a, const std::vector<nn::detail::Field>& list,
                 const std::vector<OnnxOption>& wanted) {
  for (const OnnxOption& w : wanted) {
    const std::string option = w.option ? w.option : w.attribute;
    const auto at = std::find_if(list.begin(), list.end(),
                                 [&](const nn::detail::Field& f) { return f.name == option; });
    RAMET_CHECK(at != list.end(), "export_onnx", "no option ", option, " in the list");
    if (auto* numbers = std::get_if<nn::detail::Numbers>(&at->at))
      a.integers(w.attribute, IntArrayRef(numbers->at, numbers->count));
    else if (auto* real = std::get_if<double*>(&at->at)) a.real(w.attribute, **real);
    else if (auto* flag = std::get_if<bool*>(&at->at)) a.integer(w.attribute, **flag);
    else a.integer(w.attribute, *std::get<int64_t*>(at->at));
  }
}

void add_basic_layers(OnnxLayers& layers) {
  add_layer<nn::LinearImpl>(layers, linear);
  add_layer<nn::LoRALinearImpl>(layers, linear);
  add_layer<nn::EmbeddingImpl>(layers, embedding);
  add_layer<nn::FlattenImpl>(layers, reshaped);
  add_layer<nn::UnflattenImpl>(layers, reshaped);
  add_layer<nn::PixelShuffleImpl>(layers, pixel_shuffle);
  add_layer<nn::PixelUnshuffleImpl>(layers, pixel_unshuffle);
  add_identity<nn::IdentityImpl>(layers);
  add_identity<nn::DropoutImpl>(layers);
  add_identity<nn::Dropout2dImpl>(layers);
  add_identity<nn::Dropout3dImpl>(layers);
  add_identity<nn::AlphaDropoutImpl>(layers);
  add_identity<nn::FeatureAlphaDropoutImpl>(layers);
  add_activations(layers);
}

}  // namespace ramet::formats
