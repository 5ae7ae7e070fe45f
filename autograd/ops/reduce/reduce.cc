#include "autograd/ops/reduce/reduce.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/reduce_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/shape/view.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;
using kernels::ReduceOp;

namespace {

// x in the dtype that the caller wants to reduce in.
Tensor cast(const char* op, const Tensor& x, std::optional<ScalarType> dtype) {
  check_defined(op, x);
  return !dtype || *dtype == x.scalar_type() ? x : x.to(*dtype);
}
ScalarType sum_type(const Tensor& x, std::optional<ScalarType> dtype) {
  return dtype ? *dtype : is_integral(x.scalar_type()) ? kLong : x.scalar_type();
}

Tensor sum_over(const char* node, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                std::optional<ScalarType> dtype) {
  const Tensor x = cast("sum", self, dtype);
  const ReducedDims dims = reduced_dims("sum", x, dim, keepdim);
  Tensor out = run_reduce(ReduceOp::kSum, x, dims, sum_type(x, dtype));
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                saves_nothing([dims, m = Meta(x)](const Node&, const Tensor& g) {
                  return spread(g, m.shape(), dims);
                }),
                [&](Arguments& to) { add_dims(to, dims, x); });
}

Tensor mean_over(const char* node, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  const Tensor x = cast("mean", self, dtype);
  RAMET_CHECK(is_floating(x.scalar_type()), "mean",
              "could not infer output dtype. Input dtype must be floating point: got ",
              name_of(x.scalar_type()));
  const ReducedDims dims = reduced_dims("mean", x, dim, keepdim);
  Tensor out = run_reduce(ReduceOp::kMean, x, dims, x.scalar_type());
  if (!recording(x)) return out;
  return record(
      node, {x}, std::move(out),
      saves_nothing([dims, m = Meta(x), n = reduced_count(x, dims)](const Node&, const Tensor& g) {
        return spread(g.div(Scalar(static_cast<double>(n))), m.shape(), dims);
      }),
      [&](Arguments& to) { add_dims(to, dims, x); });
}

// Where a group holds a 0, result / x does not give the product of the others. For first
// derivatives only, it counts the zeros. For derivatives of any order, the product of the others is
// a product of a copy with the element replaced by 1: n x n elements. Without a 0, every way has
// the bits of the first. A group of one element is its own product: a quotient would have a
// rounding error in a second derivative, and NaN at infinity.
Tensor prod_backward(const Tensor& g, const Tensor& x, const Tensor& y, ReducedDims dims) {
  const Tensor gx = spread(g, x.sizes(), dims), yx = spread(y, x.sizes(), dims);
  const int64_t n = reduced_count(x, dims);
  if (n == 1 && !GradMode::is_enabled()) return gx;
  const Tensor zero = x.eq(0);
  // Read a value from a GPU only where that saves n x n elements. A capture cannot read values.
  const bool may_ask = (x.is_cpu() || GradMode::is_enabled()) && !capture::active();
  if (may_ask && n != 1 && !zero.any().item<bool>()) return gx.mul(yx.div(x));
  if (!GradMode::is_enabled()) {
    const Tensor others = x.masked_fill(zero, 1);
    ReducedDims kept = dims;
    kept.keepdim = true;
    const Tensor count = run_reduce(ReduceOp::kSum, zero, kept, kLong),
                 alone = run_reduce(ReduceOp::kProd, others, kept, y.scalar_type())
                             .masked_fill(count.ne(1), 0),
                 free = y.reshape(count.sizes()).masked_fill(count.ne(0), 0);
    return gx.mul(alone.expand(x.sizes()).where(zero, free.div(others)));
  }
  // Make the reduced dimensions one, the last.
  std::vector<int64_t> order, back(static_cast<size_t>(x.dim()));
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t d = 0; d < x.dim(); ++d)
      if (dims.has(d) == (pass == 1)) {
        back[static_cast<size_t>(d)] = static_cast<int64_t>(order.size());
        order.push_back(d);
      }
  const Tensor moved = x.permute(order), rows = moved.reshape({-1, 1, n}).expand({-1, n, n});
  Tensor self(TensorBase::empty({n, n}, kBool, x.device()));
  self.zero_();
  self.diagonal().fill_(true);
  const Tensor others = rows.masked_fill(self, 1).prod(-1).reshape(moved.sizes()).permute(back);
  const Tensor exact = gx.mul(others);
  if (n == 1 || !capture::active()) return exact;
  return exact.where(zero.any(), gx.mul(yx.div(x.masked_fill(zero, 1))));  // at each replay
}

Tensor prod_over(const char* node, const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                 std::optional<ScalarType> dtype) {
  const Tensor x = cast("prod", self, dtype);
  const ReducedDims dims = reduced_dims("prod", x, dim, keepdim);
  Tensor out = run_reduce(ReduceOp::kProd, x, dims, sum_type(x, dtype));
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [dims, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
                  return prod_backward(g, sx.get(self), sy.get(self), dims);
                },
                [&](Arguments& to) { add_dims(to, dims, x); });
}

