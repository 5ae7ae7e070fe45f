// Running sums, products, extrema and sums of exponentials. reduce.inc has their rows.
#include <cmath>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/sort_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "kernels/index/cumulative_sum.h"
#include "kernels/index/running.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;
using kernels::RunningOp;
using Two = std::tuple<Tensor, Tensor>;

namespace {

// x in the dtype that the caller wants; integers add and multiply as int64.
Tensor cast(const char* op, const Tensor& x, std::optional<ScalarType> dtype) {
  check_defined(op, x);
  return !dtype || *dtype == x.scalar_type() ? x : x.to(*dtype);
}
ScalarType widened(const Tensor& x, std::optional<ScalarType> dtype) {
  return dtype ? *dtype : is_integral(x.scalar_type()) ? kLong : x.scalar_type();
}

Tensor running_sum(const Tensor& x, int64_t dim, ScalarType dtype, bool reverse) {
  const Tensor in = x.contiguous();
  Tensor out(TensorBase::empty(x.sizes(), dtype, x.device()));
  const Axis axis(x, dim);
  const Tensor workspace =
      scratch(x.is_cpu() ? 0 : kernels::cumulative_sum_workspace(axis.outer, axis.n, axis.inner),
              x.device());
  kernels::cumulative_sum(x.stream(), {in.ptr(), out->data, axis.outer, axis.n, axis.inner,
                                       x.scalar_type(), dtype, reverse, pointer(workspace)});
  if (!recording(x)) return out;
  return record("CumsumBackward0", {x}, std::move(out),
                [dim, reverse](const Node&, const Tensor& g) {
                  return running_sum(g, dim, g.scalar_type(), !reverse);
                });
}

// Runs the kernel; no history.
Two run(RunningOp op, const Tensor& x, int64_t dim, ScalarType dtype, bool reverse = false) {
  const NoGradGuard off;
  const Tensor in = x.shallow().contiguous();
  Tensor out(TensorBase::empty(x.sizes(), dtype, x.device())), places;
  if (op == RunningOp::kMax || op == RunningOp::kMin)
    places = Tensor(TensorBase::empty(x.sizes(), kLong, x.device()));
  const Axis axis(x, dim);
  kernels::running(x.stream(),
                   {in.ptr(), out->data, static_cast<int64_t*>(pointer(places)), axis.outer, axis.n,
                    axis.inner, x.scalar_type(), dtype, op, reverse});
  return {out, places};
}

Two extrema(const char* op, const char* node, RunningOp kind, const Tensor& x, int64_t dim) {
  check_defined(op, x);
  const int64_t d = wrap_dim(op, dim, x.dim());
  auto [values, places] = run(kind, x, d, x.scalar_type());
  if (!recording(x)) return {values, places};
  return {record(node, {x}, std::move(values),
                 [d, m = Meta(x), at = save(places)](const Node& self, const Tensor& g) {
                   return m.rank == 0 ? g : scatter_zeros(m.shape(), d, at.get(self), g);
                 }),
          places};
}

// A tensor with lines along `dim`, as one with the lines in its last dimension. Below, k and i
// number the elements of a line.
Tensor lines_last(const Tensor& x, int64_t dim) { return x.dim() ? x.movedim(dim, -1) : x.view(1); }
Tensor lines_back(const Tensor& x, int64_t dim, IntArrayRef sizes) {
  return sizes.empty() ? x.reshape({}) : x.movedim(-1, dim);
}
// True where row > column, in n x n.
Tensor below_diagonal(int64_t n, Device device) {
  Tensor mask(TensorBase::empty({n, n}, kBool, device));
  mask.fill_(true);
  return mask.tril(-1);
}

// sum over k >= i of g_k y_k / x_i. After a 0 that quotient is not defined. Before the first 0 of a
// line, sums end there. For the first 0 itself, products are computed without it. Elements after it
// have gradient 0.
//
// Where derivatives of any order are needed and there is a 0: each product without one element, n x
// n of them. Without a 0, every way has the bits of the first. A line of one element is its own
// product: a quotient would have a rounding error in a second derivative, and NaN at infinity.
Tensor cumprod_backward(const Tensor& g, const Tensor& x, const Tensor& y, int64_t dim) {
  const bool single = x.dim() == 0 || x.size(dim) == 1;
  if (single && !GradMode::is_enabled()) return g;
  const Tensor zero = x.eq(0);
  // As in prod: a capture cannot read values.
  const bool may_ask = (x.is_cpu() || GradMode::is_enabled()) && !capture::active();
  const auto quotient = [&](const Tensor& of) {
    return running_sum(g.mul(y), dim, g.scalar_type(), true).div(of);
  };
  if (may_ask && !single && !zero.any().item<bool>()) return quotient(x);
  if (!GradMode::is_enabled()) {
    const Tensor zeros = zero.cumsum(dim), first = zero.logical_and(zeros.eq(1)),
                 one = x.masked_fill(first, 1), products = one.cumprod(dim);
    const Tensor before = g.mul(y).masked_fill(zeros.ne(0), 0),
                 after = g.mul(products).masked_fill(zeros.ne(1), 0);
    const Tensor of_others =
        running_sum(before, dim, g.scalar_type(), true).div(x.masked_fill(zero, 1));
    return running_sum(after, dim, g.scalar_type(), true)
        .where(first, of_others.masked_fill(zeros.ne(0), 0));
  }
  const Tensor lines = lines_last(x, dim);
  const int64_t n = lines.size(-1);
  // Row i: the products without element i; 0 before it, where it is no factor.
  Tensor self(TensorBase::empty({n, n}, kBool, x.device()));
  self.zero_();
  self.diagonal().fill_(true);
  const Tensor products = lines.unsqueeze(-2).masked_fill(self, 1).cumprod(-1).masked_fill(
      below_diagonal(n, x.device()), 0);
  const Tensor exact =
      lines_back(products.mul(lines_last(g, dim).unsqueeze(-2)).sum(-1), dim, x.sizes());
  if (single || !capture::active()) return exact;
  return exact.where(zero.any(), quotient(x.masked_fill(zero, 1)));  // at each replay
}

// sum over k >= i of g_k exp(x_i - y_k), by logarithms, separately for positive and negative g. For
// derivatives of any order as the formula says, with n x n terms. Sums of -inf alone contribute
// nothing.
Tensor logcumsumexp_backward(const Tensor& g, const Tensor& x, const Tensor& y, int64_t dim) {
  const Tensor none = y.detach().eq(-INFINITY);
  if (!GradMode::is_enabled()) {
    const ScalarType wide = compute_type(g.scalar_type());  // 16-bit logarithms have too few digits
    const auto part = [&](const Tensor& of) {
      const Tensor log = of.clamp_min(0).log().sub(y.to(wide)).masked_fill(none, -INFINITY);
      return std::get<0>(run(RunningOp::kLogSumExp, log, dim, wide, true)).add(x.to(wide)).exp();
    };
    return part(g.to(wide)).sub(part(g.to(wide).neg())).to(g.scalar_type());
  }
  const Tensor xs = lines_last(x, dim), ys = lines_last(y, dim);
  const Tensor terms = xs.unsqueeze(-1)
                           .sub(ys.unsqueeze(-2))
                           .masked_fill(below_diagonal(xs.size(-1), x.device())
                                            .logical_or(lines_last(none, dim).unsqueeze(-2)),
                                        -INFINITY)
                           .exp();
  return lines_back(terms.mul(lines_last(g, dim).unsqueeze(-2)).sum(-1), dim, x.sizes());
}

}  // namespace

