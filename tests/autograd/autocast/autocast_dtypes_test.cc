// The dtype of each result under autocast, on a CPU; tests/autograd/gpu has the same on a GPU.
#include <gtest/gtest.h>

#include "tests/autograd/autocast/calls.h"

namespace ramet {
namespace autocast_tests {
namespace {

TEST(AutocastDtypes, OnCpu) { expect_dtypes(Device(kCPU, 0)); }

}  // namespace
}  // namespace autocast_tests
}  // namespace ramet
