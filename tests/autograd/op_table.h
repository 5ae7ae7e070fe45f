// The operation table: one row for each public function, and the checks that every row goes
// through.
//
// A row says how to call the function, which inputs to give it, and what it computes: a float64
// reference written with plain loops and libm, independent of the library.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace op_table {

/// Row-major float64 values with sizes: what a reference takes and gives.
struct Plain {
  std::vector<int64_t> sizes;
  std::vector<double> v;
  int64_t size(size_t d) const { return sizes[d]; }
};

enum class Kind : uint8_t { kReal, kIndex, kMask };

struct Input {
  std::vector<int64_t> sizes;
  double lo = -2, hi = 2;  ///< values; an index takes lo <= i < hi
  Kind kind = Kind::kReal;
};

/// Sets of dtypes for the inputs of kind kReal. All have float32 and float64.
enum Dtypes : uint8_t { kFloating = 0, kIntegers = 1, kBools = 2, kAny = 3, kNoFloating = 4 };

struct Row {
  std::string name;  ///< the function, and after a dot what sets this row apart
  std::vector<Input> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> call;
  std::function<Plain(const std::vector<Plain>&)> reference;
  /// Pointwise rows: the value from one value of each input; `reference` is left empty.
  std::function<double(const double*)> point;
  uint8_t dtypes = kFloating;
  bool differentiable = true;
  ///< the gradient is 0 everywhere and has no history: no gradgradcheck
  bool constant_gradient = false;
  bool extreme = true;      ///< pointwise: NaN and infinities as `point` says
  double tolerance = 2e-6;  ///< of float32, relative to the largest of 1 and the value
  double tolerance64 = 1e-12;
  /// Inputs larger than 32 KB, for the comparison of thread counts; pointwise rows have them by
  /// themselves.
  std::vector<Input> large = {};
};

/// The table: op_cases.cc.
const std::vector<Row>& rows();

}  // namespace op_table
}  // namespace ramet
