// Linear maps, embeddings, shapes, activations.
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/sequence/embedding.h"

namespace ramet::formats {
namespace {

std::string linear(OnnxGraph& g, const OnnxCall& c, nn::LinearImpl& m) {
  const OnnxOps o{g, c};
  const std::string weight = g.tensor(c.own("weight"), m.weight);
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
  OnnxAttributes a;
  a.integer("blocksize", m.options.upscale_factor()).text("mode", "CRD");
  return g.node(c.path, "DepthToSpace", {c.names[0]}, a);
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

// One operator without attributes.
template <class M> void add_plain(OnnxLayers& layers, const char* op) {
  add_layer<M>(layers, [op](OnnxGraph& g, const OnnxCall& c, M&) {
    return g.node(c.path, op, {c.names[0]});
  });
}
// One operator with one number or dimension.
template <class M, class F>
void add_with(OnnxLayers& layers, const char* op, const char* attribute, F value) {
  add_layer<M>(layers, [op, attribute, value](OnnxGraph& g, const OnnxCall& c, M& m) {
    OnnxAttributes a;
    if constexpr (std::is_integral<decltype(value(m))>::value) a.integer(attribute, value(m));
    else a.real(attribute, value(m));
    return g.node(c.path, op, {c.names[0]}, a);
  });
}
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

std::string shrink(OnnxGraph& g, const OnnxCall& c, double lambda, double bias) {
  OnnxAttributes a;
  return g.node(c.path, "Shrink", {c.names[0]}, a.real("lambd", lambda).real("bias", bias));
}

void add_activations(OnnxLayers& layers) {
  add_plain<nn::TanhImpl>(layers, "Tanh");
  add_plain<nn::SigmoidImpl>(layers, "Sigmoid");
  add_plain<nn::SoftsignImpl>(layers, "Softsign");
  add_plain<nn::ReLUImpl>(layers, "Relu");
  add_plain<nn::SELUImpl>(layers, "Selu");
  const auto alpha = [](auto& m) { return m.options.alpha(); };
  const auto dim = [](auto& m) { return m.options.dim(); };
  add_with<nn::ELUImpl>(layers, "Elu", "alpha", alpha);
  add_with<nn::CELUImpl>(layers, "Celu", "alpha", alpha);
  add_with<nn::LeakyReLUImpl>(layers, "LeakyRelu", "alpha",
                              [](auto& m) { return m.options.negative_slope(); });
  add_with<nn::RReLUImpl>(layers, "LeakyRelu", "alpha",
                          [](auto& m) { return (m.options.lower() + m.options.upper()) / 2; });
  add_with<nn::SoftmaxImpl>(layers, "Softmax", "axis", dim);
  add_with<nn::LogSoftmaxImpl>(layers, "LogSoftmax", "axis", dim);
  add_with<nn::Softmax2dImpl>(layers, "Softmax", "axis", [](auto&) { return int64_t{-3}; });
  add_formula<nn::SoftminImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return o.op("Softmax", {o.op("Neg", {x})}, onnx_axis(m.options.dim()));
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
        o.g.nodes(o.c.path, "Split", {x}, 2, onnx_axis(m.options.dim()));
    return o.op("Mul", {halves[0], o.op("Sigmoid", {halves[1]})});
  });
  add_formula<nn::GELUImpl>(layers, [](const OnnxOps& o, const std::string& x, auto& m) {
    return gelu_operators(o, x, m.options.approximate() == "tanh");
  });
  add_formula<nn::SoftplusImpl>(layers, softplus);
  add_layer<nn::PReLUImpl>(layers, prelu);
  add_layer<nn::HardshrinkImpl>(layers, [](OnnxGraph& g, const OnnxCall& c, auto& m) {
    return shrink(g, c, m.options.lambda(), 0);
  });
  add_layer<nn::SoftshrinkImpl>(layers, [](OnnxGraph& g, const OnnxCall& c, auto& m) {
    return shrink(g, c, m.options.lambda(), m.options.lambda());
  });
}

template <class M> void add_identity(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph&, const OnnxCall& c, M&) { return c.names[0]; });
}

}  // namespace

void add_basic_layers(OnnxLayers& layers) {
  add_layer<nn::LinearImpl>(layers, linear);
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
