// Models as ONNX files (operator set 17, IR version 8), which ONNX Runtime and its kin run.
//
//   export_onnx(net, torch::zeros({1, 1, 28, 28}), "net.onnx");
//
// How: the module's forward runs in evaluation mode. Hooks see each module that is called (Note
// [Module hooks] in nn/module/module.h). An observer sees each operation that is recorded, with its
// arguments (autograd/graph/graph_observer.h). Each layer that is called becomes its operators. So
// does each operation between layers. An operation without an operator is an Error. It names the
// operation and the module that calls it, and nothing is written.
//
// The example gives shapes and ranges of numbers. The forward runs twice with other numbers, and
// must give the same graph. So most forwards that ask for values (item()) are refused. One that
// goes the same way for both runs is exported as it went.
//
// Exported:
// - maps, shapes: Linear, Bilinear, Embedding, EmbeddingBag of matrices, Identity, Flatten,
//   Unflatten, PixelShuffle, PixelUnshuffle, Fold, Unfold
// - images: Conv1-3d, ConvTranspose1-3d, MaxPool1-3d, AvgPool1-3d, AdaptiveAvgPool,
//   AdaptiveMaxPool, Upsample; ReflectionPad, ReplicationPad, ZeroPad and ConstantPad
// - norms: BatchNorm1-3d with running statistics, InstanceNorm1-3d, LayerNorm, GroupNorm, RMSNorm,
//   LocalResponseNorm; CosineSimilarity, PairwiseDistance
// - sequences: RNN, GRU, LSTM and their cells, with states given and returned; layers, directions;
//   MultiheadAttention with masks; so Transformers
// - activations: all; Dropout and its kin are nothing
// - losses: L1Loss, MSELoss, SmoothL1Loss, HuberLoss, BCELoss, BCEWithLogitsLoss, KLDivLoss,
//   NLLLoss, CrossEntropyLoss of classes, and what consists of operations between layers
// - between layers, as functions: sums, differences, products, quotients, powers, maximum and
//   minimum of tensors and numbers; where, masked_fill; clamp; relu, leaky_relu, sigmoid, tanh,
//   exp, log, neg, abs, sqrt, rsqrt, reciprocal, erf, silu, gelu, softplus and trigonometric
//   functions; softmax, log_softmax; sum, mean, prod, norm (1 and 2), amax, amin, max and min; mm,
//   bmm, mv, addmm, matmul, linear, embedding, scaled_dot_product_attention; cat, stack;
//   convolutions and pools of images, upsampling, layer_norm, batch_norm in evaluation mode;
//   reshapes, select, slices, split, unbind, transpose, permute, expand. Parameters and buffers are
//   constants. So are tensors that the forward makes, with OnnxOptions().made_constants(true)
//
// Refused, by name (of each module of nn with common options: "not Onnx" in tests/modules):
//   LSTM with proj_size              there is no operator for it
//   MultiheadAttention               with add_bias_kv, add_zero_attn; without a batch
//   batch norms                      that use their batch's statistics: no model that is finished
//   AvgPool with ceil_mode           where windows are cut off: ONNX divides by another number
//   AvgPool with divisor_override,   no operator, or it would write its weight
//   Embedding with max_norm
//   EmbeddingBag                     with offsets, padding_idx: bags of unlike sizes
//   ConvTranspose                    called with output_size: output_padding says the same; with
//                                    output_padding of a stride or more that is more than padding
//   Upsample                         with factors that leave all extents (but linear, and nearest
//                                    of images), or make other extents in float32
//   CrossEntropyLoss                 with label_smoothing, of probabilities
//   CTCLoss, MultiMarginLoss, MultiLabelMarginLoss, CosineEmbeddingLoss
//   between layers: indices by tensors, sorts, cumulative sums, comparisons of inputs, ...
//
// A layer may be called as a module, `fc(x)`, in a Sequential, or by its forward(),
// `fc->forward(x)`: then its operations are exported one by one. Parameters keep their names.
// PyTorch has the gates of an LSTM in the order i, f, g, o and of a GRU as r, z, n. ONNX's are i,
// o, f, c and z, r, h (with linear_before_reset). They are exchanged, and those tensors are called
// W_l0, R_l0, B_l0, ...
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nn/module/arg.h"
#include "nn/module/module_holder.h"

