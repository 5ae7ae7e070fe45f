#include "runtime/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "runtime/base/type_meta.h"

namespace ramet {
namespace {

// torch.promote_types of PyTorch 2.15, in the order of ScalarType. It refuses uint16 (6) and uint32
// (7) with other integers and bool: there NumPy's promote_types.
constexpr int kPromoted[kScalarTypes][kScalarTypes] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    {1, 1, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    {2, 3, 2, 3, 4, 5, 4, 5, 8, 9, 10, 11},
    {3, 3, 3, 3, 4, 5, 4, 5, 8, 9, 10, 11},
    {4, 4, 4, 4, 4, 5, 4, 5, 8, 9, 10, 11},
    {5, 5, 5, 5, 5, 5, 5, 5, 8, 9, 10, 11},
    {6, 6, 4, 4, 4, 5, 6, 7, 8, 9, 10, 11},
    {7, 7, 5, 5, 5, 5, 7, 7, 8, 9, 10, 11},
    {8, 8, 8, 8, 8, 8, 8, 8, 8, 10, 10, 11},
    {9, 9, 9, 9, 9, 9, 9, 9, 10, 9, 10, 11},
    {10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11},
    {11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11},
};

TEST(Dtype, PromotionIsLibTorchs) {
  for (int a = 0; a < kScalarTypes; ++a)
    for (int b = 0; b < kScalarTypes; ++b)
      EXPECT_EQ(promote_types(static_cast<ScalarType>(a), static_cast<ScalarType>(b)),
                static_cast<ScalarType>(kPromoted[a][b]))
          << a << " " << b;
  EXPECT_EQ(promote_types(kFloat, ScalarType::Undefined), ScalarType::Undefined);
}

template <class T> void same_size() {
  EXPECT_EQ(item_size(ScalarTypeOf<T>::value), sizeof(T)) << ScalarTypeOf<T>::value;
}

TEST(Dtype, Sizes) {
  same_size<bool>(), same_size<uint8_t>(), same_size<int8_t>(), same_size<int16_t>(),
      same_size<int32_t>(), same_size<uint16_t>(), same_size<uint32_t>();
  same_size<int64_t>(), same_size<long long>(), same_size<Half>(), same_size<BFloat16>(),
      same_size<float>(), same_size<double>();
}

TEST(Dtype, Groups) {
  EXPECT_TRUE(is_integral(kBool));
  EXPECT_FALSE(is_integral(kBool, false));
  for (const ScalarType t : {kByte, kChar, kShort, kInt, kLong, kUInt16, kUInt32})
    EXPECT_TRUE(is_integral(t, false) && !is_floating(t)) << t;
  for (const ScalarType t : {kHalf, kBFloat16, kFloat, kDouble})
    EXPECT_TRUE(is_floating(t) && !is_integral(t)) << t;
  EXPECT_FALSE(is_floating(ScalarType::Undefined) || is_integral(ScalarType::Undefined));
  EXPECT_EQ(compute_type(kBool), kLong);
  EXPECT_EQ(compute_type(kShort), kLong);
  EXPECT_EQ(compute_type(kUInt32), kLong);
  EXPECT_TRUE(is_unsigned(kUInt16) && is_unsigned(kByte) && !is_unsigned(kInt));
  EXPECT_TRUE(kU16 == kUInt16 && kU32 == kUInt32);
  EXPECT_EQ(compute_type(kHalf), kFloat);
  EXPECT_EQ(compute_type(kBFloat16), kFloat);
  EXPECT_EQ(compute_type(kFloat), kFloat);
  EXPECT_EQ(compute_type(kDouble), kDouble);
}

TEST(Dtype, Names) {
  std::ostringstream text;
  text << kFloat << " " << kBFloat16 << " " << short_name_of(kBFloat16) << " "
       << short_name_of(kByte) << " " << name_of(kBool) << " " << ScalarType::Undefined;
  EXPECT_EQ(text.str(), "Float BFloat16 bfloat16 uint8 Bool UNKNOWN_SCALAR");  // LibTorch's
}

// What 16 bits mean, from the formats' definitions, in double: so many bits of a fraction, the
// others of an exponent.
double value_of(uint16_t bits, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits, most = (1 << exponent_bits) - 1,
            one = 1 << fraction_bits, exponent = bits >> fraction_bits & most,
            fraction = bits & (one - 1),
            least = 2 - (1 << (exponent_bits - 1)) - fraction_bits;  // of subnormal numbers
  const double v = exponent == most ? (fraction ? NAN : INFINITY)
                   : exponent       ? std::ldexp(one + fraction, exponent - 1 + least)
                                    : std::ldexp(fraction, least);
  return std::copysign(v, bits & 0x8000 ? -1.0 : 1.0);
}
double half_value(uint16_t bits) { return value_of(bits, 10); }
double bfloat_value(uint16_t bits) { return value_of(bits, 7); }

TEST(Half, EveryValueReads) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double h = detail::float_from_half(bits), b = detail::float_from_bfloat(bits);
    ASSERT_TRUE(h == half_value(bits) || (std::isnan(h) && std::isnan(half_value(bits)))) << i;
    ASSERT_EQ(std::signbit(h), i >= 0x8000) << i;
    ASSERT_TRUE(b == bfloat_value(bits) || (std::isnan(b) && std::isnan(bfloat_value(bits)))) << i;
    ASSERT_EQ(std::signbit(b), i >= 0x8000) << i;
  }
}

