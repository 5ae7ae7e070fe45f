// lgamma, digamma and polygamma: as precise as simd/gamma.h says, by Boost.Math and published
// numbers; poles and ends; one result for all variants.
#include <cmath>
#include <limits>

#include "tests/kernels/pointwise/pointwise_reference.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using namespace pointwise_reference;
using raw::Buffer;
using raw::Values;

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

// A function by the name of its kernel, and the order of polygamma.
struct Function {
  const char* name;
  double order = 0;

  R exact(double x) const { return references().at(name).f(x, 0, 0, order, 0); }
  void into(const Buffer& x, Buffer& y) const {
    PointwiseArgs k{};
    k.a = x.data(), k.out = y.data(), k.n = x.size;
    k.a_type = k.out_type = k.compute = x.dtype;
    k.s.d = order;
    (*op_named(name).dense)(raw::kCpuStream, k);
  }
  double at(double x) const {
    Buffer in(1, kDouble), out(1, kDouble);
    in.set(0, x);
    into(in, out);
    return out[0];
  }
};
const Function kLgamma{"lgamma"}, kDigamma{"digamma"};
Function polygamma_of(double n) { return {"polygamma", n}; }

template <class T> R unit_of(R y) {  // in the last place
  const T t = std::fabs(static_cast<T>(y));
  return static_cast<R>(std::nextafter(t, std::numeric_limits<T>::infinity())) - t;
}

// The largest error in units of scale(x)'s last place, of values from low to high, evenly or (both
// above 0) evenly in the logarithm.
struct Span {
  double low, high;
  bool logarithmic = false;
};
void expect_within(const Function& f, const Span& span, double units, R (*scale)(double) = nullptr,
                   int64_t n = 20000) {
  Buffer x(n, kDouble), y(n, kDouble);
  std::vector<R> exact, unit;
  Values v(7);
  for (int64_t i = 0; i < n; ++i) {
    const double u = v.unit();
    x.set(i, span.logarithmic
                 ? std::exp(std::log(span.low) + u * (std::log(span.high) - std::log(span.low)))
                 : span.low + u * (span.high - span.low));
    exact.push_back(f.exact(x[i]));
    unit.push_back(unit_of<double>(scale ? scale(x[i]) : exact.back()));
  }
  raw::for_each_variant([&](Variant) {
    f.into(x, y);
    double worst = 0, at = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto k = static_cast<size_t>(i);
      if (y[i] == static_cast<double>(exact[k])) continue;  // infinities, too
      const double error = static_cast<double>(std::fabs(y[i] - exact[k]) / unit[k]);
      if (!(error <= worst)) worst = error, at = x[i];
    }
    EXPECT_LE(worst, units) << f.name << " " << f.order << " at " << at;
  });
}

TEST(Gamma, LogarithmIsAsPreciseAsItSays) {
  for (const Span& span : {Span{1e-300, 1e-3, true},
                           {0, 0.5},
                           {0.5, 1.5},
                           {1.5, 2.5},
                           {2.5, 8},
                           {8, 100},
                           {8, 1e305, true},
                           {-0.5, 0}})
    expect_within(kLgamma, span, 8);
  for (double zero : {1.0, 2.0}) {  // relative to values that go to 0
    expect_within(kLgamma, {zero - 1e-3, zero + 1e-3}, 4);
    expect_within(kLgamma, {zero - 1e-12, zero + 1e-12}, 4);
  }
  for (double low : {-40.0, -1e6})
    expect_within(kLgamma, {low, -0.5}, 3,
                  [](double x) -> R { return std::fabs(references::lgamma_of(1 - R(x))) + 2; });
}

TEST(Gamma, ItsDerivativeIsAsPreciseAsItSays) {
  for (const Span& span : {Span{1e-300, 1e-3, true},
                           {0, 0.96},
                           {0.96, 1.96},
                           {1.96, 10},
                           {10, 100},
                           {10, 1e305, true}})
    expect_within(kDigamma, span, 5);
  // next to its zero, relative to values of 1e-14
  expect_within(kDigamma, {1.46163214496835, 1.46163214496838}, 4);
  expect_within(kDigamma, {-30, 0}, 5, [](double x) -> R {
    const R pi = 3.14159265358979323846L, r = x - std::rint(x);
    return std::fabs(references::digamma_of(1 - R(x))) + std::fabs(pi / std::tan(pi * r));
  });
}

TEST(Gamma, HigherDerivativesAreAsPreciseAsTheySay) {
  static double order;
  for (const double n : {1, 2, 3, 4, 5, 10, 41, 100, 150}) {
    const double units = 6 + n / 3;
    for (const Span& span : {Span{0.01, 0.5}, {0.5, 2}, {2, 30}, {30, 1e5, true}})
      expect_within(polygamma_of(n), span, units, nullptr, 1000);
    order = n;
    if (n > 41) continue;  // infinite next to the poles
    if (std::fmod(n, 2) == 1) expect_within(polygamma_of(n), {-12, 0}, units, nullptr, 1000);
    else
      expect_within(
          polygamma_of(n), {-12, 0}, units,
          [](double x) -> R {
            return std::tgamma(R(order + 1)) / std::pow(std::fabs(R(x - std::rint(x))), order + 1);
          },
          1000);
  }
}

