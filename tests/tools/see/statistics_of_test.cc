// Numbers about values, against their definitions.
#include "tools/see/statistics_of.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ramet.h"
#include "runtime/base/thread_pool.h"
#include "tests/autograd/check.h"
#include "tests/tools/see/recording_looks.h"
#include "tools/see/recording.h"

namespace ramet {
namespace see {
namespace {

// What statistics are by their definitions, one value after another.
Statistics by_hand(const std::vector<double>& x) {
  Statistics s;
  s.count = static_cast<int64_t>(x.size());
  std::vector<double> finite;
  for (const double v : x) {
    s.zeros += v == 0;
    if (std::isfinite(v)) finite.push_back(v);
    else ++(std::isnan(v) ? s.nans : s.infinities);
  }
  if (finite.empty()) return s;
  s.min = *std::ranges::min_element(finite), s.max = *std::ranges::max_element(finite);
  const auto n = static_cast<double>(finite.size());
  for (const double v : finite) s.mean += v / n;
  double variance = 0;
  for (const double v : finite) {
    variance += (v - s.mean) * (v - s.mean) / n;
    const double bin = s.max > s.min ? (v - s.min) / (s.max - s.min) * 32 : 0;
    ++s.histogram[std::min(static_cast<size_t>(bin), size_t{31})];
  }
  s.deviation = std::sqrt(variance);
  return s;
}

// Values with exact bins in each dtype, in sizes around those of vectors, buffers and pieces.
TEST(StatisticsOf, AreThoseByTheirDefinition) {
  for (const ScalarType type : {kFloat, kDouble, kHalf, kBFloat16, kLong, kInt, kShort, kChar})
    for (const int64_t n : {1, 2, 31, 32, 33, 4095, 4097, 32768, 32769, 100003}) {
      std::vector<double> x(static_cast<size_t>(n));
      uint64_t random = static_cast<uint64_t>(n);
      for (double& v : x) {
        random = random * 6364136223846793005 + 1442695040888963407;
        v = static_cast<double>(random >> 58) - 32;
      }
      if (n > 30) x[7] = -32, x[n - 1] = 32;
      if (isFloatingType(type)) {
        for (double& v : x) v /= 4;
        if (n > 30) {
          x[3] = x[n - 2] = std::nan(""), x[n - 3] = std::numeric_limits<double>::infinity();
          x[20] = -x[n - 3];
        }
      }
      // Every second element of a tensor, so that it is not contiguous.
      const Tensor t = empty({n, 2}, type).fill_(1);
      t.select(1, 1).copy_(tensor(x, kDouble));
      const Statistics s = statistics_of(t.select(1, 1));
      Statistics expected = by_hand(x);
      EXPECT_NEAR(s.mean, expected.mean, 1e-9) << name_of(type) << " " << n;
      EXPECT_NEAR(s.deviation, expected.deviation, 1e-6) << name_of(type) << " " << n;
      expected.mean = s.mean, expected.deviation = s.deviation, expected.digest = s.digest;
      EXPECT_EQ(s, expected) << name_of(type) << " " << n;
      EXPECT_EQ(s.digest, statistics_of(t.select(1, 1).contiguous()).digest);
      const int threads = get_num_threads();
      set_num_threads(threads == 1 ? 3 : 1);
      EXPECT_EQ(s, statistics_of(t.select(1, 1))) << name_of(type) << " " << n;
      set_num_threads(threads);
    }
  const Statistics truth = statistics_of(tensor({true, false, true, true}));
  EXPECT_EQ(truth.zeros, 1);
  EXPECT_EQ(truth.mean, 0.75);
  EXPECT_EQ(truth.histogram[31], 3);
  EXPECT_EQ(statistics_of(zeros({0})), Statistics());
}

TEST(StatisticsOf, VeryLargeAndVerySmallNumbers) {
  for (const ScalarType type : {kFloat, kDouble}) {
    const double large =
        type == kFloat ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
    const double small = type == kFloat ? std::numeric_limits<float>::denorm_min()
                                        : std::numeric_limits<double>::denorm_min();
    const Statistics one_sign = statistics_of(full({100}, large, type));
    EXPECT_NEAR(one_sign.mean / large, 1, 1e-12);
    EXPECT_EQ(one_sign.deviation, 0);
    EXPECT_EQ(one_sign.histogram[0], 100);
    const Statistics both = statistics_of(constant({large, -large}).to(type));
    EXPECT_NEAR(both.deviation / large, 1, 1e-6);
    EXPECT_EQ(both.histogram[0] + both.histogram[31], 2);
    const Statistics tiny = statistics_of(constant({0, 4 * small, 8 * small}).to(type));
    EXPECT_EQ(tiny.max, 8 * small);
    EXPECT_EQ(tiny.histogram[16], 1);
    EXPECT_NEAR(tiny.deviation / small, std::sqrt(32 / 3.0), type == kFloat ? 1e-5 : 1);
  }
  // Deviations from a mean that float cannot hold.
  std::vector<double> x(1000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1e6 + static_cast<double>(i % 2) / 8;
  const Statistics far = statistics_of(tensor(x, kDouble).to(kFloat));
  EXPECT_NEAR(far.mean, 1e6 + 1 / 16.0, 1e-6);
  EXPECT_NEAR(far.deviation, 1 / 16.0, 1e-6);
}

// By bits, not by what double has of the values.
TEST(StatisticsOf, DigestsOfDifferentBitsDiffer) {
  const int64_t big = int64_t{1} << 53;
  const auto digest = [](const Tensor& t) { return statistics_of(t).digest; };
  EXPECT_EQ(static_cast<double>(big), static_cast<double>(big + 1));
  EXPECT_NE(digest(full({2}, big, kLong)), digest(full({2}, big + 1, kLong)));
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_NE(digest(full({2}, most, kLong)), digest(full({2}, most - 1, kLong)));
  EXPECT_NE(digest(constant({0.0})), digest(constant({-0.0})));
  for (const ScalarType type :
       {kFloat, kDouble, kHalf, kBFloat16, kLong, kInt, kShort, kChar, kByte, kBool}) {
    EXPECT_NE(digest(full({3}, 1, type)), digest(zeros({3}, type))) << name_of(type);
    EXPECT_EQ(digest(full({3}, 1, type)), digest(ones({3}, type))) << name_of(type);
  }
}

TEST(StatisticsOf, NoNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const Tensor x = leaf({nan, inf, -inf, 1e308, -1e308});
  Recording r({.statistics = true});
  (void)(x * 1);
  (void)(leaf({nan}) * 1);
  const RecordingData d = r.data();
  expect_whole(d);
  const Statistics& s = statistics(d, d.operations.at(0).outputs.at(0));
  EXPECT_EQ(s.nans, 1);
  EXPECT_EQ(s.infinities, 2);
  EXPECT_EQ(s.min, -1e308);
  EXPECT_EQ(s.max, 1e308);
  EXPECT_EQ(s.mean, 0);
  EXPECT_NEAR(s.deviation / 1e308, 1, 1e-9);
  EXPECT_EQ(s.histogram[0], 1);
  EXPECT_EQ(s.histogram[31], 1);
  const Statistics& none = statistics(d, d.operations.at(1).outputs.at(0));
  EXPECT_EQ(none.nans, 1);
  EXPECT_EQ(none.max, 0);
  EXPECT_EQ(none.histogram, Statistics().histogram);
}

}  // namespace
}  // namespace see
}  // namespace ramet
