// Parts of tensors against a reference that marks every element.
#include "parallel/distributed/shard/tensor_part.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/error_text.h"

namespace ramet::distributed {
namespace {

// Which elements of the whole a part has, one by one, in its order.
std::vector<int64_t> elements(const std::vector<int64_t>& sizes, const std::vector<Cut>& cuts) {
  std::vector<int64_t> now(static_cast<size_t>(elements_of(sizes)));
  std::iota(now.begin(), now.end(), int64_t{0});
  for (const Cut& c : cuts) {
    std::vector<int64_t> rest;
    for (int64_t i = 0; i < static_cast<int64_t>(now.size()); ++i) {
      const int64_t place = i / c.inner % c.extent;
      if (place >= c.begin && place < c.begin + c.length)
        rest.push_back(now[static_cast<size_t>(i)]);
    }
    now = std::move(rest);
  }
  return now;
}
std::vector<int64_t> elements(const std::vector<PartRun>& runs) {
  std::vector<int64_t> all;
  for (const PartRun& r : runs) {
    EXPECT_GT(r.length, 0);
    EXPECT_EQ(r.local, static_cast<int64_t>(all.size()));
    for (int64_t i = 0; i < r.length; ++i) all.push_back(r.whole + i);
  }
  return all;
}

TEST(TensorPart, RunsOfColumnsAndOfAPieceOfThem) {
  // Columns 2 and 3 of a 3 x 5 matrix: 2 3 | 7 8 | 12 13.
  const Cut columns{3, 5, 1, 2, 2};
  EXPECT_EQ(runs_of("w", {3, 5}, {columns}),
            (std::vector<PartRun>{{2, 0, 2}, {7, 2, 2}, {12, 4, 2}}));
  // The second half of those, laid flat: 8 | 12 13.
  EXPECT_EQ(runs_of("w", {3, 5}, {columns, {1, 6, 1, 3, 3}}),
            (std::vector<PartRun>{{8, 0, 1}, {12, 1, 2}}));
  // Rows, and everything, are one run.
  EXPECT_EQ(runs_of("w", {3, 5}, {{1, 3, 5, 1, 2}}), (std::vector<PartRun>{{5, 0, 10}}));
  EXPECT_EQ(runs_of("w", {3, 5}, {}), (std::vector<PartRun>{{0, 0, 15}}));
  EXPECT_EQ(runs_of("w", {3, 5}, {{3, 5, 1, 0, 5}}), (std::vector<PartRun>{{0, 0, 15}}));
  EXPECT_EQ(runs_of("w", {}, {}), (std::vector<PartRun>{{0, 0, 1}}));
  EXPECT_TRUE(runs_of("w", {3, 5}, {{1, 15, 1, 15, 0}}).empty());
  EXPECT_TRUE(runs_of("w", {3, 0}, {}).empty());
  EXPECT_TRUE(runs_of("w", {0, 4}, {{0, 4, 1, 1, 2}}).empty());
}

// Random shapes, and one to three random cuts.
TEST(TensorPart, RunsIntersectionsAndDifferencesAsElementByElement) {
  std::mt19937 random(3);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto draw_cuts = [&](const std::vector<int64_t>& sizes) {
    std::vector<Cut> cuts;
    const size_t dim = static_cast<size_t>(draw(0, 2));
    int64_t outer = 1, inner = 1;
    for (size_t d = 0; d < dim; ++d) outer *= sizes[d];
    for (size_t d = dim + 1; d < 3; ++d) inner *= sizes[d];
    const auto place = [&](Cut c) {
      c.begin = draw(0, c.extent), c.length = draw(0, c.extent - c.begin);
      return c;
    };
    if (draw(0, 4)) cuts.push_back(place({outer, sizes[dim], inner, 0, 0}));
    for (int64_t more = draw(0, 2); more > 0; --more)
      cuts.push_back(place({1, elements_of("w", sizes, cuts), 1, 0, 0}));
    return cuts;
  };
  for (int round = 0; round < 2000; ++round) {
    const std::vector<int64_t> sizes{draw(1, 5), draw(1, 5), draw(1, 5)};
    const auto a = draw_cuts(sizes), b = draw_cuts(sizes);
    const auto runs_a = runs_of("w", sizes, a), runs_b = runs_of("w", sizes, b);
    const auto in_a = elements(sizes, a), in_b = elements(sizes, b);
    ASSERT_EQ(elements(runs_a), in_a);
    ASSERT_EQ(elements_of("w", sizes, a), static_cast<int64_t>(in_a.size()));
    for (size_t i = 1; i < runs_a.size(); ++i)  // as few as there can be
      ASSERT_GT(runs_a[i].whole, runs_a[i - 1].whole + runs_a[i - 1].length);

    std::vector<std::pair<int64_t, int64_t>> expected, copied;
    std::vector<int64_t> rest;
    for (size_t i = 0; i < in_a.size(); ++i) {
      const auto found = std::find(in_b.begin(), in_b.end(), in_a[i]);
      if (found == in_b.end()) rest.push_back(in_a[i]);
      else expected.emplace_back(i, found - in_b.begin());
    }
    for (const CopyRun& c : intersect(runs_a, runs_b))
      for (int64_t i = 0; i < c.length; ++i) copied.emplace_back(c.from + i, c.to + i);
    ASSERT_EQ(copied, expected);

    std::vector<int64_t> left;
    for (const PartRun& r : subtract(runs_a, runs_b))
      for (int64_t i = 0; i < r.length; ++i) {
        left.push_back(r.whole + i);
        ASSERT_EQ(in_a[static_cast<size_t>(r.local + i)], r.whole + i);
      }
    ASSERT_EQ(left, rest);
  }
}

TEST(TensorPart, CutsThatDoNotFit) {
  const auto said = [](const std::vector<int64_t>& sizes, const std::vector<Cut>& cuts) {
    return error_of([&] { runs_of("fc.weight", sizes, cuts); });
  };
  expect_part(said({3, 5}, {{1, 14, 1, 0, 7}}),
              "[TensorPart] \"fc.weight\": got a cut of 1 x 14 x 1 elements, expected 15");
  expect_part(said({3, 5}, {{1, 15, 1, 8, 8}}), "got the cut [8, 8 + 8) of 15");
  expect_part(said({3, 5}, {{1, 15, 1, -1, 2}}), "got the cut [-1, -1 + 2) of 15");
  expect_part(said({3, 5}, {{1, 15, 1, 8, 7}, {1, 15, 1, 0, 1}}), "expected 7");
  expect_part(said({3, -5}, {}), "got a size of -5, expected at least 0");
  expect_part(said({int64_t{1} << 40, int64_t{1} << 40}, {}), "too many elements");
}

}  // namespace
}  // namespace ramet::distributed
