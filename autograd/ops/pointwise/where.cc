#include "autograd/ops/pointwise/where.h"

#include <cmath>

#include "autograd/ops/front/arithmetic_internal.h"
#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "kernels/pointwise/rows/choice.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

void check_condition(const Tensor& condition) {
  check_defined("where", condition);
  RAMET_CHECK(condition.scalar_type() == kBool || condition.scalar_type() == kByte, "where",
              "expected condition to be a boolean tensor, but got a tensor with dtype ",
              name_of(condition.scalar_type()));
}

}  // namespace

// ---- where --------------------------------------------------------------------------------------

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_condition(condition);
  common_device("where", a, b);
  const ScalarType dtype = result_type(a, b);
  Tensor out = pointwise_result("where", dtype, a, &b, &condition);
  pointwise_into(RAMET_POINTWISE(where), out, compute_type(dtype), condition, a, b);
  if (!recording(a, b)) return out;
  return record(
      "WhereBackward0", {a, b}, std::move(out),
      [c = save(condition), ma = Meta(a), mb = Meta(b)](const Node& self, const Tensor& g) {
        const Tensor& mask = c.get(self);
        return Pair{self.needs(0) ? ma.reduce(rows::Where::gradient_a(g, mask)) : Tensor(),
                    self.needs(1) ? mb.reduce(rows::Where::gradient_b(g, mask)) : Tensor()};
      },
      [&](Arguments& to) { to("condition", condition); });
}
Tensor where(const Tensor& condition, const Scalar& a, const Tensor& b) {
  return where(condition, scalar_to_tensor(a), b);
}
Tensor where(const Tensor& condition, const Tensor& a, const Scalar& b) {
  return where(condition, a, scalar_to_tensor(b));
}
Tensor where(const Tensor& condition, const Scalar& a, const Scalar& b) {
  return where(condition, scalar_to_tensor(a), scalar_to_tensor(b));
}
Tensor& where_out(Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b) {
  check_condition(condition);
  common_device("where_out", a, b);
  const ScalarType dtype = result_type(a, b);
  return pointwise_out("where_out", RAMET_POINTWISE(where), out, dtype, compute_type(dtype),
                       condition, a, b);
}
std::vector<Tensor> where(const Tensor& condition) {
  capture::refuse("where", "the size of the result depends on values");
  return nonzero_numpy(condition);
}
Tensor Tensor::where(const Tensor& condition, const Tensor& other) const {
  return ramet::where(condition, *this, other);
}
Tensor Tensor::where(const Tensor& condition, const Scalar& other) const {
  return ramet::where(condition, *this, other);
}

// ---- clamp with numbers -------------------------------------------------------------------------

namespace {

using Bound = std::optional<Scalar>;

ScalarType clamped_type(const char* op, const Tensor& x, const Bound& low, const Bound& high) {
  check_defined(op, x);
  RAMET_CHECK(low || high, op, "At least one of 'min' or 'max' must not be None");
  ScalarType t = low ? result_type(x, *low) : x.scalar_type();
  if (high) t = promote_types(t, result_type(x, *high));
  RAMET_CHECK(t != kBool, op, "bool is not supported: got ", describe(x));
  return t;
}
// Calls run(kernel, b, s, t) with the kernel that clamps x between these bounds, and with its
// operands after x.
template <class Run>
decltype(auto) with_bounds(const Bound& low, const Bound& high, const Run& run) {
  if (low && high) return run(RAMET_POINTWISE(clamp), Operand(), *low, high);
  return low ? run(RAMET_POINTWISE(maximum), Operand(*low), Scalar(0), Bound())
             : run(RAMET_POINTWISE(minimum), Operand(*high), Scalar(0), Bound());
}
void clamp_into(const Tensor& out, ScalarType dtype, const Tensor& x, const Bound& low,
                const Bound& high) {
  with_bounds(low, high,
              [&](const PointwiseKernel& k, const Operand& b, const Scalar& s, const Bound& t) {
                pointwise_into(k, out, compute_type(dtype), x, b, {}, s, t);
              });
}
// g where low < x < high, else 0.
Tensor clamp_backward(const Tensor& g, const Tensor& x, double low, double high) {
  Tensor out = pointwise_result("clamp_backward", g.scalar_type(), x, &g);
  pointwise_into(RAMET_POINTWISE(clamp_backward), out, compute_type(g.scalar_type()), g, x, {}, low,
                 high);
  if (!recording(g)) return out;
  return record("ClampBackwardBackward0", {g}, std::move(out),
                [sx = save(x), low, high](const Node& self, const Tensor& v) {
                  return clamp_backward(v, sx.get(self), low, high);
                });
}
double bound(const Bound& b, double otherwise, ScalarType dtype) {
  return b ? rounded(*b, dtype).toDouble() : otherwise;
}

auto clamp_gradient(const Tensor& x, const Bound& low, const Bound& high) {
  // The kernel treats an infinite bound as none. But a given bound stops the gradient of elements
  // on it.
  const ScalarType dtype = x.scalar_type();
  const double from = bound(low, -INFINITY, dtype), to = bound(high, INFINITY, dtype);
  const bool stops_low = low && from == -INFINITY, stops_high = high && to == INFINITY;
  return [sx = save(x), from, to, stops_low, stops_high, dtype](const Node& self, const Tensor& g) {
    Tensor dx = clamp_backward(g, sx.get(self), from, to);
    if (stops_low) dx = dx.masked_fill(sx.get(self).gt(-INFINITY).logical_not(), 0);
    if (stops_high) dx = dx.masked_fill(sx.get(self).lt(INFINITY).logical_not(), 0);
    return dx.to(dtype);
  };
}
const char* clamp_node(const Bound& low, const Bound& high) {
  return low && high ? "ClampBackward1" : low ? "ClampMinBackward0" : "ClampMaxBackward0";
}

Tensor& clamp_in_place(const char* op, const Tensor& x, const Bound& low, const Bound& high) {
  check_inplace(op, x);
  const ScalarType dtype = clamped_type(op, x, low, high);
  check_output(op, x, x.sizes(), dtype);
  if (recording(x)) {
    auto gradient = clamp_gradient(x.clone(), low, high);  // x itself is overwritten
    clamp_into(x, dtype, x, low, high);
    wrote(op, x);
    record_inplace(clamp_node(low, high), {x}, x, std::move(gradient),
                   [&](Arguments& to) { to("min", low), to("max", high); });
  } else {
    clamp_into(x, dtype, x, low, high);
    wrote(op, x);
  }
  return as_mutable(x);
}

}  // namespace

