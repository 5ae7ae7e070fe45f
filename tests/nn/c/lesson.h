// A net, its data and its Adam, in C and the same in C++, for tests of 16 bits.
#pragma once
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/ops.h"
#include "nn/c/c.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "runtime/devices/generator.h"
#include "tests/nn/c/c_support.h"

namespace ramet::nn {
namespace {

constexpr const char* kNet =
    R"({"layers": [{"type": "Linear", "in_features": 4, "out_features": 8}, {"type": "Tanh"},
                   {"type": "Linear", "in_features": 8, "out_features": 2}]})";

// The values of a matrix, which is freed.
inline std::vector<float> taken_out(ramet_tensor* t, int64_t rows, int64_t columns) {
  std::vector<float> out(static_cast<size_t>(rows * columns));
  const int64_t sizes[2] = {rows, columns};
  EXPECT_EQ(ramet_tensor_copy_out(t, out.data(), RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK)
      << last();
  ramet_tensor_free(t);
  return out;
}

// A net with 4 inputs, data for it, and its Adam.
struct Lesson {
  explicit Lesson(const char* json = kNet, int dtype = RAMET_FLOAT32) {
    const int64_t in[2] = {6, 4}, out[2] = {6, 2};
    ramet_manual_seed(5);
    net = ramet_module_new(json, nullptr);
    x = ramet_tensor_randn(dtype, 2, in);
    y = ramet_tensor_randn(RAMET_FLOAT32, 2, out);
    adam = ramet_optimizer_new(net, "Adam", R"({"lr": 0.01})");
  }
  ~Lesson() {
    ramet_optimizer_free(adam);
    ramet_tensor_free(x);
    ramet_tensor_free(y);
    ramet_module_free(net);
  }
  // The loss of the net as it is; its backward pass has run, over the loss times the scale.
  double backward(ramet_grad_scaler* scaler = nullptr) {
    ramet_tensor *out = ramet_module_forward(net, x), *wide = ramet_tensor_to(out, RAMET_FLOAT32),
                 *loss = ramet_mse_loss(wide, y, RAMET_MEAN),
                 *scaled = scaler ? ramet_grad_scaler_scale(scaler, loss) : nullptr;
    double value = std::nan("");
    EXPECT_EQ(ramet_tensor_item(loss, &value), RAMET_OK) << last();
    EXPECT_EQ(ramet_tensor_backward(scaler ? scaled : loss, nullptr), RAMET_OK) << last();
    for (ramet_tensor* t : {out, wide, loss, scaled}) ramet_tensor_free(t);
    return value;
  }
  std::vector<float> values(const char* name) const {
    return taken_out(ramet_module_parameter(net, name), 8, 4);
  }
  ramet_module* net;
  ramet_tensor *x, *y;
  ramet_optimizer* adam;
};

// The same in C++.
struct CxxLesson {
  explicit CxxLesson(ScalarType dtype = kFloat32) {
    manual_seed(5);
    net->push_back(Linear(4, 8)), net->push_back(Tanh()), net->push_back(Linear(8, 2));
    net->to(dtype);
    x = randn({6, 4}, dtype), y = randn({6, 2});
  }
  Tensor loss() { return mse_loss(net->forward(x).to(kFloat32), y); }
  Sequential net;
  Tensor x, y;
};

struct CMixedPrecision : CInterface {
  void TearDown() override {
    CInterface::TearDown();
    int on = -1;
    EXPECT_EQ(ramet_autocast_get(RAMET_CPU, &on, nullptr), RAMET_OK);
    EXPECT_EQ(on, 0);
    EXPECT_EQ(ramet_autocast_leave(), RAMET_INVALID) << "a test has left a region open";
  }
};

}  // namespace
}  // namespace ramet::nn
