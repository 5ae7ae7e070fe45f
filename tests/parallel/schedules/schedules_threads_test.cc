// A few schedules; schedules_threads_long_test.cc tries thousands.
#include <gtest/gtest.h>

#include "tests/parallel/schedules/schedules.h"

namespace ramet {
namespace {

using namespace testing;

TEST(Schedules, Training) { many_schedules(6, check_training); }
TEST(Schedules, Errors) { many_schedules(10, check_errors); }
TEST(Schedules, Movements) { many_schedules(20, check_movements); }
TEST(Schedules, Loaders) { many_schedules(6, check_loaders); }

}  // namespace
}  // namespace ramet
