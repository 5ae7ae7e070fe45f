// A hundred steps in double: GPUs and CPU devices differ by rounding alone.
#include <gtest/gtest.h>

#include "tests/devices.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

TEST(GpuTrainingLong, AHundredStepsInDouble) {
  const Gpus four(gpu_settings(4));
  Recipe cpu{{}, 0, false, kDouble, 16, 100}, gpu = cpu;
  cpu.devices = cpus(4);
  gpu.devices = gpus(4);
  EXPECT_LE(difference(trained(cpu), trained(gpu)), 1e-9);
}

}  // namespace
}  // namespace ramet::testing
