#include "tests/nn/formats/onnx_models.h"

#include <fstream>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/module/sequential.h"
#include "nn/utils/weight_norm.h"

namespace ramet::testing {
namespace {

using namespace nn;

struct BlockImpl : Cloneable<BlockImpl> {  // between layers: a sum, a function
  explicit BlockImpl(int64_t channels) : channels_(channels) { reset(); }
  void reset() override {
    conv1 = register_module("conv1", Conv2d(Conv2dOptions(channels_, channels_, 3).padding(1)));
    norm1 = register_module("norm1", BatchNorm2d(channels_));
    conv2 = register_module("conv2", Conv2d(Conv2dOptions(channels_, channels_, 3).padding(1)));
  }
  Tensor forward(const Tensor& x) { return relu(conv2(relu(norm1(conv1(x)))) + x); }
  int64_t channels_;
  Conv2d conv1{nullptr}, conv2{nullptr};
  BatchNorm2d norm1{nullptr};
};
RAMET_MODULE(Block);

struct ClassifierImpl : Cloneable<ClassifierImpl> {
  ClassifierImpl() { reset(); }
  void reset() override {
    stem = register_module("stem", Conv2d(1, 4, 3));
    block = register_module("block", Block(4));
    pool = register_module("pool", MaxPool2d(2));
    fc = register_module("fc", Linear(4 * 3 * 3, 5));
  }
  Tensor forward(Tensor x) {
    x = pool(block(stem(x)));
    return log_softmax(fc(x.view({-1, 36})), 1);
  }
  Conv2d stem{nullptr};
  Block block{nullptr};
  MaxPool2d pool{nullptr};
  Linear fc{nullptr};
};
RAMET_MODULE(Classifier);

// As programs for LibTorch are mostly written: layers by their forward(), the rest by functions.
struct DigitsImpl : Cloneable<DigitsImpl> {
  DigitsImpl() { reset(); }
  void reset() override {
    conv1 = register_module("conv1", Conv2d(Conv2dOptions(1, 4, 5)));
    conv2 = register_module("conv2", Conv2d(Conv2dOptions(4, 6, 5)));
    norm = register_module("norm", BatchNorm2d(6));
    fc1 = register_module("fc1", Linear(6 * 4 * 4, 9));
    fc2 = register_module("fc2", Linear(9, 5));
  }
  Tensor forward(Tensor x) {
    x = relu(max_pool2d(conv1->forward(x), 2));
    x = relu(max_pool2d(norm->forward(conv2->forward(x)), 2));
    x = x.view({-1, 6 * 4 * 4});
    x = relu(fc1->forward(x));
    x = dropout(x, 0.5, is_training());
    x = fc2->forward(x);
    return log_softmax(x, 1);
  }
  Conv2d conv1{nullptr}, conv2{nullptr};
  BatchNorm2d norm{nullptr};
  Linear fc1{nullptr}, fc2{nullptr};
};
RAMET_MODULE(Digits);

struct TaggerImpl : Cloneable<TaggerImpl> {  // the last state of a recurrent network; two inputs
  TaggerImpl() { reset(); }
  void reset() override {
    words = register_module("words", Embedding(7, 6));
    lstm = register_module("lstm", LSTM(LSTMOptions(6, 5).num_layers(2).batch_first(true)));
    fc = register_module("fc", Linear(8, 3));
  }
  Tensor forward(const Tensor& text, const Tensor& more) {
    const Tensor out = std::get<0>(lstm(words(text)));
    return fc(cat({out.select(1, -1), more.transpose(0, 1)}, 1)).tanh();
  }
  Embedding words{nullptr};
  LSTM lstm{nullptr};
  Linear fc{nullptr};
};
RAMET_MODULE(Tagger);

struct AttentionImpl : Cloneable<AttentionImpl> {  // products of what layers made; a bare parameter
  AttentionImpl() { reset(); }
  void reset() override {
    q = register_module("q", Linear(LinearOptions(6, 6).bias(false)));
    k = register_module("k", Linear(6, 6));
    norm = register_module("norm", LayerNorm(LayerNormOptions({6})));
    place = register_parameter("place", randn({4, 6}));
  }
  Tensor forward(const Tensor& input) {
    const Tensor x = input + place, keys = k(x);
    return norm(softmax(q(x).bmm(keys.transpose(1, 2)), -1).bmm(x) + x);
  }
  Linear q{nullptr}, k{nullptr};
  LayerNorm norm{nullptr};
  Tensor place;
};
RAMET_MODULE(Attention);

struct GatedImpl : Cloneable<GatedImpl> {  // two outputs, states given, in place
  GatedImpl() { reset(); }
  void reset() override {
    gru = register_module("gru", GRU(GRUOptions(3, 4).bidirectional(true)));
    act = register_module("act", ReLU(ReLUOptions(true)));
  }
  std::tuple<Tensor, Tensor> forward(const Tensor& x, const Tensor& states) {
    auto [y, last] = gru(x, states);
    return {act(y), last};
  }
  GRU gru{nullptr};
  ReLU act{nullptr};
};
RAMET_MODULE(Gated);

struct MaskedImpl : Cloneable<MaskedImpl> {  // one row sees nothing; a constant mask, too
  MaskedImpl() { reset(); }
  void reset() override {
    attention = register_module(
        "attention", MultiheadAttention(MultiheadAttentionOptions(6, 3).batch_first(true)));
  }
  Tensor forward(const Tensor& x, const Tensor& padding) {
    const Tensor y = std::get<0>(attention(x, x, x, padding));
    return y + silu(std::get<0>(attention(y, y, y, Tensor(), false, Tensor(), true, true)));
  }
  MultiheadAttention attention{nullptr};
};
RAMET_MODULE(Masked);

std::vector<OnnxModel> models;

template <class M>
void add(const std::string& name, const M& module, const std::vector<Tensor>& inputs,
         const OnnxOptions& options = {}) {
  auto& m = formats::module_of(module);
  models.push_back(onnx_model(name, m, formats::forward_of(m), inputs, options));
}
Tensor numbers(IntArrayRef sizes, double scale = 2) { return onnx_numbers(sizes, scale); }

void add_activations() {
  const Tensor x = numbers({3, 4, 5}, 4), image = numbers({2, 4, 3, 5}, 4);
  add("ReLU", ReLU(), {x});
  add("ReLU6", ReLU6(), {numbers({3, 4}, 9)});
  add("LeakyReLU", LeakyReLU(LeakyReLUOptions().negative_slope(0.3)), {x});
  add("RReLU", RReLU(), {x});
  add("ELU", ELU(ELUOptions().alpha(0.7)), {x});
  add("CELU", CELU(CELUOptions().alpha(0.7)), {x});
  add("SELU", SELU(), {x});
  add("GELU", GELU(), {x});
  add("GELU_tanh", GELU(GELUOptions().approximate("tanh")), {x});
  add("SiLU", SiLU(), {x});
  add("Mish", Mish(), {x});
  add("Sigmoid", Sigmoid(), {x});
  add("LogSigmoid", LogSigmoid(), {x});
  add("Tanh", Tanh(), {x});
  add("Tanhshrink", Tanhshrink(), {x});
  add("Softsign", Softsign(), {x});
  add("Softplus", Softplus(), {x});
  add("Softplus_beta", Softplus(SoftplusOptions().beta(1.5).threshold(3)), {x});
  add("Hardtanh", Hardtanh(HardtanhOptions().min_val(-0.5).max_val(2)), {x});
  add("Hardshrink", Hardshrink(HardshrinkOptions(0.7)), {x});
  add("Softshrink", Softshrink(SoftshrinkOptions(0.7)), {x});
  add("Threshold", Threshold(0.4, -2.), {x});
  add("PReLU", PReLU(), {x});
  add("PReLU_channels", PReLU(PReLUOptions().num_parameters(4)), {image});
  add("GLU", GLU(GLUOptions(1)), {x});
  add("Softmax", Softmax(1), {x});
  add("Softmin", Softmin(-1), {x});
  add("Softmax2d", Softmax2d(), {image});
  add("LogSoftmax", LogSoftmax(2), {x});
}

template <size_t D, class C, class T, class Max, class Avg>
void add_windows(const std::string& d, const Tensor& x) {
  add("Conv" + d, C(ConvOptions<D>(4, 6, 3).stride(2).padding(1).dilation(2).groups(2)), {x});
  add("Conv" + d + "_same", C(ConvOptions<D>(4, 3, 2).padding(kSame).bias(false)), {x});
  add("Conv" + d + "_reflect", C(ConvOptions<D>(4, 3, 3).padding(1).padding_mode(kReflect)), {x});
  add("Conv" + d + "_replicate", C(ConvOptions<D>(4, 3, 3).padding(2).padding_mode(kReplicate)),
      {x});
  add("ConvTranspose" + d,
      T(ConvTransposeOptions<D>(4, 6, 3).stride(2).padding(1).output_padding(1).groups(2)), {x});
  add("MaxPool" + d, Max(MaxPoolOptions<D>(3).stride(2).padding(1).ceil_mode(true)), {x});
  add("AvgPool" + d, Avg(AvgPoolOptions<D>(3).stride(2).padding(1)), {x});
  add("AvgPool" + d + "_inside",
      Avg(AvgPoolOptions<D>(3).stride(2).padding(1).count_include_pad(false)), {x});
}

void add_images() {
  const Tensor line = numbers({2, 4, 10}), image = numbers({2, 4, 8, 6}),
               volume = numbers({1, 4, 6, 8, 4});
  add_windows<1, Conv1d, ConvTranspose1d, MaxPool1d, AvgPool1d>("1d", line);
  add_windows<2, Conv2d, ConvTranspose2d, MaxPool2d, AvgPool2d>("2d", image);
  add_windows<3, Conv3d, ConvTranspose3d, MaxPool3d, AvgPool3d>("3d", volume);
  add("Conv2d_no_batch", Conv2d(4, 2, 3), {image[0].clone()});
  add("AdaptiveAvgPool1d", AdaptiveAvgPool1d(5), {line});
  add("AdaptiveAvgPool2d_1", AdaptiveAvgPool2d(1), {image});
  add("AdaptiveAvgPool3d", AdaptiveAvgPool3d(AdaptiveAvgPool3dOptions({3, 2, 4})), {volume});
  add("AdaptiveMaxPool1d", AdaptiveMaxPool1d(5), {line});
  add("AdaptiveMaxPool2d", AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({4, 2})), {image});
  add("AdaptiveMaxPool3d_1", AdaptiveMaxPool3d(1), {volume});
  add("ReflectionPad1d", ReflectionPad1d(2), {line});
  add("ReflectionPad2d", ReflectionPad2d(ReflectionPad2dOptions({1, 2, 0, 3})), {image});
  add("ReplicationPad3d", ReplicationPad3d(1), {volume});
  add("ZeroPad2d", ZeroPad2d(ZeroPad2dOptions({1, 2, -1, 3})), {image});
  add("ConstantPad1d", ConstantPad1d(ConstantPad1dOptions({2, 1}, 0.5)), {line});
  using Factors = std::vector<double>;
  using Sizes = std::vector<int64_t>;
  add("Upsample_nearest", Upsample(UpsampleOptions().scale_factor(Factors{2, 1.5})), {image});
  add("Upsample_nearest_size", Upsample(UpsampleOptions().size(Sizes{7})), {line});
  add("Upsample_linear", Upsample(UpsampleOptions().size(Sizes{17}).mode(kLinear)), {line});
  add("Upsample_bilinear", Upsample(UpsampleOptions().scale_factor(Factors{2, 3}).mode(kBilinear)),
      {image});
  add("Upsample_bilinear_corners",
      Upsample(UpsampleOptions().size(Sizes{5, 11}).mode(kBilinear).align_corners(true)), {image});
  add("Upsample_bicubic", Upsample(UpsampleOptions().scale_factor(Factors{2, 2}).mode(kBicubic)),
      {image});
  add("Upsample_trilinear", Upsample(UpsampleOptions().size(Sizes{9, 10, 8}).mode(kTrilinear)),
      {volume});
  add("PixelShuffle", PixelShuffle(2), {image});
  add("PixelUnshuffle", PixelUnshuffle(2), {image});
}

void add_norms() {
  const Tensor rows = numbers({5, 4}), line = numbers({2, 4, 10}), image = numbers({2, 4, 8, 6}),
               volume = numbers({1, 4, 6, 8, 4});
  add("BatchNorm1d", BatchNorm1d(4), {rows});
  add("BatchNorm1d_line", BatchNorm1d(BatchNorm1dOptions(4).affine(false).eps(1e-3)), {line});
  add("BatchNorm2d", BatchNorm2d(4), {image});
  add("BatchNorm3d", BatchNorm3d(4), {volume});
  add("BatchNormReLUMaxPool2d", BatchNormReLUMaxPool2d(4), {image});
  add("InstanceNorm1d", InstanceNorm1d(4), {line});
  add("InstanceNorm2d", InstanceNorm2d(InstanceNorm2dOptions(4).affine(true)), {image});
  add("InstanceNorm2d_no_batch", InstanceNorm2d(4), {image[0].clone()});
  add("InstanceNorm3d",
      InstanceNorm3d(InstanceNorm3dOptions(4).affine(true).track_running_stats(true)), {volume});
  add("LayerNorm", LayerNorm(LayerNormOptions({8, 6})), {image});
  add("LayerNorm_plain", LayerNorm(LayerNormOptions({6}).elementwise_affine(false)), {image});
  add("GroupNorm", GroupNorm(2, 4), {image});
  add("GroupNorm_plain", GroupNorm(GroupNormOptions(4, 4).affine(false)), {line});
  add("RMSNorm", RMSNorm(RMSNormOptions({6})), {image});
}

}  // namespace

