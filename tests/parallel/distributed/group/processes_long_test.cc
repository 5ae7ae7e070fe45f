// Deaths in the middle, many times: see processes.h.
#include "tests/fuzz.h"
#include "tests/parallel/distributed/processes.h"

namespace ramet::distributed {
namespace {

TEST(ProcessesLong, KilledInTheMiddle) {
  kill_in_the_middle("all_reduce", fuzz::rounds(50), /*share=*/false);
}
TEST(ProcessesLong, KilledBesideSharedMemory) {
  kill_in_the_middle("all_reduce", fuzz::rounds(50), /*share=*/true);
}

struct OtherCollectives : ::testing::TestWithParam<std::string> {};
TEST_P(OtherCollectives, KilledInTheMiddle) {
  for (const bool share : {false, true}) kill_in_the_middle(GetParam(), fuzz::rounds(10), share);
}
INSTANTIATE_TEST_SUITE_P(ProcessesLong, OtherCollectives, ::testing::ValuesIn(other_collectives()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ramet::distributed
