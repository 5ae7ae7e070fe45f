// A few damaged TorchScript files: see fuzz_script.h.
#include "tests/nn/script/fuzz_script.h"

namespace ramet {
namespace {

TEST(ScriptFuzz, Files) { fuzz::check_tapes(150, 40, fuzz::check_script); }

}  // namespace
}  // namespace ramet
