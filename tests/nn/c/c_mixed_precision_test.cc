// 16 bits in C: autocast, scalers, masters, checkpoints and LoRA. The same bits as in C++, and what
// is wrong is a status and a text.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "autograd/autocast.h"
#include "autograd/ops.h"
#include "nn/c/c.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/grad_scaler.h"
#include "nn/utils/lora.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/allocator.h"
#include "tests/error_text.h"
#include "tests/nn/c/c_support.h"

namespace ramet {
namespace {

using namespace nn;

constexpr const char* kNet =
    R"({"layers": [{"type": "Linear", "in_features": 4, "out_features": 8}, {"type": "Tanh"},
                   {"type": "Linear", "in_features": 8, "out_features": 2}]})";

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
    ramet_tensor* t = ramet_module_parameter(net, name);
    std::vector<float> out(32);
    const int64_t sizes[2] = {8, 4};
    EXPECT_EQ(ramet_tensor_copy_out(t, out.data(), RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK)
        << last();
    ramet_tensor_free(t);
    return out;
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

TEST_F(CMixedPrecision, AutocastHasTheBitsOfCxx) {
  std::vector<double> got, expected;
  Lesson lesson;
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(ramet_optimizer_zero_grad(lesson.adam, 1), RAMET_OK);
    ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, step % 2 ? RAMET_FLOAT16 : RAMET_BFLOAT16, 1),
              RAMET_OK)
        << last();
    got.push_back(lesson.backward());
    ASSERT_EQ(ramet_autocast_leave(), RAMET_OK) << last();
    EXPECT_EQ(ramet_optimizer_step(lesson.adam), RAMET_OK) << last();
  }
  CxxLesson cxx;
  optim::Adam adam(cxx.net->parameters(), optim::AdamOptions(0.01));
  for (int step = 0; step < 5; ++step) {
    adam.zero_grad();
    const AutocastGuard on(kCPU, step % 2 ? kHalf : kBFloat16);
    const Tensor loss = cxx.loss();
    expected.push_back(loss.item<double>());
    loss.backward();
    adam.step();
  }
  EXPECT_EQ(got, expected);
  EXPECT_LT(got.back(), got.front());
}

TEST_F(CMixedPrecision, RegionsNestAndBelongToTheThread) {
  const auto now = [](int device = RAMET_CPU) {
    int on = -1, dtype = -1;
    EXPECT_EQ(ramet_autocast_get(device, &on, &dtype), RAMET_OK) << last();
    return std::pair(on, dtype);
  };
  EXPECT_EQ(now(), std::pair(0, int{RAMET_BFLOAT16}));
  EXPECT_EQ(now(RAMET_CUDA), std::pair(0, int{RAMET_FLOAT16}));
  ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_FLOAT16, 1), RAMET_OK);
  ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_DEFAULT_DTYPE, 0), RAMET_OK);
  EXPECT_EQ(now(), std::pair(0, int{RAMET_FLOAT16}));
  // A region that a thread has not left ends with the thread. The cast of a weight of 2 KB shows
  // it.
  const int64_t sizes[2] = {2, 32};
  ramet_module* wide =
      ramet_module_new(R"({"type": "Linear", "in_features": 32, "out_features": 32})", nullptr);
  ramet_tensor* x = ramet_tensor_zeros(RAMET_FLOAT32, 2, sizes);
  ASSERT_TRUE(wide && x) << last();
  const auto bytes = [] { return memory_stats(Device(kCPU, 0)).current; };
  const int64_t before = bytes();
  std::thread([&] {
    EXPECT_EQ(now(), std::pair(0, int{RAMET_BFLOAT16}));
    EXPECT_EQ(ramet_autocast_leave(), RAMET_INVALID);
    expect_part(last(), "has entered no region that is still open");
    EXPECT_EQ(ramet_autocast_enter(RAMET_CUDA, RAMET_BFLOAT16, 1), RAMET_OK) << last();
    EXPECT_EQ(now(RAMET_CUDA), std::pair(1, int{RAMET_BFLOAT16}));
    EXPECT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1), RAMET_OK) << last();
    EXPECT_EQ(ramet_tensor_free(ramet_module_forward(wide, x)), RAMET_OK) << last();
    EXPECT_GE(bytes(), before + 2048) << "the cast is kept while the region is open";
  }).join();
  EXPECT_EQ(bytes(), before);
  ramet_tensor_free(x);
  ramet_module_free(wide);
  EXPECT_EQ(now(RAMET_CUDA), std::pair(0, int{RAMET_FLOAT16}));
  EXPECT_EQ(ramet_autocast_leave(), RAMET_OK);
  EXPECT_EQ(now(), std::pair(1, int{RAMET_FLOAT16}));
  // What is wrong enters nothing.
  const struct {
    int device, dtype;
    const char* part;
  } cases[] = {
      {2, RAMET_BFLOAT16, "device_type: expected RAMET_CPU or RAMET_CUDA, got 2"},
      {-1, RAMET_BFLOAT16, "got -1"},
      {RAMET_CPU, RAMET_FLOAT32, "dtype: expected RAMET_BFLOAT16, RAMET_FLOAT16"},
      {RAMET_CPU, 99, "got 99"},
  };
  for (const auto& c : cases)
    for (const int on : {0, 1}) {
      EXPECT_EQ(ramet_autocast_enter(c.device, c.dtype, on), RAMET_INVALID) << c.part;
      expect_part(last(), c.part);
    }
  EXPECT_EQ(ramet_autocast_get(3, nullptr, nullptr), RAMET_INVALID);
  EXPECT_EQ(now(), std::pair(1, int{RAMET_FLOAT16}));
  EXPECT_EQ(ramet_autocast_get(RAMET_CPU, nullptr, nullptr), RAMET_OK);
  EXPECT_EQ(ramet_autocast_leave(), RAMET_OK);
}

