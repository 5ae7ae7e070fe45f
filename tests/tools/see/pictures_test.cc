// What pictures are drawn from: colours, ticks, means of blocks, bins.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/histogram.h"
#include "tools/see/pictures/picture.h"
#include "tools/see/pictures/values.h"

namespace ramet::see {
namespace {

const double kNaN = std::nan(""), kInf = std::numeric_limits<double>::infinity();

std::string hex(uint32_t rgb) {
  return {static_cast<char>(rgb >> 16), static_cast<char>(rgb >> 8), static_cast<char>(rgb)};
}
std::string rgb_of(Color c) {
  return {static_cast<char>(c.r), static_cast<char>(c.g), static_cast<char>(c.b)};
}

TEST(Colors, MapsGrowAsTheirSourcesSay) {
  const auto light = [](Color c) { return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b; };
  for (const ColorMap map : {ColorMap::kViridis, ColorMap::kGray})
    for (int i = 0; i < 64; ++i)
      EXPECT_LT(light(color_of(map, i / 64.0)), light(color_of(map, (i + 1) / 64.0))) << i;
  // Both sides of the middle are as dark to the eye, within a tenth.
  for (double t = 0; t < 0.5; t += 0.05)
    EXPECT_NEAR(light(color_of(ColorMap::kBalance, t)), light(color_of(ColorMap::kBalance, 1 - t)),
                25)
        << t;
  EXPECT_EQ(rgb_of(color_of(ColorMap::kViridis, 0)), hex(0x440154));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kViridis, 7 / 15.0)), hex(0x23888e));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kViridis, 1)), hex(0xfde725));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kBalance, 0.5)), hex(0xf7f7f7));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kBalance, 0)), hex(0x053061));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kBalance, 1)), hex(0x67001f));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kViridis, 5)), hex(0xfde725));
  EXPECT_EQ(rgb_of(color_of(ColorMap::kViridis, kNaN)), hex(0x440154));
}

TEST(Axis, NumbersAreShort) {
  const std::vector<std::pair<double, std::string>> texts = {
      {0, "0"},           {-0.0, "0"},          {1, "1"},
      {0.25, "0.25"},     {1.0 / 3, "0.3333"},  {-1234.56, "-1235"},
      {123456, "123456"}, {1234567, "1.235e6"}, {0.0001, "0.0001"},
      {0.00001, "1e-5"},  {9.99999, "10"},      {999999.9, "1e6"},
      {kNaN, "nan"},      {-kNaN, "nan"},       {kInf, "inf"},
      {-kInf, "-inf"},    {1e308, "1e308"},     {-5e-324, "-4.941e-324"}};
  for (const auto& [value, text] : texts) EXPECT_EQ(short_number(value), text);
  EXPECT_EQ(fixed_number(-0.001, 2), "0.00");
  EXPECT_EQ(fixed_number(2.5, 1), "2.5");
}

std::string joined(const Axis& a) {
  std::string text;
  for (const std::string& label : a.labels) text += (text.empty() ? "" : " ") + label;
  return text;
}

TEST(Axis, TicksAreNiceNumbers) {
  EXPECT_EQ(joined(axis_of(0, 10, 5)), "0 2 4 6 8 10");
  EXPECT_EQ(joined(axis_of(-0.3, 0.31, 6)), "-0.3 -0.2 -0.1 0.0 0.1 0.2 0.3");
  EXPECT_EQ(joined(axis_of(0, 2.9, 6)), "0.0 0.5 1.0 1.5 2.0 2.5");
  EXPECT_EQ(joined(axis_of(0, 2.9, 6, Ticks::kWhole)), "0 1 2");
  EXPECT_EQ(joined(axis_of(2e6, 4e6, 4)), "2.0e6 2.5e6 3.0e6 3.5e6 4.0e6");
  EXPECT_EQ(joined(axis_of(1000001, 1000002, 4)),
            "1000001.0 1000001.2 1000001.4 1000001.6 "
            "1000001.8 1000002.0");
  EXPECT_EQ(joined(axis_of(0, 3e-7, 3)), "0 1e-7 2e-7 3e-7");
  EXPECT_EQ(joined(axis_of(1e-5, 100, 8, Ticks::kLog)), "1e-5 0.0001 0.001 0.01 0.1 1 10 100");
  EXPECT_EQ(joined(axis_of(3, 70, 5, Ticks::kLog)), "5 10 20 50");
  EXPECT_EQ(joined(axis_of(3.1, 3.4, 3, Ticks::kLog)), "3.1 3.2 3.3 3.4");
  EXPECT_EQ(axis_of(3, 70, 5, Ticks::kLog, true).high, 100);
  EXPECT_EQ(axis_of(0.3, 9.4, 5, Ticks::kAny, true).low, 0);
  EXPECT_EQ(axis_of(0.3, 9.4, 5, Ticks::kAny, true).high, 10);
  EXPECT_EQ(axis_of(10, 1000, 5, Ticks::kLog).place(100), 0.5);
  EXPECT_TRUE(std::isnan(axis_of(10, 1000, 5, Ticks::kLog).place(-1)));
}

