// LoRA in C. The same bits as in C++, and files of branches.
#include "nn/optim/adam.h"
#include "nn/utils/lora.h"
#include "tests/error_text.h"
#include "tests/nn/c/lesson.h"

namespace ramet::nn {
namespace {

struct CLora : CMixedPrecision {};

std::vector<float> outputs_of(ramet_module* net, const ramet_tensor* x) {
  return taken_out(ramet_module_forward(net, x), 6, 2);
}

TEST_F(CLora, LoraHasTheBitsOfCxx) {
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

TEST_F(CLora, LoraRefuses) {
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
}  // namespace ramet::nn
