// A number of any type: the result of `item()` and the type of scalar arguments.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "runtime/base/dtype.h"

namespace ramet {

/// A double, an int64 or a bool. Converts implicitly from every C++ number and 16-bit type.
class RAMET_API Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T, std::enable_if_t<std::is_arithmetic<T>::value, int> = 0> Scalar(T value) {
    if constexpr (std::is_same<T, bool>::value) kind_ = ScalarType::Bool, i_ = value;
    else if constexpr (std::is_floating_point<T>::value)
      kind_ = ScalarType::Double, d_ = static_cast<double>(value);
    else kind_ = ScalarType::Long, i_ = static_cast<int64_t>(value);
    if constexpr (std::is_same<T, unsigned long>::value ||
                  std::is_same<T, unsigned long long>::value)
      if (RAMET_UNLIKELY(uint64_t{value} >> 63)) too_large(value);
  }
  Scalar(Half value) : kind_(ScalarType::Double), d_(static_cast<float>(value)) {}
  Scalar(BFloat16 value) : kind_(ScalarType::Double), d_(static_cast<float>(value)) {}

  /// Made of a float, a double or a 16-bit float?
  bool isFloatingPoint() const { return kind_ == ScalarType::Double; }
  /// Made of an integer, or, with include_bool, of a bool?
  bool isIntegral(bool include_bool) const {
    return kind_ == ScalarType::Long || (include_bool && kind_ == ScalarType::Bool);
  }
  /// Made of a bool?
  bool isBoolean() const { return kind_ == ScalarType::Bool; }
  /// Bool, Long or Double.
  ScalarType type() const { return kind_; }

  /// The value as T. As LibTorch, an Error where it does not fit ("value cannot be converted to
  /// type int32 without overflow").
  template <class T> T to() const {
    if constexpr (std::is_same<T, bool>::value) return to_bool();
    else if constexpr (std::is_same<T, float>::value)
      return static_cast<float>(below(0x1.fffffep127, "float32"));
    else if constexpr (std::is_floating_point<T>::value) return static_cast<T>(to_double());
    else if constexpr (std::is_same<T, Half>::value)
      return T(static_cast<float>(below(65504.0, "float16")));
    else if constexpr (std::is_same<T, BFloat16>::value)
      return T(static_cast<float>(below(0x1.fep127, "bfloat16")));
    else return checked_integer<T>();
  }
  /// to<T>() by LibTorch's names:
  double toDouble() const { return to_double(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to_bool(); }
  Scalar operator-() const;
  /// Are both the same number? 1 equals 1.0 and true.
  bool equal(const Scalar& o) const;

 private:
  double to_double() const { return kind_ == ScalarType::Double ? d_ : static_cast<double>(i_); }
  /// The value, which is NaN, infinite or at most `most` in magnitude.
  double below(double most, const char* type) const {
    const double d = to_double();
    if (RAMET_UNLIKELY((d > most || d < -most) && d - d == 0)) overflow(type);
    return d;
  }
  bool to_bool() const { return kind_ == ScalarType::Double ? d_ != 0 : i_ != 0; }
  [[noreturn, gnu::cold]] void overflow(const char* type) const;
  [[noreturn, gnu::cold]] static void too_large(uint64_t value);
  int64_t integer_in(int64_t low, uint64_t high, const char* type) const;
  template <class T> T checked_integer() const;

  ScalarType kind_;
  union {
    int64_t i_;
    double d_;
  };
};

template <class T> T Scalar::checked_integer() const {
  static_assert(std::is_integral<T>::value, "to<T>: T is a number");
  constexpr bool is_signed = std::is_signed<T>::value;
  constexpr int bits = static_cast<int>(sizeof(T)) * 8;
  constexpr int64_t low = is_signed ? -(int64_t{1} << (bits - 2)) * 2 : 0;
  constexpr uint64_t high =
      is_signed ? (uint64_t{1} << (bits - 1)) - 1 : ~uint64_t{0} >> (64 - bits);
  constexpr const char* names[2][4] = {{"uint8", "uint16", "uint32", "uint64"},
                                       {"int8", "int16", "int32", "int64"}};
  return static_cast<T>(integer_in(low, high,
                                   names[is_signed][bits == 8    ? 0
                                                    : bits == 16 ? 1
                                                    : bits == 32 ? 2
                                                                 : 3]));
}

RAMET_API std::ostream& operator<<(std::ostream& out, const Scalar& s);

}  // namespace ramet