TEST(Gamma, FloatsAreRoundedOnce) {  // every so manieth float of the whole range
  const struct {
    Function f;
    uint32_t step;
  } kCases[] = {{kLgamma, 19979},         {kDigamma, 19979},        {polygamma_of(0), 99991},
                {polygamma_of(1), 49999}, {polygamma_of(2), 99991}, {polygamma_of(7), 99991}};
  for (const auto& row : kCases) {
    const Function& f = row.f;
    const uint32_t step = row.step;
    Buffer x((int64_t{1} << 32) / step, kFloat), y(x.size, kFloat);
    std::vector<R> exact;
    for (int64_t i = 0; i < x.size; ++i) {
      const auto u = static_cast<uint32_t>(i) * step;
      std::memcpy(x.as<float>() + i, &u, 4);
      exact.push_back(f.exact(static_cast<double>(x.as<float>()[i])));
    }
    raw::for_each_variant([&](Variant) {
      f.into(x, y);
      double worst = 0;
      float at = 0;
      for (int64_t i = 0; i < x.size; ++i) {
        const R want = exact[static_cast<size_t>(i)];
        const float got = y.as<float>()[i], nearest = static_cast<float>(want);
        if (std::isnan(nearest) ? std::isnan(got) : got == nearest) continue;
        const R off = std::isfinite(got) ? std::fabs(got - want) / unit_of<float>(want) : R(1e9);
        if (!(off <= worst)) worst = static_cast<double>(off), at = x.as<float>()[i];
      }
      EXPECT_LE(worst, 0.501) << f.name << " " << f.order << " at " << at;
    });
  }
}

TEST(Gamma, PublishedNumbers) {  // DLMF 5.4, 5.15 and, of negative numbers, Abramowitz and Stegun 6
  const struct {
    Function f;
    double x, want, units;
  } kCases[] = {{kLgamma, 0.5, 0.57236494292470009, 2},  // ln sqrt(pi)
                {kLgamma, -0.5, 1.2655121234846454, 2},  // ln(2 sqrt(pi))
                {kLgamma, 101, 363.73937555556349, 2},   // ln 100!
                {kDigamma, 1, -0.57721566490153287, 2},  // -Euler's constant
                {kDigamma, 0.5, -1.9635100260214235, 2},
                {kDigamma, -0.5, 0.036489973978576520, 4},
                {polygamma_of(1), 1, 1.6449340668482264, 4},  // pi^2 / 6
                {polygamma_of(1), 0.5, 4.9348022005446793, 4},
                {polygamma_of(2), 1, -2.4041138063191886, 4},  // -2 zeta(3)
                {polygamma_of(3), 1, 6.4939394022668291, 4}};  // pi^4 / 15
  raw::for_each_variant([&](Variant) {
    for (const auto& c : kCases)
      EXPECT_LE(std::fabs(c.f.at(c.x) - c.want), c.units * double(unit_of<double>(c.want)))
          << c.f.name << " of " << c.x << ": " << c.f.at(c.x);
    EXPECT_EQ(kLgamma.at(1), 0);
    EXPECT_EQ(kLgamma.at(2), 0);
  });
}

TEST(Gamma, PolesAndEnds) {
  const Function kFirst = polygamma_of(1), kSecond = polygamma_of(2);
  const struct {
    double x, lgamma, digamma, first, second;
  } kCases[] = {{0.0, kInf, -kInf, kInf, -kInf},    {-0.0, kInf, kInf, kInf, -kInf},
                {-1, kInf, kNaN, kInf, -kInf},      {-1e5, kInf, kNaN, kInf, -kInf},
                {-1e300, kInf, kNaN, kInf, -kInf},  {kInf, kInf, kInf, 0, 0},
                {-kInf, kInf, kNaN, kNaN, kNaN},    {kNaN, kNaN, kNaN, kNaN, kNaN},
                {1.7e308, kInf, 0, 1 / 1.7e308, 0}, {1e-310, 0, -kInf, kInf, -kInf},
                {-1e-310, 0, kInf, kInf, kInf},     {1e200, 0, 0, 1e-200, 0}};
  const auto expect = [](const Function& f, double x, double want) {
    const double got = f.at(x);
    if (want == 0) return;  // another column's
    EXPECT_TRUE(std::isnan(want) ? std::isnan(got)
                                 : got == want || std::fabs(got - want) <= 4e-16 * want)
        << f.name << " " << f.order << " of " << x << ": " << got;
  };
  raw::for_each_variant([&](Variant) {
    for (const auto& c : kCases) {
      expect(kLgamma, c.x, c.lgamma);
      expect(kDigamma, c.x, c.digamma);
      expect(kFirst, c.x, c.first);
      expect(kSecond, c.x, c.second);
    }
    EXPECT_EQ(kFirst.at(kInf), 0);
    EXPECT_EQ(kSecond.at(kInf), 0);
    // 171! is no number, but these are: 200! / (200 + k)^201 summed, and beyond all.
    const double far = polygamma_of(200).at(200), exact = double(polygamma_of(200).exact(200));
    EXPECT_NEAR(far / exact, 1, 1e-12);
    EXPECT_EQ(polygamma_of(200).at(0.5), -kInf);
    EXPECT_EQ(polygamma_of(200).at(-1), -kInf);
    for (double n : {1e6 + 1, 1e18})
      for (double x : {1.0, 1e17, 4e17, 5e17, kInf})  // ends, and gives no NaN
        EXPECT_FALSE(std::isnan(polygamma_of(n).at(x))) << n << " " << x;
  });
}

TEST(Gamma, OneResultForAllVariants) {
  for (const Function& f : {kLgamma, kDigamma, polygamma_of(1), polygamma_of(4)})
    for (ScalarType t : {kFloat, kDouble}) {
      Buffer x(5000, t), y(5000, t), first(5000, t);
      Values v(5);
      for (int64_t i = 0; i < x.size; ++i) x.set(i, v.signed_unit() * std::exp(5 * v.unit()));
      bool any = false;
      raw::for_each_variant([&](Variant) {
        f.into(x, y);
        if (!any) first = y, any = true;
        EXPECT_TRUE(y.same_bits(first)) << f.name << " " << f.order;
      });
    }
}

}  // namespace
}  // namespace ramet::kernels
