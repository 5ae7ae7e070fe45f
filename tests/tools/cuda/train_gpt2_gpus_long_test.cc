// GPT-2 on emulated GPUs, for 50 steps.
#include "tests/tools/cuda/gpt2_on_gpus.h"

namespace ramet::training {
namespace {

TEST_F(Gpt2OnGpus, LearnFiftySteps) {
  for (const char* autocast : {"bf16", "fp16"}) expect_trained(50, autocast);
}

}  // namespace
}  // namespace ramet::training
