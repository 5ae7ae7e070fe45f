#include "tests/parallel/cuda/schedules.h"

namespace ramet::testing {
namespace {

TEST(GpuSchedulesLong, OneTrainingForTwentySeeds) { expect_one_training(20); }

}  // namespace
}  // namespace ramet::testing
