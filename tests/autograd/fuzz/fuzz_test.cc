// A few random programs, graphs and sizes; fuzz_long_test.cc runs many.
#include "tests/autograd/fuzz/fuzz_graphs.h"
#include "tests/autograd/fuzz/fuzz_programs.h"
#include "tests/autograd/fuzz/fuzz_sizes.h"

namespace ramet {
namespace {

TEST(Fuzz, Programs) {
  fuzz::Outcomes outcomes;
  fuzz::check_tapes(3000, 300, [&](fuzz::Tape& tape) { fuzz::Program(tape).run(outcomes); });
  RecordProperty("compared", outcomes.compared);
  EXPECT_GT(outcomes.compared, 2 * outcomes.refused);
}

TEST(Fuzz, Sizes) { fuzz::check_sizes(fuzz::size_rows(), 18000); }

TEST(Fuzz, Graphs) { fuzz::check_tapes(500, 400, fuzz::check_graph); }

}  // namespace
}  // namespace ramet
