// Many damaged texts of TorchScript, some minutes: see fuzz_texts.h.
#include "tests/nn/script/fuzz_texts.h"

namespace ramet {
namespace {

TEST(TextsFuzzLong, Texts) { fuzz::check_tapes(300000, 40, fuzz::check_text); }
TEST(TextsFuzzLong, Origins) { fuzz::check_tapes(300000, 40, fuzz::check_origins); }

}  // namespace
}  // namespace ramet
