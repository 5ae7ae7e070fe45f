// Many damaged files of other programs, half a minute to a minute of each kind: see fuzz_formats.h.
#include "tests/nn/formats/fuzz_formats.h"

namespace ramet {
namespace {

TEST(FormatsFuzzLong, Npy) { fuzz::check_tapes(1000000, 60, fuzz::check_npy); }
TEST(FormatsFuzzLong, Npz) { fuzz::check_tapes(150000, 60, fuzz::check_npz); }
TEST(FormatsFuzzLong, Pt) { fuzz::check_tapes(100000, 60, fuzz::check_pt); }
TEST(FormatsFuzzLong, OldPt) { fuzz::check_tapes(300000, 60, fuzz::check_old_pt); }
TEST(FormatsFuzzLong, Pickles) { fuzz::check_tapes(300000, 100, fuzz::check_pickle); }
TEST(FormatsFuzzLong, Index) { fuzz::check_tapes(2000, 60, fuzz::check_index); }
TEST(FormatsFuzzLong, Mapped) { fuzz::check_tapes(10000, 200, fuzz::check_mapped); }

}  // namespace
}  // namespace ramet
