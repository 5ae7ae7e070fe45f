#include "nn/c/layers_internal.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/transformer_layers.h"

namespace ramet::c {
namespace {

template <class Impl> nn::AnyModule make(Reader& r) {
  using Options = typename Impl::options_t;
  if constexpr (std::is_void_v<Options>) {
    return r.make<Impl>();
  } else {
    auto options = nn::detail::fresh_options<Options>();
    r.read(Impl::fields(options));
    return r.make<Impl>(options);
  }
}

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

template <class Impl> nn::AnyModule recurrent(Reader& r) {
  auto options = nn::detail::fresh_options<typename Impl::options_t>();
  r.read(Impl::fields(options));
  std::string output = "sequence";
  r.read("output", output);
  if (output != "sequence" && output != "last") r.refuse("output", "\"sequence\" or \"last\"");
  return r.make<RecurrentLayer<Impl>>(options, output == "last");
}

}  // namespace

const std::vector<Layer>& all_layers() {
#define LAYER(Name) {#Name, make<nn::Name##Impl>},
#define RECURRENT(Name) {#Name, recurrent<nn::Name##Impl>},
  // clang-format off
#define OF_DIMENSIONS(D)                                                                \
  LAYER(Conv##D##d) LAYER(ConvTranspose##D##d) LAYER(MaxPool##D##d) LAYER(AvgPool##D##d) \
  LAYER(AdaptiveAvgPool##D##d) LAYER(AdaptiveMaxPool##D##d)                              \
  LAYER(ReflectionPad##D##d) LAYER(ReplicationPad##D##d) LAYER(ZeroPad##D##d)            \
  LAYER(ConstantPad##D##d) LAYER(BatchNorm##D##d) LAYER(InstanceNorm##D##d)
  static const auto* const layers = new std::vector<Layer>{
    LAYER(Identity) LAYER(Linear) LAYER(Flatten) LAYER(Unflatten) LAYER(Embedding)
    RECURRENT(RNN) RECURRENT(LSTM) RECURRENT(GRU) LAYER(TransformerEncoderLayer)
    OF_DIMENSIONS(1) OF_DIMENSIONS(2) OF_DIMENSIONS(3)
    LAYER(PixelShuffle) LAYER(PixelUnshuffle) LAYER(Fold) LAYER(Unfold) LAYER(Upsample)
    LAYER(LayerNorm) LAYER(RMSNorm) LAYER(GroupNorm) LAYER(LocalResponseNorm)
    LAYER(Dropout) LAYER(Dropout2d) LAYER(Dropout3d) LAYER(AlphaDropout)
    LAYER(FeatureAlphaDropout)
    LAYER(Tanh) LAYER(Sigmoid) LAYER(LogSigmoid) LAYER(SiLU) LAYER(Mish) LAYER(Softsign)
    LAYER(Tanhshrink) LAYER(Softmax2d) LAYER(Softmax) LAYER(Softmin) LAYER(LogSoftmax)
    LAYER(GELU) LAYER(GLU) LAYER(Hardshrink) LAYER(Softshrink) LAYER(ReLU) LAYER(ReLU6)
    LAYER(SELU) LAYER(LeakyReLU) LAYER(ELU) LAYER(CELU) LAYER(Hardtanh) LAYER(RReLU)
    LAYER(Softplus) LAYER(Threshold) LAYER(PReLU)
  };
  // clang-format on
#undef LAYER
#undef RECURRENT
#undef OF_DIMENSIONS
  return *layers;
}

}  // namespace ramet::c
