// GPT-2 on emulated GPUs. The other test has more steps.
#include "tests/tools/cuda/gpt2_on_gpus.h"

namespace ramet::training {
namespace {

TEST_F(Gpt2OnGpus, LearnAsInFloat64) { expect_trained(2, "bf16", {"cuda:0,cuda:1,cuda:2,cuda:3"}); }

}  // namespace
}  // namespace ramet::training
