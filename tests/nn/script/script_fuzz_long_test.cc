// Many damaged TorchScript files, some minutes: see fuzz_script.h.
#include "tests/nn/script/fuzz_script.h"

namespace ramet {
namespace {

TEST(ScriptFuzzLong, Files) { fuzz::check_tapes(200000, 60, fuzz::check_script); }

}  // namespace
}  // namespace ramet
