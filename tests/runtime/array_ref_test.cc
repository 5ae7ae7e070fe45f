#include "runtime/base/array_ref.h"

#include <array>
#include <numeric>
#include <sstream>

#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

int64_t sum(IntArrayRef list) { return std::accumulate(list.begin(), list.end(), int64_t{0}); }
int64_t sum_or(OptionalIntArrayRef list) { return list.has_value() ? sum(*list) : -1; }

TEST(ArrayRef, FromEverything) {
  const std::vector<int64_t> vector{1, 2, 3};
  const std::array<int64_t, 2> array{4, 5};
  const int64_t raw[] = {6, 7};
  EXPECT_EQ(sum(vector), 6);
  EXPECT_EQ(sum(array), 9);
  EXPECT_EQ(sum(raw), 13);
  EXPECT_EQ(sum({8, 9}), 17);
  EXPECT_EQ(sum({}), 0);
  EXPECT_EQ(sum(5), 5);
  EXPECT_EQ(sum({5}), 5);
  EXPECT_EQ(sum({vector.data(), 2}), 3);
  EXPECT_EQ(sum({vector.data() + 1, vector.data() + 3}), 5);
}

TEST(ArrayRef, Optional) {
  EXPECT_EQ(sum_or(std::nullopt), -1);
  EXPECT_EQ(sum_or({}), -1);
  EXPECT_EQ(sum_or(3), 3);
  EXPECT_EQ(sum_or({1, 2}), 3);
  EXPECT_EQ(sum_or(std::vector<int64_t>{1, 4}), 5);
  EXPECT_EQ(sum_or(IntArrayRef()), 0);
  EXPECT_ERROR(OptionalIntArrayRef().value(), Error, "value() where there is none");
}

TEST(ArrayRef, Reads) {
  const std::vector<int64_t> v{1, 2, 3};
  const IntArrayRef list(v);
  EXPECT_EQ(list.front() + list.back() + list[1] + list.at(1), 8);
  EXPECT_ERROR(list.at(3), Error, "index: got 3, expected less than 3");
  EXPECT_ERROR(IntArrayRef().front(), Error, "[ArrayRef] front() of an empty list");
  EXPECT_ERROR(IntArrayRef().back(), Error, "[ArrayRef] back() of an empty list");
  EXPECT_ERROR(list.slice(4), Error, "slice: got a start at 4, expected at most 3");
  EXPECT_ERROR(list.slice(1, 3), Error, "slice: got 3 from 1, expected a part of 3");
  EXPECT_ERROR(list.slice(2, SIZE_MAX), Error, "expected a part of 3");
  EXPECT_TRUE(list.slice(3).empty());
  EXPECT_TRUE(list.slice(1) == (std::vector<int64_t>{2, 3}));
  EXPECT_TRUE(list.slice(0, 2) == (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(list != (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(list == v && v == list && !(list != list));
  EXPECT_EQ(list.vec(), v);
  EXPECT_TRUE(IntArrayRef().empty());
  std::ostringstream text;
  text << list << IntArrayRef();
  EXPECT_EQ(text.str(), "[1, 2, 3][]");
}

}  // namespace
}  // namespace ramet
