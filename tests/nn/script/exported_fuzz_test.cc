// A few damaged .pt2 files: see fuzz_exported.h.
#include "tests/nn/script/fuzz_exported.h"

namespace ramet {
namespace {

TEST(ExportedFuzz, Files) { fuzz::check_tapes(150, 40, fuzz::check_exported); }

}  // namespace
}  // namespace ramet
