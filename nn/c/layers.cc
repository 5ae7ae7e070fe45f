#include <nlohmann/json.hpp>

#include "nn/c/layers_internal.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/norm/rms_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/transformer_layers.h"
#include "nn/module/flat_store.h"
#include "nn/module/sequential.h"

namespace ramet::c {
namespace {

using namespace ramet::nn;

/// A recurrent module as a layer among others: one tensor to one tensor. Its names and values are
/// those of its class.
template <class Impl> class RecurrentLayer final : public Impl {
 public:
  template <class Options>
  RecurrentLayer(const Options& options, bool last) : Impl(options), last_(last) {}
  Tensor forward(const Tensor& input) {
    Tensor y = std::get<0>(Impl::forward(input));
    if (!last_) return y;
    // Without a batch: [time, features].
    return y.select(this->options.batch_first() && y.dim() == 3 ? 1 : 0, -1);
  }

 private:
  bool last_;
};

template <class Impl, class Options> AnyModule recurrent(Reader& r) {
  Options o{r.count("input_size"), r.count("hidden_size")};
  r.read("num_layers", o.num_layers(), Range::kPositive);
  if constexpr (std::is_same_v<Options, RNNOptions>) r.read("nonlinearity", o.nonlinearity());
  r.read("bias", o.bias());
  r.read("batch_first", o.batch_first());
  r.read("dropout", o.dropout());
  r.read("bidirectional", o.bidirectional());
  if constexpr (std::is_same_v<Options, LSTMOptions>)
    r.read("proj_size", o.proj_size(), Range::kNotNegative);
  std::string output = "sequence";
  r.read("output", output);
  if (output != "sequence" && output != "last") r.refuse("output", "\"sequence\" or \"last\"");
  return r.make<RecurrentLayer<Impl>>(o, output == "last");
}

template <class Impl> AnyModule dropout(Reader& r) {
  DropoutOptions o;
  r.read("p", o.p());
  r.read("inplace", o.inplace());
  return r.make<Impl>(o);
}

std::vector<int64_t> normalized_shape(Reader& r) {
  std::vector<int64_t> sizes;
  r.read("normalized_shape", sizes, Range::kPositive);
  if (sizes.empty()) r.refuse("normalized_shape", "the last sizes of the input");
  return sizes;
}

// Activations with no option, with one, and those that may overwrite their input.
#define PLAIN(Name) RAMET_LAYER(Name, return r.make<Name##Impl>();)
#define ALONG(Name) \
  RAMET_LAYER(Name, Name##Options o{r.whole("dim")}; return r.make<Name##Impl>(o);)
#define ONE(Name, option) \
  RAMET_LAYER(Name, Name##Options o; r.read(#option, o.option()); return r.make<Name##Impl>(o);)
#define INPLACE(Name, ...)                                                       \
  RAMET_LAYER(Name, Name##Options o; __VA_ARGS__ r.read("inplace", o.inplace()); \
              return r.make<Name##Impl>(o);)

}  // namespace

const std::vector<Layer>& row_layers() {
  static const auto* const layers = new std::vector<Layer> {
    // clang-format off
      PLAIN(Identity)
      RAMET_LAYER(Linear, LinearOptions o{r.count("in_features"), r.count("out_features")};
                  r.read("bias", o.bias()); return r.make<LinearImpl>(o);)
      RAMET_LAYER(Flatten, FlattenOptions o; r.read("start_dim", o.start_dim());
                  r.read("end_dim", o.end_dim()); return r.make<FlattenImpl>(o);)
      RAMET_LAYER(Unflatten, UnflattenOptions o{r.whole("dim"), {}};
                  r.read("sizes", o.sizes()); return r.make<UnflattenImpl>(o);)
      RAMET_LAYER(Embedding,
                  EmbeddingOptions o{r.count("num_embeddings"), r.count("embedding_dim")};
                  r.read("padding_idx", o.padding_idx()); r.read("max_norm", o.max_norm());
                  r.read("norm_type", o.norm_type());
                  r.read("scale_grad_by_freq", o.scale_grad_by_freq());
                  return r.make<EmbeddingImpl>(o);)
      RAMET_LAYER(RNN, return recurrent<RNNImpl, RNNOptions>(r);)
      RAMET_LAYER(LSTM, return recurrent<LSTMImpl, LSTMOptions>(r);)
      RAMET_LAYER(GRU, return recurrent<GRUImpl, GRUOptions>(r);)
      RAMET_LAYER(TransformerEncoderLayer,
                  TransformerEncoderLayerOptions o{r.count("d_model"), r.count("nhead")};
                  r.read("dim_feedforward", o.dim_feedforward(), Range::kPositive);
                  r.read("dropout", o.dropout()); r.read("activation", o.activation());
                  r.read("batch_first", o.batch_first()); r.read("norm_first", o.norm_first());
                  return r.make<TransformerEncoderLayerImpl>(o);)
      RAMET_LAYER(BatchNorm1d, return norm_of_channels<BatchNormOptions, BatchNorm1dImpl>(r);)
      RAMET_LAYER(BatchNorm2d, return norm_of_channels<BatchNormOptions, BatchNorm2dImpl>(r);)
      RAMET_LAYER(BatchNorm3d, return norm_of_channels<BatchNormOptions, BatchNorm3dImpl>(r);)
      RAMET_LAYER(LayerNorm, LayerNormOptions o{normalized_shape(r)};
                  r.read("eps", o.eps()); r.read("elementwise_affine", o.elementwise_affine());
                  return r.make<LayerNormImpl>(o);)
      RAMET_LAYER(RMSNorm, RMSNormOptions o{normalized_shape(r)};
                  r.read("eps", o.eps()); r.read("elementwise_affine", o.elementwise_affine());
                  return r.make<RMSNormImpl>(o);)
      RAMET_LAYER(GroupNorm, GroupNormOptions o{r.count("num_groups"), r.count("num_channels")};
                  r.read("eps", o.eps()); r.read("affine", o.affine());
                  return r.make<GroupNormImpl>(o);)
      RAMET_LAYER(Dropout, return dropout<DropoutImpl>(r);)
      RAMET_LAYER(Dropout2d, return dropout<Dropout2dImpl>(r);)
      RAMET_LAYER(Dropout3d, return dropout<Dropout3dImpl>(r);)
      RAMET_LAYER(AlphaDropout, return dropout<AlphaDropoutImpl>(r);)
      RAMET_LAYER(FeatureAlphaDropout, return dropout<FeatureAlphaDropoutImpl>(r);)
      PLAIN(Tanh) PLAIN(Sigmoid) PLAIN(LogSigmoid) PLAIN(SiLU) PLAIN(Mish) PLAIN(Softsign)
      PLAIN(Tanhshrink) PLAIN(Softmax2d)
      ALONG(Softmax) ALONG(Softmin) ALONG(LogSoftmax)
      ONE(GELU, approximate) ONE(GLU, dim) ONE(Hardshrink, lambda) ONE(Softshrink, lambda)
      INPLACE(ReLU) INPLACE(ReLU6) INPLACE(SELU)
      INPLACE(LeakyReLU, r.read("negative_slope", o.negative_slope());)
      INPLACE(ELU, r.read("alpha", o.alpha());)
      INPLACE(CELU, r.read("alpha", o.alpha());)
      INPLACE(Hardtanh, r.read("min_val", o.min_val()); r.read("max_val", o.max_val());)
      INPLACE(RReLU, r.read("lower", o.lower()); r.read("upper", o.upper());)
      RAMET_LAYER(Softplus, SoftplusOptions o; r.read("beta", o.beta());
                  r.read("threshold", o.threshold()); return r.make<SoftplusImpl>(o);)
      RAMET_LAYER(Threshold, ThresholdOptions o(0, 0); o.threshold(r.number("threshold"));
                  o.value(r.number("value")); r.read("inplace", o.inplace());
                  return r.make<ThresholdImpl>(o);)
      RAMET_LAYER(PReLU, PReLUOptions o;
                  r.read("num_parameters", o.num_parameters(), Range::kPositive);
                  r.read("init", o.init()); return r.make<PReLUImpl>(o);)
    // clang-format on
  };
  return *layers;
}

namespace {

constexpr int kMaxDepth = 64;

AnyModule build(Reader& r, int depth);

AnyModule sequential(Reader& r, int depth) {
  const Json* const layers = r.entry("layers");
  if (!layers || !layers->is_array()) r.refuse("layers", "a list of modules");
  RAMET_CHECK(depth < kMaxDepth, r.op(), r.place("layers"), ": modules are more than ", kMaxDepth,
              " deep");
  r.finish();
  Sequential made;
  for (size_t i = 0; i < layers->size(); ++i) {
    Reader layer(r.op(), (*layers)[i], r.place("layers") + "[" + std::to_string(i) + "]",
                 "a module");
    std::string name = std::to_string(i);
    layer.read("name", name);
    AnyModule module = build(layer, depth + 1);
    try {
      made->push_back(name, std::move(module));
    } catch (Error& error) {
      error.add_context(layer.place("name"));
      throw;
    }
  }
  return AnyModule(made);
}

AnyModule build(Reader& r, int depth) {
  const bool has_layers = r.entry("layers") != nullptr;
  const std::string type = has_layers && !r.entry("type") ? "Sequential" : r.text("type");
  r.set_what(type);
  if (type == "Sequential") return sequential(r, depth);
  for (const std::vector<Layer>* list : {&row_layers(), &plane_layers()})
    for (const Layer& layer : *list)
      if (type == layer.type) return layer.make(r);
  r.refuse("type", "one of the modules that ramet/c.h lists");
}

ScalarType module_dtype(Reader& r) {
  std::string name = "float32";
  r.read("dtype", name);
  if (name == "float32") return kFloat32;
  if (name == "float64") return kFloat64;
  if (name == "float16") return kFloat16;
  if (name == "bfloat16") return kBFloat16;
  r.refuse("dtype", R"("float32", "float64", "float16" or "bfloat16")");
}

}  // namespace

nn::AnyModule module_of_json(const char* op, const std::string& text) {
  const auto json = parse_json(op, text);
  Reader r(op, *json, "", "a module");
  const ScalarType dtype = module_dtype(r);
  AnyModule made = build(r, 0);
  if (dtype != kFloat32) made.ptr()->to(dtype);
  // Flattens now: an optimizer would move the parameters later, and the caller's pointers would be
  // stale.
  flatten_parameters(made.ptr()->parameters());
  return made;
}

}  // namespace ramet::c
