// A few random and damaged files; fuzz_long_test.cc reads many.
#include "tests/nn/fuzz_files.h"

namespace ramet {
namespace {

TEST(Fuzz, Safetensors) { fuzz::check_tapes(200, 100, fuzz::check_safetensors); }
TEST(Fuzz, Archive) { fuzz::check_tapes(200, 100, fuzz::check_archive); }
TEST(Fuzz, Idx) { fuzz::check_tapes(15, 600, fuzz::check_idx); }

}  // namespace
}  // namespace ramet