Tensor onnx_numbers(IntArrayRef sizes, double scale) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return ((arange(n, TensorOptions(kDouble)) * 1.3 + 0.2).sin() * scale).view(sizes).to(kFloat);
}

OnnxModel onnx_model(const std::string& name, nn::Module& m, const formats::OnnxForward& forward,
                     const std::vector<Tensor>& inputs, const OnnxOptions& options) {
  const NoGradGuard set;
  double phase = 0;
  for (const auto& list : {m.named_buffers(), m.named_parameters()}) {
    for (const auto& item : list) {
      Tensor t = item.value();
      if (!t.is_floating_point()) continue;
      const bool positive = item.key().find("running_var") != std::string::npos;
      const Tensor step = arange(t.numel(), TensorOptions(kDouble)) * 0.7 + ++phase;
      t.copy_((step.sin() * (positive ? 0.4 : 0.5) + (positive ? 1 : 0)).view(t.sizes()));
    }
  }
  OnnxModel made{name, inputs, {}, ""};
  try {
    made.bytes = formats::onnx_bytes(m, inputs, options, forward);
  } catch (const Error& e) { fail(name.c_str(), e.what()); }
  m.eval();
  made.outputs = forward(inputs);
  return made;
}

std::vector<OnnxModel> onnx_models() {
  models.clear();
  add("Linear", Linear(4, 3), {numbers({5, 4})});
  add("Linear_rows", Linear(LinearOptions(4, 3)), {numbers({2, 5, 4})});
  add("Linear_double",
      [] {
        Linear m(4, 3);
        m->to(kDouble);
        return m;
      }(),
      {numbers({5, 4}).to(kDouble)});
  add("Embedding", Embedding(7, 3), {tensor({{0, 6, 2}, {1, 1, 5}})});
  add("Flatten", Sequential(Flatten()), {numbers({2, 3, 4})});
  add("Flatten_middle", Flatten(FlattenOptions().start_dim(1).end_dim(2)), {numbers({2, 3, 4, 5})});
  add("Unflatten", Unflatten(1, std::vector<int64_t>{2, 3}), {numbers({4, 6, 5})});
  add("Dropouts", Sequential(Dropout(), Linear(4, 4), AlphaDropout(), Identity()),
      {numbers({5, 4})});
  add_activations();
  add_images();
  add_norms();
  add("RNN", RNN(RNNOptions(3, 4).num_layers(2).bidirectional(true)), {numbers({5, 2, 3})});
  add("RNN_relu", RNN(RNNOptions(3, 4).nonlinearity(kReLU).bias(false)), {numbers({5, 2, 3})});
  add("LSTM", LSTM(LSTMOptions(3, 4).num_layers(2).bidirectional(true).batch_first(true)),
      {numbers({2, 5, 3})});
  add("LSTM_no_bias", LSTM(LSTMOptions(3, 4).bias(false)), {numbers({5, 2, 3})});
  add("GRU", GRU(GRUOptions(3, 4).num_layers(2).batch_first(true)), {numbers({2, 5, 3})});
  const auto free = OnnxOptions().batch_dim(0);
  add("mlp", Sequential(Linear(4, 8), Tanh(), Sequential(Linear(8, 8), GELU()), Linear(8, 2)),
      {numbers({1, 4})}, OnnxOptions().batch_dim(0).input_names({"x"}).output_names({"y"}));
  add("classifier", Classifier(), {numbers({2, 1, 8, 8})}, free);
  using Attend = MultiheadAttentionOptions;
  const Tensor rows3 = numbers({4, 3, 6}), keys3 = numbers({5, 3, 4}), values3 = numbers({5, 3, 2});
  add("MultiheadAttention", MultiheadAttention(Attend(6, 2).kdim(4).vdim(2)),
      {rows3, keys3, values3});
  add("Masked", Masked(),
      {numbers({3, 4, 6}),
       tensor(
           {{false, false, true, true}, {true, true, true, true}, {false, false, false, false}})});
  add("TransformerEncoder",
      TransformerEncoder(TransformerEncoderOptions(
          TransformerEncoderLayerOptions(6, 2).dim_feedforward(5).activation(kGELU).norm_first(
              true),
          2)),
      {rows3});
  add("Transformer",
      Transformer(
          TransformerOptions(6, 2).num_encoder_layers(1).num_decoder_layers(1).dim_feedforward(5)),
      {rows3, numbers({2, 3, 6})});
  add("weight_norm", Sequential(utils::weight_norm(Linear(4, 3))), {numbers({5, 4})});
  add("digits", Digits(), {numbers({2, 1, 28, 28})}, free);
  add("tagger", Tagger(), {tensor({{0, 6, 2}, {1, 1, 5}}), numbers({3, 2})});
  add("attention", Attention(), {numbers({3, 4, 6})}, free);
  add("gated", Gated(), {numbers({5, 2, 3}), numbers({2, 2, 4})});
  add_onnx_models_between(models);
  return std::move(models);
}

}  // namespace ramet::testing
