// Norms.
#include <limits>

#include "autograd/ops/make/factory.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/norm/rms_norm.h"

namespace ramet::formats {
namespace {

// A parameter, or `value` everywhere where the layer has none.
std::string or_filled(OnnxGraph& g, const OnnxCall& c, const char* name, const Tensor& t,
                      IntArrayRef sizes, double value) {
  return g.tensor(c.own(name), t.defined() ? t : full(sizes, value, c.dtype()));
}
std::vector<OnnxOption> epsilon() { return {{"epsilon", "eps"}}; }

// With the running statistics.
template <class M>
std::string normalized(OnnxGraph& g, const OnnxCall& c, M& m, const std::string& x) {
  const int64_t n = m.options.num_features();
  return g.node(
      c.path, "BatchNormalization",
      {x, or_filled(g, c, "weight", m.weight, {n}, 1), or_filled(g, c, "bias", m.bias, {n}, 0),
       g.tensor(c.own("running_mean"), m.running_mean),
       g.tensor(c.own("running_var"), m.running_var)},
      with_options(m, epsilon()));
}

template <class M> void add_batch_norm(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    if (!m.running_mean.defined())
      c.refuse("a batch norm without running statistics normalises with those of its batch");
    std::string y = normalized(g, c, m, c.names[0]);
    if constexpr (std::is_same<M, nn::BatchNormReLUMaxPool2dImpl>::value) {
      OnnxAttributes a;
      a.integers("kernel_shape", {2, 2}).integers("strides", {2, 2});
      y = g.node(c.path, "MaxPool", {g.node(c.path, "Relu", {y})}, a);
    }
    return y;
  });
}

template <size_t D, class M> void add_instance_norm(OnnxLayers& layers) {
  add_layer<M>(layers, [](OnnxGraph& g, const OnnxCall& c, M& m) {
    const int64_t n = m.options.num_features();
    return batched(g, c, D, [&](const std::string& x) {
      if (m.running_mean.defined()) return normalized(g, c, m, x);
      return g.node(
          c.path, "InstanceNormalization",
          {x, or_filled(g, c, "weight", m.weight, {n}, 1), or_filled(g, c, "bias", m.bias, {n}, 0)},
          with_options(m, epsilon()));
    });
  });
}

std::string layer_norm(OnnxGraph& g, const OnnxCall& c, nn::LayerNormImpl& m) {
  const std::vector<int64_t>& shape = m.options.normalized_shape();
  std::vector<std::string> in{c.names[0], or_filled(g, c, "weight", m.weight, shape, 1)};
  if (m.bias.defined()) in.push_back(g.tensor(c.own("bias"), m.bias));
  return g.node(c.path, "LayerNormalization", in,
                with_options(m, epsilon()).integer("axis", -static_cast<int64_t>(shape.size())));
}

// The groups as channels of an instance norm (the operator GroupNormalization is of later sets).
std::string group_norm(OnnxGraph& g, const OnnxCall& c, nn::GroupNormImpl& m) {
  const OnnxOps o{g, c};
  const int64_t groups = m.options.num_groups(), channels = m.options.num_channels();
  const std::string ones = g.tensor(c.own("ones"), ramet::ones({groups}, c.dtype()));
  const std::string zeros = g.tensor(c.own("zeros"), ramet::zeros({groups}, c.dtype()));
  const std::string cut = o.shaped(c.names[0], {0, groups, -1});
  const std::string y =
      o.op("InstanceNormalization", {cut, ones, zeros}, with_options(m, epsilon()));
  std::vector<int64_t> sizes = c.in[0].sizes().vec();
  sizes[0] = -1;
  std::string whole = o.shaped(y, sizes);
  if (!m.weight.defined()) return whole;
  const std::vector<int64_t> along = along_channels(channels, c.in[0].dim());
  const std::string weight = o.shaped(g.tensor(c.own("weight"), m.weight), along);
  const std::string bias = o.shaped(g.tensor(c.own("bias"), m.bias), along);
  return o.op("Add", {o.op("Mul", {whole, weight}), bias});
}

std::string rms_norm(OnnxGraph& g, const OnnxCall& c, nn::RMSNormImpl& m) {
  const OnnxOps o{g, c};
  if (c.dtype() != kFloat && c.dtype() != kDouble)
    c.refuse("RMSNorm of ", short_name_of(c.dtype()), " computes in float32, expected float32 or ",
             "float64");
  const double eps = m.options.eps()        ? *m.options.eps()
                     : c.dtype() == kDouble ? std::numeric_limits<double>::epsilon()
                                            : std::numeric_limits<float>::epsilon();
  std::vector<int64_t> axes;
  for (int64_t d = -static_cast<int64_t>(m.options.normalized_shape().size()); d < 0; ++d)
    axes.push_back(d);
  const std::string square = o.op("Mul", {c.names[0], c.names[0]});
  const std::string mean = o.op("ReduceMean", {square}, OnnxAttributes().integers("axes", axes));
  const std::string root = o.op("Sqrt", {o.op("Add", {mean, o.number(eps)})});
  const std::string y = o.op("Div", {c.names[0], root});
  return m.weight.defined() ? o.op("Mul", {y, g.tensor(c.own("weight"), m.weight)}) : y;
}

}  // namespace

void add_norm_layers(OnnxLayers& layers) {
  add_batch_norm<nn::BatchNorm1dImpl>(layers);
  add_batch_norm<nn::BatchNorm2dImpl>(layers);
  add_batch_norm<nn::BatchNorm3dImpl>(layers);
  add_batch_norm<nn::BatchNormReLUMaxPool2dImpl>(layers);
  add_instance_norm<1, nn::InstanceNorm1dImpl>(layers);
  add_instance_norm<2, nn::InstanceNorm2dImpl>(layers);
  add_instance_norm<3, nn::InstanceNorm3dImpl>(layers);
  add_layer<nn::LayerNormImpl>(layers, layer_norm);
  add_layer<nn::GroupNormImpl>(layers, group_norm);
  add_layer<nn::RMSNormImpl>(layers, rms_norm);
}

}  // namespace ramet::formats
