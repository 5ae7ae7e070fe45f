#include "autograd/ops/pointwise/pair.h"

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/pointwise_internal.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/pointwise/where.h"
#include "kernels/pointwise/rows/pair.h"

namespace ramet {

using namespace autograd;
using kernels::Integers;

namespace {

template <class Row> Tensor pair(const RowNames& row, const Tensor& a, const Tensor& b) {
  common_device(row.name, a, b);
  ScalarType dtype = result_type(a, b);
  const bool refused = is_floating(dtype)
                           ? !(Row::kTypes & kernels::kOnFloating)
                           : Row::kIntegers == Integers::kRefused ||
                                 (Row::kIntegers == Integers::kNumbers && dtype == kBool);
  RAMET_CHECK(!refused, row.name, "not implemented for ", dtype, ": got ", describe(a), " and ",
              describe(b));
  if (!is_floating(dtype) && Row::kIntegers == Integers::kPromoted) dtype = get_default_dtype();
  // An exponent may exceed the range of 16-bit numbers.
  if (!std::is_same<Row, rows::Ldexp>::value && cast_first(dtype, a.scalar_type(), b.scalar_type()))
    return pair<Row>(row, a.to(dtype), b.to(dtype));
  Tensor out = pointwise_fresh(row.kernel, a, b, dtype);
  if constexpr (Row::kTypes == kernels::kOnInteger) {
    return out;
  } else if constexpr (requires { Row::kReads; }) {
    return recorded<Row>(row.node, std::move(out), a, b);
  } else {
    if (!recording(a, b)) return out;
    return record(row.node, {a, b}, std::move(out), gradients_together<Row>(a, b));
  }
}

}  // namespace

#define RAMET_PAIR_AS(function, name, Row)                    \
  Tensor function(const Tensor& a, const Tensor& b) {         \
    return pair<rows::Row>(RAMET_ROW_NAMES(name, Row), a, b); \
  }
#define RAMET_PAIR(name, Row) static RAMET_PAIR_AS(name##_body, name, Row)
RAMET_PAIR_FUNCTIONS(RAMET_PAIR)
RAMET_PAIR_METHODS(RAMET_PAIR)
RAMET_PAIR_AS(heaviside, heaviside, Heaviside)
#undef RAMET_PAIR_AS
#undef RAMET_PAIR

// ---- with a number ------------------------------------------------------------------------------

#define RAMET_NUMBER_RIGHT(name) \
  Tensor name(const Tensor& a, const Scalar& b) { return name(a, scalar_to_tensor(b)); }
#define RAMET_NUMBER(name) \
  RAMET_NUMBER_RIGHT(name) \
  Tensor name(const Scalar& a, const Tensor& b) { return name(scalar_to_tensor(a), b); }
RAMET_NUMBER_RIGHT(copysign)
RAMET_NUMBER(xlogy)
RAMET_NUMBER(bitwise_left_shift)
RAMET_NUMBER(bitwise_right_shift)
#undef RAMET_NUMBER
#undef RAMET_NUMBER_RIGHT

// ---- nextafter: a composition -------------------------------------------------------------------

namespace {

// a and b have one dtype. As whole numbers, the bits of neighbours on one side of 0 differ by 1,
// infinities included.
Tensor neighbour(const Tensor& a, const Tensor& b) {
  const ScalarType dtype = a.scalar_type();
  const ScalarType whole = dtype == kDouble ? kLong : dtype == kFloat ? kInt : kShort;
  const Tensor bits = a.view(whole), away = eq(gt(b, a), gt(a, 0));
  const Tensor moved = where(away, add(bits, 1), sub(bits, 1)).view(dtype);
  const Tensor y =
      where(eq(a, 0), copysign(scalar_to_tensor(smallest_above_zero(dtype)).to(dtype), b), moved);
  return where(isnan(a), a, where(logical_or(eq(a, b), isnan(b)), b, y));
}

}  // namespace

Tensor nextafter(const Tensor& a, const Tensor& b) {
  common_device("nextafter", a, b);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(is_floating(dtype), "nextafter", "not implemented for ", dtype, ": got ", describe(a),
              " and ", describe(b));
  const Tensor x = a.detach().to(dtype), y = b.detach().to(dtype);
  Tensor out = neighbour(x, y);
  if (!recording(a, b)) return out;
  return record(
      "NextafterBackward0", {a, b}, std::move(out),
      [moves = save(ne(x, y)), ma = Meta(a), mb = Meta(b)](const Node& self, const Tensor& g) {
        return Pair{self.needs(0) ? ma.reduce(where(moves.get(self), g, 0)) : Tensor(),
                    self.needs(1) ? mb.reduce(zeros_like(g)) : Tensor()};
      });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/pair.inc"

}  // namespace ramet
