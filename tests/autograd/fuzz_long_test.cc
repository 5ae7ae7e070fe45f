// Many random programs and graphs: see fuzz_programs.h and fuzz_graphs.h.
#include "tests/autograd/fuzz_graphs.h"
#include "tests/autograd/fuzz_programs.h"

namespace ramet {
namespace {

TEST(FuzzLong, Programs) {
  fuzz::Outcomes outcomes;
  fuzz::check_tapes(150000, 300, [&](fuzz::Tape& tape) { fuzz::Program(tape).run(outcomes); });
  RecordProperty("compared", outcomes.compared);
  EXPECT_GT(outcomes.compared, 2 * outcomes.refused);
}

TEST(FuzzLong, Graphs) { fuzz::check_tapes(40000, 400, fuzz::check_graph); }

}  // namespace
}  // namespace ramet
