// The operators of rows: pointwise operations and reductions (rows.inc).
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"

namespace ramet::script {

void add_rows_of_pointwise(std::vector<Row>& rows) {
// The first include says what the rows of the others make.
// clang-format off
#include "autograd/schema/rows.inc"
#define RAMET_ACTIVATION(name, Row, params, args) RAMET_FUNCTION(name, params, args, RAMET_OWN_OUT)
#define RAMET_DERIVATIVE(name, Row, params, args) RAMET_FUNCTION(name, params, args)
#include "autograd/ops/pointwise/activation.inc"
#include "autograd/ops/pointwise/activation_composed.inc"
#include "autograd/ops/pointwise/aliases.inc"
#include "autograd/ops/pointwise/arithmetic.inc"
#include "autograd/ops/pointwise/comparison.inc"
#include "autograd/ops/pointwise/multiply.inc"
#include "autograd/ops/pointwise/pair.inc"
#include "autograd/ops/pointwise/power.inc"
#include "autograd/ops/pointwise/ternary.inc"
#include "autograd/ops/pointwise/unary.inc"
#include "autograd/ops/pointwise/where.inc"
#include "autograd/ops/reduce/extremum.inc"
#include "autograd/ops/reduce/moments.inc"
#include "autograd/ops/reduce/reduce.inc"
#include "autograd/ops/reduce/statistics.inc"
// clang-format on
}

}  // namespace ramet::script
