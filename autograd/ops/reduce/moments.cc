#include "autograd/ops/reduce/moments.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/reduce_internal.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"

namespace ramet {

using namespace autograd;
using kernels::ReduceOp;

namespace {

void check_floating(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "only supports floating point dtypes: got ",
              describe(x));
}

Tensor mean_of(const Tensor& x, ReducedDims dims) {
  int64_t list[kMaxRank];
  size_t n = 0;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (dims.has(d)) list[n++] = d;
  return mean(x, IntArrayRef(list, n), /*keepdim=*/true, compute_type(x.scalar_type()));
}

// d var = 2 / (n - correction) (x - mean). Over all elements, a divisor below 0 counts as 0, as in
// the variance; over named dimensions LibTorch divides by it. For 16-bit numbers, the mean and 1 /
// n are computed with more digits.
Tensor var_backward(const Tensor& g, const Tensor& x, ReducedDims dims, double correction,
                    bool all) {
  const double divisor = static_cast<double>(reduced_count(x, dims)) - correction;
  const double factor = 2 / (all ? std::max(divisor, 0.) : divisor);
  return spread(g.to(compute_type(x.scalar_type())).mul(Scalar(factor)), x.sizes(), dims)
      .mul(x.sub(mean_of(x, dims)))
      .to(x.scalar_type());
}
// g / y^p, and 0 where y is 0; for derivatives of any order.
Tensor quotient(const Tensor& g, const Tensor& y, double p = 1) {
  const Tensor zero = y.eq(0), safe = y.masked_fill(zero, 1);
  return g.div(p == 1 ? safe : safe.pow(p)).masked_fill(zero, 0);
}

struct MomentsResult {
  Tensor spread_out, mean;
};
MomentsResult moments(const char* op, ReduceOp kind, const Tensor& x, OptionalIntArrayRef dim,
                      const std::optional<Scalar>& correction_, bool keepdim, bool with_mean) {
  check_floating(op, x);
  const ReducedDims dims = reduced_dims(op, x, dim, keepdim);
  const bool all = x.dim() == 0 || !dim.has_value() || dim.value().empty();
  const double correction = correction_ ? correction_->toDouble() : 1;
  MomentsResult r;
  r.spread_out =
      run_reduce(kind, x, dims, x.scalar_type(), correction, with_mean ? &r.mean : nullptr);
  if (!recording(x)) return r;
  if (with_mean) {
    r.mean = record("MeanBackward1", {x}, std::move(r.mean),
                    saves_nothing([dims, m = Meta(x), n = reduced_count(x, dims)](const Node&,
                                                                                  const Tensor& g) {
                      return spread(g.div(Scalar(static_cast<double>(n))), m.shape(), dims);
                    }));
  }
  if (kind == ReduceOp::kVar) {
    r.spread_out = record("VarBackward0", {x}, std::move(r.spread_out),
                          [dims, correction, all, sx = save(x)](const Node& self, const Tensor& g) {
                            return var_backward(g, sx.get(self), dims, correction, all);
                          });
  } else {
    r.spread_out =
        record("StdBackward0", {x}, std::move(r.spread_out),
               [dims, correction, all, sx = save(x), sy = save_output(r.spread_out)](
                   const Node& self, const Tensor& g) {
                 const Tensor y = sy.get(self);
                 return var_backward(quotient(g, y.mul(2)), sx.get(self), dims, correction, all);
               });
  }
  return r;
}

// Derivatives of |x|_p with respect to x, 0 where the norm is 0.
Tensor norm_backward(const Tensor& g, const Tensor& x, const Tensor& y, double p,
                     ReducedDims dims) {
  const auto full = [&](const Tensor& t) { return spread(t, x.sizes(), dims); };
  if (p == 0) return Tensor();  // constant almost everywhere; LibTorch's gradient is undefined, too
  if (p == 1) return x.sign().mul(full(g));
  if (p == 2) return x.mul(full(quotient(g, y)));
  if (std::isinf(p)) {
    const Tensor winners = x.abs().eq(full(y.detach())).logical_or(x.isnan());
    return x.sign()
        .mul(even_shares(winners, dims, x.scalar_type()))
        .mul(full(g))
        .to(x.scalar_type());
  }
  const Tensor scale = full(quotient(g, y, p - 1));
  if (p < 2) return x.sign().mul(x.abs().pow(p - 1).masked_fill(x.eq(0), 0)).mul(scale);
  return x.mul(x.abs().pow(p - 2)).mul(scale);
}

Tensor norm_over(const char* node, const Tensor& self, const std::optional<Scalar>& p_,
                 OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  check_floating("norm", self);
  const Tensor x = dtype && *dtype != self.scalar_type() ? self.to(*dtype) : self;
  check_floating("norm", x);
  const ReducedDims dims = reduced_dims("norm", x, dim, keepdim);
  const double p = p_ ? p_->toDouble() : 2;
  if (std::isinf(p) || p < 0)
    check_not_empty("norm", x, dims, dim.has_value() && !dim.value().empty());
  const ReduceOp kind = p == 0          ? ReduceOp::kNorm0
                        : p == 1        ? ReduceOp::kNorm1
                        : p == 2        ? ReduceOp::kNorm2
                        : std::isinf(p) ? (p > 0 ? ReduceOp::kNormInf : ReduceOp::kNormNegInf)
                                        : ReduceOp::kNormP;
  Tensor out = run_reduce(kind, x, dims, x.scalar_type(), p);
  if (!recording(x)) return out;
  return record(node, {x}, std::move(out),
                [dims, p, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
                  return norm_backward(g, sx.get(self), sy.get(self), p, dims);
                },
                [&](Arguments& to) { to("p", p), add_dims(to, dims, x); });
}

}  // namespace

