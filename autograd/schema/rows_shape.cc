// The operators of rows: indices, factories, products of matrices and views (rows.inc).
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"

namespace ramet::script {

void add_rows_of_shape(std::vector<Row>& rows) {
// The first include says what the rows of the others make.
// clang-format off
#include "autograd/schema/rows.inc"
#include "autograd/ops/index/gather_scatter.inc"
#include "autograd/ops/index/index_put.inc"
#include "autograd/ops/index/mask.inc"
#include "autograd/ops/index/scatter_reduce.inc"
#include "autograd/ops/index/search.inc"
#include "autograd/ops/index/sort.inc"
#include "autograd/ops/make/factory.inc"
#include "autograd/ops/make/ranges.inc"
#include "autograd/ops/matrix/addmm.inc"
#include "autograd/ops/matrix/decompose.inc"
#include "autograd/ops/matrix/diagonals.inc"
#include "autograd/ops/matrix/distance.inc"
#include "autograd/ops/matrix/linalg.inc"
#include "autograd/ops/matrix/linear_gelu.inc"
#include "autograd/ops/matrix/matmul.inc"
#include "autograd/ops/matrix/products.inc"
#include "autograd/ops/matrix/triangle.inc"
#include "autograd/ops/shape/cat.inc"
#include "autograd/ops/shape/pad.inc"
#include "autograd/ops/shape/rearrange.inc"
#include "autograd/ops/shape/view.inc"
#include "autograd/ops/shape/view_parts.inc"
// clang-format on
}

}  // namespace ramet::script
