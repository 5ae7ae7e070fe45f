// Many random and damaged files, and random sizes: see fuzz_files.h and fuzz_sizes.h.
#include "tests/nn/fuzz/fuzz_files.h"
#include "tests/nn/fuzz/fuzz_sizes.h"

namespace ramet {
namespace {

TEST(FuzzLong, Safetensors) { fuzz::check_tapes(150000, 100, fuzz::check_safetensors); }
TEST(FuzzLong, Archive) { fuzz::check_tapes(150000, 100, fuzz::check_archive); }
TEST(FuzzLong, Sizes) { fuzz::check_sizes(fuzz::size_rows_of_modules(), 100000); }
TEST(FuzzLong, Idx) { fuzz::check_tapes(1000, 600, fuzz::check_idx); }

}  // namespace
}  // namespace ramet
