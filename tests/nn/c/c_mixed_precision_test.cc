// Autocast, scalers and masters in C. The same bits as in C++, and what is wrong is a status and a
// text.
#include <cmath>
#include <cstring>
#include <thread>

#include "autograd/autocast.h"
#include "nn/optim/adam.h"
#include "nn/optim/grad_scaler.h"
#include "runtime/memory/allocator.h"
#include "tests/error_text.h"
#include "tests/nn/c/lesson.h"

namespace ramet::nn {
namespace {

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

}  // namespace
}  // namespace ramet::nn
