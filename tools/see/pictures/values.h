// Numbers of a tensor on the host, as pictures need them.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ramet {
class Tensor;

namespace see {

/// An Error of `op` unless `x` is defined, not empty, outside of a capture, and has `lowest` to
/// `highest` dimensions.
void check_shown(const char* op, const Tensor& x, int64_t lowest, int64_t highest);

/// Calls f(numbers, how many) for all elements in row-major order, piece after piece, as doubles.
/// GPU tensors are brought to the host. For tensors that check_shown has seen.
void each_value(const Tensor& x, const std::function<void(const double*, int64_t)>& f);
/// All of a tensor of one dimension, which may be empty; else an Error of `op` about `name`.
std::vector<double> vector_of(const char* op, const char* name, const Tensor& x);
/// "float32[2, 3] on cpu:1".
std::string described(const Tensor& x);
/// Integers and bool.
bool is_whole(const Tensor& x);

/// Of finite elements; infinite and NaN ones are counted.
struct Facts {
  int64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;  // 0 where no element is finite
  bool finite() const { return nans + infinities < count; }
};
Facts facts_of(const Tensor& x);
/// "min -1, mean 0.2, max 3, 2 NaN".
std::string text_of(const Facts& facts);

/// Numbers in a rectangle.
struct Cells {
  int64_t rows = 0, columns = 0;
  int64_t high = 1, wide = 1;  // the elements of each cell, which is their mean
  std::vector<double> values;

  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns + column)];
  }
};
/// A matrix as it is, or the means of its blocks, so that no more than these rows and columns
/// remain. The last blocks may be smaller. A block with a NaN is NaN.
Cells cells_of(const Tensor& matrix, int64_t most_rows, int64_t most_columns);

}  // namespace see
}  // namespace ramet
