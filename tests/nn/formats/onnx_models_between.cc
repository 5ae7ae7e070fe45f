// Models with operations between layers.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/embedding_bag.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/module/module_hooks.h"
#include "tests/nn/formats/onnx_models.h"

namespace ramet::testing {
namespace {

using namespace nn;
using Tensors = std::vector<Tensor>;

// A module with a layer fc, a buffer and a parameter, and with a function as its forward.
struct WithImpl : Module {
  using F = std::function<Tensors(WithImpl&, const Tensors&)>;
  WithImpl() {
    fc = register_module("fc", Linear(6, 4));
    place = register_buffer("place", zeros({1, 4}));
    scale = register_parameter("scale", zeros({4}));
  }
  Linear fc{nullptr};
  Tensor place, scale;
};

struct Adder {
  std::vector<OnnxModel>& models;

  template <class M>
  void operator()(const std::string& name, const M& module, const Tensors& inputs,
                  const OnnxOptions& options = {}) const {
    auto& m = formats::module_of(module);
    models.push_back(onnx_model(name, m, formats::forward_of(m), inputs, options));
  }
  // The rows of a function of what `fc` makes; their number is free.
  void rows(const std::string& name, const std::function<Tensor(const Tensor&)>& f) const {
    of(name, {onnx_numbers({3, 6})}, OnnxOptions().batch_dim(0),
       [f](WithImpl& m, const Tensors& in) { return Tensors{f(m.fc(in[0]))}; });
  }
  void of(const std::string& name, const Tensors& inputs, const OnnxOptions& options,
          const WithImpl::F& f) const {
    WithImpl m;
    models.push_back(onnx_model(
        name, m, [&](const Tensors& in) { return f(m, in); }, inputs, options));
  }
};

void add_numbers(const Adder& add) {
  add.rows("scalar_products", [](const Tensor& x) { return x * 0.5 / 3; });
  add.rows("scalar_sums", [](const Tensor& x) { return 2 - (x + 1 - 0.3).add(0.2, 3); });
  add.rows("scalar_whole", [](const Tensor& x) { return 3 * x + 1; });
  add.rows("scalar_inverse", [](const Tensor& x) { return 1.5 / (x.square() + 1e-3); });
  add.rows("powers", [](const Tensor& x) { return x.pow(2) + x.pow(3) + x.abs().pow(1.7); });
  add.rows("power_of", [](const Tensor& x) { return pow(Scalar(2), x); });
  add.rows("roots", [](const Tensor& x) {
    const Tensor y = x.abs() + 0.1;
    return y.sqrt() + y.rsqrt() + y.pow(0.5) + y.log().sin().cos();
  });
  add.rows("clamps", [](const Tensor& x) {
    return x.clamp(-0.3, 0.6) + x.clamp_min(0.1) + x.clamp_max(0.2) + leaky_relu(x, 0.2);
  });
  add.rows("standardized", [](const Tensor& x) {  // a layer norm by hand
    const Tensor centred = x - x.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  });
  add.rows("reduced", [](const Tensor& x) {
    return stack({x.sum(1), x.mean(1), x.amax(1), x.amin(1), x.norm(2, 1), std::get<0>(x.max(1))},
                 1);
  });
  add.rows("cut", [](const Tensor& x) {
    const Tensors halves = x.chunk(2, 1);
    return cat({halves[1] * 2, x.slice(1, 1, 3) + 1, halves[0].sigmoid()}, 1).permute({1, 0}) + 0.5;
  });
  add.of("expanded", {onnx_numbers({3, 6})}, {}, [](WithImpl& m, const Tensors& in) {
    const Tensor x = m.fc(in[0]);
    return Tensors{x.unsqueeze(1).expand({3, 2, 4}) * 2 + x.sum()};
  });
  // A buffer, a bare parameter, and a product without a layer.
  add.of("constants", {onnx_numbers({3, 6})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           const Tensor x = m.fc(in[0]) + m.place;
           return Tensors{x * m.scale + 1,
                          functional::linear(x, m.place) + maximum(x, m.place).sum(1, true)};
         });
}

// Functions where others write modules, and modules' forward() called by name.
void add_functions(const Adder& add) {
  namespace F = functional;
  add.rows("activations", [](const Tensor& x) {
    return softplus(x, 2) + softplus(x, 1, 0.2) + gelu(x, "tanh") + silu(x) + hardtanh(x) +
           mish(x) + hardswish(x);
  });
  add.rows("strided", [](const Tensor& x) { return x.slice(1, 0, 4, 2) * 2; });
  add.of("made_constants", {onnx_numbers({3, 6})}, OnnxOptions().batch_dim(0).made_constants(true),
         [](WithImpl& m, const Tensors& in) {
           return Tensors{m.fc(in[0]) * arange(4, kFloat) + ones({4})};
         });
  add.rows("unbound", [](const Tensor& x) {
    const Tensors parts = x.unbind(1), sizes = x.split_with_sizes({1, 3}, 1);
    return parts[0] * parts[3] + sizes[1].sum(1) * sizes[0].squeeze(1);
  });
  add.of("masked", {onnx_numbers({2, 4, 4})}, OnnxOptions().batch_dim(0).made_constants(true),
         [](WithImpl& m, const Tensors& in) {
           const Tensor later = ones({4, 4}).triu(1).eq(1), x = in[0] * m.scale;
           return Tensors{x.masked_fill(later, -1e9).softmax(-1), ramet::where(later, x, x * 2)};
         });
  add.of("attention", {onnx_numbers({2, 3, 5, 4})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           const Tensor q = in[0] * m.scale, k = in[0] + 1, v = in[0] * 2;
           return Tensors{scaled_dot_product_attention(q, k, v),
                          scaled_dot_product_attention(q, k, v, {}, 0., true)};
         });
  add.of("normed", {onnx_numbers({3, 6})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           const Tensor x = m.fc->forward(in[0]);
           return Tensors{layer_norm(x, {4}, m.scale, m.place.view({4})), layer_norm(x, {4})};
         });
  // Sizes that change in place after they were read.
  add.of("turned", {onnx_numbers({4, 6})}, {}, [](WithImpl& m, const Tensors& in) {
    const Tensor y = m.fc(in[0]), z = y * 2;
    y.t_();
    return Tensors{y, y * m.scale, z};
  });
  add.of("squeezed", {onnx_numbers({1, 3, 6})}, {}, [](WithImpl& m, const Tensors& in) {
    const Tensor y = m.fc(in[0]), s = y.sum(IntArrayRef{0, 1}), v = y.view({3, 4});
    y.squeeze_(0);
    return Tensors{y * 2, s, v, y.sum(0)};
  });
  add.of("same", {onnx_numbers({2, 4, 6, 7})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           return Tensors{conv2d(in[0], m.fc->weight.view({3, 4, 1, 2}), {}, 1, "same"),
                          conv_transpose2d(in[0], m.fc->weight.view({4, 3, 1, 2}), {}, 1,
                                           IntArrayRef{0, 1}, IntArrayRef{0, 1}, 1, 2)};
         });
  // The batch's extent is read from the input.
  add.of("token", {onnx_numbers({3, 2, 4})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           const Tensor token = m.scale.view({1, 1, 4}).expand({in[0].size(0), -1, -1});
           return Tensors{cat({token, in[0]}, 1)};
         });
  add.of("tied", {onnx_numbers({3, 6})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           return Tensors{F::linear(m.fc(in[0]), m.fc->weight.t())};
         });
  add.of("images", {onnx_numbers({2, 4, 6, 6})}, OnnxOptions().batch_dim(0),
         [](WithImpl& m, const Tensors& in) {
           const Tensor weight = m.fc->weight.view({2, 4, 3, 1}), x = conv2d(in[0], weight);
           const auto up = [&x](F::InterpolateFuncOptions::mode_t mode, bool corners) {
             auto options =
                 F::InterpolateFuncOptions().mode(mode).scale_factor(std::vector<double>{2, 2});
             if (corners) options.align_corners(true);
             return F::interpolate(x, options);
           };
           return Tensors{max_pool2d(x, 2, 2) + avg_pool2d(x, 2, 2),
                          adaptive_avg_pool2d(x, {2, 3}),
                          up(kNearest, false),
                          up(kBilinear, false),
                          up(kBilinear, true),
                          conv_transpose2d(x, weight, {}, 2, 1, 1)};
         });
}

struct StatesImpl : Module {  // of a two-way LSTM, given and returned
  StatesImpl() {
    lstm = register_module("lstm", LSTM(LSTMOptions(3, 4).num_layers(2).bidirectional(true)));
    fc = register_module("fc", Linear(8, 2));
  }
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x, const Tensor& h, const Tensor& c) {
    const auto [y, states] = lstm(x, std::make_tuple(h, c));
    const auto& [last, cell] = states;
    return {y * 0.5, cell, fc(cat({last[-2], last.select(0, 3)}, 1))};
  }
  LSTM lstm{nullptr};
  Linear fc{nullptr};
};
struct LastImpl : Module {  // as classifiers of sequences are written
  LastImpl() {
    lstm = register_module("lstm", LSTM(LSTMOptions(3, 4).batch_first(true)));
    gru = register_module("gru", GRU(GRUOptions(3, 4).num_layers(2)));
    fc = register_module("fc", Linear(4, 2));
  }
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    const auto [h, c] = std::get<1>(lstm(x));
    const Tensor last = std::get<1>(gru(x.transpose(0, 1)));
    return {fc(h[-1]) + fc(c.squeeze(0)), last[-1]};
  }
  LSTM lstm{nullptr};
  GRU gru{nullptr};
  Linear fc{nullptr};
};
struct ForwardsImpl : Module {  // layers' forward() called by name
  ForwardsImpl() {
    lstm = register_module("lstm", LSTM(LSTMOptions(3, 4).num_layers(2).batch_first(true)));
    gru = register_module("gru", GRU(GRUOptions(4, 3).bias(false).bidirectional(true)));
  }
  std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& x) {
    const auto [y, states] = lstm->forward(x);
    const Tensor zero = zeros({2, 5, 3}), start = zero + x.mean();
    const auto [z, last] = gru->forward(y.transpose(0, 1), start.narrow(1, 0, x.size(0)));
    return {y, z, std::get<1>(states)};
  }
  LSTM lstm{nullptr};
  GRU gru{nullptr};
};
struct LstmForwardImpl : Module {  // of any batch
  LstmForwardImpl() {
    lstm = register_module("lstm", LSTM(LSTMOptions(3, 4).num_layers(2).batch_first(true)));
    fc = register_module("fc", Linear(4, 2));
  }
  Tensor forward(const Tensor& x) {
    return fc->forward(std::get<0>(lstm->forward(x)).select(1, -1));
  }
  LSTM lstm{nullptr};
  Linear fc{nullptr};
};
struct CellsImpl : Module {  // steps by hand
  CellsImpl() {
    rnn = register_module("rnn", RNNCell(RNNCellOptions(3, 4).nonlinearity(kReLU)));
    lstm = register_module("lstm", LSTMCell(LSTMCellOptions(4, 5).bias(false)));
    gru = register_module("gru", GRUCell(5, 2));
  }
  std::tuple<Tensor, Tensor> forward(const Tensor& x) {
    Tensor a, g;
    std::optional<std::tuple<Tensor, Tensor>> states;
    for (int64_t t = 0; t < 3; ++t) {
      a = a.defined() ? rnn(x[t], a) : rnn(x[t]);
      states = states ? lstm(a, states) : lstm(a);
      g = g.defined() ? gru(std::get<0>(*states), g) : gru(std::get<0>(*states));
    }
    return {g, std::get<1>(*states)};
  }
  RNNCell rnn{nullptr};
  LSTMCell lstm{nullptr};
  GRUCell gru{nullptr};
};