// Round to nearest, ties to even, with `precision` bits, least exponent `least`, largest finite
// value `most`.
double rounded(double x, int precision, int least, double most) {
  if (!std::isfinite(x) || x == 0) return x;
  int e;
  std::frexp(x, &e);
  const int unit = std::max(e - precision, least);
  const double r = std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
  return std::fabs(r) > most ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

void check_rounding(float x) {
  const uint16_t h = detail::half_from_float(x), b = detail::bfloat_from_float(x);
  if (std::isnan(x)) {
    ASSERT_TRUE(std::isnan(half_value(h)) && (h & 0x200)) << x;  // quiet
    ASSERT_TRUE(std::isnan(bfloat_value(b)) && (b & 0x40)) << x;
  } else {
    ASSERT_EQ(half_value(h), rounded(x, 11, -24, 65504)) << x;
    ASSERT_EQ(bfloat_value(b), rounded(x, 8, -133, 0x1.fep127)) << x;
  }
  ASSERT_EQ(h >> 15, std::signbit(x)) << x;
  ASSERT_EQ(b >> 15, std::signbit(x)) << x;
}

TEST(Half, EveryNeighbourhoodRounds) {
  for (uint32_t i = 0; i < 65536; ++i) {
    // Each 16-bit value, the middle to the next one and the floats next to both.
    const uint32_t half = detail::bits_of(static_cast<float>(half_value(static_cast<uint16_t>(i))));
    for (const uint32_t centre : {half, half + 0x1000, i << 16, (i << 16) + 0x8000})
      for (const uint32_t off : {0u, 1u, ~0u}) check_rounding(detail::float_of(centre + off));
    if (HasFatalFailure()) return;
  }
  // Subnormal halves are one exponent from each other: their middles by value.
  for (int i = 0; i < 2048; ++i) {
    const float middle = std::ldexp(static_cast<float>(2 * i + 1), -25);
    check_rounding(middle), check_rounding(std::nextafter(middle, 0.0f)),
        check_rounding(std::nextafter(middle, 1.0f)), check_rounding(-middle);
  }
}

TEST(Half, AcrossAllFloatsRounds) {
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4999) {
    check_rounding(detail::float_of(static_cast<uint32_t>(bits)));
    if (HasFatalFailure()) return;
  }
}