Tensor clamp(const Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high) {
  const ScalarType dtype = clamped_type("clamp", x, low, high);
  Tensor out = empty_like_layout(x, dtype);
  clamp_into(out, dtype, x, low, high);
  if (!recording(x)) return out;
  return record(clamp_node(low, high), {x}, std::move(out), clamp_gradient(x, low, high),
                [&](Arguments& to) { to("min", low), to("max", high); });
}
Tensor& clamp_out(Tensor& out, const Tensor& x, const std::optional<Scalar>& low,
                  const std::optional<Scalar>& high) {
  const ScalarType dtype = clamped_type("clamp_out", x, low, high);
  return with_bounds(
      low, high,
      [&](const PointwiseKernel& k, const Operand& b, const Scalar& s, const Bound& t) -> Tensor& {
        return pointwise_out("clamp_out", k, out, dtype, compute_type(dtype), x, b, {}, s, t);
      });
}
Tensor clamp_min(const Tensor& x, const Scalar& low) { return clamp(x, Bound(low), Bound()); }
Tensor clamp_max(const Tensor& x, const Scalar& high) { return clamp(x, Bound(), Bound(high)); }

Tensor& Tensor::clamp_(const Bound& low, const Bound& high) const {
  return clamp_in_place("clamp_", *this, low, high);
}
Tensor& Tensor::clamp_min_(const Scalar& low) const {
  return clamp_in_place("clamp_min_", *this, Bound(low), Bound());
}
Tensor& Tensor::clamp_max_(const Scalar& high) const {
  return clamp_in_place("clamp_max_", *this, Bound(), Bound(high));
}

// ---- two tensors --------------------------------------------------------------------------------

namespace {

template <class Row>
Tensor either_of(const char* node, const PointwiseKernel& k, const Tensor& a, const Tensor& b) {
  common_device(k.dense.name, a, b);
  const ScalarType dtype = result_type(a, b);
  Tensor out = pointwise_result(k.dense.name, dtype, a, &b);
  pointwise_into(k, out, compute_type(dtype), a, b);
  if (!recording(a, b)) return out;
  return record(node, {a, b}, std::move(out), gradients_together<Row>(a, b));
}
Tensor& either_out(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& a,
                   const Tensor& b) {
  common_device(op, a, b);
  const ScalarType dtype = result_type(a, b);
  return pointwise_out(op, k, out, dtype, compute_type(dtype), a, b);
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  return either_of<rows::Maximum>("MaximumBackward0", RAMET_POINTWISE(maximum), a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return either_of<rows::Minimum>("MinimumBackward0", RAMET_POINTWISE(minimum), a, b);
}
Tensor& maximum_out(Tensor& out, const Tensor& a, const Tensor& b) {
  return either_out("maximum_out", RAMET_POINTWISE(maximum), out, a, b);
}
Tensor& minimum_out(Tensor& out, const Tensor& a, const Tensor& b) {
  return either_out("minimum_out", RAMET_POINTWISE(minimum), out, a, b);
}

Tensor clamp_min(const Tensor& x, const Tensor& low) { return maximum(x, low); }
Tensor clamp_max(const Tensor& x, const Tensor& high) { return minimum(x, high); }
Tensor clamp(const Tensor& x, const std::optional<Tensor>& low, const std::optional<Tensor>& high) {
  const bool has_low = low && low->defined(), has_high = high && high->defined();
  RAMET_CHECK(has_low || has_high, "clamp", "At least one of 'min' or 'max' must not be None");
  if (!has_high) return clamp_min(x, *low);
  if (!has_low) return clamp_max(x, *high);
  const Tensor &a = *low, &b = *high;
  common_device("clamp", x, a);
  common_device("clamp", x, b);
  const ScalarType dtype = result_type(x, a, b);
  RAMET_CHECK(dtype != kBool, "clamp", "tensors as bounds are not implemented for bool");
  Tensor out = pointwise_result("clamp", dtype, x, &a, &b);
  pointwise_into(RAMET_POINTWISE(clamp_tensor), out, compute_type(dtype), x, a, b);
  if (!recording(x, a, b)) return out;
  return record("ClampBackward0", {x, a, b}, std::move(out),
                gradients_together<rows::ClampTensor>(x, a, b));
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/where.inc"

}  // namespace ramet
