// Kills of checkpoint_processes_test.cc, many times.
#include "tests/parallel/distributed/checkpoint/checkpoint_kills.h"

namespace ramet::distributed {
namespace {

TEST(CheckpointProcessesLong, KilledAtAnyMoment) { killed_at_any_moment(200); }

}  // namespace
}  // namespace ramet::distributed
