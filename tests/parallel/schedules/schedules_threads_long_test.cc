// Thousands of schedules: see schedules.h.
#include <gtest/gtest.h>

#include "tests/parallel/schedules/schedules.h"

namespace ramet {
namespace {

using namespace testing;

TEST(SchedulesLong, Training) { many_schedules(2500, check_training); }
TEST(SchedulesLong, Errors) { many_schedules(1500, check_errors); }
TEST(SchedulesLong, Movements) { many_schedules(6000, check_movements); }
TEST(SchedulesLong, Loaders) { many_schedules(2000, check_loaders); }

}  // namespace
}  // namespace ramet
