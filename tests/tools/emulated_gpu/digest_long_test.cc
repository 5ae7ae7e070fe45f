#include "tests/tools/emulated_gpu/digest.h"

namespace ramet::testing {
namespace {

TEST(Digest, IsOneForTwentySeeds) { expect_one_digest(20); }

}  // namespace
}  // namespace ramet::testing