// The regions that a closure enters are its own, and so are those that it leaves.
TEST_F(CMixedPrecision, ClosuresLeaveTheirRegions) {
  Lesson lesson;
  ramet_optimizer* lbfgs = ramet_optimizer_new(lesson.net, "LBFGS", R"({"max_iter": 3})");
  ASSERT_NE(lbfgs, nullptr) << last();
  const auto step = [&](int (*closure)(void*, double*)) {
    return ramet_optimizer_step_closure(lbfgs, closure, &lesson, nullptr);
  };
  const auto on = [] {
    int is_on = -1;
    EXPECT_EQ(ramet_autocast_get(RAMET_CPU, &is_on, nullptr), RAMET_OK) << last();
    return is_on;
  };
  const std::vector<float> before = lesson.values("0.weight");
  EXPECT_EQ(step([](void*, double*) { return ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1); }),
            RAMET_INVALID);
  EXPECT_EQ(last(),
            "[ramet_optimizer_step_closure] the closure has left 1 autocast regions open: expected "
            "ramet_autocast_leave for each");
  EXPECT_EQ(on(), 0);
  EXPECT_EQ(step([](void*, double*) {
              for (int i = 0; i < 2; ++i) ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1);
              return 77;
            }),
            77);
  EXPECT_EQ(last(), "[ramet_optimizer_step_closure] the closure returned 77, expected RAMET_OK");
  EXPECT_EQ(on(), 0) << "it has failed inside its regions";
  ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1), RAMET_OK) << last();
  EXPECT_EQ(step([](void*, double*) { return ramet_autocast_leave(); }), RAMET_INVALID);
  expect_part(last(), "has entered no region");
  EXPECT_EQ(on(), 1) << "the caller's region is still open";
  EXPECT_EQ(lesson.values("0.weight"), before);
  const auto learns = [](void* context, double* loss) {
    auto& of = *static_cast<Lesson*>(context);
    ramet_module_zero_grad(of.net, 1);
    if (const int status = ramet_autocast_enter(RAMET_CPU, RAMET_DEFAULT_DTYPE, 0)) return status;
    *loss = of.backward();
    return ramet_autocast_leave();
  };
  EXPECT_EQ(step(learns), RAMET_OK) << last();
  EXPECT_EQ(on(), 1);
  EXPECT_NE(lesson.values("0.weight"), before);
  EXPECT_EQ(ramet_autocast_leave(), RAMET_OK) << last();
  ramet_optimizer_free(lbfgs);
}