// Of any range: ticks inside it, rising, each with a text of its own that says where it stands.
TEST(Axis, TicksOfAnyRangeAreTrue) {
  uint64_t random = 12345;
  const auto next = [&] {
    random = random * 6364136223846793005 + 1442695040888963407;
    return static_cast<double>(random >> 11) * 0x1p-53;
  };
  std::vector<std::pair<double, double>> ranges = {{0, 0},
                                                   {5, 5},
                                                   {-1e300, 1e300},
                                                   {-1.7e308, 1.7e308},
                                                   {0, 5e-324},
                                                   {1e17, 1e17 + 16},
                                                   {-3e-300, 3e-300},
                                                   {1e15, 1e15 + 1},
                                                   {7, -7}};
  for (int i = 0; i < 400; ++i) {
    const double size = std::pow(10.0, 40 * next() - 20), at = (next() - 0.5) * size;
    ranges.emplace_back(at, at + size * std::pow(10.0, -6 * next()));
  }
  for (const auto& [low, high] : ranges) {
    for (const bool widen : {false, true}) {
      const Axis a = axis_of(low, high, 6, Ticks::kAny, widen);
      SCOPED_TRACE(std::to_string(low) + " to " + std::to_string(high));
      EXPECT_LT(a.low, a.high);
      EXPECT_GE(a.ticks.size(), 2u);
      EXPECT_LE(a.ticks.size(), 16u);
      std::set<std::string> labels(a.labels.begin(), a.labels.end());
      EXPECT_EQ(labels.size(), a.ticks.size()) << joined(a);
      for (size_t i = 0; i < a.ticks.size(); ++i) {
        EXPECT_GE(a.place(a.ticks[i]), -1e-5);
        EXPECT_LE(a.place(a.ticks[i]), 1 + 1e-5);
        // The text is nearer to its own tick than a tenth of the way to the next.
        EXPECT_NEAR(a.place(std::strtod(a.labels[i].c_str(), nullptr)), a.place(a.ticks[i]),
                    0.1 / static_cast<double>(a.ticks.size()))
            << a.labels[i];
      }
    }
    if (low > 0 && high > low) {
      const Axis a = axis_of(low, high, 6, Ticks::kLog, true);
      EXPECT_GE(a.ticks.size(), 2u) << low << " " << high;
      EXPECT_LE(a.low, low * (1 + 1e-8));
      EXPECT_GE(a.high, high * (1 - 1e-8));
      for (size_t i = 1; i < a.ticks.size(); ++i) EXPECT_LT(a.ticks[i - 1], a.ticks[i]);
    }
  }
}

