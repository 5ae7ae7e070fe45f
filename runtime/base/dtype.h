// Element types, their names, sizes and LibTorch's promotion rules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <iosfwd>

#include "runtime/base/error.h"
#include "runtime/base/half.h"

namespace ramet {

/// Element type. The numbering groups types: bool, then integers, then floating point.
enum class ScalarType : uint8_t {
  Bool,
  Byte,
  Char,
  Short,
  Int,
  Long,  // bool, uint8, int8, int16, int32, int64
  UInt16,
  UInt32,  // computed as int64, which has all their numbers; of uint64 it has not, so there is none
  Half,
  BFloat16,
  Float,
  Double,  // 16-bit types store 16 bits and compute in Float
  Undefined,
};
/// LibTorch's name of it in torch::.
using Dtype = ScalarType;
/// How many there are, Undefined not counted.
inline constexpr int kScalarTypes = 12;

/// The element types by all of LibTorch's names.
inline constexpr ScalarType kBool = ScalarType::Bool, kByte = ScalarType::Byte,
                            kUInt8 = ScalarType::Byte, kChar = ScalarType::Char,
                            kInt8 = ScalarType::Char, kShort = ScalarType::Short,
                            kInt16 = ScalarType::Short, kInt = ScalarType::Int,
                            kInt32 = ScalarType::Int, kLong = ScalarType::Long,
                            kInt64 = ScalarType::Long, kHalf = ScalarType::Half,
                            kFloat16 = ScalarType::Half, kF16 = ScalarType::Half,
                            kBFloat16 = ScalarType::BFloat16, kFloat = ScalarType::Float,
                            kFloat32 = ScalarType::Float, kF32 = ScalarType::Float,
                            kDouble = ScalarType::Double, kFloat64 = ScalarType::Double,
                            kF64 = ScalarType::Double, kI8 = ScalarType::Char,
                            kI16 = ScalarType::Short, kI32 = ScalarType::Int,
                            kI64 = ScalarType::Long, kU8 = ScalarType::Byte,
                            kUInt16 = ScalarType::UInt16, kUInt32 = ScalarType::UInt32,
                            kU16 = ScalarType::UInt16, kU32 = ScalarType::UInt32;

namespace detail {
// Not inside the function: C++17 would build it on the stack at each call.
inline constexpr unsigned char kItemSizes[] = {1, 1, 1, 2, 4, 8, 2, 4, 2, 2, 4, 8, 0};
}  // namespace detail
/// Bytes of an element; 0 of Undefined.
constexpr size_t item_size(ScalarType t) { return detail::kItemSizes[static_cast<int>(t)]; }
/// Half, BFloat16, Float or Double?
constexpr bool is_floating(ScalarType t) {
  return t >= ScalarType::Half && t <= ScalarType::Double;
}
/// An integer, or (unless include_bool is false) bool?
constexpr bool is_integral(ScalarType t, bool include_bool = true) {
  return t <= ScalarType::UInt32 && (include_bool || t != ScalarType::Bool);
}
/// Does it have no numbers below 0? True for bool and the unsigned integers.
constexpr bool is_unsigned(ScalarType t) {
  return t == ScalarType::Bool || t == ScalarType::Byte || t == ScalarType::UInt16 ||
         t == ScalarType::UInt32;
}
/// The type of arithmetic: float, double, or int64 for every integer and bool.
constexpr ScalarType compute_type(ScalarType t) {
  return t == ScalarType::Double ? t : is_floating(t) ? ScalarType::Float : ScalarType::Long;
}

/// "Float", as in LibTorch's messages and in `CPUFloatType`.
RAMET_API const char* name_of(ScalarType t);
/// "float32", as in this library's error texts.
RAMET_API const char* short_name_of(ScalarType t);
RAMET_API std::ostream& operator<<(std::ostream& out, ScalarType t);

/// LibTorch's `promoteTypes`: bool < uint8/int8 < int16 < int32 < int64 < half/bfloat16 < float <
/// double; uint8 with int8 gives int16, half with bfloat16 gives float. uint16 and uint32, which
/// LibTorch promotes with floating-point types alone, give the smallest integer type that has all
/// numbers of both.
RAMET_API ScalarType promote_types(ScalarType a, ScalarType b);

/// The element type of the C++ type T, as `value`:
template <class T> struct ScalarTypeOf;
template <> struct ScalarTypeOf<bool> { static constexpr ScalarType value = ScalarType::Bool; };
template <> struct ScalarTypeOf<uint8_t> { static constexpr ScalarType value = ScalarType::Byte; };
template <> struct ScalarTypeOf<int8_t> { static constexpr ScalarType value = ScalarType::Char; };
template <> struct ScalarTypeOf<int16_t> { static constexpr ScalarType value = ScalarType::Short; };
template <> struct ScalarTypeOf<uint16_t> {
  static constexpr ScalarType value = ScalarType::UInt16;
};
template <> struct ScalarTypeOf<uint32_t> {
  static constexpr ScalarType value = ScalarType::UInt32;
};
template <> struct ScalarTypeOf<int32_t> { static constexpr ScalarType value = ScalarType::Int; };
template <> struct ScalarTypeOf<int64_t> { static constexpr ScalarType value = ScalarType::Long; };
#if defined(__EMSCRIPTEN__)  // int64_t is long long there, and a long has 32 bits
template <> struct ScalarTypeOf<long> { static constexpr ScalarType value = ScalarType::Int; };
#else
template <> struct ScalarTypeOf<long long> {
  static constexpr ScalarType value = ScalarType::Long;
};
#endif
template <> struct ScalarTypeOf<Half> { static constexpr ScalarType value = ScalarType::Half; };
template <> struct ScalarTypeOf<BFloat16> {
  static constexpr ScalarType value = ScalarType::BFloat16;
};
template <> struct ScalarTypeOf<float> { static constexpr ScalarType value = ScalarType::Float; };
template <> struct ScalarTypeOf<double> { static constexpr ScalarType value = ScalarType::Double; };

}  // namespace ramet