Tensor cumsum_body(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor x = cast("cumsum", self, dtype);
  return running_sum(x, wrap_dim("cumsum", dim, x.dim()), widened(x, dtype), false);
}

Tensor cumprod_body(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  const Tensor x = cast("cumprod", self, dtype);
  const int64_t d = wrap_dim("cumprod", dim, x.dim());
  Tensor out = std::get<0>(run(RunningOp::kProduct, x, d, widened(x, dtype)));
  if (!recording(x)) return out;
  return record("CumprodBackward0", {x}, std::move(out),
                [d, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
                  return cumprod_backward(g, sx.get(self), sy.get(self), d);
                });
}

namespace {
// x = running(x) along `dim`, in x's dtype.
template <class F>
Tensor& running_in_place(const char* op, const Tensor& x, int64_t dim,
                         std::optional<ScalarType> dtype, const F& running) {
  check_defined(op, x);
  RAMET_CHECK(!dtype || *dtype == x.scalar_type(), op, "Bad in-place call: input tensor dtype ",
              name_of(x.scalar_type()), " and output tensor dtype ", name_of(*dtype),
              " should match");
  RAMET_CHECK(x.scalar_type() != kBool, op, "does not support bool in place: got ", describe(x));
  wrap_dim(op, dim, x.dim());
  return computed_in_place(op, x,
                           [&](const Tensor& old) { return running(old, dim, old.scalar_type()); });
}
}  // namespace
Tensor& Tensor::cumsum_(int64_t dim, std::optional<ScalarType> dtype) const {
  return running_in_place("cumsum_", *this, dim, dtype, ramet::cumsum);
}
Tensor& Tensor::cumprod_(int64_t dim, std::optional<ScalarType> dtype) const {
  return running_in_place("cumprod_", *this, dim, dtype, ramet::cumprod);
}

Two cummax(const Tensor& self, int64_t dim) {
  return extrema("cummax", "CummaxBackward0", RunningOp::kMax, self, dim);
}
Two cummin(const Tensor& self, int64_t dim) {
  return extrema("cummin", "CumminBackward0", RunningOp::kMin, self, dim);
}

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  const char* const op = "logcumsumexp";
  check_defined(op, self);
  RAMET_CHECK(is_floating(self.scalar_type()), op, "only supports floating-point input: got ",
              describe(self));
  const int64_t d = wrap_dim(op, dim, self.dim());
  Tensor out = std::get<0>(run(RunningOp::kLogSumExp, self, d, self.scalar_type()));
  if (!recording(self)) return out;
  return record("LogcumsumexpBackward0", {self}, std::move(out),
                [d, sx = save(self), sy = save_output(out)](const Node& self, const Tensor& g) {
                  return logcumsumexp_backward(g, sx.get(self), sy.get(self), d);
                });
}

}  // namespace ramet
