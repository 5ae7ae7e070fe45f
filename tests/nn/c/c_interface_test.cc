// The C interface compared with the C++ one: the same bits, and which of them owns what memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "autograd/ops.h"
#include "nn/c/c.h"
#include "nn/c/layers_internal.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/optim/adam.h"
#include "nn/optim/lbfgs.h"
#include "nn/serialize/safetensors.h"
#include "runtime/devices/generator.h"
#include "tests/error_text.h"
#include "tests/modules.h"
#include "tests/nn/c/c_support.h"
#include "tests/nn/c/twins.h"

namespace ramet {
namespace {

using namespace nn;

using CMemory = CInterface;

// ---- the same bits as C++ -----------------------------------------------------------------------

void expect_same(const std::vector<double>& got, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::memcmp(&got[i], &expected[i], sizeof(double)), 0)
        << "step " << i << ": " << got[i] << " in C, " << expected[i] << " in C++";
}

TEST_F(CInterface, TrainsWithTheBitsOfCxx) {
  Tasks tasks;
  for (const Twin& twin : tasks.all()) {
    SCOPED_TRACE(twin.name);
    const std::vector<double> expected = losses_of(twin);
    EXPECT_LT(expected.back(), expected.front()) << "a task that learns nothing shows nothing";
    std::vector<double> losses(expected.size());
    ASSERT_EQ(c99_train(&twin.task, losses.data()), RAMET_OK) << last();
    expect_same(losses, expected);
  }
}

// An LSTM's last output, computed step by step in C++.
TEST_F(CInterface, RecurrentLayers) {
  Tasks tasks;
  std::vector<float> goals = waves<float>(5, 0.7);
  const c99_task task = {
      R"({"layers": [{"type": "LSTM", "input_size": 3, "hidden_size": 6, "num_layers": 2, "batch_first": true,
          "output": "last"}, {"type": "Linear", "in_features": 6, "out_features": 1}]})",
      "Adam",
      R"({"lr": 0.01})",
      data_of(tasks.series.data(), RAMET_FLOAT32, {5, 7, 3}),
      data_of(goals.data(), RAMET_FLOAT32, {5, 1}),
      C99_HUBER,
      8,
      nullptr};
  std::vector<double> losses(8);
  ASSERT_EQ(c99_train(&task, losses.data()), RAMET_OK) << last();
  manual_seed(7);
  LSTM lstm(LSTMOptions(3, 6).num_layers(2).batch_first(true));
  Linear head(6, 1);
  std::vector<Tensor> parameters = lstm->parameters();
  for (const Tensor& p : head->parameters()) parameters.push_back(p);
  optim::Adam adam(parameters, optim::AdamOptions(0.01));
  const Tensor x = tensor_over(task.input, kFloat32), y = tensor_over(task.target, kFloat32);
  std::vector<double> expected;
  for (int i = 0; i < 8; ++i) {
    adam.zero_grad();
    const Tensor out = std::get<0>(lstm(x)).select(1, -1);
    const Tensor loss = huber_loss(head(out), y, Reduction::Mean, 0.25);
    expected.push_back(loss.item<double>());
    loss.backward();
    adam.step();
  }
  expect_same(losses, expected);
}

TEST_F(CInterface, GoesOnFromFiles) {
  Tasks tasks;
  for (const Twin& twin : {tasks.all()[0], tasks.all()[2]}) {
    SCOPED_TRACE(twin.name);
    const File module("module"), optimizer("optimizer"), whole("whole");
    std::vector<double> losses(static_cast<size_t>(twin.task.steps));
    ASSERT_EQ(c99_train_in_two_halves(&twin.task, module.path.c_str(), optimizer.path.c_str(),
                                      losses.data()),
              RAMET_OK)
        << last();
    expect_same(losses, losses_of(twin));
    // The file has PyTorch's names and the parameters of the C++ version.
    c99_task task = twin.task;
    task.weights = whole.path.c_str();
    ASSERT_EQ(c99_train(&task, losses.data()), RAMET_OK) << last();
    manual_seed(7);
    Sequential net = twin.make();
    const auto file = serialize::load_safetensors(whole.path);
    EXPECT_EQ(file.tensors.size(), net->named_parameters().size());
    for (const auto& item : net->named_parameters()) {
      ASSERT_NE(file.find(item.key()), nullptr) << item.key();
      EXPECT_EQ(file.find(item.key())->sizes(), item.value().sizes());
    }
  }
}

