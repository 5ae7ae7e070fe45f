#include "autograd/ops/reduce/extremum.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/reduce_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;
using kernels::ReduceOp;

namespace {

// Elements that equal the extremum share its gradient evenly. Where the extremum is a NaN, all NaNs
// share it.
Tensor share(const Tensor& g, const Tensor& x, const Tensor& y, ReducedDims dims) {
  const Tensor winners = x.eq(spread(y, x.sizes(), dims)).logical_or(x.isnan());
  return spread(g, x.sizes(), dims)
      .mul(even_shares(winners, dims, g.scalar_type()))
      .to(g.scalar_type());
}

Tensor extremum(const char* op, const char* node, ReduceOp kind, const Tensor& x,
                OptionalIntArrayRef dim, bool keepdim) {
  const ReducedDims dims = reduced_dims(op, x, dim, keepdim);
  check_not_empty(op, x, dims, dim.has_value() && !dim.value().empty());
  Tensor out = run_reduce(kind, x, dims, x.scalar_type());
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [dims, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
                  return share(g, sx.get(self), sy.get(self).detach(), dims);
                },
                [&](Arguments& to) { add_dims(to, dims, x); });
}

std::tuple<Tensor, Tensor> with_places(const char* op, const char* node, ReduceOp kind,
                                       const Tensor& x, int64_t dim, bool keepdim) {
  const ReducedDims dims = reduced_dims(op, x, dim, keepdim);
  check_not_empty(op, x, dims, true);
  Tensor places, out = run_reduce(kind, x, dims, x.scalar_type(), 0, &places);
  return {taken(node, x, wrap_dim(op, dim, x.dim()), std::move(out), places, !keepdim), places};
}

Tensor places_of(const char* op, ReduceOp kind, const Tensor& x, std::optional<int64_t> dim,
                 bool keepdim) {
  RAMET_CHECK(x.scalar_type() != kBool, op, "does not support bool input: got ", describe(x));
  const ReducedDims dims =
      reduced_dims(op, x, dim ? OptionalIntArrayRef(*dim) : OptionalIntArrayRef(), keepdim);
  check_not_empty(op, x, dims, dim.has_value());
  Tensor places;
  run_reduce(kind, x, dims, x.scalar_type(), 0, &places, /*only_extra=*/true);
  return places;
}

}  // namespace

Tensor max(const Tensor& self) {
  return extremum("max", "MaxBackward1", ReduceOp::kMax, self, std::nullopt, false);
}
Tensor min(const Tensor& self) {
  return extremum("min", "MinBackward1", ReduceOp::kMin, self, std::nullopt, false);
}
std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim) {
  return with_places("max", "MaxBackward0", ReduceOp::kMaxIndex, self, dim, keepdim);
}
std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim) {
  return with_places("min", "MinBackward0", ReduceOp::kMinIndex, self, dim, keepdim);
}
Tensor amax(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return extremum("amax", "AmaxBackward0", ReduceOp::kMax, self, dim, keepdim);
}
Tensor amin(const Tensor& self, IntArrayRef dim, bool keepdim) {
  return extremum("amin", "AminBackward0", ReduceOp::kMin, self, dim, keepdim);
}
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return places_of("argmax", ReduceOp::kMaxIndex, self, dim, keepdim);
}
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return places_of("argmin", ReduceOp::kMinIndex, self, dim, keepdim);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/reduce/extremum.inc"

}  // namespace ramet
