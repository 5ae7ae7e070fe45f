// Many random programs, graphs, sizes and windows: see fuzz_programs.h, fuzz_graphs.h, fuzz_sizes.h
// and fuzz_windows.h.
#include "tests/autograd/fuzz/fuzz_graphs.h"
#include "tests/autograd/fuzz/fuzz_programs.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"
#include "tests/autograd/fuzz/fuzz_windows.h"

namespace ramet {
namespace {

TEST(FuzzLong, Programs) {
  fuzz::Outcomes outcomes;
  fuzz::check_tapes(150000, 300, [&](fuzz::Tape& tape) { fuzz::Program(tape).run(outcomes); });
  RecordProperty("compared", outcomes.compared);
  EXPECT_GT(outcomes.compared, 2 * outcomes.refused);
}

TEST(FuzzLong, Sizes) { fuzz::check_sizes(fuzz::size_rows(), 300000); }

TEST(FuzzLong, Graphs) { fuzz::check_tapes(40000, 400, fuzz::check_graph); }

TEST(FuzzLong, FarWindows) {
  const Device host(kCPU, 0);
  fuzz::check_tapes(100000, 60, [&](fuzz::Tape& tape) { check_far_convolution(tape, host); });
  fuzz::check_tapes(100000, 60, [&](fuzz::Tape& tape) { check_far_pool(tape, host); });
}

}  // namespace
}  // namespace ramet