TEST_F(CMixedPrecision, ScalerAndMastersHaveTheBitsOfCxx) {
  const std::string json = std::string(R"({"dtype": "float16", )") + (kNet + 1);
  std::vector<double> got, expected;
  {
    Lesson lesson(json.c_str(), RAMET_FLOAT16);
    ramet_grad_scaler* scaler =
        ramet_grad_scaler_new(R"({"init_scale": 1e9, "growth_interval": 3})");
    ASSERT_NE(scaler, nullptr) << last();
    for (int step = 0; step < 40; ++step) {
      EXPECT_EQ(ramet_optimizer_zero_grad(lesson.adam, 1), RAMET_OK);
      got.push_back(lesson.backward(scaler));
      if (step % 2) {
        EXPECT_EQ(ramet_grad_scaler_unscale(scaler, lesson.adam), RAMET_OK) << last();
      }
      EXPECT_EQ(ramet_grad_scaler_step(scaler, lesson.adam), RAMET_OK) << last();
      EXPECT_EQ(ramet_grad_scaler_update(scaler), RAMET_OK) << last();
      double scale = 0;
      EXPECT_EQ(ramet_grad_scaler_get_scale(scaler, &scale), RAMET_OK) << last();
      got.push_back(scale);
    }
    ramet_grad_scaler_free(scaler);
  }
  CxxLesson cxx(kHalf);
  optim::Adam adam(cxx.net->parameters(), optim::AdamOptions(0.01));
  optim::GradScaler scaler(optim::GradScalerOptions().init_scale(1e9).growth_interval(3));
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    const Tensor loss = cxx.loss();
    expected.push_back(loss.item<double>());
    scaler.scale(loss).backward();
    scaler.step(adam);
    scaler.update();
    expected.push_back(scaler.get_scale());
  }
  EXPECT_EQ(got, expected);
  EXPECT_LT(got[3], got[1]) << "a scale that was too large";
  EXPECT_EQ(got[2], got[0]) << "a skipped step";
  EXPECT_LT(got[78], got[0]);
}

// A step below half of a float16's last bit: a master adds many of them up.
TEST_F(CMixedPrecision, MastersKeepSmallUpdates) {
  for (const int masters : {1, 0}) {
    ramet_module* net = ramet_module_new(
        R"({"type": "Linear", "in_features": 1, "out_features": 1, "dtype": "float16", "bias": false})",
        nullptr);
    ramet_tensor *weight = ramet_module_parameter(net, "weight"), *loss = nullptr;
    ramet_optimizer* sgd = ramet_optimizer_new(net, "SGD", R"({"lr": 1e-4})");
    const int64_t one[2] = {1, 1};
    const float start = 1;
    ASSERT_EQ(ramet_tensor_copy_in(weight, &start, RAMET_FLOAT32, 2, one, nullptr), RAMET_OK);
    int on = -1;
    EXPECT_EQ(ramet_optimizer_uses_masters(sgd, &on), RAMET_OK);
    EXPECT_EQ(on, 1);
    EXPECT_EQ(ramet_optimizer_use_masters(sgd, masters), RAMET_OK) << last();
    EXPECT_EQ(ramet_optimizer_uses_masters(sgd, &on), RAMET_OK);
    EXPECT_EQ(on, masters);
    for (int step = 0; step < 100; ++step) {
      EXPECT_EQ(ramet_optimizer_zero_grad(sgd, 1), RAMET_OK);
      loss = ramet_tensor_sum(weight);
      EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
      EXPECT_EQ(ramet_optimizer_step(sgd), RAMET_OK) << last();
      ramet_tensor_free(loss);
    }
    double value = 0;
    EXPECT_EQ(ramet_tensor_item(weight, &value), RAMET_OK);
    EXPECT_NEAR(value, masters ? 0.99 : 1, masters ? 5e-4 : 0);
    ramet_tensor_free(weight);
    ramet_optimizer_free(sgd);
    ramet_module_free(net);
  }
}

