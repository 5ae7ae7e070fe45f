#include "tests/nn/c/twins.h"

#include "autograd/ops.h"
#include "nn/c/c.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/sgd.h"
#include "runtime/devices/generator.h"

namespace ramet {

using namespace nn;

c99_data data_of(void* data, int dtype, std::vector<int64_t> sizes) {
  c99_data made = {dtype, static_cast<int64_t>(sizes.size()), {}, data};
  std::copy(sizes.begin(), sizes.end(), made.sizes);
  return made;
}
Tensor tensor_over(const c99_data& d, ScalarType type) {
  return from_blob(d.data, {d.sizes, static_cast<size_t>(d.dim)}, TensorOptions().dtype(type));
}

std::vector<double> losses_of(const Twin& twin) {
  manual_seed(7);
  Sequential net = twin.make();
  const auto optimizer = twin.optimizer(net->parameters());
  const Tensor x = tensor_over(twin.task.input, twin.input);
  const Tensor target = tensor_over(twin.task.target, twin.target);
  std::vector<double> losses;
  for (int i = 0; i < twin.task.steps; ++i) {
    optimizer->zero_grad();
    const Tensor loss = twin.loss(net->forward(x), target);
    losses.push_back(loss.item<double>());
    loss.backward();
    optimizer->step();
  }
  return losses;
}

std::vector<Twin> Tasks::all() {
  for (const float v : values) halves.push_back(v > 0 ? 0.9f : 0.2f);
  std::vector<Twin> twins;
  twins.push_back(
      {"a perceptron, Adam",
       {R"({"layers": [{"type": "Linear", "in_features": 3, "out_features": 16}, {"type": "Tanh"},
             {"type": "Linear", "in_features": 16, "out_features": 2}]})",
        "Adam", R"({"lr": 0.02, "betas": [0.8, 0.95]})",
        data_of(points.data(), RAMET_FLOAT32, {16, 3}),
        data_of(values.data(), RAMET_FLOAT32, {16, 2}), C99_MSE, 12, nullptr},
       kFloat32,
       kFloat32,
       [] {
         return Ordered{Linear(3, 16), Tanh(), Linear(16, 2)}.net;
       },
       [](std::vector<Tensor> p) {
         return std::make_unique<optim::Adam>(std::move(p),
                                              optim::AdamOptions(0.02).betas({0.8, 0.95}));
       },
       [](const Tensor& y, const Tensor& t) { return mse_loss(y, t); }});
  twins.push_back(
      {"a convolution with batch norm and dropout, SGD",
       {R"({"layers": [
             {"type": "Conv2d", "in_channels": 2, "out_channels": 4, "kernel_size": [3, 5], "padding": "same",
              "padding_mode": "reflect", "bias": false},
             {"type": "BatchNorm2d", "num_features": 4, "momentum": 0.3}, {"type": "ReLU", "inplace": true},
             {"type": "MaxPool2d", "kernel_size": 2, "stride": [2, 1]},
             {"layers": [{"type": "Dropout", "p": 0.25}, {"type": "Flatten"}]},
             {"type": "Linear", "in_features": 112, "out_features": 4}]})",
        "SGD", R"({"lr": 0.1, "momentum": 0.9, "nesterov": true})",
        data_of(images.data(), RAMET_FLOAT32, {6, 2, 8, 8}),
        data_of(classes.data(), RAMET_INT64, {6}), C99_CROSS_ENTROPY, 8, nullptr},
       kFloat32,
       kInt64,
       [] {
         return Ordered{
             Conv2d(Conv2dOptions(2, 4, {3, 5}).padding(kSame).padding_mode(kReflect).bias(false)),
             BatchNorm2d(BatchNorm2dOptions(4).momentum(0.3)),
             ReLU(true),
             MaxPool2d(MaxPool2dOptions(2).stride({2, 1})),
             Ordered{Dropout(0.25), Flatten()}.net,
             Linear(112, 4)}
             .net;
       },
       [](std::vector<Tensor> p) {
         return std::make_unique<optim::SGD>(std::move(p),
                                             optim::SGDOptions(0.1).momentum(0.9).nesterov(true));
       },
       [](const Tensor& y, const Tensor& t) {
         return cross_entropy_loss(y, t, {}, Reduction::Mean, -100, 0.1);
       }});
  twins.push_back(
      {"a float64 perceptron, RMSprop",
       {R"({"dtype": "float64", "layers": [{"type": "Linear", "in_features": 3, "out_features": 5},
             {"type": "GELU", "approximate": "tanh"}, {"type": "LayerNorm", "normalized_shape": [5]},
             {"type": "Linear", "in_features": 5, "out_features": 1}]})",
        "RMSprop", R"({"centered": true})", data_of(doubles.data(), RAMET_FLOAT64, {16, 3}),
        data_of(wanted.data(), RAMET_FLOAT64, {16, 1}), C99_L1, 10, nullptr},
       kFloat64,
       kFloat64,
       [] {
         Sequential net = Ordered{Linear(3, 5), GELU(GELUOptions().approximate("tanh")),
                                  LayerNorm(LayerNormOptions({5})), Linear(5, 1)}
                              .net;
         net->to(kFloat64);
         return net;
       },
       [](std::vector<Tensor> p) {
         return std::make_unique<optim::RMSprop>(std::move(p),
                                                 optim::RMSpropOptions().centered(true));
       },
       [](const Tensor& y, const Tensor& t) { return l1_loss(y, t, Reduction::Sum); }});
  twins.push_back(
      {"probabilities, Adagrad",
       {R"({"layers": [{"type": "Linear", "in_features": 3, "out_features": 2}, {"type": "Sigmoid"}]})",
        "Adagrad", R"({"lr": 0.5, "lr_decay": 0.1})",
        data_of(points.data(), RAMET_FLOAT32, {16, 3}),
        data_of(halves.data(), RAMET_FLOAT32, {16, 2}), C99_BCE, 6, nullptr},
       kFloat32,
       kFloat32,
       [] {
         return Ordered{Linear(3, 2), Sigmoid()}.net;
       },
       [](std::vector<Tensor> p) {
         return std::make_unique<optim::Adagrad>(std::move(p),
                                                 optim::AdagradOptions(0.5).lr_decay(0.1));
       },
       [](const Tensor& y, const Tensor& t) { return binary_cross_entropy(y, t); }});
  twins.push_back(
      {"logits, AdamW by its defaults",
       {R"({"layers": [{"type": "Linear", "in_features": 3, "out_features": 2}]})", "AdamW",
        nullptr, data_of(points.data(), RAMET_FLOAT32, {16, 3}),
        data_of(halves.data(), RAMET_FLOAT32, {16, 2}), C99_BCE_WITH_LOGITS, 6, nullptr},
       kFloat32,
       kFloat32,
       [] { return Ordered{Linear(3, 2)}.net; },
       [](std::vector<Tensor> p) { return std::make_unique<optim::AdamW>(std::move(p)); },
       [](const Tensor& y, const Tensor& t) { return binary_cross_entropy_with_logits(y, t); }});
  return twins;
}

}  // namespace ramet
