// The pure bucket plan.
#include "parallel/move/bucket.h"

#include <gtest/gtest.h>

#include "tests/parallel/support.h"

namespace ramet {
namespace {

using namespace parallel;
using Groups = std::vector<std::vector<size_t>>;

std::vector<BucketItem> floats(const std::vector<int64_t>& counts) {
  std::vector<BucketItem> out;
  for (int64_t n : counts) out.push_back({4 * n, kFloat});
  return out;
}
// float32[50] and float64[25], 200 bytes each, alternating.
std::vector<BucketItem> alternating() {
  std::vector<BucketItem> out;
  for (int i = 0; i < 3; ++i) {
    out.push_back({200, kFloat});
    out.push_back({200, kDouble});
  }
  return out;
}

TEST(PlanBuckets, OursClosesBeforeTheLimitIsExceeded) {
  EXPECT_EQ(plan_buckets(floats({1, 1, 1, 1}), int64_t{8}), (Groups{{0, 1}, {2, 3}}));
  EXPECT_EQ(plan_buckets(floats({1, 5, 1}), int64_t{8}), (Groups{{0}, {1}, {2}}))
      << "one alone may exceed it";
  EXPECT_EQ(plan_buckets(floats({1, 1}), int64_t{0}), (Groups{{0}, {1}}));
  EXPECT_EQ(plan_buckets(floats({0, 0, 1}), int64_t{4}), (Groups{{0, 1, 2}}));
  EXPECT_TRUE(plan_buckets({}, int64_t{8}).empty());
}

TEST(PlanBuckets, OursListsByFirstMember) {
  EXPECT_EQ(plan_buckets(alternating(), int64_t{400}), (Groups{{0, 2}, {1, 3}, {4}, {5}}));
  EXPECT_EQ(plan_buckets({{4, kFloat, 0}, {4, kFloat, 1}, {4, kFloat, 0}}, int64_t{100}),
            (Groups{{0, 2}, {1}}));
}

TEST(PlanBuckets, Upstream) {
  // Expected lists: PyTorch's own tests of its DDP bucket rule.
  EXPECT_EQ(plan_buckets(floats({100, 200, 100, 50}), int64_t{400}, GroupRule::upstream),
            (Groups{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(plan_buckets(alternating(), int64_t{400}, GroupRule::upstream),
            (Groups{{0, 2}, {1, 3}, {4}, {5}}));
  EXPECT_EQ(plan_buckets(floats({10, 10, 10, 10}), {40, 80}, GroupRule::upstream),
            (Groups{{0}, {1, 2}, {3}}));
  EXPECT_EQ(plan_buckets(alternating(), {200, 400}, GroupRule::upstream),
            (Groups{{0}, {1}, {2, 4}, {3, 5}}));
}

TEST(PlanBuckets, Errors) {
  EXPECT_ERROR_TEXT(plan_buckets(floats({1}), ArrayRef<int64_t>()), "expected at least one");
  EXPECT_ERROR_TEXT(plan_buckets(floats({1}), int64_t{-1}), "limit: got -1");
  // Sums that wrap.
  const BucketItem huge{INT64_MAX - 1, kFloat};
  EXPECT_EQ(plan_buckets({huge, huge}, int64_t{100}), (Groups{{0}, {1}}));
  EXPECT_ERROR_TEXT(plan_buckets({huge, huge}, INT64_MAX, GroupRule::upstream), "bytes of a group");
}

}  // namespace
}  // namespace ramet