TEST_F(CMixedPrecision, ScalersRefuse) {
  const struct {
    const char *options, *part;
  } cases[] = {
      {R"({"init_scale": 0})", "init_scale: got 0, expected a number > 0"},
      {R"({"growth_factor": 1})", "growth_factor: got 1, expected a number > 1"},
      {R"({"backoff_factor": 1.5})", "backoff_factor: got 1.5"},
      {R"({"growth_interval": 0})", "growth_interval: got 0"},
      {R"({"growth_interval": 2.5})", "growth_interval: expected an integer, got 2.5"},
      {R"({"scale": 4})", "scale: no such option of GradScaler, which has init_scale"},
      {"[]", "the text: expected an object"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ramet_grad_scaler_new(c.options), nullptr) << c.options;
    expect_part(last(), c.part);
  }
  Lesson lesson;
  ramet_grad_scaler *scaler = ramet_grad_scaler_new(nullptr),
                    *off = ramet_grad_scaler_new(R"({"enabled": false})");
  ASSERT_TRUE(scaler && off) << last();
  double scale = 0;
  EXPECT_EQ(ramet_grad_scaler_get_scale(scaler, &scale), RAMET_OK);
  EXPECT_EQ(scale, 65536);
  EXPECT_EQ(ramet_grad_scaler_get_scale(off, &scale), RAMET_OK);
  EXPECT_EQ(scale, 1);
  // In the wrong order.
  EXPECT_EQ(ramet_grad_scaler_step(scaler, lesson.adam), RAMET_INVALID);
  expect_part(last(), "got no scaled loss before them");
  EXPECT_EQ(ramet_grad_scaler_update(scaler), RAMET_INVALID);
  expect_part(last(), "No inf checks were recorded prior to update()");
  ramet_tensor* scaled = ramet_grad_scaler_scale(scaler, lesson.y);
  ramet_tensor_free(scaled);
  EXPECT_EQ(ramet_grad_scaler_step(scaler, lesson.adam), RAMET_INVALID);
  expect_part(last(), "an optimizer's gradients: got none");
  lesson.backward(scaler);
  const std::vector<float> before = lesson.values("0.weight");
  EXPECT_EQ(ramet_grad_scaler_unscale(scaler, lesson.adam), RAMET_OK) << last();
  EXPECT_EQ(ramet_grad_scaler_unscale(scaler, lesson.adam), RAMET_INVALID);
  expect_part(last(), "unscale_() has already been called");
  EXPECT_EQ(ramet_grad_scaler_step(scaler, lesson.adam), RAMET_OK) << last();
  EXPECT_NE(lesson.values("0.weight"), before);
  EXPECT_EQ(ramet_grad_scaler_step(scaler, lesson.adam), RAMET_INVALID);
  expect_part(last(), "step() has already been called");
  EXPECT_EQ(ramet_grad_scaler_unscale(scaler, lesson.adam), RAMET_INVALID);
  expect_part(last(), "unscale_() is being called after step()");
  EXPECT_EQ(ramet_grad_scaler_set_scale(scaler, 0), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_set_scale(scaler, std::nan("")), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_set_scale(scaler, 4), RAMET_OK) << last();
  EXPECT_EQ(ramet_grad_scaler_get_scale(scaler, &scale), RAMET_OK);
  EXPECT_EQ(scale, 4);
  // Wrong handles, dtypes and optimizers.
  const int64_t sizes[1] = {2};
  ramet_tensor* whole = ramet_tensor_zeros(RAMET_INT64, 1, sizes);
  EXPECT_EQ(ramet_grad_scaler_scale(scaler, whole), nullptr);
  expect_part(last(), "outputs: got int64[2]");
  ramet_tensor_free(whole);
  EXPECT_EQ(ramet_grad_scaler_scale(scaler, nullptr), nullptr);
  EXPECT_EQ(last(), "[ramet_grad_scaler_scale] outputs: expected a tensor, got NULL");
  EXPECT_EQ(ramet_grad_scaler_scale(nullptr, lesson.y), nullptr);
  EXPECT_EQ(last(), "[ramet_grad_scaler_scale] scaler: expected a scaler, got NULL");
  auto* const wrong = reinterpret_cast<ramet_grad_scaler*>(lesson.adam);
  EXPECT_EQ(ramet_grad_scaler_step(wrong, lesson.adam), RAMET_INVALID);
  expect_part(last(), "scaler: expected a scaler, got an optimizer");
  EXPECT_EQ(ramet_grad_scaler_step(scaler, reinterpret_cast<ramet_optimizer*>(scaler)),
            RAMET_INVALID);
  expect_part(last(), "optimizer: expected an optimizer, got a scaler");
  for (const auto call : {ramet_grad_scaler_step, ramet_grad_scaler_unscale}) {
    EXPECT_EQ(call(scaler, nullptr), RAMET_INVALID);
    EXPECT_EQ(call(nullptr, lesson.adam), RAMET_INVALID);
  }
  EXPECT_EQ(ramet_grad_scaler_update(nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_set_scale(nullptr, 2), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_get_scale(scaler, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_free(nullptr), RAMET_OK);
  ramet_optimizer* lbfgs = ramet_optimizer_new(lesson.net, "LBFGS", nullptr);
  EXPECT_EQ(ramet_grad_scaler_step(scaler, lbfgs), RAMET_INVALID);
  expect_part(last(), "expected ramet_optimizer_step_closure");
  int on = 5;
  EXPECT_EQ(ramet_optimizer_use_masters(lbfgs, 1), RAMET_INVALID);
  EXPECT_EQ(ramet_optimizer_uses_masters(lbfgs, &on), RAMET_INVALID);
  expect_part(last(), "LBFGS always keeps masters");
  EXPECT_EQ(on, 5);
  EXPECT_EQ(ramet_optimizer_uses_masters(lesson.adam, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_optimizer_use_masters(nullptr, 1), RAMET_INVALID);
  ramet_optimizer_free(lbfgs);
  ramet_grad_scaler_free(off);
  ramet_grad_scaler_free(scaler);
  EXPECT_EQ(ramet_grad_scaler_free(scaler), RAMET_INVALID);
}

// A scaler knows an optimizer by its address until the update.
TEST_F(CMixedPrecision, AnOptimizerMayBeFreedBeforeTheUpdate) {
  Lesson lesson;
  ramet_grad_scaler* scaler = ramet_grad_scaler_new(nullptr);
  for (int i = 0; i < 20; ++i) {
    ramet_optimizer* sgd = ramet_optimizer_new(lesson.net, "SGD", R"({"lr": 0.1})");
    ramet_optimizer_zero_grad(sgd, 1);
    lesson.backward(scaler);
    EXPECT_EQ(ramet_grad_scaler_step(scaler, sgd), RAMET_OK) << i << ": " << last();
    ramet_optimizer_free(sgd);
  }
  EXPECT_EQ(ramet_grad_scaler_update(scaler), RAMET_OK) << last();
  ramet_grad_scaler_free(scaler);
}

TEST_F(CMixedPrecision, ScalerFiles) {
  const File file("scaler"), other("of_a_net"), empty("empty");
  ramet_grad_scaler *one = ramet_grad_scaler_new(R"({"init_scale": 48, "growth_factor": 3})"),
                    *two = ramet_grad_scaler_new(nullptr),
                    *off = ramet_grad_scaler_new(R"({"enabled": false})");
  ASSERT_EQ(ramet_grad_scaler_save(one, file.path.c_str()), RAMET_OK) << last();
  ASSERT_EQ(ramet_grad_scaler_save(off, empty.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_grad_scaler_load(two, empty.path.c_str()), RAMET_INVALID);
  expect_part(last(), "the source state dict is empty");
  Lesson lesson;
  ASSERT_EQ(ramet_optimizer_save(lesson.adam, other.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_grad_scaler_load(two, other.path.c_str()), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_load(two, "/nonexistent-folder/x"), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_save(two, "/nonexistent-folder/x"), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_load(two, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_grad_scaler_save(nullptr, file.path.c_str()), RAMET_INVALID);
  double scale = 0;
  EXPECT_EQ(ramet_grad_scaler_get_scale(two, &scale), RAMET_OK);
  EXPECT_EQ(scale, 65536) << "what failed has changed nothing";
  EXPECT_EQ(ramet_grad_scaler_load(two, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_grad_scaler_get_scale(two, &scale), RAMET_OK);
  EXPECT_EQ(scale, 48);
  for (ramet_grad_scaler* s : {one, two, off}) ramet_grad_scaler_free(s);
}

// ---- checkpoints --------------------------------------------------------------------------------

struct Calls {
  ramet_module* net;
  int made = 0, freed = 0, fail_at = 0;
};
int run_net(void* context, ramet_tensor* const* inputs, int64_t count, ramet_tensor** output) {
  Calls& calls = *static_cast<Calls*>(context);
  EXPECT_EQ(count, 2);
  if (++calls.made == calls.fail_at) return ramet_fail("no more");
  ramet_tensor* y = ramet_module_forward(calls.net, inputs[0]);
  *output = ramet_tensor_mul(y, inputs[1]);
  ramet_tensor_free(y);
  return *output ? RAMET_OK : RAMET_INVALID;
}
void freed(void* context) { ++static_cast<Calls*>(context)->freed; }

TEST_F(CMixedPrecision, CheckpointsGiveTheSameBits) {
  Lesson lesson;
  std::vector<std::vector<float>> gradients;
  for (const int way : {0, 1, 2}) {  // without, of a function, of a module
    Calls calls{lesson.net};
    ramet_optimizer_zero_grad(lesson.adam, 1);
    ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_DEFAULT_DTYPE, 1), RAMET_OK);
    const ramet_tensor* given[2] = {lesson.x, lesson.y};
    ramet_tensor* out = nullptr;
    if (way == 1) {
      out = ramet_checkpoint(run_net, &calls, freed, given, 2);
    } else {
      ramet_tensor* y = way == 0 ? ramet_module_forward(lesson.net, lesson.x)
                                 : ramet_module_checkpoint(lesson.net, lesson.x);
      out = ramet_tensor_mul(y, lesson.y);
      ramet_tensor_free(y);
    }
    ASSERT_NE(out, nullptr) << last();
    ramet_tensor* loss = ramet_tensor_sum(out);
    ASSERT_EQ(ramet_autocast_leave(), RAMET_OK);
    EXPECT_EQ(calls.made, way == 1);
    EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_OK) << last();
    EXPECT_EQ(calls.made, way == 1 ? 2 : 0) << "the backward pass runs it again";
    ramet_tensor_free(loss);
    ramet_tensor_free(out);
    EXPECT_EQ(calls.freed, way == 1);
    ramet_tensor *weight = ramet_module_parameter(lesson.net, "0.weight"),
                 *grad = ramet_tensor_grad(weight);
    gradients.emplace_back(32);
    const int64_t sizes[2] = {8, 4};
    EXPECT_EQ(
        ramet_tensor_copy_out(grad, gradients.back().data(), RAMET_FLOAT32, 2, sizes, nullptr),
        RAMET_OK)
        << last();
    ramet_tensor_free(grad);
    ramet_tensor_free(weight);
  }
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(gradients[0], gradients[2]);
  EXPECT_NE(gradients[0], std::vector<float>(32));
}

TEST_F(CMixedPrecision, CheckpointsOfFunctionsThatFail) {
  Lesson lesson;
  Calls calls{lesson.net};
  const ramet_tensor *given[2] = {lesson.x, lesson.y}, *bad[2] = {lesson.x, nullptr};
  EXPECT_EQ(ramet_checkpoint(nullptr, &calls, freed, given, 2), nullptr);
  expect_part(last(), "function: expected a function, got NULL");
  EXPECT_EQ(ramet_checkpoint(run_net, &calls, freed, given, -1), nullptr);
  EXPECT_EQ(ramet_checkpoint(run_net, &calls, freed, nullptr, 2), nullptr);
  expect_part(last(), "inputs: expected 2 tensors, got NULL");
  EXPECT_EQ(ramet_checkpoint(run_net, &calls, freed, bad, 2), nullptr);
  expect_part(last(), "inputs[1]: expected a tensor, got NULL");
  EXPECT_EQ(ramet_module_checkpoint(lesson.net, nullptr), nullptr);
  EXPECT_EQ(ramet_module_checkpoint(nullptr, lesson.x), nullptr);
  EXPECT_EQ(calls.made, 0);
  calls.fail_at = 1;
  EXPECT_EQ(ramet_checkpoint(run_net, &calls, freed, given, 2), nullptr);
  EXPECT_EQ(last(), "[ramet_checkpoint] the function returned 1, expected RAMET_OK: no more");
  const auto leaves_no_output = [](void*, ramet_tensor* const*, int64_t, ramet_tensor**) {
    return int{RAMET_OK};
  };
  EXPECT_EQ(ramet_checkpoint(leaves_no_output, &calls, freed, given, 2), nullptr);
  expect_part(last(), "the function's output: expected a tensor, got NULL");
  // Regions that the function enters are its own, and so are those that it leaves.
  const auto enters = [](void*, ramet_tensor* const* in, int64_t, ramet_tensor** out) {
    *out = in[0];
    return ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1);
  };
  EXPECT_EQ(ramet_checkpoint(enters, &calls, freed, given, 2), nullptr);
  expect_part(last(), "has left 1 autocast regions open");
  const auto leaves = [](void*, ramet_tensor* const* in, int64_t, ramet_tensor** out) {
    *out = in[0];
    return ramet_autocast_leave();
  };
  ASSERT_EQ(ramet_autocast_enter(RAMET_CPU, RAMET_BFLOAT16, 1), RAMET_OK);
  EXPECT_EQ(ramet_checkpoint(leaves, &calls, freed, given, 2), nullptr);
  expect_part(last(), "has entered no region");
  ASSERT_EQ(ramet_autocast_leave(), RAMET_OK) << last();
  EXPECT_EQ(calls.freed, 0) << "the caller keeps the context of what failed";
  // An input may be the output.
  const auto same = [](void*, ramet_tensor* const* in, int64_t, ramet_tensor** out) {
    *out = in[1];
    return int{RAMET_OK};
  };
  ramet_tensor* out = ramet_checkpoint(same, &calls, freed, given, 2);
  ASSERT_NE(out, nullptr) << last();
  ramet_tensor_free(out);
  EXPECT_EQ(calls.freed, 1);
  // In the backward pass.
  calls.made = 0, calls.fail_at = 2;
  out = ramet_checkpoint(run_net, &calls, nullptr, given, 2);
  ramet_tensor* loss = ramet_tensor_sum(out);
  EXPECT_EQ(ramet_tensor_backward(loss, nullptr), RAMET_INVALID);
  expect_part(last(), "the function returned 1, expected RAMET_OK: no more");
  ramet_tensor_free(loss);
  ramet_tensor_free(out);
}

// ---- LoRA ---------------------------------------------------------------------------------------

std::vector<float> outputs_of(ramet_module* net, const ramet_tensor* x) {
  ramet_tensor* y = ramet_module_forward(net, x);
  std::vector<float> out(12);
  const int64_t sizes[2] = {6, 2};
  EXPECT_EQ(ramet_tensor_copy_out(y, out.data(), RAMET_FLOAT32, 2, sizes, nullptr), RAMET_OK)
      << last();
  ramet_tensor_free(y);
  return out;
}

TEST_F(CMixedPrecision, LoraHasTheBitsOfCxx) {
  Lesson lesson;
  const File file("lora"), whole("whole");
  ASSERT_EQ(ramet_module_apply_lora(lesson.net, R"({"rank": 2, "alpha": 6, "layers": ["0"]})"),
            RAMET_OK)
      << last();
  int64_t count = 0;
  EXPECT_EQ(ramet_module_parameter_count(lesson.net, &count), RAMET_OK);
  EXPECT_EQ(count, 6);
  ramet_optimizer* adam = ramet_optimizer_new(lesson.net, "Adam", R"({"lr": 0.01})");
  const std::vector<float> frozen = lesson.values("0.weight");
  CxxLesson cxx;
  apply_lora(cxx.net, 2, 6, [](const std::string& name) { return name == "0"; });
  optim::Adam cxx_adam(cxx.net->parameters(), optim::AdamOptions(0.01));
  for (int step = 0; step < 8; ++step) {
    ramet_optimizer_zero_grad(adam, 1);
    cxx_adam.zero_grad();
    const double got = lesson.backward();
    const Tensor loss = cxx.loss();
    EXPECT_EQ(got, loss.item<double>()) << step;
    loss.backward();
    EXPECT_EQ(ramet_optimizer_step(adam), RAMET_OK) << last();
    cxx_adam.step();
  }
  EXPECT_EQ(lesson.values("0.weight"), frozen);
  const std::vector<float> before = outputs_of(lesson.net, lesson.x);
  ramet_module* copy = ramet_module_clone(lesson.net);
  ASSERT_NE(copy, nullptr) << last();
  EXPECT_EQ(outputs_of(copy, lesson.x), before) << "a clone has the branches";
  EXPECT_EQ(ramet_module_parameter_count(copy, &count), RAMET_OK);
  EXPECT_EQ(count, 6);
  ASSERT_EQ(ramet_module_save(lesson.net, whole.path.c_str()), RAMET_OK) << last();
  ASSERT_EQ(ramet_module_save_lora(lesson.net, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_module_merge_lora(lesson.net), RAMET_OK) << last();
  const std::vector<float> merged = outputs_of(lesson.net, lesson.x);
  for (size_t i = 0; i < merged.size(); ++i) EXPECT_NEAR(merged[i], before[i], 1e-5);
  EXPECT_NE(lesson.values("0.weight"), frozen);
  EXPECT_EQ(ramet_module_parameter_count(lesson.net, &count), RAMET_OK);
  EXPECT_EQ(count, 4);
  // The files, into branches that start anew.
  ramet_module* other = ramet_module_new(kNet, nullptr);
  EXPECT_EQ(ramet_module_load(other, whole.path.c_str()), RAMET_INVALID);
  expect_part(last(), "unexpected: 0.lora_A.weight");
  ASSERT_EQ(ramet_module_apply_lora(other, R"({"rank": 2, "alpha": 6, "layers": ["0"]})"),
            RAMET_OK);
  ASSERT_EQ(ramet_module_load(other, whole.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(outputs_of(other, lesson.x), before);
  ramet_tensor* b = ramet_module_parameter(other, "0.lora_B.weight");
  ramet_tensor* none = ramet_tensor_scale(b, 0);
  EXPECT_EQ(ramet_tensor_assign(b, none), RAMET_OK) << last();
  EXPECT_NE(outputs_of(other, lesson.x), before);
  EXPECT_EQ(ramet_module_load_lora(other, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(outputs_of(other, lesson.x), before);
  ramet_tensor_free(none);
  ramet_tensor_free(b);
  ramet_module_free(other);
  ramet_module_free(copy);
  ramet_optimizer_free(adam);
}

TEST_F(CMixedPrecision, LoraRefuses) {
  Lesson lesson;
  const File file("lora");
  const struct {
    const char *options, *part;
  } cases[] = {
      {"{}", "rank: LoRA needs this option"},
      {R"({"rank": 2})", "alpha: LoRA needs this option"},
      {R"({"rank": 2, "alpha": "much"})", "alpha: expected a number, got \"much\""},
      {R"({"rank": 5, "alpha": 1, "layers": ["0"]})", "rank"},
      {R"({"rank": 0, "alpha": 1})", "rank"},
      {R"({"rank": 2, "alpha": 1, "dropout": 2})", "dropout"},
      {R"({"rank": 2, "alpha": 1, "layers": "0"})", "layers: expected a list of names"},
      {R"({"rank": 2, "alpha": 1, "layers": []})", "layers: expected a list of names"},
      {R"({"rank": 2, "alpha": 1, "layers": ["0", "1"]})",
       "layers[1]: expected the name of a Linear layer of the module, got \"1\""},
      {R"({"rank": 2, "alpha": 1, "layers": [0]})", "layers[0]: expected the name"},
      {R"({"rank": 2, "alpha": 1, "beta": 1})", "beta: no such option of LoRA"},
  };
  const std::vector<float> before = outputs_of(lesson.net, lesson.x);
  for (const auto& c : cases) {
    EXPECT_EQ(ramet_module_apply_lora(lesson.net, c.options), RAMET_INVALID) << c.options;
    expect_part(last(), c.part);
  }
  EXPECT_EQ(ramet_module_apply_lora(lesson.net, nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_module_apply_lora(nullptr, cases[0].options), RAMET_INVALID);
  EXPECT_EQ(ramet_module_merge_lora(lesson.net), RAMET_INVALID);
  expect_part(last(), "got no LoRA branch");
  EXPECT_EQ(ramet_module_merge_lora(nullptr), RAMET_INVALID);
  EXPECT_EQ(ramet_module_save_lora(lesson.net, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), "the module has no LoRA branch");
  ASSERT_EQ(ramet_module_save(lesson.net, file.path.c_str()), RAMET_OK) << last();
  EXPECT_EQ(ramet_module_load_lora(lesson.net, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), "call apply_lora first");
  // What failed has frozen nothing and added nothing.
  int64_t count = 0;
  EXPECT_EQ(ramet_module_parameter_count(lesson.net, &count), RAMET_OK);
  EXPECT_EQ(count, 4);
  EXPECT_EQ(outputs_of(lesson.net, lesson.x), before);
  lesson.backward();
  const char* const options = R"({"rank": 2, "alpha": 1})";
  EXPECT_EQ(ramet_module_apply_lora(lesson.net, options), RAMET_OK) << last();
  EXPECT_EQ(outputs_of(lesson.net, lesson.x), before) << "a new branch adds nothing";
  EXPECT_EQ(ramet_module_apply_lora(lesson.net, options), RAMET_INVALID);
  EXPECT_EQ(ramet_module_load_lora(lesson.net, file.path.c_str()), RAMET_INVALID);
  expect_part(last(), "is missing");
  EXPECT_EQ(ramet_module_load_lora(lesson.net, "/nonexistent-folder/x"), RAMET_INVALID);
  EXPECT_EQ(ramet_module_save_lora(lesson.net, "/nonexistent-folder/x"), RAMET_INVALID);
}

}  // namespace
}  // namespace ramet