void add_states(const Adder& add) {
  add("states", std::make_shared<StatesImpl>(),
      {onnx_numbers({5, 2, 3}), onnx_numbers({4, 2, 4}), onnx_numbers({4, 2, 4}, 1)});
  add("last_states", std::make_shared<LastImpl>(), {onnx_numbers({2, 5, 3})},
      OnnxOptions().batch_dim(0));
  add("forwards", std::make_shared<ForwardsImpl>(), {onnx_numbers({2, 5, 3})},
      OnnxOptions().made_constants(true));
  add("lstm_forward", std::make_shared<LstmForwardImpl>(), {onnx_numbers({2, 5, 3})},
      OnnxOptions().batch_dim(0));
  add("cells", std::make_shared<CellsImpl>(), {onnx_numbers({3, 2, 3})});
}

void add_weighted(const Adder& add) {
  EmbeddingBag weighted(EmbeddingBagOptions(7, 3).mode(kSum));
  add.models.push_back(
      onnx_model("EmbeddingBag_weights", *weighted,
                 [&](const Tensors& in) { return Tensors{weighted(in[0], Tensor(), in[1])}; },
                 {tensor({{0, 6, 2}, {1, 1, 5}}), onnx_numbers({2, 3})}, {}));
}

}  // namespace

void add_onnx_models_between(std::vector<OnnxModel>& models) {
  const Adder add{models};
  add_numbers(add);
  add_functions(add);
  add_states(add);
  add_weighted(add);
}

}  // namespace ramet::testing
