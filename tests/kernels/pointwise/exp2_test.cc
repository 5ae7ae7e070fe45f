// exp2 in each of the processor's rounding modes: as precise as simd/library.h says, and exact at
// its ends. Floats and doubles, all variants.
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/pointwise/pointwise_reference.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

void exp2_in_mode(int mode, const raw::Buffer& x, raw::Buffer& y) {
  PointwiseArgs k{};
  k.a = x.data(), k.out = y.data(), k.n = x.size;
  k.a_type = k.out_type = k.compute = x.dtype;
  const auto& dense = *pointwise_reference::op_named("exp2").dense;
  const int before = std::fegetround();
  std::fesetround(mode);
  dense(raw::kCpuStream, k);
  std::fesetround(before);
}

// The distance to the next number of type T.
template <class T> double step_at(long double y) {
  const T t = static_cast<T>(std::fabs(y));
  return std::nextafter(t, std::numeric_limits<T>::infinity()) - t;
}

template <class T> void check_exp2(int mode, double low, double high, double units) {
  const ScalarType dtype = sizeof(T) == 4 ? kFloat : kDouble;
  raw::Buffer x(2000, dtype), y(2000, dtype);
  raw::Values v(11);
  for (int64_t i = 0; i < x.size; ++i) x.set(i, low + v.unit() * (high - low));
  raw::for_each_variant([&](Variant) {
    exp2_in_mode(mode, x, y);
    for (int64_t i = 0; i < x.size; ++i) {
      const long double exact = std::exp2(static_cast<long double>(x[i]));
      ASSERT_LE(std::fabs(y[i] - static_cast<double>(exact)), (units + 0.01) * step_at<T>(exact))
          << x[i] << " in mode " << mode;
    }
  });
}

TEST(Exp2, IsPreciseInEveryRoundingMode) {
  for (const int mode : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO}) {
    // The reference in double is half a unit off itself.
    const double other = mode == FE_TONEAREST ? 0.7 : 1.3;
    check_exp2<double>(mode, -1000, 1000, other + 0.5);
    check_exp2<double>(mode, -1, 1, other + 0.5);
    check_exp2<float>(mode, -120, 120, mode == FE_TONEAREST ? 0.5 : 1);
  }
}

TEST(Exp2, IsInfiniteAndZeroAtItsEndsInEveryRoundingMode) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, double>> ends = {{inf, inf},  {-inf, 0},   {1e300, inf},
                                                       {-1e300, 0}, {1025, inf}, {-1080, 0},
                                                       {0, 1},      {10, 1024}};
  for (const int mode : {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO})
    for (const ScalarType dtype : {kFloat, kDouble}) {
      raw::Buffer x(16, dtype), y(16, dtype);
      for (size_t i = 0; i < ends.size(); ++i) x.set(static_cast<int64_t>(i), ends[i].first);
      raw::for_each_variant([&](Variant) {
        exp2_in_mode(mode, x, y);
        for (size_t i = 0; i < ends.size(); ++i)
          EXPECT_EQ(y[static_cast<int64_t>(i)], ends[i].second)
              << ends[i].first << " of " << dtype << " in mode " << mode;
      });
    }
}

}  // namespace
}  // namespace ramet::kernels
