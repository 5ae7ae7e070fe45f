#include "runtime/base/dtype.h"

#include <ostream>

#include "runtime/base/scalar.h"
#include "runtime/base/type_meta.h"
#include "runtime/tensor/print.h"

namespace ramet {

const char* name_of(ScalarType t) {
  static const char* const names[] = {"Bool",  "Byte",   "Char",     "Short", "Int",
                                      "Long",  "UInt16", "UInt32",   "Half",  "BFloat16",
                                      "Float", "Double", "Undefined"};
  return names[static_cast<int>(t)];
}

const char* short_name_of(ScalarType t) {
  static const char* const names[] = {"bool",    "uint8",   "int8",     "int16",   "int32",
                                      "int64",   "uint16",  "uint32",   "float16", "bfloat16",
                                      "float32", "float64", "undefined"};
  return names[static_cast<int>(t)];
}

std::ostream& operator<<(std::ostream& out, ScalarType t) { return out << toString(t); }

std::string_view TypeMeta::name() const {
  static constexpr std::string_view names[] = {"bool",
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
  return names[static_cast<int>(type_)];
}
std::ostream& operator<<(std::ostream& out, TypeMeta type) { return out << type.name(); }

ScalarType promote_types(ScalarType a, ScalarType b) {
  if (a == b) return a;
  if (a == ScalarType::Undefined || b == ScalarType::Undefined) return ScalarType::Undefined;
  if (a > b) return promote_types(b, a);
  if (a == ScalarType::Byte && b == ScalarType::Char) return ScalarType::Short;
  if (b == ScalarType::UInt16)
    return is_unsigned(a) ? b : a == ScalarType::Long ? a : ScalarType::Int;
  if (b == ScalarType::UInt32) return is_unsigned(a) ? b : ScalarType::Long;
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

void Scalar::overflow(const char* type) const {
  fail("Scalar", "value cannot be converted to type ", type, " without overflow: got ", *this,
       ", expected a value in its range");
}

void Scalar::too_large(uint64_t value) {
  fail("Scalar", "value cannot be held without overflow: got ", value,
       ", expected at most 2^63 - 1");
}

int64_t Scalar::integer_in(int64_t low, uint64_t high, const char* type) const {
  if (kind_ == ScalarType::Double) {
    const bool fits =
        d_ >= static_cast<double>(low) && (high >> 63 || d_ < static_cast<double>(high) + 1.0);
    if (!fits || d_ >= 9223372036854775808.0) overflow(type);
    return static_cast<int64_t>(d_);
  }
  // As in LibTorch, negative numbers are accepted: -1 is 255 as uint8, and so on down to -255.
  const bool fits = i_ >= 0    ? static_cast<uint64_t>(i_) <= high
                    : low == 0 ? 0 - static_cast<uint64_t>(i_) <= high
                               : i_ >= low;
  if (!fits) overflow(type);
  return i_;
}

std::ostream& operator<<(std::ostream& out, Half value) {
  const detail::ClassicScope classic(out);
  return out << static_cast<float>(value);
}
std::ostream& operator<<(std::ostream& out, BFloat16 value) {
  const detail::ClassicScope classic(out);
  return out << static_cast<float>(value);
}

std::ostream& operator<<(std::ostream& out, const Scalar& s) {
  const detail::ClassicScope classic(out);
  if (s.isFloatingPoint()) return out << s.toDouble();
  if (s.isBoolean()) return out << (s.toBool() ? "true" : "false");
  return out << s.toLong();
}

}  // namespace ramet
