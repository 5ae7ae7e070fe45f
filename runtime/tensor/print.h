// Printing of tensors, character for character as LibTorch 2.15 prints them.
//
//   0.001 *
//    1.0000  2.0000
//     3.0000  4.0000
//   [ CPUFloatType{2,2} ]
//
// Note [Printed numbers]
// One format applies to a whole matrix (vector, 2-D slice). Whole numbers print with six
// significant digits while they have at most 9 (12345678 as 1.23457e+07: LibTorch's habit). Others
// print with four decimals. They have a common factor of a power of ten when the largest number is
// below 0.1 or from 1e5 on. They are scientific when largest and smallest are more than four digits
// apart. Matrices wider than the line are cut into ranges of columns. A 0-dim tensor prints the
// shortest text that reads back as the same double. All elements are printed, however many there
// are.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>

#include "runtime/tensor/tensor_base.h"

namespace ramet {

/// Characters in a line, as LibTorch has it.
inline constexpr int64_t kPrintLine = 80;

/// Any strides. Waits for pending writes of the tensor. Neither uses nor changes stream flags,
/// width and fill. Where a line is narrower than a number, it is as wide as one. An undefined
/// tensor prints "[ Tensor (undefined) ]". No newline at the end.
RAMET_API std::ostream& print(std::ostream& out, const TensorBase& t,
                              int64_t line_size = kPrintLine);
/// To the standard output, without a newline, as LibTorch's.
RAMET_API void print(const TensorBase& t, int64_t line_size = kPrintLine);
RAMET_API std::ostream& operator<<(std::ostream& out, const TensorBase& t);

/// LibTorch's switch, initially on and one for all threads. When it is off, scientific numbers
/// print with four decimals instead, in columns of the same width.
RAMET_API void set_printoption_sci_mode(bool enabled);

/// "Float", "UNKNOWN_SCALAR": the text that operator<< prints, as LibTorch's.
RAMET_API const char* toString(ScalarType t);
/// "CPUFloatType", as in the last line of the print.
RAMET_API std::string type_string(const TensorBase& t);

/// The shortest text that reads back as `value`: "0.001", "1e-05", "10000000000", "1e+16", "nan",
/// "-inf".
RAMET_API std::string shortest_text(double value);

/// The element at `p`, of type `t`, as a double.
RAMET_API double load_as_double(const void* p, ScalarType t);
/// All elements in row-major order.
RAMET_API std::vector<double> to_doubles(const TensorBase& t);

}  // namespace ramet
