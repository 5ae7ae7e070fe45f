// A few random and damaged files, and random sizes; fuzz_long_test.cc reads many.
#include "tests/nn/fuzz/fuzz_files.h"
#include "tests/nn/fuzz/fuzz_sizes.h"

namespace ramet {
namespace {

TEST(Fuzz, Safetensors) { fuzz::check_tapes(200, 100, fuzz::check_safetensors); }
TEST(Fuzz, Archive) { fuzz::check_tapes(200, 100, fuzz::check_archive); }
TEST(Fuzz, Sizes) { fuzz::check_sizes(fuzz::size_rows_of_modules(), 4000); }
TEST(Fuzz, Idx) { fuzz::check_tapes(15, 600, fuzz::check_idx); }

}  // namespace
}  // namespace ramet
