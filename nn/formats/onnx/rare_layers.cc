// Fold, Unfold, EmbeddingBag, LocalResponseNorm, CosineSimilarity: no operator of this operator set
// is one of them.
#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/image/fold.h"
#include "nn/layers/loss/distance.h"
#include "nn/layers/norm/response_norm.h"
#include "nn/layers/sequence/embedding_bag.h"

namespace ramet::formats {
namespace {

// A convolution, and its transpose, that moves places of a block to channels: [channels * places,
// 1, kernel...], a one in each.
std::string places(const OnnxOps& o, int64_t channels, IntArrayRef kernel) {
  const NoGradGuard constant;
  const int64_t n = kernel[0] * kernel[1];
  const Tensor ones = eye(n, TensorOptions(o.c.dtype())).view({1, n, kernel[0], kernel[1]});
  return o.g.tensor(o.c.own("places"), ones.expand({channels, n, kernel[0], kernel[1]})
                                           .reshape({channels * n, 1, kernel[0], kernel[1]}));
}
template <class M> OnnxAttributes blocks(const M& m, int64_t channels) {
  OnnxAttributes a = with_options(m, {{"kernel_shape", "kernel_size"}, {"strides", "stride"}});
  a.integers("pads", both_ends(m.options.padding()));
  return with_options(m, {{"dilations", "dilation"}}, a).integer("group", channels);
}

std::string unfold(OnnxGraph& g, const OnnxCall& c, nn::UnfoldImpl& m) {
  const OnnxOps o{g, c};
  const int64_t channels = c.in[0].size(-3);
  return batched(g, c, 2, [&](const std::string& x) {
    const std::string y =
        o.op("Conv", {x, places(o, channels, m.options.kernel_size())}, blocks(m, channels));
    return o.shaped(y, {0, c.out[0].size(-2), c.out[0].size(-1)});
  });
}

std::string fold(OnnxGraph& g, const OnnxCall& c, nn::FoldImpl& m) {
  const OnnxOps o{g, c};
  const auto& options = m.options;
  const int64_t channels = c.out[0].size(-3);
  std::vector<int64_t> blocks_of(2), more(2);  // along each dimension; what they do not reach
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = (*options.dilation())[d] * ((*options.kernel_size())[d] - 1) + 1;
    const int64_t left = (*options.output_size())[d] + 2 * (*options.padding())[d] - reach;
    blocks_of[d] = left / (*options.stride())[d] + 1, more[d] = left % (*options.stride())[d];
  }
  return batched(g, c, 1, [&](const std::string& x) {
    const std::string y = o.shaped(x, {0, c.in[0].size(-2), blocks_of[0], blocks_of[1]});
    return o.op("ConvTranspose", {y, places(o, channels, options.kernel_size())},
                blocks(m, channels).integers("output_padding", more));
  });
}

std::string embedding_bag(OnnxGraph& g, const OnnxCall& c, nn::EmbeddingBagImpl& m) {
  const OnnxOps o{g, c};
  const auto& options = m.options;
  if (options.max_norm()) c.refuse("an embedding with max_norm writes its weight");
  if (options.padding_idx()) c.refuse("padding_idx has no operator");
  if (c.in[0].dim() != 2)
    c.refuse("bags cut by offsets have no operator, expected indices of 2 dimensions");
  std::string rows = o.op("Gather", {g.tensor(c.own("weight"), m.weight), c.names[0]});
  if (c.in.size() > 2 && c.in[2].defined())
    rows = o.op("Mul", {rows, o.op("Unsqueeze", {c.names[2], o.integers({-1})})});
  OnnxAttributes a;
  a.integer("keepdims", 0);
  if (holds_alternative<enumtype::kSum>(options.mode()))
    return o.op("ReduceSum", {rows, o.integers({1})}, a);
  const bool mean = holds_alternative<enumtype::kMean>(options.mode());
  return o.op(mean ? "ReduceMean" : "ReduceMax", {rows}, a.integers("axes", {1}));
}

// By its formula: LRN has other channels in a window of an even size.
std::string local_response_norm(OnnxGraph& g, const OnnxCall& c, nn::LocalResponseNormImpl& m) {
  const OnnxOps o{g, c};
  const auto& options = m.options;
  const std::string& x = c.names[0];
  const int64_t size = options.size(), channels = c.in[0].size(1);
  std::string y = o.shaped(o.op("Mul", {x, x}), {0, 1, channels, -1});
  OnnxAttributes window;
  window.integers("kernel_shape", {size, 1}).integers("strides", {1, 1});
  window.integers("pads", {size / 2, 0, (size - 1) / 2, 0}).integer("count_include_pad", 1);
  y = o.shaped(o.op("AveragePool", {y}, window), reshape_sizes({-1}, c.in[0].sizes()));
  y = o.op("Add", {o.op("Mul", {y, o.number(options.alpha())}), o.number(options.k())});
  return o.op("Div", {x, o.op("Pow", {y, o.number(options.beta())})});
}

std::string cosine_similarity(OnnxGraph& g, const OnnxCall& c, nn::CosineSimilarityImpl& m) {
  const OnnxOps o{g, c};
  const int64_t dim = m.options.dim();
  if (!c.in[0].is_same_size(c.in[1]))
    c.refuse("a similarity of ", c.in[0].sizes(), " and ", c.in[1].sizes(), ", expected one size");
  const auto unit = [&](const std::string& x) {
    OnnxAttributes a;
    const std::string n = o.op("ReduceL2", {x}, a.integers("axes", {dim}).integer("keepdims", 1));
    return o.op("Div", {x, o.op("Clip", {n, o.number(m.options.eps())})});
  };
  const std::string products = o.op("Mul", {unit(c.names[0]), unit(c.names[1])});
  return o.op("ReduceSum", {products, o.integers({dim})}, OnnxAttributes().integer("keepdims", 0));
}

}  // namespace

void add_rare_layers(OnnxLayers& layers) {
  add_layer<nn::UnfoldImpl>(layers, unfold);
  add_layer<nn::FoldImpl>(layers, fold);
  add_layer<nn::EmbeddingBagImpl>(layers, embedding_bag);
  add_layer<nn::LocalResponseNormImpl>(layers, local_response_norm);
  add_layer<nn::CosineSimilarityImpl>(layers, cosine_similarity);
}

}  // namespace ramet::formats
