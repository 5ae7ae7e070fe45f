// Many damaged .pt2 files, some minutes: see fuzz_exported.h.
#include "tests/nn/script/fuzz_exported.h"

namespace ramet {
namespace {

TEST(ExportedFuzzLong, Files) { fuzz::check_tapes(200000, 60, fuzz::check_exported); }

}  // namespace
}  // namespace ramet
