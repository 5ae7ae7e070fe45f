// TypeMeta: the result of dtype(). It holds a ScalarType and converts to one. It prints and names
// itself as LibTorch's, by the C++ type: "float", "long int", "c10::Half". Also LibTorch's names of
// queries about element types.
#pragma once
#include <functional>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <type_traits>

#include "runtime/base/dtype.h"
#include "runtime/base/half_numbers.h"

namespace ramet {

class TypeMeta {
 public:
  /// ScalarType::Undefined: the dtype of an undefined tensor.
  constexpr TypeMeta() = default;
  // Not implicit: `c ? x.dtype() : kFloat` is unambiguous only if just one of the two converts.
  explicit constexpr TypeMeta(ScalarType t) : type_(t) {}
  constexpr TypeMeta& operator=(ScalarType t) {
    type_ = t;
    return *this;
  }
  /// From an enumerator.
  static constexpr TypeMeta fromScalarType(ScalarType t) { return TypeMeta(t); }
  /// From a C++ type.
  template <class T> static constexpr TypeMeta Make() { return TypeMeta(ScalarTypeOf<T>::value); }
  /// Bytes of a T.
  template <class T> static constexpr size_t ItemSize() { return sizeof(T); }
  /// name() of T's.
  template <class T> static std::string_view TypeName() { return Make<T>().name(); }

  constexpr operator ScalarType() const { return type_; }
  /// As an enumerator.
  constexpr ScalarType toScalarType() const { return type_; }
  /// Is it an element type (always), or this one?
  constexpr bool isScalarType() const { return true; }
  constexpr bool isScalarType(ScalarType t) const { return type_ == t; }
  /// Is it the type of the C++ type T?
  template <class T> constexpr bool Match() const { return type_ == ScalarTypeOf<T>::value; }
  /// Bytes of an element; 0 of Undefined.
  constexpr size_t itemsize() const { return item_size(type_); }
  /// "float"; "nullptr (uninitialized)" of Undefined.
  RAMET_API std::string_view name() const;

  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend constexpr bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }
  friend constexpr bool operator==(TypeMeta a, ScalarType b) { return a.type_ == b; }
  friend constexpr bool operator!=(TypeMeta a, ScalarType b) { return a.type_ != b; }
  friend constexpr bool operator==(ScalarType a, TypeMeta b) { return a == b.type_; }
  friend constexpr bool operator!=(ScalarType a, TypeMeta b) { return a != b.type_; }

 private:
  ScalarType type_ = ScalarType::Undefined;
};
RAMET_API std::ostream& operator<<(std::ostream& out, TypeMeta type);
/// As the float of this value.
RAMET_API std::ostream& operator<<(std::ostream& out, Half value);
RAMET_API std::ostream& operator<<(std::ostream& out, BFloat16 value);

/// Conversions between the two:
constexpr ScalarType typeMetaToScalarType(TypeMeta t) { return t; }
constexpr TypeMeta scalarTypeToTypeMeta(ScalarType t) { return TypeMeta(t); }
inline std::optional<ScalarType> optTypeMetaToScalarType(std::optional<TypeMeta> t) { return t; }

/// Also an object that converts: `ScalarType t = CppTypeToScalarType<float>();`.
template <class T>
struct CppTypeToScalarType : std::integral_constant<ScalarType, ScalarTypeOf<T>::value> {};
/// Bytes of an element; 0 of Undefined.
constexpr size_t elementSize(ScalarType t) { return item_size(t); }
/// Half, BFloat16, Float or Double?
constexpr bool isFloatingType(ScalarType t) { return is_floating(t); }
/// Half or BFloat16?
constexpr bool isReducedFloatingType(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::BFloat16;
}
/// An integer, or, with includeBool, bool?
constexpr bool isIntegralType(ScalarType t, bool includeBool) {
  return is_integral(t, includeBool);
}
/// false: there are no complex numbers.
constexpr bool isComplexType(ScalarType) { return false; }
/// Does it have numbers below 0? False for bool and unsigned integers.
constexpr bool isSignedType(ScalarType t) { return !is_unsigned(t) && t != ScalarType::Undefined; }
/// promote_types by LibTorch's name.
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return promote_types(a, b); }
/// May a result of type `from` be written into a tensor of type `to`? Not floating point into
/// integers, nor anything but bool into bool.
constexpr bool canCast(ScalarType from, ScalarType to) {
  return !(is_floating(from) && is_integral(to, false)) &&
         (to != ScalarType::Bool || from == ScalarType::Bool);
}

}  // namespace ramet

template <> struct std::hash<ramet::TypeMeta> {
  size_t operator()(ramet::TypeMeta t) const noexcept {
    return static_cast<size_t>(t.toScalarType());
  }
};
