// Checkpoints of functions and modules in C.
#include "tests/error_text.h"
#include "tests/nn/c/lesson.h"

namespace ramet::nn {
namespace {

struct CCheckpoints : CMixedPrecision {};

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

TEST_F(CCheckpoints, CheckpointsGiveTheSameBits) {
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

TEST_F(CCheckpoints, CheckpointsOfFunctionsThatFail) {
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

}  // namespace
}  // namespace ramet::nn
