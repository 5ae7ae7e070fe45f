// What ONNX operators a layer becomes. A row a layer: a function of the module and of one call.
#pragma once
#include <functional>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "nn/formats/onnx/graph_internal.h"
#include "nn/module/module.h"

namespace ramet {
namespace formats {

/// A module in error texts: 'features.0', or "the root module" for the empty path.
inline std::string named(const std::string& path) {
  return path.empty() ? "the root module" : "'" + path + "'";
}

/// A call of a layer, in evaluation mode.
struct OnnxCall {
  std::string path;  // "features.0"; "" for the whole model
  std::vector<Tensor> in, out;
  std::vector<std::string> names;  // of `in` in the graph; "" of an undefined one

  /// The name of something of the layer: "features.0.weight".
  std::string own(const std::string& what) const { return onnx_name(path, what); }
  ScalarType dtype() const { return out[0].scalar_type(); }
  /// "[export_onnx] 'features.0': ..."
  template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) const {
    fail("export_onnx", named(path), ": ", parts...);
  }
};

struct OnnxLayer {
  /// Adds the operators; the names of the outputs.
  std::function<std::vector<std::string>(OnnxGraph&, const OnnxCall&, nn::Module&)> add;
  /// The layer's forward of one tensor; empty where it takes or returns other things.
  std::function<Tensor(nn::Module&, const Tensor&)> forward;
};
using OnnxLayers = std::unordered_map<std::type_index, OnnxLayer>;

void add_basic_layers(OnnxLayers& layers);      // linear maps, embeddings, shapes, activations
void add_window_layers(OnnxLayers& layers);     // convolutions, pools, pads, upsampling
void add_norm_layers(OnnxLayers& layers);       // norms
void add_recurrent_layers(OnnxLayers& layers);  // RNN, LSTM, GRU
void add_attention_layers(OnnxLayers& layers);  // MultiheadAttention
void add_rare_layers(OnnxLayers& layers);       // Fold, Unfold, EmbeddingBag, LocalResponseNorm
void add_losses(OnnxLayers& layers);            // losses of two tensors

/// One result. By the exact class: one that derives from a layer may compute something else.
template <class M, class F> void add_layer(OnnxLayers& layers, F f) {
  OnnxLayer& layer = layers[typeid(M)];
  layer.add = [f](OnnxGraph& g, const OnnxCall& c, nn::Module& m) {
    return std::vector<std::string>{f(g, c, static_cast<M&>(m))};
  };
  if constexpr (requires(M & m, const Tensor& x) { m.forward(x); })
    layer.forward = [](nn::Module& m, const Tensor& x) -> Tensor {
      return static_cast<M&>(m).forward(x);
    };
}

/// Operators of one call, as an expression.
struct OnnxOps {
  OnnxGraph& g;
  const OnnxCall& c;

  std::string op(const char* name, const std::vector<std::string>& in,
                 const OnnxAttributes& attributes = {}) const {
    return g.node(c.path, name, in, attributes);
  }
  std::string number(double value) const { return g.number(c.own("number"), value, c.dtype()); }
  std::string integers(IntArrayRef values) const { return g.integers(c.own("integers"), values); }
  std::string shaped(const std::string& x, IntArrayRef sizes) const {
    return op("Reshape", {x, integers(sizes)});
  }
  std::string moved(const std::string& x, IntArrayRef order) const {
    return op("Transpose", {x}, OnnxAttributes().integers("perm", order));
  }
};

/// A layer that is refused, and why.
template <class M> void add_refused(OnnxLayers& layers, const char* why) {
  layers[typeid(M)].add = [why](OnnxGraph&, const OnnxCall& c,
                                nn::Module&) -> std::vector<std::string> { c.refuse(why); };
}

/// `f` of an input of d dimensions behind batch and channels. The batch is added for a while where
/// there is none.
template <class F> std::string batched(OnnxGraph& g, const OnnxCall& c, size_t d, const F& f) {
  if (c.in[0].dim() == static_cast<int64_t>(d) + 2) return f(c.names[0]);
  const OnnxOps o{g, c};
  const std::string axis = o.integers({0});
  return o.op("Squeeze", {f(o.op("Unsqueeze", {c.names[0], axis})), axis});
}

/// gelu(x): by its approximation with tanh, or by the error function.
std::string gelu_operators(const OnnxOps& o, const std::string& x, bool by_tanh);

/// The sizes that Reshape is given for from -> to, so that they hold for other batches too: 0 for
/// the first dimensions that stay, -1 for the first that does not. `from` is not empty.
std::vector<int64_t> reshape_sizes(IntArrayRef from, IntArrayRef to);

}  // namespace formats
}  // namespace ramet
