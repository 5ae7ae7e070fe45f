// MultiheadAttention: products and a softmax. (Transformers consist of it and of other layers.)
#include <cmath>
#include <limits>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/layers_internal.h"
#include "nn/layers/sequence/multihead_attention.h"

namespace ramet::formats {
namespace {

// The arguments of the call that are no tensors. Hooks do not see them: these are the ones with
// which the module returns the same.
struct Flags {
  bool weights, average, causal;
};
Flags flags_of(const OnnxCall& c, nn::MultiheadAttentionImpl& m, const Tensor& padding,
               const Tensor& mask) {
  const NoGradGuard only_looked_at;
  const bool weights = c.out.size() > 1 && c.out[1].defined();
  const bool average = !weights || c.out[1].dim() == c.in[0].dim();
  for (const bool causal : {false, true}) {
    const Tensor again =
        std::get<0>(m.forward(c.in[0], c.in[1], c.in[2], padding, weights, mask, average, causal));
    if (again.equal(c.out[0])) return {weights, average, causal};
  }
  c.refuse("an attention that is called in another way than MultiheadAttention::forward is");
}

// The weights of query, key and value.
std::vector<std::string> three(const OnnxOps& o, const char* name, const Tensor& t) {
  return o.g.nodes(o.c.path, "Split", {o.g.tensor(o.c.own(name), t)}, 3, onnx_axis(0));
}

std::vector<std::string> attention(OnnxGraph& g, const OnnxCall& c, nn::MultiheadAttentionImpl& m) {
  const auto& options = m.options;
  const OnnxOps o{g, c};
  if (options.add_bias_kv() || options.add_zero_attn())
    c.refuse("add_bias_kv and add_zero_attn are not exported");
  if (c.in[0].dim() != 3) c.refuse("attention of ", c.in[0].sizes(), ", expected 3 dimensions");
  const auto given = [&](size_t i) { return c.in.size() > i ? c.in[i] : Tensor(); };
  const Tensor padding = given(3), mask = given(4);
  const Flags flags = flags_of(c, m, padding, mask);
  for (const Tensor& t : {padding, mask})
    if (t.defined() && t.scalar_type() != kBool && t.scalar_type() != c.dtype())
      c.refuse("got a mask ", describe(t), ", expected bool or ", short_name_of(c.dtype()));

  const int64_t heads = options.num_heads(), width = options.embed_dim() / heads;
  const bool batch_first = options.batch_first();
  std::vector<std::string> weights, biases, x;
  if (m._qkv_same_embed_dim) {
    weights = three(o, "in_proj_weight", m.in_proj_weight);
  } else {
    weights = {g.tensor(c.own("q_proj_weight"), m.q_proj_weight),
               g.tensor(c.own("k_proj_weight"), m.k_proj_weight),
               g.tensor(c.own("v_proj_weight"), m.v_proj_weight)};
  }
  if (m.in_proj_bias.defined()) biases = three(o, "in_proj_bias", m.in_proj_bias);
  for (size_t i = 0; i < 3; ++i) {
    std::string y = o.op("MatMul", {c.names[i], o.moved(weights[i], {1, 0})});
    if (!biases.empty()) y = o.op("Add", {y, biases[i]});
    y = o.shaped(y, {0, 0, heads, width});
    // [batch, heads, rows, width]; of keys [batch, heads, width, rows]
    const bool keys = i == 1;
    const std::vector<int64_t> first{0, 2, keys ? 3 : 1, keys ? 1 : 3};
    const std::vector<int64_t> second{1, 2, keys ? 3 : 0, keys ? 0 : 3};
    x.push_back(o.moved(y, batch_first ? first : second));
  }
  const std::string scaled = o.op("Mul", {x[0], o.number(1 / std::sqrt(width))});
  std::string scores = o.op("MatMul", {scaled, x[1]});
  std::vector<std::string> hidden;  // where there is no attention
  if (flags.causal) {
    const int64_t rows = c.in[0].size(batch_first ? 1 : 0),
                  keys = c.in[1].size(batch_first ? 1 : 0);
    const Tensor later = ones({rows, keys}, TensorOptions(kByte)).triu(1).to(kBool);
    hidden.push_back(g.tensor(c.own("later"), later));
  } else if (mask.defined()) {
    std::string name = c.names[4];
    if (mask.dim() == 3) name = o.shaped(name, {-1, heads, mask.size(1), mask.size(2)});
    if (mask.scalar_type() == kBool) hidden.push_back(name);
    else scores = o.op("Add", {scores, name});
  }
  if (padding.defined()) {
    const std::string name = o.op("Unsqueeze", {c.names[3], o.integers({1, 2})});
    if (padding.scalar_type() == kBool) hidden.push_back(name);
    else scores = o.op("Add", {scores, name});
  }
  // A row that sees nothing has probabilities of 0: a plain softmax would give NaN.
  const double least = c.dtype() == kHalf ? -65504 : -std::numeric_limits<float>::max();
  for (const std::string& h : hidden) scores = o.op("Where", {h, o.number(least), scores});
  std::string p = o.op("Softmax", {scores}, onnx_axis(-1));
  for (const std::string& h : hidden) p = o.op("Where", {h, o.number(0), p});
  const std::string y = o.moved(o.op("MatMul", {p, x[2]}),
                                batch_first ? IntArrayRef{0, 2, 1, 3} : IntArrayRef{2, 0, 1, 3});
  const std::string whole = o.shaped(y, {0, 0, heads * width});
  const std::string out =
      o.moved(g.tensor(c.own("out_proj.weight"), m.out_proj->merged_weight()), {1, 0});
  std::vector<std::string> results{o.op("MatMul", {whole, out})};
  if (m.out_proj->bias.defined())
    results[0] = o.op("Add", {results[0], g.tensor(c.own("out_proj.bias"), m.out_proj->bias)});
  if (c.out.size() > 1)
    results.push_back(
        flags.average
            ? o.op("ReduceMean", {p}, OnnxAttributes().integers("axes", {1}).integer("keepdims", 0))
            : p);
  return results;
}

}  // namespace

void add_attention_layers(OnnxLayers& layers) {
  add_layer<nn::MultiheadAttentionImpl>(layers, attention);
}

}  // namespace ramet::formats
