// RAMET_CUDA_ATTENTION, which a process reads once: which body of attention runs, as its bits say.
#include <cstdlib>

#include "runtime/base/error.h"
#include "tests/autograd/gpu/attention_check.h"

namespace ramet::kernels {
namespace {

TEST(AttentionSwitch, SaysWhichBodyRuns) {
  const auto by = [](AttentionBody body, int64_t columns, double scale = 0.3,
                     bool one_head = false) {
    return forward_of({1, 2, 200, 150, columns, kBFloat16, false, body, scale}, one_head).o;
  };
  const auto automatic = [&](int64_t columns, double scale = 0.3, bool one_head = false) {
    return by(AttentionBody::kAuto, columns, scale, one_head);
  };
  setenv("RAMET_CUDA_ATTENTION", "fast", 1);
  try {
    automatic(64);
    FAIL() << "no Error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[RAMET_CUDA_ATTENTION] got \"fast\", expected mma or wgmma");
  }
  setenv("RAMET_CUDA_ATTENTION", "wgmma", 1);
  constexpr AttentionBody kMma = AttentionBody::kTensorCores, kWgmma = AttentionBody::kWgmma;
  for (int64_t columns : {64, 128}) {
    ASSERT_NE(by(kMma, columns), by(kWgmma, columns));  // or the two cannot be distinguished
    EXPECT_EQ(automatic(columns), by(kWgmma, columns));
  }
  // Arguments that this body does not accept.
  EXPECT_EQ(automatic(72), by(kMma, 72));
  EXPECT_EQ(automatic(64, -0.3), by(kMma, 64, -0.3));
  EXPECT_EQ(automatic(64, 0.3, true), by(kMma, 64, 0.3, true));
  EXPECT_EQ(automatic(64, 0), by(AttentionBody::kPlain, 64, 0));
  setenv("RAMET_CUDA_ATTENTION", "mma", 1);  // too late
  EXPECT_EQ(automatic(64), by(kWgmma, 64));
}

}  // namespace
}  // namespace ramet::kernels
