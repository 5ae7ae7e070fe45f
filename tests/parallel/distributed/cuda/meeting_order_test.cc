// meeting_order.h with ranks that have GPUs of their own.
#include "tests/parallel/distributed/meet/meeting_order.h"

#include "tests/parallel/distributed/cuda/gpu_groups.h"

namespace ramet::testing {
namespace {

void expect_every_order_on(const Way& way, int gpus_each, bool driver_waits = false) {
  const Gpus gpus(rank_gpus(2 * gpus_each, emulated::StreamMode::Async, driver_waits));
  distributed::meeting::expect_every_order(
      [&](const auto& body) {
        with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
          std::vector<Device> devices;
          for (int i = 0; i < gpus_each; ++i) devices.push_back(gpu(g->rank() * gpus_each + i));
          body(g, devices);
        });
      },
      8);
}

TEST(MeetingOrderOnGpus, OneEach) {
  RAMET_NEEDS_CARDS(2);
  for (const Way& way : ways({kStagedThreads, kNcclThreads})) {
    SCOPED_TRACE(way);
    expect_every_order_on(way, 1);
  }
}
// No order makes a circle with a driver that waits for the device where it may.
TEST(MeetingOrderOnGpus, OneEachWithADriverThatWaits) {
  RAMET_EMULATED_ONLY("a driver that waits on demand");
  expect_every_order_on(kNcclThreads, 1, /*driver_waits=*/true);
}
TEST(MeetingOrderOnGpus, TwoEach) {
  RAMET_NEEDS_CARDS(4);
  expect_every_order_on(kStagedThreads, 2);
}

}  // namespace
}  // namespace ramet::testing
