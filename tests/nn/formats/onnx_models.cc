#include "tests/nn/formats/onnx_models.h"

#include <map>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/module/sequential.h"
#include "nn/utils/weight_norm.h"
#include "tests/modules.h"

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

// What the table's rows name as inputs.
std::map<std::string, Tensor> named_inputs() {
  const Tensor x = numbers({5, 4}), y = onnx_numbers({5, 4}, 1.5).flip({0}).contiguous();
  const Tensor chance = x.sigmoid();
  return {{"x", x},
          {"y", y},
          {"wide", x * 9},
          {"chance", chance},
          {"other", y.sigmoid()},
          {"sign", chance.sub(0.5).sign()},
          {"sines", numbers({2, 4, 10}).sin().contiguous()},
          {"halves", tensor({{0.f, .5f}, {.3f, .7f}})},
          {"classes", tensor({int64_t{3}, int64_t{0}, int64_t{2}, int64_t{1}, int64_t{2}})},
          {"places", tensor({{0, 3, 1}, {2, 2, 0}})},
          {"words", tensor({{0, 6, 2}, {1, 1, 5}})}};
}

// The models of tests/modules.
void add_examples() {
  const std::map<std::string, Tensor> named = named_inputs();
  for (const ModuleExample& example : module_examples()) {
    if (!example.onnx) continue;
    Tensors inputs;
    for (const Input& input : example.onnx_inputs) {
      if (input.kind == Input::kNamed) inputs.push_back(named.at(input.name));
      if (input.kind == Input::kNumbers) inputs.push_back(numbers(input.shape(), input.scale));
    }
    OnnxOptions options;
    if (example.any_batch) options.batch_dim(0);
    const auto module = example.made();
    models.push_back(onnx_model(
        example.onnx, *module, [&](const Tensors& in) { return example.call(*module, in); }, inputs,
        options));
  }
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
  add_examples();
  add("Linear_double",
      [] {
        Linear m(4, 3);
        m->to(kDouble);
        return m;
      }(),
      {numbers({5, 4}).to(kDouble)});
  const auto free = OnnxOptions().batch_dim(0);
  add("mlp", Sequential(Linear(4, 8), Tanh(), Sequential(Linear(8, 8), GELU()), Linear(8, 2)),
      {numbers({1, 4})}, OnnxOptions().batch_dim(0).input_names({"x"}).output_names({"y"}));
  add("classifier", Classifier(), {numbers({2, 1, 8, 8})}, free);
  add("Masked", Masked(),
      {numbers({3, 4, 6}),
       tensor(
           {{false, false, true, true}, {true, true, true, true}, {false, false, false, false}})});
  add("weight_norm", Sequential(utils::weight_norm(Linear(4, 3))), {numbers({5, 4})});
  add("digits", Digits(), {numbers({2, 1, 28, 28})}, free);
  add("tagger", Tagger(), {tensor({{0, 6, 2}, {1, 1, 5}}), numbers({3, 2})});
  add("attention", Attention(), {numbers({3, 4, 6})}, free);
  add("gated", Gated(), {numbers({5, 2, 3}), numbers({2, 2, 4})});
  add_onnx_models_between(models);
  return std::move(models);
}

}  // namespace ramet::testing
