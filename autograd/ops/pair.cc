#include "autograd/ops/pair.h"

#include "autograd/ops/comparison.h"
#include "autograd/ops/front/arithmetic_front.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/unary.h"
#include "autograd/ops/where.h"
#include "kernels/pointwise/rows/pair.h"

namespace ramet {

using namespace autograd;
using kernels::Integers;

namespace {

template <class Row> Tensor pair(const RowNames& row, const Tensor& a, const Tensor& b) {
  common_device(row.name, a, b);
  ScalarType dtype = result_type(a, b);
  if (!is_floating(dtype)) {
    RAMET_CHECK(Row::kIntegers != Integers::kRefused, row.name, "not implemented for ", dtype,
                ": got ", describe(a), " and ", describe(b));
    if (Row::kIntegers == Integers::kPromoted) dtype = get_default_dtype();
  }
  if (cast_first(dtype, a.scalar_type(), b.scalar_type()))
    return pair<Row>(row, a.to(dtype), b.to(dtype));
  Tensor out = pointwise_fresh(row.kernel, a, b, dtype);
  if constexpr (requires { Row::kReads; }) {
    return recorded<Row>(row.node, std::move(out), a, b);
  } else {
    if (!recording(a, b)) return out;
    return record(row.node, {a, b}, std::move(out), gradients_together<Row>(a, b));
  }
}

}  // namespace

#define RAMET_PAIR(name, Row)                                 \
  Tensor name(const Tensor& a, const Tensor& b) {             \
    return pair<rows::Row>(RAMET_ROW_NAMES(name, Row), a, b); \
  }
RAMET_PAIR_OPS(RAMET_PAIR)
#undef RAMET_PAIR

Tensor copysign(const Tensor& a, const Scalar& b) { return copysign(a, scalar_to_tensor(b)); }

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pair.inc"

}  // namespace ramet
