#include "kernels/reduce/merge_moments.h"

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;

// Against two passes over the values themselves, in one call or in two.
TEST(MergeMoments, OfAllValues) {
  Values v(1);
  for (const int64_t n : {1, 5, 64})
    for (const int parts : {1, 2, 16}) {
      std::vector<std::vector<double>> seen(static_cast<size_t>(n));
      std::vector<Buffer> means, vars;
      std::vector<MomentsPart> all;
      means.reserve(16), vars.reserve(16);
      for (int p = 0; p < parts; ++p) {
        const int64_t count = 1 + v.below(30);
        means.emplace_back(n, kDouble), vars.emplace_back(n, kDouble);
        for (int64_t i = 0; i < n; ++i) {
          std::vector<double> part;
          double sum = 0, m2 = 0;
          for (int64_t k = 0; k < count; ++k) {
            part.push_back(3 + 5 * p + v.signed_unit());
            sum += part.back();
          }
          const double mean = sum / static_cast<double>(count);
          for (const double x : part) m2 += (x - mean) * (x - mean);
          means.back().set(i, mean);
          vars.back().set(i, count == 1 ? 0 : m2 / static_cast<double>(count - 1));
          auto& s = seen[static_cast<size_t>(i)];
          s.insert(s.end(), part.begin(), part.end());
        }
        all.push_back(
            {means.back().as<double>(), vars.back().as<double>(), static_cast<double>(count)});
      }
      raw::for_each_variant([&](Variant) {
        for (const int first : {parts, parts / 2}) {
          Buffer mean(n, kDouble), m2(n, kDouble);
          mean.fill(NAN), m2.fill(NAN);
          MergeMomentsArgs a{};
          a.mean = mean.as<double>(), a.m2 = m2.as<double>(), a.n = n;
          for (const auto& [begin, end] : {std::pair(0, first), std::pair(first, parts)}) {
            if (begin == end) continue;
            a.parts = end - begin;
            for (int p = begin; p < end; ++p) a.part[p - begin] = all[static_cast<size_t>(p)];
            merge_moments(raw::kCpuStream, a);
            for (int p = begin; p < end; ++p) a.count += all[static_cast<size_t>(p)].count;
          }
          ASSERT_TRUE(mean.guards_intact() && m2.guards_intact());
          for (int64_t i = 0; i < n; ++i) {
            const auto& s = seen[static_cast<size_t>(i)];
            double sum = 0, squares = 0;
            for (const double x : s) sum += x;
            const double expected = sum / static_cast<double>(s.size());
            for (const double x : s) squares += (x - expected) * (x - expected);
            ASSERT_NEAR(mean[i], expected, 1e-13 * std::abs(expected));
            ASSERT_NEAR(m2[i], squares, 1e-12 * (1 + squares));
          }
        }
      });
    }
}

// The first part is taken as it is: nothing is rounded, and no square of its mean made.
TEST(MergeMoments, TheFirstPart) {
  Buffer means(2, kDouble), vars(2, kDouble);
  means.set(0, 0.1), means.set(1, std::ldexp(1.0, 600));
  vars.set(0, 0.7), vars.set(1, 0);
  raw::for_each_variant([&](Variant) {
    for (const int parts : {1, 2}) {
      Buffer mean(2, kDouble), m2(2, kDouble);
      mean.fill(NAN), m2.fill(NAN);
      MergeMomentsArgs a{};
      a.mean = mean.as<double>(), a.m2 = m2.as<double>(), a.n = 2, a.parts = parts;
      for (int p = 0; p < parts; ++p) a.part[p] = {means.as<double>(), vars.as<double>(), 3};
      merge_moments(raw::kCpuStream, a);
      EXPECT_EQ(mean[0], 0.1);
      EXPECT_EQ(mean[1], std::ldexp(1.0, 600));
      EXPECT_EQ(m2[0], 0.7 * 2 * parts);
      EXPECT_EQ(m2[1], 0);
    }
  });
}

}  // namespace
}  // namespace ramet::kernels
