// The properties of an operation in a row, other than the formulas, and their usual values.
//
// A pointwise operation is a struct in kernels/pointwise/rows/<family>.h, the row, and a name in
// kernels/pointwise/lists.h. A row has:
//
//   value(operands..., s, t)     the formula, of one compute type V: a vector of floats, a double
//                                or an int64; on a GPU a float in place of the vector. In the
//                                vocabulary of simd/smath.h (gpu/gpu_math.h on a GPU). As many of
//                                the numbers s and t of the argument block as it needs; a V, or a
//                                truth value. Instantiated by kernels alone.
//   gradient(g, ...)             the derivative, in functions of tensors. Instantiated by the
//                                operation's front (autograd/ops) alone: x is the input, y the
//                                result. Of several operands gradient_a, gradient_b, gradient_c,
//                                which get all of them and the numbers; kReads says which they
//                                read. For an operand a number may stand. Or gradients, all that
//                                are wanted at once.
//   constants                    where it differs from the struct it derives from.
//
// So rows are compiled in several namespaces: RAMET_ROWS names the current one.
#pragma once
#include <cstdint>
#include <type_traits>

#include "kernels/simd/inline.h"

#define RAMET_FORMULA template <class V> static RAMET_INLINE auto
#define RAMET_GRADIENT template <class T> static T

namespace ramet {
namespace kernels {

/// Compute types for which an operation exists.
enum PointwiseTypes : uint8_t { kOnFloating = 1, kOnInteger = 2, kOnAny = 3 };
/// The result: values of the compute type, or truth values.
enum class PointwiseResult : uint8_t { kValue, kTruth };

/// The result for integers and bool.
enum class Integers : uint8_t {
  kPromoted,  ///< the default floating-point type
  kKept,      ///< their own
  kNumbers,   ///< their own; bool is refused
  kCopied,    ///< themselves, because they are whole; bool is refused
  kCounted,   ///< their own, int64 for bool; not in place for bool
  kRefused,   ///< an Error
};
/// The tensor that the gradient reads.
enum class Saves : uint8_t { kNothing, kInput, kOutput };
/// The same for several operands.
enum Reads : uint8_t { kNoOperand = 0, kA = 1, kB = 2, kC = 4 };

/// What autocast does with the operands on a GPU (Note [Autocast]).
enum class Autocast : uint8_t { kNothing, kFloat32, kWidest };

struct Row {
  static constexpr int kOperands = 1;
  static constexpr PointwiseTypes kTypes = kOnAny;
  static constexpr PointwiseResult kResult = PointwiseResult::kValue;
  static constexpr Integers kIntegers = Integers::kKept;
  static constexpr Saves kSaves = Saves::kNothing;
  static constexpr Autocast kAutocast = Autocast::kNothing;
  /// The node's name; by default the struct's with "Backward0".
  static constexpr const char* kNode = nullptr;
};

/// For floating-point values; the gradient reads the input.
struct Function : Row {
  static constexpr PointwiseTypes kTypes = kOnFloating;
  static constexpr Integers kIntegers = Integers::kPromoted;
  static constexpr Saves kSaves = Saves::kInput;
};
/// The same, but the gradient reads the result.
struct FunctionByResult : Function {
  static constexpr Saves kSaves = Saves::kOutput;
};
/// Constant almost everywhere.
struct Steps : Row {
  RAMET_GRADIENT gradient(const T& g, const T&, const T&) { return zeros_like(g); }
};
/// Rounds to a whole number.
struct Rounding : Steps {
  static constexpr PointwiseTypes kTypes = kOnFloating;
  static constexpr Integers kIntegers = Integers::kCopied;
};
/// A fused derivative of floating-point values. Its operands are the incoming gradient g, in which
/// it is linear, and the input or result x. Its own gradient is that of x, for the incoming
/// gradient v.
struct Backward : Row {
  static constexpr int kOperands = 2;
  static constexpr PointwiseTypes kTypes = kOnFloating;
};

}  // namespace kernels
}  // namespace ramet