Tensor truth(const char* op, ReduceOp kind, const Tensor& x, OptionalIntArrayRef dim,
             bool keepdim) {
  const ReducedDims dims = reduced_dims(op, x, dim, keepdim);
  return run_reduce(kind, x, dims, x.scalar_type() == kByte ? kByte : kBool);
}
// An empty list reduces nothing: the result is each element's truth value.
Tensor truth_over(const char* op, ReduceOp kind, const Tensor& x, OptionalIntArrayRef dim,
                  bool keepdim) {
  check_defined(op, x);
  if (!dim.has_value() || !dim.value().empty()) return truth(op, kind, x, dim, keepdim);
  return x.scalar_type() == kByte ? x.ne(0).to(kByte) : x.ne(0);
}

}  // namespace

static Tensor sum_body(const Tensor& self, std::optional<ScalarType> dtype) {
  return sum_over("SumBackward0", self, std::nullopt, false, dtype);
}
static Tensor sum_body(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
                       std::optional<ScalarType> dtype) {
  return sum_over("SumBackward1", self, dim, keepdim, dtype);
}
Tensor mean(const Tensor& self, std::optional<ScalarType> dtype) {
  return mean_over("MeanBackward0", self, std::nullopt, false, dtype);
}
Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim,
            std::optional<ScalarType> dtype) {
  return mean_over("MeanBackward1", self, dim, keepdim, dtype);
}
static Tensor prod_body(const Tensor& self, std::optional<ScalarType> dtype) {
  return prod_over("ProdBackward0", self, std::nullopt, false, dtype);
}
static Tensor prod_body(const Tensor& self, int64_t dim, bool keepdim,
                        std::optional<ScalarType> dtype) {
  return prod_over("ProdBackward1", self, dim, keepdim, dtype);
}

Tensor any(const Tensor& self) { return truth("any", ReduceOp::kAny, self, std::nullopt, false); }
Tensor any(const Tensor& self, int64_t dim, bool keepdim) {
  return truth("any", ReduceOp::kAny, self, dim, keepdim);
}
Tensor any(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  return truth_over("any", ReduceOp::kAny, self, dim, keepdim);
}
Tensor all(const Tensor& self) { return truth("all", ReduceOp::kAll, self, std::nullopt, false); }
Tensor all(const Tensor& self, int64_t dim, bool keepdim) {
  return truth("all", ReduceOp::kAll, self, dim, keepdim);
}
Tensor all(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  return truth_over("all", ReduceOp::kAll, self, dim, keepdim);
}

// ---- rules of out forms -------------------------------------------------------------------------

namespace {

// Sums and products over dimensions compute in the dtype of `out`; a given dtype must equal it.
struct OfOut : OutRule {
  void check(const char* op, const Tensor& out, const Tensor& self, int64_t,
             std::optional<ScalarType>& dtype) const {
    check_defined(op, out);
    RAMET_CHECK(!dtype || *dtype == out.scalar_type(), op, "Expected out tensor to have dtype ",
                name_of(*dtype), ", but got ", name_of(out.scalar_type()));
    dtype = out.scalar_type();
    check_defined(op, self);
  }
  template <class Dim>
  void check(const char* op, const Tensor& out, const Tensor& self, const Dim&, bool,
             std::optional<ScalarType>& dtype) const {
    check(op, out, self, 0, dtype);
  }
};
struct FloatingOfOut : OfOut {
  void check(const char* op, const Tensor& out, const Tensor& self, OptionalIntArrayRef, bool,
             std::optional<ScalarType>& dtype) const {
    const bool given = dtype.has_value();
    OfOut::check(op, out, self, 0, dtype);
    RAMET_CHECK(given || is_floating(self.scalar_type()), op,
                "could not infer output dtype. Input dtype must be floating point: got ",
                name_of(self.scalar_type()));
  }
};
struct Truth : OutRule {
  template <class... T>
  void check(const char* op, const Tensor& out, const Tensor& self, const T&...) const {
    check_defined(op, out);
    RAMET_CHECK(out.scalar_type() == kBool || out.scalar_type() == kByte, op,
                "only supports bool tensor for result, got: ", name_of(out.scalar_type()));
    check_defined(op, self);
  }
  template <class F> Tensor result(const F& f, const Tensor& out) const {
    return f().to(out.scalar_type());
  }
};
constexpr OfOut kOfOut{{OutType::kSame}};
constexpr FloatingOfOut kFloatingOfOut{{{OutType::kSame}}};
constexpr Truth kTruth{{OutType::kSame}};

}  // namespace

#include "autograd/forms/definitions.inc"
#include "autograd/ops/reduce/reduce.inc"

}  // namespace ramet