TEST_F(CInterface, LbfgsByAClosure) {
  Tasks tasks;
  c99_task task = tasks.all()[0].task;
  task.optimizer = "LBFGS", task.options = R"({"max_iter": 6, "line_search_fn": "strong_wolfe"})";
  double losses[2];
  ASSERT_EQ(c99_lbfgs(&task, losses), RAMET_OK) << last();
  manual_seed(7);
  Sequential net = Ordered{Linear(3, 16), Tanh(), Linear(16, 2)}.net;
  optim::LBFGS lbfgs(net->parameters(),
                     optim::LBFGSOptions().max_iter(6).line_search_fn("strong_wolfe"));
  const Tensor x = tensor_over(task.input, kFloat32), y = tensor_over(task.target, kFloat32);
  const auto closure = [&] {
    lbfgs.zero_grad();
    const Tensor loss = mse_loss(net->forward(x), y);
    loss.backward();
    return loss;
  };
  const double first = lbfgs.step(closure).item<double>();
  expect_same({losses[0], losses[1]}, {first, closure().item<double>()});
  EXPECT_LT(losses[1], losses[0]);
}

// Each by its name: a step changes the weights, and its file is read again.
TEST_F(CInterface, EveryOptimizer) {
  const int64_t sizes[2] = {2, 2};
  for (const char* name : {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax",
                           "NAdam", "RAdam", "ASGD", "Rprop", "Lion", "Muon"}) {
    SCOPED_TRACE(name);
    const File file(name);
    ramet_module* net = ramet_module_new(
        R"({"type": "Linear", "in_features": 2, "out_features": 2, "bias": false})", nullptr);
    ramet_optimizer *one = ramet_optimizer_new(net, name, R"({"lr": 0.25})"),
                    *two = ramet_optimizer_new(net, name, R"({"lr": 0.5})");
    ramet_tensor *x = ramet_tensor_randn(RAMET_FLOAT32, 2, sizes),
                 *y = ramet_module_forward(net, x), *loss = ramet_tensor_sum(y),
                 *weight = ramet_module_parameter(net, "weight");
    ASSERT_TRUE(net && one && two && x && y && loss && weight) << last();
    float before[4], after[4];
    double lr = 0;
    ASSERT_EQ(ramet_tensor_copy_out(weight, before, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
    EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
    EXPECT_EQ(ramet_optimizer_step(one), RAMET_OK) << last();
    ASSERT_EQ(ramet_tensor_copy_out(weight, after, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
    EXPECT_NE(std::memcmp(before, after, sizeof(before)), 0);
    EXPECT_EQ(ramet_optimizer_save(one, file.path.c_str()), RAMET_OK) << last();
    EXPECT_EQ(ramet_optimizer_load(two, file.path.c_str()), RAMET_OK) << last();
    EXPECT_EQ(ramet_optimizer_get_lr(two, &lr), RAMET_OK);
    EXPECT_EQ(lr, 0.25);
    for (ramet_tensor* t : {x, y, loss, weight}) ramet_tensor_free(t);
    ramet_optimizer_free(one);
    ramet_optimizer_free(two);
    ramet_module_free(net);
  }
}

TEST_F(CInterface, ParametersAreReadThroughPointers) {
  Tasks tasks;
  const Twin twin = tasks.all()[0];
  int64_t elements;
  double data, grad, expected_data = 0, expected_grad = 0;
  ASSERT_EQ(c99_walk(&twin.task, &elements, &data, &grad), RAMET_OK) << last();
  manual_seed(7);
  Sequential net = twin.make();
  twin.loss(net->forward(tensor_over(twin.task.input, kFloat32)),
            tensor_over(twin.task.target, kFloat32))
      .backward();
  for (const Tensor& p : net->parameters()) {
    expected_data += p.detach().to(kFloat64).abs().sum().item<double>();
    expected_grad += p.grad().to(kFloat64).abs().sum().item<double>();
  }
  EXPECT_EQ(elements, 3 * 16 + 16 + 16 * 2 + 2);
  EXPECT_NEAR(data, expected_data, 1e-12 * expected_data);
  EXPECT_NEAR(grad, expected_grad, 1e-12 * expected_grad);
}

// ---- modules ------------------------------------------------------------------------------------

std::string printed(const Module& module) {
  std::ostringstream text;
  text << module;
  return text.str();
}
// Of a recurrent module its output.
Tensor output(AnyModule& module, const Tensor& x) {
  AnyValue y = module.any_forward(x);
  if (const Tensor* t = y.try_get<Tensor>()) return *t;
  if (auto* t = y.try_get<std::tuple<Tensor, Tensor>>()) return std::get<0>(*t);
  return std::get<0>(y.get<std::tuple<Tensor, std::tuple<Tensor, Tensor>>>());
}

TEST_F(CInterface, EveryModuleIsThatOfCxx) {
  std::set<std::string> seen;
  for (const testing::ModuleExample& row : testing::module_examples()) {
    if (!row.json) continue;
    SCOPED_TRACE(row.json);
    manual_seed(3);
    const std::shared_ptr<Module> expected = row.made();
    const std::vector<int64_t> sizes = row.c_input.shape();
    const Tensor x = row.c_input.kind == testing::Input::kIndex
                         ? randint(0, 9, sizes, TensorOptions().dtype(kInt64))
                         : randn(sizes);
    manual_seed(3);
    AnyModule got = c::module_of_json("test", row.json);
    EXPECT_EQ(printed(*got.ptr()), printed(*expected));
    seen.insert(row.type);
    const auto names = expected->named_parameters();
    EXPECT_EQ(got.ptr()->named_parameters().keys(), names.keys());
    // Training too: dropout and batch norms.
    for (const bool training : {true, false}) {
      expected->train(training);
      got.ptr()->train(training);
      manual_seed(4);
      const Tensor y = row.call(*expected, {x.clone()})[0];
      manual_seed(4);
      EXPECT_TRUE(equal(output(got, x.clone()), y));
    }
  }
  for (const c::Layer& layer : c::all_layers())
    EXPECT_TRUE(seen.count(layer.type)) << "no row for " << layer.type;
}

// ---- memory -------------------------------------------------------------------------------------

TEST_F(CMemory, ColumnMajorIsTheSameIndex) {
  // Fortran's a(2, 3): a(i, j) = 10 i + j.
  double a[6] = {11, 21, 12, 22, 13, 23};
  const int64_t sizes[2] = {2, 3};
  ramet_tensor* t = ramet_tensor_from_column_major(a, RAMET_FLOAT64, 2, sizes);
  ASSERT_NE(t, nullptr) << last();
  int64_t strides[2];
  EXPECT_EQ(ramet_tensor_strides(t, strides, 2), RAMET_OK);
  EXPECT_EQ(strides[0], 1);
  EXPECT_EQ(strides[1], 2);
  double rows[6] = {};
  EXPECT_EQ(ramet_tensor_copy_out(t, rows, RAMET_FLOAT64, 2, sizes, nullptr), RAMET_OK) << last();
  const double expected[6] = {11, 12, 13, 21, 22, 23};
  EXPECT_EQ(std::memcmp(rows, expected, sizeof(rows)), 0);
  // And back: rows in, columns out, with a cast.
  const float more[6] = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(ramet_tensor_copy_in(t, more, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK) << last();
  EXPECT_EQ(a[0], 1);
  EXPECT_EQ(a[1], 4);
  EXPECT_EQ(a[2], 2);
  void* data = nullptr;
  EXPECT_EQ(ramet_tensor_data(t, RAMET_FLOAT64, &data), RAMET_OK);
  EXPECT_EQ(data, a) << "it is the caller's memory";
  ramet_tensor_free(t);
}

TEST_F(CMemory, ADeleterRunsWhenNothingShowsTheMemory) {
  int freed = 0;
  const auto deleter = [](void* context) { ++*static_cast<int*>(context); };
  float values[4] = {1, 2, 3, 4};
  const int64_t sizes[1] = {4};
  ramet_tensor* t =
      ramet_tensor_from_owned_memory(values, RAMET_FLOAT32, 1, sizes, nullptr, deleter, &freed);
  ASSERT_NE(t, nullptr) << last();
  ramet_tensor* part = ramet_tensor_narrow(t, 0, 1, 2);
  ASSERT_NE(part, nullptr) << last();
  ramet_tensor_free(t);
  EXPECT_EQ(freed, 0);
  ramet_tensor_free(part);
  EXPECT_EQ(freed, 1);
  // What fails takes nothing.
  const int64_t bad[1] = {-4};
  EXPECT_EQ(ramet_tensor_from_owned_memory(values, RAMET_FLOAT32, 1, bad, nullptr, deleter, &freed),
            nullptr);
  EXPECT_EQ(ramet_tensor_from_owned_memory(values, 99, 1, sizes, nullptr, deleter, &freed),
            nullptr);
  EXPECT_EQ(freed, 1);
}

TEST_F(CMemory, EveryDtypeGoesInAndOut) {
  const int64_t sizes[2] = {2, 2};
  const float values[4] = {0, 1, 3, 100};
  for (const int dtype :
       {RAMET_UINT8, RAMET_INT8, RAMET_INT16, RAMET_INT32, RAMET_INT64, RAMET_FLOAT16,
        RAMET_FLOAT32, RAMET_FLOAT64, RAMET_BOOL, RAMET_BFLOAT16}) {
    SCOPED_TRACE(dtype);
    ramet_tensor* t = ramet_tensor_zeros(dtype, 2, sizes);
    ASSERT_NE(t, nullptr) << last();
    int is = -1;
    EXPECT_EQ(ramet_tensor_dtype(t, &is), RAMET_OK);
    EXPECT_EQ(is, dtype);
    EXPECT_EQ(ramet_tensor_copy_in(t, values, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK)
        << last();
    float out[4];
    EXPECT_EQ(ramet_tensor_copy_out(t, out, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK) << last();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], dtype == RAMET_BOOL ? values[i] != 0 : values[i]);
    ramet_tensor_free(t);
  }
}

TEST_F(CMemory, ZeroDimAndEmpty) {
  double value = 0;
  float one = 2.5f;
  ramet_tensor* t = ramet_tensor_from_memory(&one, RAMET_FLOAT32, 0, nullptr, nullptr);
  ASSERT_NE(t, nullptr) << last();
  EXPECT_EQ(ramet_tensor_item(t, &value), RAMET_OK);
  EXPECT_EQ(value, 2.5);
  one = 3;
  EXPECT_EQ(ramet_tensor_item(t, &value), RAMET_OK);
  EXPECT_EQ(value, 3);
  ramet_tensor_free(t);
  const int64_t none[2] = {0, 3};
  t = ramet_tensor_from_memory(nullptr, RAMET_FLOAT32, 2, none, nullptr);
  ASSERT_NE(t, nullptr) << last();
  EXPECT_EQ(ramet_tensor_copy_out(t, nullptr, RAMET_FLOAT32, 2, none, nullptr), RAMET_OK) << last();
  int64_t numel = -1;
  EXPECT_EQ(ramet_tensor_numel(t, &numel), RAMET_OK);
  EXPECT_EQ(numel, 0);
  EXPECT_EQ(ramet_tensor_item(t, &value), RAMET_INVALID);
  ramet_tensor_free(t);
}

TEST_F(CMemory, PointersStayWhereTheyAre) {
  ramet_module* net = ramet_module_new(
      R"({"layers": [{"type": "Linear", "in_features": 3, "out_features": 2}, {"type": "BatchNorm1d", "num_features": 2}]})",
      nullptr);
  ASSERT_NE(net, nullptr) << last();
  ramet_tensor* weight = ramet_module_parameter(net, "0.weight");
  void *before, *after;
  ASSERT_EQ(ramet_tensor_data(weight, RAMET_FLOAT32, &before), RAMET_OK) << last();
  ramet_optimizer* sgd = ramet_optimizer_new(net, "SGD", R"({"lr": 1})");
  ASSERT_NE(sgd, nullptr) << last();
  ASSERT_EQ(ramet_tensor_data(weight, RAMET_FLOAT32, &after), RAMET_OK) << last();
  EXPECT_EQ(before, after) << "an optimizer moved the parameters";
  // A step by hand through the pointers: weight -= 1 * gradient.
  const int64_t sizes[2] = {4, 3}, weights[2] = {2, 3};
  ramet_tensor *x = ramet_tensor_randn(RAMET_FLOAT32, 2, sizes), *y = ramet_module_forward(net, x),
               *square = ramet_tensor_mul(y, y), *cube = ramet_tensor_mul(square, y),
               *loss = ramet_tensor_sum(cube);
  ASSERT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
  ramet_tensor* gradient = ramet_tensor_grad(weight);
  float was[6], slope[6], is[6];
  ASSERT_EQ(ramet_tensor_copy_out(weight, was, RAMET_FLOAT32, 2, weights, nullptr), RAMET_OK);
  ASSERT_EQ(ramet_tensor_copy_out(gradient, slope, RAMET_FLOAT32, 2, weights, nullptr), RAMET_OK);
  ASSERT_EQ(ramet_optimizer_step(sgd), RAMET_OK) << last();
  std::memcpy(is, before, sizeof(is));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(is[i], was[i] - slope[i]);
  // Zeros where they lie.
  ASSERT_EQ(ramet_module_zero_grad(net, 0), RAMET_OK);
  ASSERT_EQ(ramet_tensor_copy_out(gradient, slope, RAMET_FLOAT32, 2, weights, nullptr), RAMET_OK);
  for (const float g : slope) EXPECT_EQ(g, 0);
  // The parameter's handle outlives its module.
  ramet_module_free(net);
  ramet_optimizer_free(sgd);
  EXPECT_EQ(ramet_tensor_copy_out(weight, is, RAMET_FLOAT32, 2, weights, nullptr), RAMET_OK);
  for (ramet_tensor* t : {weight, x, y, square, cube, loss, gradient}) ramet_tensor_free(t);
}

TEST_F(CMemory, AdjointsGoThrough) {
  // d(sum(g * (x W^T))) / dx = g W, with W by pointer and float64.
  ramet_module* net = ramet_module_new(
      R"({"type": "Linear", "in_features": 2, "out_features": 3, "bias": false, "dtype": "float64"})",
      nullptr);
  ASSERT_NE(net, nullptr) << last();
  double x[2] = {0.5, -2}, g[3] = {1, 10, 100}, dx[2];
  const int64_t in[2] = {1, 2}, out[2] = {1, 3};
  ramet_tensor *input = ramet_tensor_from_memory(x, RAMET_FLOAT64, 2, in, nullptr),
               *adjoint = ramet_tensor_from_memory(g, RAMET_FLOAT64, 2, out, nullptr);
  ASSERT_EQ(ramet_tensor_set_requires_grad(input, 1), RAMET_OK) << last();
  ramet_tensor* y = ramet_module_forward(net, input);
  ASSERT_EQ(ramet_tensor_backward(y, adjoint), RAMET_OK) << last();
  ramet_tensor *gradient = ramet_tensor_grad(input),
               *weight = ramet_module_parameter(net, "weight");
  void* w;
  ASSERT_EQ(ramet_tensor_data(weight, RAMET_FLOAT64, &w), RAMET_OK) << last();
  ASSERT_EQ(ramet_tensor_copy_out(gradient, dx, RAMET_FLOAT64, 2, in, nullptr), RAMET_OK) << last();
  for (int j = 0; j < 2; ++j) {
    double sum = 0;
    for (int i = 0; i < 3; ++i) sum += g[i] * static_cast<const double*>(w)[i * 2 + j];
    EXPECT_NEAR(dx[j], sum, 1e-13);
  }
  // Without recording there is nothing to go back through.
  int before = -1;
  EXPECT_EQ(ramet_set_grad_enabled(0, &before), RAMET_OK);
  EXPECT_EQ(before, 1);
  ramet_tensor* z = ramet_module_forward(net, input);
  EXPECT_EQ(ramet_set_grad_enabled(1, nullptr), RAMET_OK);
  EXPECT_EQ(ramet_tensor_backward(z, adjoint), RAMET_INVALID);
  for (ramet_tensor* t : {input, adjoint, y, gradient, weight, z}) ramet_tensor_free(t);
  ramet_module_free(net);
}

TEST_F(CMemory, ClonesAndAssigns) {
  ramet_module* net = ramet_module_new(
      R"({"layers": [{"type": "Linear", "in_features": 2, "out_features": 2}, {"type": "BatchNorm1d", "num_features": 2}]})",
      nullptr);
  ASSERT_NE(net, nullptr) << last();
  const int64_t sizes[2] = {3, 2};
  ramet_tensor *x = ramet_tensor_randn(RAMET_FLOAT32, 2, sizes), *y = ramet_module_forward(net, x);
  ASSERT_EQ(ramet_module_train(net, 0), RAMET_OK);
  ramet_module* copy = ramet_module_clone(net);
  ASSERT_NE(copy, nullptr) << last();
  int training = -1;
  EXPECT_EQ(ramet_module_is_training(copy, &training), RAMET_OK);
  EXPECT_EQ(training, 0);
  ramet_tensor *one = ramet_module_forward(net, x), *two = ramet_module_forward(copy, x);
  float a[6], b[6];
  ASSERT_EQ(ramet_tensor_copy_out(one, a, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK) << last();
  ASSERT_EQ(ramet_tensor_copy_out(two, b, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK) << last();
  EXPECT_EQ(std::memcmp(a, b, sizeof(a)), 0) << "parameters and running statistics are the copy's";
  ramet_tensor *w = ramet_module_parameter(copy, "0.weight"),
               *mean = ramet_module_parameter(net, "1.running_mean"),
               *zero = ramet_tensor_zeros(RAMET_FLOAT32, 0, nullptr);
  ASSERT_EQ(ramet_tensor_assign(w, zero), RAMET_OK) << last();
  ramet_tensor* third = ramet_module_forward(net, x);
  ASSERT_EQ(ramet_tensor_copy_out(third, b, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
  EXPECT_EQ(std::memcmp(a, b, sizeof(a)), 0) << "a copy shares no memory";
  ASSERT_EQ(ramet_module_assign(copy, net), RAMET_OK) << last();
  ramet_tensor* fourth = ramet_module_forward(copy, x);
  ASSERT_EQ(ramet_tensor_copy_out(fourth, b, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
  EXPECT_EQ(std::memcmp(a, b, sizeof(a)), 0);
  for (ramet_tensor* t : {x, y, one, two, w, mean, zero, third, fourth}) ramet_tensor_free(t);
  ramet_module_free(net);
  ramet_module_free(copy);
}

TEST_F(CInterface, LibraryState) {
  int before = 0, now = 0;
  EXPECT_EQ(ramet_c_version(), RAMET_C_VERSION);
  EXPECT_GT(std::strlen(ramet_version()), 0u);
  ASSERT_EQ(ramet_get_num_threads(&before), RAMET_OK);
  ASSERT_EQ(ramet_set_num_threads(3), RAMET_OK);
  EXPECT_EQ(ramet_get_num_threads(&now), RAMET_OK);
  EXPECT_EQ(now, 3);
  ASSERT_EQ(ramet_set_num_threads(before), RAMET_OK);
}

}  // namespace
}  // namespace ramet
