// Everything that a caller in C can do wrong: a status and a text.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

#include "autograd/ops.h"
#include "nn/c/c.h"
#include "nn/serialize/safetensors.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/pool.h"
#include "tests/error_text.h"
#include "tests/nn/c/c_support.h"
#include "tests/nn/c/twins.h"

namespace ramet {
namespace {

using namespace nn;

// Allocations are counted from the start, so that they can be made to fail (runtime/memory/pool.h).
[[maybe_unused]] const int g_set = setenv("RAMET_FAIL_ALLOC", "0", 1);

struct CErrors : CInterface {};

// Each allocation of a tensor fails once: a status, a text, and no handle is left.
TEST_F(CErrors, OfMemoryThatIsNotThere) {
  Tasks tasks;
  c99_task task = tasks.all()[1].task;
  task.steps = 2;
  int failures = 0;
  for (uint64_t n = 1; n < 2000; ++n) {
    double losses[2];
    pool::fail_allocation_after(n);
    const int status = c99_train(&task, losses);
    pool::fail_allocation_after(0);
    EXPECT_EQ(live(), before_) << n;
    if (status == RAMET_OK) break;
    ++failures;
    EXPECT_NE(last(), "");
  }
  EXPECT_GT(failures, 20);
}

TEST_F(CErrors, OfOptimizers) {
  ramet_module* net =
      ramet_module_new(R"({"type": "Linear", "in_features": 2, "out_features": 1})", nullptr);
  ASSERT_NE(net, nullptr) << last();
  const struct {
    const char *name, *options, *part;
  } cases[] = {
      {"Adamm", nullptr, "expected one of the optimizers that ramet/c.h lists, got \"Adamm\""},
      {"SGD", nullptr, "lr: SGD needs this option, got nothing"},
      {"SGD", R"({"lr": "fast"})", "lr: expected a number, got \"fast\""},
      {"SGD", R"({"lr": -1})", "Invalid learning rate"},
      {"SGD", R"({"lr": 1, "nesterov": true})", "Nesterov momentum requires a momentum"},
      {"Adam", R"({"betas": [0.9]})", "betas: expected a list of 2 numbers, got [0.9]"},
      {"Adam", R"({"betas": [0.9, true]})", "betas[1]: expected a number, got true"},
      {"Adam", R"({"beta1": 0.9})",
       "beta1: no such option of Adam, which has lr, betas, eps, weight_decay, amsgrad"},
      {"Adam", "3", "the text: expected an object, got 3"},
      {"LBFGS", R"({"max_eval": 2.5})", "max_eval: expected an integer, got 2.5"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ramet_optimizer_new(net, c.name, c.options), nullptr) << c.name;
    expect_part(last(), c.part);
  }
  EXPECT_EQ(ramet_optimizer_new(net, nullptr, nullptr), nullptr);
  expect_part(last(), "name: expected a text, got NULL");
  ramet_optimizer* lbfgs = ramet_optimizer_new(net, "LBFGS", nullptr);
  EXPECT_EQ(ramet_optimizer_step(lbfgs), RAMET_INVALID);
  expect_part(last(), "ramet_optimizer_step_closure");
  EXPECT_EQ(ramet_optimizer_step_closure(lbfgs, nullptr, nullptr, nullptr), RAMET_INVALID);
  // A closure that gives up ends the step with its status.
  EXPECT_EQ(ramet_optimizer_step_closure(
                lbfgs, [](void*, double*) { return 77; }, nullptr, nullptr),
            77);
  EXPECT_EQ(last(), "[ramet_optimizer_step_closure] the closure returned 77, expected RAMET_OK");
  EXPECT_EQ(ramet_optimizer_step_closure(
                lbfgs, [](void*, double*) { return ramet_fail("no data"); }, nullptr, nullptr),
            RAMET_INVALID);
  expect_part(last(), "expected RAMET_OK: no data");
  ramet_optimizer* adam = ramet_optimizer_new(net, "Adam", R"({"lr": 0.5})");
  double lr = 0;
  EXPECT_EQ(ramet_optimizer_set_lr(adam, -1), RAMET_INVALID);
  EXPECT_EQ(ramet_optimizer_set_lr(adam, std::nan("")), RAMET_INVALID);
  EXPECT_EQ(ramet_optimizer_get_lr(adam, &lr), RAMET_OK);
  EXPECT_EQ(lr, 0.5) << "nothing is half done";
  EXPECT_EQ(ramet_optimizer_set_lr(adam, 0.25), RAMET_OK) << last();
  EXPECT_EQ(ramet_optimizer_get_lr(adam, &lr), RAMET_OK);
  EXPECT_EQ(lr, 0.25);
  const File file("lbfgs");
  ASSERT_EQ(ramet_optimizer_save(lbfgs, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_optimizer_load(adam, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), "is of another optimizer: expected Adam, got LBFGS");
  ASSERT_EQ(ramet_module_save(net, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_optimizer_load(adam, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), file.path + "\" is of another optimizer: expected Adam, got a file of none");
  EXPECT_EQ(ramet_optimizer_load(adam, "/nonexistent-folder/x"), RAMET_INVALID);
  EXPECT_EQ(ramet_optimizer_save(adam, "/nonexistent-folder/x"), RAMET_INVALID);
  ramet_optimizer_free(adam);
  ramet_optimizer_free(lbfgs);
  ramet_module_free(net);
}

TEST_F(CErrors, OfHandles) {
  const int64_t sizes[1] = {3};
  double value = 42;
  ramet_tensor* t = ramet_tensor_zeros(RAMET_FLOAT32, 1, sizes);
  ramet_module* net = ramet_module_new(R"({"type": "ReLU"})", nullptr);
  ASSERT_TRUE(t && net) << last();
  EXPECT_EQ(ramet_tensor_item(nullptr, &value), RAMET_INVALID);
  EXPECT_EQ(last(), "[ramet_tensor_item] tensor: expected a tensor, got NULL");
  EXPECT_EQ(ramet_module_forward(net, nullptr), nullptr);
  EXPECT_EQ(last(), "[ramet_module_forward] input: expected a tensor, got NULL");
  EXPECT_EQ(ramet_module_forward(nullptr, t), nullptr);
  // Of another kind, as Fortran's and ctypes' pointers allow.
  EXPECT_EQ(ramet_tensor_item(reinterpret_cast<ramet_tensor*>(net), &value), RAMET_INVALID);
  EXPECT_EQ(last(), "[ramet_tensor_item] tensor: expected a tensor, got a module");
  EXPECT_EQ(ramet_module_free(reinterpret_cast<ramet_module*>(t)), RAMET_INVALID);
  // No handle at all.
  EXPECT_EQ(ramet_tensor_item(reinterpret_cast<ramet_tensor*>(&value), &value), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_item(reinterpret_cast<ramet_tensor*>(~uintptr_t{0}), &value),
            RAMET_INVALID);
  // Freed, and freed again, also when its slot is in use again.
  EXPECT_EQ(ramet_tensor_free(t), RAMET_OK);
  EXPECT_EQ(ramet_tensor_free(t), RAMET_INVALID);
  EXPECT_EQ(last(),
            "[ramet_tensor_free] handle: expected a tensor, got a handle that was freed, or that "
            "is none");
  ramet_tensor* another = ramet_tensor_zeros(RAMET_FLOAT32, 1, sizes);
  EXPECT_NE(another, t);
  int64_t numel;
  EXPECT_EQ(ramet_tensor_numel(t, &numel), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_free(nullptr), RAMET_OK);
  EXPECT_EQ(ramet_module_free(nullptr), RAMET_OK);
  EXPECT_EQ(ramet_optimizer_free(nullptr), RAMET_OK);
  EXPECT_EQ(value, 42) << "results are written by calls that succeed";
  ramet_tensor_free(another);
  ramet_module_free(net);
}

TEST_F(CErrors, OfMemory) {
  float values[6] = {};
  const int64_t six[1] = {6}, two[2] = {2, 3}, huge[2] = {int64_t{1} << 40, int64_t{1} << 40},
                negative[1] = {-1}, back[1] = {-1},
                least[1] = {std::numeric_limits<int64_t>::min()},
                far[1] = {std::numeric_limits<int64_t>::max()}, most[1] = {int64_t{1} << 60};
  const struct {
    ramet_tensor* got;
    const char* part;
  } cases[] = {
      {ramet_tensor_from_memory(nullptr, RAMET_FLOAT32, 1, six, nullptr),
       "data: expected memory for sizes [6]"},
      {ramet_tensor_from_memory(values, 8, 1, six, nullptr), "dtype: got 8"},
      {ramet_tensor_from_memory(values, -1, 1, six, nullptr), "dtype: got -1"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, -1, six, nullptr),
       "dim: expected 0 to 64, got -1"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 65, six, nullptr),
       "dim: expected 0 to 64, got 65"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, nullptr, nullptr),
       "sizes: expected a place"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, negative, nullptr),
       "sizes[0]: expected 0 or more, got -1"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, least, nullptr),
       "sizes[0]: expected 0 or more"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 2, huge, nullptr),
       "reach further than memory does"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, most, nullptr),
       "reach further than memory does"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, six, back),
       "strides[0]: expected 0 or more, got -1"},
      {ramet_tensor_from_memory(values, RAMET_FLOAT32, 1, six, far),
       "reach further than memory does"},
      {ramet_tensor_from_memory(reinterpret_cast<char*>(values) + 1, RAMET_FLOAT32, 1, two,
                                nullptr),
       "aligned to 4 bytes"},
      {ramet_tensor_from_column_major(values, RAMET_FLOAT32, 2, huge),
       "reach further than memory does"},
      {ramet_tensor_zeros(RAMET_FLOAT32, 2, huge), "["},
      {ramet_tensor_randn(RAMET_INT32, 1, six), "["},
      {ramet_tensor_from_owned_memory(values, RAMET_FLOAT32, 1, six, nullptr, nullptr, nullptr),
       ""},
  };
  for (const auto& c : cases) EXPECT_EQ(c.got, nullptr) << c.part;
  // The texts, each while it is the last.
  EXPECT_EQ(ramet_tensor_from_memory(nullptr, RAMET_FLOAT32, 1, six, nullptr), nullptr);
  expect_part(last(), cases[0].part);
  EXPECT_EQ(ramet_tensor_from_memory(values, RAMET_FLOAT32, 2, huge, nullptr), nullptr);
  expect_part(last(), cases[8].part);
  ramet_tensor* t = ramet_tensor_from_memory(values, RAMET_FLOAT32, 2, two, nullptr);
  ASSERT_NE(t, nullptr) << last();
  float out[6];
  EXPECT_EQ(ramet_tensor_copy_out(t, out, RAMET_FLOAT32, 1, six, nullptr), RAMET_INVALID);
  EXPECT_EQ(last(), "[ramet_tensor_copy_out] sizes: expected [6], got [2, 3]");
  EXPECT_EQ(ramet_tensor_copy_out(t, nullptr, RAMET_FLOAT32, 2, two, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_copy_in(t, out, RAMET_FLOAT32, 1, six, nullptr), RAMET_INVALID);
  void* data = nullptr;
  EXPECT_EQ(ramet_tensor_data(t, RAMET_FLOAT64, &data), RAMET_INVALID);
  EXPECT_EQ(last(), "[ramet_tensor_data] dtype: expected the tensor's, float32, got float64");
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(ramet_tensor_data(t, RAMET_FLOAT32, nullptr), RAMET_INVALID);
  int64_t sizes[1];
  EXPECT_EQ(ramet_tensor_sizes(t, sizes, 1), RAMET_INVALID);
  EXPECT_EQ(last(), "[ramet_tensor_sizes] capacity: expected 2 or more, got 1");
  EXPECT_EQ(ramet_tensor_sizes(t, nullptr, 2), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_dim(t, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_reshape(t, 1, nullptr), nullptr);
  EXPECT_EQ(ramet_tensor_reshape(t, 2, huge), nullptr);
  EXPECT_EQ(ramet_tensor_narrow(t, 0, 1, 2), nullptr);
  EXPECT_EQ(ramet_tensor_transpose(t, 0, 2), nullptr);
  EXPECT_EQ(ramet_tensor_grad(t), nullptr);
  expect_part(last(), "the tensor has no gradient");
  EXPECT_EQ(ramet_tensor_backward(t, nullptr), RAMET_INVALID);
  ramet_tensor_free(t);
}

TEST_F(CErrors, OfShapesAndDtypes) {
  ramet_module* net =
      ramet_module_new(R"({"type": "Linear", "in_features": 2, "out_features": 3})", nullptr);
  const int64_t right[2] = {4, 2}, wrong[2] = {4, 3}, column[2] = {4, 1}, row[1] = {4};
  ramet_tensor *x = ramet_tensor_zeros(RAMET_FLOAT32, 2, right),
               *bad = ramet_tensor_zeros(RAMET_FLOAT32, 2, wrong),
               *doubles = ramet_tensor_zeros(RAMET_FLOAT64, 2, right),
               *y = ramet_module_forward(net, x), *whole = ramet_tensor_zeros(RAMET_INT64, 1, row),
               *a = ramet_tensor_zeros(RAMET_FLOAT32, 2, column),
               *b = ramet_tensor_zeros(RAMET_FLOAT32, 1, row);
  ASSERT_TRUE(net && x && bad && doubles && y && whole && a && b) << last();
  EXPECT_EQ(ramet_module_forward(net, bad), nullptr);
  expect_part(last(), "[4, 3]");
  EXPECT_EQ(ramet_module_forward(net, doubles), nullptr);
  expect_part(last(), "got float64[4, 2]");
  EXPECT_EQ(ramet_mse_loss(a, b, RAMET_MEAN), nullptr);
  EXPECT_EQ(last(), "[ramet_mse_loss] input and target: expected equal sizes, got [4, 1] and [4]");
  EXPECT_EQ(ramet_mse_loss(a, a, 3), nullptr);
  expect_part(last(), "reduction: expected RAMET_NONE, RAMET_MEAN or RAMET_SUM, got 3");
  EXPECT_EQ(ramet_cross_entropy_loss(y, b, nullptr, RAMET_MEAN, 0), nullptr);
  EXPECT_EQ(ramet_huber_loss(a, a, RAMET_MEAN, -1), nullptr);
  EXPECT_EQ(ramet_tensor_matmul(x, x), nullptr);
  EXPECT_EQ(ramet_tensor_set_requires_grad(whole, 1), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_backward(y, x), RAMET_INVALID);
  EXPECT_EQ(ramet_tensor_backward(y, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_module_parameter(net, "wait"), nullptr);
  expect_part(last(), "no parameter \"wait\": got a module with weight, bias");
  EXPECT_EQ(ramet_module_parameter(net, nullptr), nullptr);
  EXPECT_EQ(ramet_module_parameter_name(net, 2), nullptr);
  EXPECT_EQ(ramet_module_parameter_name(net, -1), nullptr);
  EXPECT_EQ(ramet_module_new(nullptr, nullptr), nullptr);
  EXPECT_EQ(ramet_set_num_threads(0), RAMET_INVALID);
  EXPECT_EQ(ramet_check_version(RAMET_C_VERSION), RAMET_OK);
  EXPECT_EQ(ramet_check_version(RAMET_C_VERSION + 1), RAMET_INVALID);
  for (ramet_tensor* t : {x, bad, doubles, y, whole, a, b}) ramet_tensor_free(t);
  ramet_module_free(net);
}

TEST_F(CErrors, OfFilesChangeNothing) {
  const char* const json =
      R"({"layers": [{"type": "Linear", "in_features": 2, "out_features": 2}, {"type": "BatchNorm1d", "num_features": 2}]})";
  ramet_module* net = ramet_module_new(json, nullptr);
  ramet_tensor* weight = ramet_module_parameter(net, "0.weight");
  ASSERT_TRUE(net && weight) << last();
  const int64_t sizes[2] = {2, 2};
  float before[4], after[4];
  ASSERT_EQ(ramet_tensor_copy_out(weight, before, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
  const File file("other");
  serialize::Safetensors other;
  other.tensors = {{"0.weight", ones({2, 2})},
                   {"0.bias", ones({3})},
                   {"1.weight", ones({2}, kFloat64)},
                   {"2.weight", ones({1})}};
  serialize::save_safetensors(file.path, other);
  EXPECT_EQ(ramet_module_load(net, file.path.c_str()), RAMET_INVALID);
  for (const char* part :
       {"0.bias: expected Float [2], got Float [3]", "1.weight: expected Float [2], got Double [2]",
        "missing: 1.running_mean, Float [2]", "unexpected: 2.weight, Float [1]"})
    expect_part(last(), part);
  EXPECT_EQ(ramet_module_new(json, file.path.c_str()), nullptr);
  ASSERT_EQ(ramet_tensor_copy_out(weight, after, RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK);
  EXPECT_EQ(std::memcmp(before, after, sizeof(before)), 0);
  // A file that is none, and one that is cut.
  EXPECT_EQ(ramet_module_save(net, file.path.c_str()), RAMET_OK) << last();
  ASSERT_EQ(::truncate(file.path.c_str(), 100), 0);
  EXPECT_EQ(ramet_module_load(net, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), file.path);
  EXPECT_EQ(ramet_module_load(net, "/nonexistent-folder/x"), RAMET_INVALID);
  EXPECT_EQ(ramet_module_load(net, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_module_save(net, "/nonexistent-folder/x"), RAMET_INVALID);
  ramet_module* narrow = ramet_module_new(
      R"({"layers": [{"type": "Linear", "in_features": 1, "out_features": 2}]})", nullptr);
  EXPECT_EQ(ramet_module_assign(net, narrow), RAMET_INVALID);
  expect_part(last(), "0.weight: expected Float [2, 2], got Float [2, 1]");
  ramet_module_free(narrow);
  ramet_tensor_free(weight);
  ramet_module_free(net);
}

TEST_F(CErrors, AreEachThreadsOwn) {
  EXPECT_EQ(ramet_tensor_free(reinterpret_cast<ramet_tensor*>(1)), RAMET_INVALID);
  const std::string mine = last();
  std::string at_first = "?", there;
  std::thread([&] {
    at_first = last();
    ramet_check_version(-5);
    there = last();
  }).join();
  EXPECT_EQ(at_first, "");
  expect_part(there, "got -5");
  EXPECT_EQ(last(), mine);
  EXPECT_EQ(ramet_fail("[mine] what a binding says"), RAMET_INVALID);
  EXPECT_EQ(last(), "[mine] what a binding says");
  EXPECT_EQ(ramet_fail(nullptr), RAMET_INVALID);
  EXPECT_EQ(last(), "");
}

}  // namespace
}  // namespace ramet
