#include "tests/parallel/cuda/schedules.h"

namespace ramet::testing {
namespace {

TEST(GpuSchedules, OneTrainingUnderAll) { expect_one_training(1); }

}  // namespace
}  // namespace ramet::testing
