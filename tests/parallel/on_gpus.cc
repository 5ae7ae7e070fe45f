// The devices d(k) of the tests that link this are GPUs (support.h).
#include "tests/parallel/support.h"

namespace ramet::testing {

void tests_use_gpus() {}

namespace {
// Before the first CUDA call, which is in some test.
[[maybe_unused]] const int kFourGpus = setenv("RAMET_EMULATED_DEVICES", "4", /*overwrite=*/0);
}  // namespace

}  // namespace ramet::testing
