// meeting_order.h with ranks as threads, on devices of the host.
#include "tests/parallel/distributed/local_groups.h"
#include "tests/parallel/distributed/meet/meeting_order.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

void expect_every_order_on(const std::vector<Device>& devices) {
  meeting::expect_every_order(
      [&](const auto& body) { with_groups_of(2, [&](const Group& g) { body(g, devices); }); },
      40 / testing::one_repeat_in());
}

TEST(MeetingOrder, OnTheCallersDevice) { expect_every_order_on({}); }
TEST(MeetingOrder, OnAnotherDevice) { expect_every_order_on({"cpu:1"}); }
TEST(MeetingOrder, OnTwoDevices) { expect_every_order_on({"cpu:0", "cpu:1"}); }

}  // namespace
}  // namespace ramet::distributed
