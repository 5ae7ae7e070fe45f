// The functions of autograd/ops with drawn integer arguments (tests/draw_sizes.h);
// tools/check_op_table.py knows which have none.
#pragma once
#include <vector>

#include "tests/draw_sizes.h"

namespace ramet {
namespace fuzz {

std::vector<SizeRow> size_rows_of_parts();
std::vector<SizeRow> size_rows_of_views();
std::vector<SizeRow> size_rows_of_factories();
std::vector<SizeRow> size_rows_of_dimensions();
std::vector<SizeRow> size_rows_of_images();
std::vector<SizeRow> size_rows_of_pixels();
std::vector<SizeRow> size_rows_of_losses();
std::vector<SizeRow> size_rows_of_rearranged();
std::vector<SizeRow> size_rows_of_values();

/// All of them.
std::vector<SizeRow> size_rows();

/// How many windows of k numbers fit; below 1: none. The numbers of a window are `dilation` apart,
/// and each window begins `stride` after the last.
inline Wide windows(Wide in, Wide k, Wide stride, Wide padding, Wide dilation) {
  return below(in + 2 * padding - dilation * (k - 1) - 1, stride) + 1;
}

}  // namespace fuzz
}  // namespace ramet