namespace ramet {

struct RAMET_API OnnxOptions {
  /// Names of the inputs and outputs; "input", "output", with several "input_0", ...
  RAMET_ARG(std::vector<std::string>, input_names);
  /// As input_names.
  RAMET_ARG(std::vector<std::string>, output_names);
  /// This dimension of every input may have any extent (called "batch" in the file), and so may
  /// what follows from it of the outputs. Checked: the forward also runs with another extent.
  RAMET_ARG(std::optional<int64_t>, batch_dim) = std::nullopt;
  /// The forward makes constants, as masks and positions, of shapes and of other constants. By
  /// default they are refused. For a tensor that is made of an input's values without a history, as
  /// by a comparison, may look like one. Other inputs show most of these tensors, not all.
  RAMET_ARG(bool, made_constants) = false;
};

namespace formats {

/// A forward of tensors to tensors.
using OnnxForward = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
/// The text of the file.
RAMET_API std::string onnx_bytes(nn::Module& module, const std::vector<Tensor>& inputs,
                                 const OnnxOptions& options, const OnnxForward& forward);
/// Writes the file whole or not at all.
RAMET_API void write_onnx(const std::string& path, const std::string& bytes);

/// The module of a holder, a shared_ptr or a reference. For export_onnx, as all down to
/// forward_of().
template <class C> C& module_of(const nn::ModuleHolder<C>& holder) { return *holder.ptr(); }
template <class C> C& module_of(const std::shared_ptr<C>& module) {
  RAMET_CHECK(module, "export_onnx", "got a null module");
  return *module;
}
template <class C, std::enable_if_t<std::is_base_of<nn::Module, C>::value, int> = 0>
C& module_of(const C& module) {
  return const_cast<C&>(module);  // in evaluation mode for a while, and then as it was
}

/// Appends the tensors of what a forward returns.
template <class R> void gather_outputs(std::vector<Tensor>& out, const R& result) {
  nn::detail::Outputs<R>::gather(out, result);
}

/// One of several arguments that are tensors.
template <size_t> using TensorArgument = const Tensor&;
/// Calls the module with so many tensors; an Error where its forward does not take them.
template <class M, size_t... I>
auto call_with(M& module, const std::vector<Tensor>& in, std::index_sequence<I...>, int)
    -> decltype(nn::call(module, std::declval<TensorArgument<I>>()...), std::vector<Tensor>()) {
  std::vector<Tensor> out;
  gather_outputs(out, nn::call(module, in[I]...));
  return out;
}
template <class M, size_t... I>
std::vector<Tensor> call_with(M&, const std::vector<Tensor>&, std::index_sequence<I...>, long) {
  fail("export_onnx", "the module's forward does not take ", sizeof...(I), " tensors");
}

/// The module's forward as an OnnxForward of one to four tensors.
template <class M> OnnxForward forward_of(M& module) {
  return [&module](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    switch (in.size()) {
      case 1: return call_with(module, in, std::make_index_sequence<1>(), 0);
      case 2: return call_with(module, in, std::make_index_sequence<2>(), 0);
      case 3: return call_with(module, in, std::make_index_sequence<3>(), 0);
      case 4: return call_with(module, in, std::make_index_sequence<4>(), 0);
    }
    fail("export_onnx", "got ", in.size(), " inputs, expected 1 to 4");
  };
}

}  // namespace formats

/// Writes `module` (a module, its holder or a shared_ptr) with the shapes of `inputs`, one to four
/// tensors that forward takes. Floating-point parameters keep their dtype. The file is written
/// whole or not at all. The module is as it was afterwards, training mode included. No other thread
/// may use it meanwhile. Module hooks of the program are an Error, parametrisations (weight_norm)
/// are evaluated.
template <class M>
void export_onnx(const M& module, const std::vector<Tensor>& inputs, const std::string& path,
                 const OnnxOptions& options = {}) {
  auto& m = formats::module_of(module);
  formats::write_onnx(path, formats::onnx_bytes(m, inputs, options, formats::forward_of(m)));
}
template <class M>
void export_onnx(const M& module, const Tensor& input, const std::string& path,
                 const OnnxOptions& options = {}) {
  export_onnx(module, std::vector<Tensor>{input}, path, options);
}

}  // namespace ramet
