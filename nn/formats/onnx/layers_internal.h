// What ONNX operators a layer becomes. A row a layer: a function of the module and of one call.
#pragma once
#include <functional>
#include <string>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "nn/formats/onnx/expressions_internal.h"
#include "nn/module/field_internal.h"
#include "nn/module/module.h"

namespace ramet {
namespace formats {

/// Adds the operators of a call; the names of the outputs.
using OnnxLayer = std::function<std::vector<std::string>(OnnxGraph&, const OnnxCall&, nn::Module&)>;
using OnnxLayers = std::unordered_map<std::type_index, OnnxLayer>;

void add_basic_layers(OnnxLayers& layers);      // linear maps, embeddings, shapes, activations
void add_window_layers(OnnxLayers& layers);     // convolutions, pools, pads, upsampling
void add_norm_layers(OnnxLayers& layers);       // norms
void add_recurrent_layers(OnnxLayers& layers);  // RNN, LSTM, GRU
void add_attention_layers(OnnxLayers& layers);  // MultiheadAttention
void add_rare_layers(OnnxLayers& layers);       // Fold, Unfold, EmbeddingBag, LocalResponseNorm
void add_losses(OnnxLayers& layers);            // losses of two tensors

/// f(graph, call, module) returns the name of the result, or of each. By the exact class: one that
/// derives from a layer may compute something else.
template <class M, class F> void add_layer(OnnxLayers& layers, F f) {
  layers[typeid(M)] = [f](OnnxGraph& g, const OnnxCall& c, nn::Module& m) {
    return std::vector<std::string>{f(g, c, static_cast<M&>(m))};
  };
}

/// An attribute, and the option that gives it where that has another name.
struct OnnxOption {
  const char* attribute;
  const char* option = nullptr;
};
/// Adds attributes by a list of options.
void add_options(OnnxAttributes& a, const std::vector<nn::detail::Field>& list,
                 const std::vector<OnnxOption>& wanted);
/// Attributes after those of `a`, by the list of the module's options.
template <class M>
OnnxAttributes with_options(const M& m, const std::vector<OnnxOption>& wanted,
                            OnnxAttributes a = {}) {
  if constexpr (!std::is_void_v<typename M::options_t>) {
    auto options = m.options;
    add_options(a, M::fields(options), wanted);
  }
  return a;
}
/// A layer that is one operator of its input, with attributes of its options.
template <class M>
void add_operator(OnnxLayers& layers, const char* op, const std::vector<OnnxOption>& wanted = {}) {
  add_layer<M>(layers, [op, wanted](OnnxGraph& g, const OnnxCall& c, M& m) {
    return g.node(c.path, op, {c.names[0]}, with_options(m, wanted));
  });
}

/// A layer that is refused, and why.
template <class M> void add_refused(OnnxLayers& layers, const char* why) {
  layers[typeid(M)] = [why](OnnxGraph&, const OnnxCall& c,
                            nn::Module&) -> std::vector<std::string> { c.refuse(why); };
}

}  // namespace formats
}  // namespace ramet