Tensor var(const Tensor& self, bool unbiased) {
  return var(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
Tensor var(const Tensor& self, int64_t dim) { return var(self, OptionalIntArrayRef(dim)); }
Tensor var(const Tensor& self, int dim) { return var(self, int64_t{dim}); }
Tensor var(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return var(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
Tensor var(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
           bool keepdim) {
  return moments("var", ReduceOp::kVar, self, dim, correction, keepdim, false).spread_out;
}
Tensor std(const Tensor& self, bool unbiased) {
  return std(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
Tensor std(const Tensor& self, int64_t dim) { return std(self, OptionalIntArrayRef(dim)); }
Tensor std(const Tensor& self, int dim) { return std(self, int64_t{dim}); }
Tensor std(const Tensor& self, OptionalIntArrayRef dim, bool unbiased, bool keepdim) {
  return std(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
Tensor std(const Tensor& self, OptionalIntArrayRef dim, const std::optional<Scalar>& correction,
           bool keepdim) {
  return moments("std", ReduceOp::kStd, self, dim, correction, keepdim, false).spread_out;
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, bool unbiased) {
  return var_mean(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int64_t dim) {
  return var_mean(self, OptionalIntArrayRef(dim));
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, int dim) {
  return var_mean(self, int64_t{dim});
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                    bool keepdim) {
  return var_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> var_mean(const Tensor& self, OptionalIntArrayRef dim,
                                    const std::optional<Scalar>& correction, bool keepdim) {
  MomentsResult r = moments("var_mean", ReduceOp::kVar, self, dim, correction, keepdim, true);
  return {std::move(r.spread_out), std::move(r.mean)};
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, bool unbiased) {
  return std_mean(self, std::nullopt, Scalar(unbiased ? 1 : 0), false);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int64_t dim) {
  return std_mean(self, OptionalIntArrayRef(dim));
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, int dim) {
  return std_mean(self, int64_t{dim});
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim, bool unbiased,
                                    bool keepdim) {
  return std_mean(self, dim, Scalar(unbiased ? 1 : 0), keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& self, OptionalIntArrayRef dim,
                                    const std::optional<Scalar>& correction, bool keepdim) {
  MomentsResult r = moments("std_mean", ReduceOp::kStd, self, dim, correction, keepdim, true);
  return {std::move(r.spread_out), std::move(r.mean)};
}

static Tensor norm_body(const Tensor& self, const Scalar& p) {
  return norm_over("NormBackward0", self, p, std::nullopt, false, std::nullopt);
}
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, ScalarType dtype) {
  return norm_over("NormBackward2", self, p, std::nullopt, false, dtype);
}
static Tensor norm_body(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim,
                        bool keepdim) {
  return norm_over("NormBackward1", self, p, dim, keepdim, std::nullopt);
}
Tensor norm(const Tensor& self, const std::optional<Scalar>& p, IntArrayRef dim, bool keepdim,
            ScalarType dtype) {
  return norm_over("NormBackward3", self, p, dim, keepdim, dtype);
}

static Tensor logsumexp_body(const Tensor& self, IntArrayRef dim, bool keepdim) {
  check_defined("logsumexp", self);
  // Several operations, but one rounding.
  if (is_narrow(self.scalar_type()))
    return logsumexp(self.to(kFloat), dim, keepdim).to(self.scalar_type());
  const Tensor x = is_floating(self.scalar_type()) ? self : self.to(get_default_dtype());
  const ReducedDims dims = reduced_dims("logsumexp", x, dim, keepdim);
  Tensor out;
  {
    const NoGradGuard off;
    if (x.numel() == 0) {
      out = run_reduce(ReduceOp::kSum, x, dims, x.scalar_type()).log();
    } else {
      Tensor top = run_reduce(ReduceOp::kMax, x, dims, x.scalar_type());
      top = top.masked_fill(top.isinf(), 0);
      const Tensor e = x.sub(spread(top, x.sizes(), dims)).exp();
      out = run_reduce(ReduceOp::kSum, e, dims, x.scalar_type()).log().add(top);
    }
  }
  if (!recording(x)) return out;
  return record(
      "LogsumexpBackward0", {x}, std::move(out),
      [dims, sx = save(x), sy = save_output(out)](const Node& self, const Tensor& g) {
        const Tensor& x = sx.get(self);
        return spread(g, x.sizes(), dims).mul(x.sub(spread(sy.get(self), x.sizes(), dims)).exp());
      });
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/reduce/moments.inc"

}  // namespace ramet
