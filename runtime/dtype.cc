#include "runtime/dtype.h"

#include <ostream>

#include "runtime/scalar.h"

namespace ramet {

const char* name_of(ScalarType t) {
  static const char* const names[] = {"Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double", "Undefined"};
  return names[static_cast<int>(t)];
}

const char* short_name_of(ScalarType t) {
  static const char* const names[] = {"bool",    "uint8",    "int8",    "int16",   "int32",    "int64",
                                      "float16", "bfloat16", "float32", "float64", "undefined"};
  return names[static_cast<int>(t)];
}

std::ostream& operator<<(std::ostream& out, ScalarType t) { return out << name_of(t); }

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  if (a > b) return promote_types(b, a);
  if (a == ScalarType::Byte && b == ScalarType::Char) return ScalarType::Short;
  if (a == ScalarType::Half && b == ScalarType::BFloat16) return ScalarType::Float;
  return b;
}

Scalar Scalar::operator-() const {
  RAMET_CHECK(kind_ != ScalarType::Bool, "Scalar", "negation: got bool, expected a number");
  return kind_ == ScalarType::Double ? Scalar(-d_) : Scalar(-i_);
}

bool Scalar::equal(const Scalar& o) const {
  if (isFloatingPoint() || o.isFloatingPoint()) return to_double() == o.to_double();
  return i_ == o.i_;
}

int64_t Scalar::integer_in(int64_t low, uint64_t high, const char* type) const {
  if (kind_ == ScalarType::Double) {
    const bool fits = d_ >= static_cast<double>(low) && (high >> 63 || d_ < static_cast<double>(high) + 1.0);
    RAMET_CHECK(fits && d_ < 9223372036854775808.0, "Scalar", "value cannot be converted to type ", type, " without overflow: got ", d_);
    return static_cast<int64_t>(d_);
  }
  // uint8 keeps LibTorch's latitude: a negative number wraps.
  RAMET_CHECK((i_ >= low || low == 0) && (i_ < 0 || static_cast<uint64_t>(i_) <= high), "Scalar",
              "value cannot be converted to type ", type, " without overflow: got ", i_);
  return i_;
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  if (s.isFloatingPoint()) return out << s.toDouble();
  if (s.isBoolean()) return out << (s.toBool() ? "true" : "false");
  return out << s.toLong();
}

}  // namespace ramet
