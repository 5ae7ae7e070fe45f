#include "tests/tools/emulated_gpu/digest.h"

namespace ramet::testing {
namespace {

TEST(Digest, IsOneForEverySchedule) { expect_one_digest(1); }

// The digest is not blind: every kernel and copy has written its part.
TEST(Digest, HasEveryPart) {
  const std::vector<float> result = digest(test_settings());
  size_t zeros = 0;
  for (const float value : result) zeros += value == 0.0f;
  EXPECT_EQ(zeros, 0u);
}

}  // namespace
}  // namespace ramet::testing
