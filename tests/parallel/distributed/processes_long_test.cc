// Deaths in the middle, many times: see processes.h.
#include "tests/fuzz.h"
#include "tests/parallel/distributed/processes.h"

namespace ramet::distributed {
namespace {

TEST(ProcessesLong, KilledInTheMiddle) { kill_in_the_middle(fuzz::rounds(50), /*share=*/false); }
TEST(ProcessesLong, KilledBesideSharedMemory) {
  kill_in_the_middle(fuzz::rounds(50), /*share=*/true);
}

}  // namespace
}  // namespace ramet::distributed