TEST(Values, MeansOfBlocks) {
  const Tensor x = (arange(7 * 10, kDouble) * 0.37).sin().view({7, 10});
  const Cells cells = cells_of(x, 3, 4);  // blocks of 3 x 3, smaller ones at the ends
  ASSERT_EQ(cells.rows, 3);
  ASSERT_EQ(cells.columns, 4);
  EXPECT_EQ(cells.high, 3);
  EXPECT_EQ(cells.wide, 3);
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 4; ++c) {
      double sum = 0, n = 0;
      for (int64_t i = 3 * r; i < std::min<int64_t>(7, 3 * r + 3); ++i)
        for (int64_t j = 3 * c; j < std::min<int64_t>(10, 3 * c + 3); ++j, ++n)
          sum += std::sin(0.37 * static_cast<double>(10 * i + j));
      EXPECT_NEAR(cells.at(r, c), sum / n, 1e-15);
    }
  }
  Tensor odd = zeros({4, 4});
  odd[0][0].fill_(kNaN), odd[2][2].fill_(kInf), odd[3][0].fill_(3e38);
  const Cells means = cells_of(odd, 2, 2);
  EXPECT_TRUE(std::isnan(means.at(0, 0)));
  EXPECT_EQ(means.at(0, 1), 0);
  EXPECT_EQ(means.at(1, 1), kInf);
  EXPECT_NEAR(means.at(1, 0), 7.5e37, 1e32);
  // As it is, for any strides.
  const Tensor t = arange(12, kInt).view({3, 4}).t();
  EXPECT_EQ(cells_of(t, 100, 100).at(1, 2), 9);
}

TEST(Values, Facts) {
  const Facts f = facts_of(tensor({1.0, -2.0, 0.0, kNaN, kInf, -kInf, 4.0}));
  EXPECT_EQ(f.count, 7);
  EXPECT_EQ(f.zeros, 1);
  EXPECT_EQ(f.nans, 1);
  EXPECT_EQ(f.infinities, 2);
  EXPECT_EQ(f.min, -2);
  EXPECT_EQ(f.max, 4);
  EXPECT_NEAR(f.mean, 0.75, 1e-15);
  EXPECT_NEAR(f.deviation, std::sqrt((1 + 4 + 16) / 4.0 - 0.75 * 0.75), 1e-15);
  EXPECT_EQ(text_of(f), "min -2, mean 0.75, max 4, 1 NaN, 2 infinite");
  EXPECT_EQ(text_of(facts_of(full({3}, kNaN))), "no finite number, 3 NaN");
}

TEST(Histogram, EveryElementIsCountedOnce) {
  manual_seed(3);
  const std::vector<Tensor> all = {
      randn({1000}),
      rand({7, 11}),
      full({5}, 2.5),
      tensor({kNaN, kInf}),
      tensor({kNaN, 1.0, 1.0, 2.0, -kInf}),
      tensor({-1.7e308, 1.7e308, 0.0}, kDouble),
      randint(-3, 4, {500}),
      randint(0, 1000, {500}),
      rand({64}) > 0.3,
      tensor({std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}),
      (arange(11, kDouble) * 0.1)};
  for (const Tensor& x : all) {
    for (const int64_t bins : {0, 1, 10}) {
      const Facts facts = facts_of(x);
      const Histogram h = histogram_of(x, facts, bins);
      ASSERT_EQ(h.edges.size(), h.counts.size() + 1);
      if (bins > 0) { EXPECT_LE(h.counts.size(), static_cast<size_t>(bins)); }
      std::vector<int64_t> expected(h.counts.size());
      const Tensor doubles = x.to(kDouble).flatten();
      for (int64_t i = 0; i < doubles.numel(); ++i) {
        const double v = doubles[i].item<double>();
        if (!std::isfinite(v)) continue;
        size_t bin = 0;
        while (bin + 1 < expected.size() && v >= h.edges[bin + 1]) ++bin;
        ++expected[bin];
      }
      EXPECT_EQ(h.counts, expected) << x.sizes() << " " << bins;
      if (facts.finite()) {
        EXPECT_LE(h.edges.front(), facts.min);
        EXPECT_GE(h.edges.back(), facts.max);
      }
    }
  }
  const Histogram whole = histogram_of(tensor({3, 5, 5}), facts_of(tensor({3, 5, 5})), 0);
  EXPECT_EQ(whole.counts, (std::vector<int64_t>{1, 0, 2}));
  EXPECT_EQ(whole.edges, (std::vector<double>{2.5, 3.5, 4.5, 5.5}));
}

}  // namespace
}  // namespace ramet::see