// IEEE 754's, and LibTorch 2.15's.
TEST(HalfNumbers, Limits) {
  using H = std::numeric_limits<Half>;
  using B = std::numeric_limits<BFloat16>;
  EXPECT_EQ(H::max(), 65504.f);
  EXPECT_EQ(H::lowest(), -65504.f);
  EXPECT_EQ(H::min(), 0x1p-14f);
  EXPECT_EQ(H::epsilon(), 0x1p-10f);
  EXPECT_EQ(H::denorm_min(), 0x1p-24f);
  EXPECT_EQ(B::max(), 0x1.fep127f);
  EXPECT_EQ(B::lowest(), -0x1.fep127f);
  EXPECT_EQ(B::min(), std::numeric_limits<float>::min());
  EXPECT_EQ(B::epsilon(), 0x1p-7f);
  EXPECT_EQ(B::denorm_min(), 0x1p-133f);
  EXPECT_EQ(H::round_error() + B::round_error(), 1.f);
  for (const float infinity : {float(H::infinity()), float(B::infinity())})
    EXPECT_EQ(infinity, std::numeric_limits<float>::infinity());
  for (const float nan : {float(H::quiet_NaN()), float(B::quiet_NaN()), float(H::signaling_NaN()),
                          float(B::signaling_NaN())})
    EXPECT_NE(nan, nan);
  const int half[] = {H::digits,         H::digits10,     H::max_digits10,  H::min_exponent,
                      H::min_exponent10, H::max_exponent, H::max_exponent10};
  const int bfloat[] = {B::digits,         B::digits10,     B::max_digits10,  B::min_exponent,
                        B::min_exponent10, B::max_exponent, B::max_exponent10};
  const int of_half[] = {11, 3, 5, -13, -4, 16, 4}, of_bfloat[] = {8, 2, 4, -125, -37, 128, 38};
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(half[i], of_half[i]) << i;
    EXPECT_EQ(bfloat[i], of_bfloat[i]) << i;
  }
  EXPECT_TRUE(H::is_specialized && B::has_infinity);
}

TEST(HalfNumbers, CompoundAssignment) {
  Half h = 1;
  h += 1, h *= 2.5, h -= 1, h /= 8;
  EXPECT_EQ(h, 0.5f);
  BFloat16 b = 256;
  b += 1;  // between 256 and 258: to the even one
  EXPECT_EQ(b, 256.f);
}

TEST(TypeMeta, NamesAreThoseOfCpp) {
  const char* const names[] = {"bool",
                               "unsigned char",
                               "signed char",
                               "short int",
                               "int",
                               "long int",
                               "short unsigned int",
                               "unsigned int",
                               "c10::Half",
                               "c10::BFloat16",
                               "float",
                               "double",
                               "nullptr (uninitialized)"};
  for (int t = 0; t <= kScalarTypes; ++t) {
    const auto type = static_cast<ScalarType>(t);
    std::ostringstream text;
    text << TypeMeta(type);
    EXPECT_EQ(text.str(), names[t]);
    EXPECT_EQ(TypeMeta(type).name(), names[t]);
    EXPECT_EQ(TypeMeta(type).itemsize(), elementSize(type));
    EXPECT_EQ(typeMetaToScalarType(scalarTypeToTypeMeta(type)), type);
  }
  EXPECT_EQ(TypeMeta(), ScalarType::Undefined);
  EXPECT_EQ(TypeMeta::Make<Half>(), kHalf);
  EXPECT_EQ(optTypeMetaToScalarType(TypeMeta(kInt)), kInt);
  EXPECT_FALSE(optTypeMetaToScalarType(std::nullopt));
}

TEST(TypeMeta, QuestionsAboutTypes) {
  constexpr ScalarType of_float = CppTypeToScalarType<float>();
  static_assert(of_float == kFloat && CppTypeToScalarType<bool>::value == kBool);
  EXPECT_TRUE(isFloatingType(kHalf) && !isFloatingType(kLong) && isReducedFloatingType(kBFloat16));
  EXPECT_TRUE(isIntegralType(kBool, true) && !isIntegralType(kBool, false));
  EXPECT_TRUE(isSignedType(kChar) && isSignedType(kFloat));
  EXPECT_FALSE(isSignedType(kUInt16) || isSignedType(kUInt32) || isSignedType(kByte) ||
               isSignedType(kBool) || isComplexType(kFloat));
  EXPECT_EQ(promoteTypes(kByte, kChar), kShort);
  EXPECT_TRUE(canCast(kLong, kFloat) && canCast(kDouble, kHalf) && canCast(kBool, kByte));
  EXPECT_FALSE(canCast(kFloat, kLong) || canCast(kByte, kBool) || canCast(kFloat, kBool));
}

TEST(Half, Conversions) {
  EXPECT_EQ(static_cast<float>(Half(1.0f / 3)), 0.333251953125f);
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f / 3)), 0.333984375f);
  EXPECT_EQ(Half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half().bits, 0);
}

}  // namespace
}  // namespace ramet
