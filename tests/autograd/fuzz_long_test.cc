// Many random programs, graphs and sizes: see fuzz_programs.h, fuzz_graphs.h and fuzz_sizes.h.
#include "tests/autograd/fuzz_graphs.h"
#include "tests/autograd/fuzz_programs.h"
#include "tests/autograd/fuzz_sizes.h"

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

}  // namespace
}  // namespace ramet
