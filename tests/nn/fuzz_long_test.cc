// Many random and damaged files: see fuzz_files.h.
#include "tests/nn/fuzz_files.h"

namespace ramet {
namespace {

TEST(FuzzLong, Safetensors) { fuzz::check_tapes(150000, 100, fuzz::check_safetensors); }
TEST(FuzzLong, Archive) { fuzz::check_tapes(150000, 100, fuzz::check_archive); }
TEST(FuzzLong, Idx) { fuzz::check_tapes(1000, 600, fuzz::check_idx); }

}  // namespace
}  // namespace ramet
