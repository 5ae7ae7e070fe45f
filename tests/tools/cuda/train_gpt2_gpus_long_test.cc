// GPT-2 on emulated GPUs, for 50 steps.
#include "tests/tools/cuda/gpt2_on_gpus.h"

namespace ramet::training {
namespace {

TEST_F(Gpt2OnGpus, LearnFiftySteps) {
  expect_trained(50, "bf16", {"cuda:0,cuda:1", "cuda:0,cuda:1,cuda:2,cuda:3"});
}

}  // namespace
}  // namespace ramet::training
