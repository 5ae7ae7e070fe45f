// A few damaged texts of TorchScript: see fuzz_texts.h.
#include "tests/nn/script/fuzz_texts.h"

namespace ramet {
namespace {

TEST(TextsFuzz, Texts) { fuzz::check_tapes(500, 40, fuzz::check_text); }
TEST(TextsFuzz, Origins) { fuzz::check_tapes(500, 40, fuzz::check_origins); }

}  // namespace
}  // namespace ramet
