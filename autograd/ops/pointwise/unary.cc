#include "autograd/ops/pointwise/unary.h"

#include <cmath>
#include <limits>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/activation.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/comparison.h"
#include "autograd/ops/pointwise/pair.h"
#include "autograd/ops/pointwise/where.h"
#include "autograd/ops/reduce/reduce.h"

namespace ramet {
namespace autograd {
// A helper of rows: the n-th derivative of sinc.
static Tensor sinc_derivative(int64_t n, const Tensor& x);
}  // namespace autograd
}  // namespace ramet

#include "kernels/pointwise/rows/unary.h"

namespace ramet {

using namespace autograd;
using kernels::Integers, kernels::Saves;

namespace {

// A row as data, so that the functions below are compiled once.
struct Rule : RowNames {
  Integers integers;
  Saves saves;
  Tensor (*gradient)(const Tensor& g, const Tensor& x, const Tensor& y);
};
#define RAMET_RULE(name, Row)                                                            \
  const Rule k##Row{RAMET_ROW_NAMES(name, Row), rows::Row::kIntegers, rows::Row::kSaves, \
                    rows::Row::gradient<Tensor>};
RAMET_UNARY_FUNCTIONS(RAMET_RULE)
RAMET_UNARY_METHODS(RAMET_RULE)
#undef RAMET_RULE

ScalarType promoted(const Tensor& x) {
  return is_floating(x.scalar_type()) ? x.scalar_type() : get_default_dtype();
}
ScalarType result_of(const Rule& r, const Tensor& x) {
  return r.integers == Integers::kPromoted ? promoted(x) : x.scalar_type();
}

// square is a power.
void add_arguments(Arguments& to, const Rule& r) {
  if (std::string_view(r.node) == "PowBackward0") to("exponent", 2);
}

Tensor gradient_of(const Rule& r, const Node& self, const Tensor& g, const Saved& x,
                   const SavedOutput& y) {
  return r.gradient(g, r.saves == Saves::kInput ? x.get(self) : Tensor(),
                    r.saves == Saves::kOutput ? y.get(self) : Tensor());
}

// The gradient of a row that reads neither input nor output. It keeps nothing, so it may run twice.
auto gradient_without(const Rule& r) {
  return [&r](const Node&, const Tensor& g) { return r.gradient(g, Tensor(), Tensor()); };
}

inline Tensor run(const Rule& r, const Tensor& x) {
  check_defined(r.name, x);
  Tensor out;
  if (RAMET_LIKELY(plain_float(x))) {
    out = plain_pointwise(r.kernel.dense, x);
  } else {
    const ScalarType dtype = result_of(r, x);
    out = empty_like_layout(x, dtype);
    pointwise_into(r.kernel, out, compute_type(dtype), x);
  }
  if (!recording(x)) return out;
  if (r.saves == Saves::kNothing) return record(r.node, {x}, std::move(out), gradient_without(r));
  return record(
      r.node, {x}, std::move(out),
      [&r, sx = save_if(r.saves == Saves::kInput, x),
       sy = r.saves == Saves::kOutput ? save_output(out) : SavedOutput()](
          const Node& self, const Tensor& g) { return gradient_of(r, self, g, sx, sy); },
      [&r](Arguments& to) { add_arguments(to, r); });
}

Tensor& run_in_place(const Rule& r, const Tensor& x) {
  check_inplace(r.in_place, x);
  check_output(r.in_place, x, x.sizes(), result_of(r, x));
  const bool records = recording(x);
  const Saved sx = save_overwritten(records && r.saves == Saves::kInput, x);
  pointwise_into(r.kernel, x, compute_type(x.scalar_type()), x);
  wrote(r.in_place, x);
  if (records && r.saves == Saves::kNothing) {
    record_inplace(r.node, {x}, x, gradient_without(r));
  } else if (records) {
    record_inplace(
        r.node, {x}, x,
        [&r, sx, sy = r.saves == Saves::kOutput ? save_output(x) : SavedOutput()](
            const Node& self, const Tensor& g) { return gradient_of(r, self, g, sx, sy); },
        [&r](Arguments& to) { add_arguments(to, r); });
  }
  return as_mutable(x);
}

Tensor& run_out(const Rule& r, Tensor& out, const Tensor& x) {
  check_defined(r.out, x);
  const ScalarType dtype = result_of(r, x);
  return pointwise_out(r.out, r.kernel, out, dtype, compute_type(dtype), x);
}

void refuse_integers(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(is_floating(x.scalar_type()), op, "expected floating-point values: got ",
              describe(x));
}
void refuse_bool(const char* op, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(x.scalar_type() != kBool, op, "bool is not supported: got ", describe(x));
}
void refuse_bool(const Rule& r, const Tensor& x) { refuse_bool(r.name, x); }
// Rounding leaves integers as they are.
const Tensor* whole(const Rule& r, const Tensor& x) {
  refuse_bool(r, x);
  return is_integral(x.scalar_type()) ? &x : nullptr;
}

// The in-place form where the values do not change.
Tensor& unchanged(const Rule& r, const Tensor& x) {
  check_inplace(r.in_place, x);
  wrote(r.in_place, x);
  return as_mutable(x);
}

// ---- the forms of a row -------------------------------------------------------------------------

template <Integers kind> inline Tensor fresh(const Rule& r, const Tensor& x) {
  if constexpr (kind == Integers::kNumbers) refuse_bool(r.name, x);
  if constexpr (kind == Integers::kRefused) refuse_integers(r.name, x);
  if constexpr (kind == Integers::kCopied)
    if (whole(r, x)) return x.clone();
  if constexpr (kind == Integers::kCounted) {
    check_defined(r.name, x);
    return run(r, x.scalar_type() == kBool ? x.to(kLong) : x);
  }
  return run(r, x);
}
template <Integers kind> inline Tensor& in_place(const Rule& r, const Tensor& x) {
  if constexpr (kind == Integers::kNumbers || kind == Integers::kCounted) refuse_bool(r.name, x);
  if constexpr (kind == Integers::kRefused) refuse_integers(r.in_place, x);
  if constexpr (kind == Integers::kCopied)
    if (whole(r, x)) return unchanged(r, x);
  return run_in_place(r, x);
}
template <Integers kind> inline Tensor& into(const Rule& r, Tensor& out, const Tensor& x) {
  if constexpr (kind == Integers::kNumbers) refuse_bool(r.out, x);
  if constexpr (kind == Integers::kRefused) refuse_integers(r.out, x);
  if constexpr (kind == Integers::kCopied || kind == Integers::kCounted) {
    check_defined(r.out, x);
    return computed_out(r.out, out, recording(x), OutType::kCastable,
                        [&] { return fresh<kind>(r, x); });
  }
  return run_out(r, out, x);
}

}  // namespace

#define RAMET_DEFINE_METHOD(name, Row)                                                          \
  static Tensor name##_body(const Tensor& x) { return fresh<rows::Row::kIntegers>(k##Row, x); } \
  Tensor& name##_out(Tensor& out, const Tensor& x) {                                            \
    return into<rows::Row::kIntegers>(k##Row, out, x);                                          \
  }                                                                                             \
  Tensor& Tensor::name##_() const { return in_place<rows::Row::kIntegers>(k##Row, *this); }
#define RAMET_DEFINE_FUNCTION(name, Row) \
  RAMET_DEFINE_METHOD(name, Row)         \
  Tensor& name##_(Tensor& x) { return in_place<rows::Row::kIntegers>(k##Row, x); }
RAMET_UNARY_FUNCTIONS(RAMET_DEFINE_FUNCTION)
RAMET_UNARY_METHODS(RAMET_DEFINE_METHOD)
#undef RAMET_DEFINE_FUNCTION
#undef RAMET_DEFINE_METHOD

// ---- polygamma: a row with a number -------------------------------------------------------------

namespace {
ScalarType polygamma_type(const char* op, int64_t n, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(n >= 0, op, "does not support negative n: got ", n, ", expected 0 or more");
  return promoted(x);
}
}  // namespace

Tensor polygamma(int64_t n, const Tensor& x) {
  const ScalarType dtype = polygamma_type("polygamma", n, x);
  Tensor out = empty_like_layout(x, dtype);
  pointwise_into(RAMET_POINTWISE(polygamma), out, compute_type(dtype), x, {}, {}, n);
  if (!recording(x)) return out;
  return record("PolygammaBackward0", {x}, std::move(out),
                [sx = save(x), n](const Node& self, const Tensor& g) {
                  return rows::Polygamma::gradient(g, sx.get(self), n);
                });
}
Tensor& polygamma_out(Tensor& out, int64_t n, const Tensor& x) {
  const ScalarType dtype = polygamma_type("polygamma_out", n, x);
  return pointwise_out("polygamma_out", RAMET_POINTWISE(polygamma), out, dtype, compute_type(dtype),
                       x, {}, {}, n);
}
Tensor Tensor::polygamma(int64_t n) const { return ramet::polygamma(n, *this); }
Tensor& Tensor::polygamma_(int64_t n) const {
  check_inplace("polygamma_", *this);
  check_output("polygamma_", *this, sizes(), polygamma_type("polygamma_", n, *this));
  return computed_in_place("polygamma_", *this,
                           [n](const Tensor& old) { return ramet::polygamma(n, old); });
}

// ---- sinc's derivatives, logit, nan_to_num: rows with numbers -----------------------------------

namespace {
// The function of a row with one tensor and its numbers, in floating point, without history.
template <class... Numbers>
Tensor computed(const PointwiseKernel& kernel, const Tensor& x, const Numbers&... numbers) {
  const ScalarType dtype = promoted(x);
  Tensor out = empty_like_layout(x, dtype);
  pointwise_into(kernel, out, compute_type(dtype), x, {}, {}, numbers...);
  return out;
}
}  // namespace

Tensor autograd::sinc_derivative(int64_t n, const Tensor& x) {
  Tensor out = computed(RAMET_POINTWISE(sinc_derivative), x, n);
  if (!recording(x)) return out;
  return record("SincBackwardBackward0", {x}, std::move(out),
                [sx = save(x), n](const Node& self, const Tensor& g) {
                  return rows::SincDerivative::gradient(g, sx.get(self), n);
                });
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  check_defined("logit", x);
  const bool bounded = eps && *eps >= 0;
  const auto bound = [&](double v) { return rounded(v, promoted(x)).toDouble(); };
  const double low = bounded ? bound(*eps) : 0, high = bounded ? bound(1 - *eps) : 1;
  Tensor out =
      computed(RAMET_POINTWISE(logit), x, bounded ? low : -INFINITY, bounded ? high : INFINITY);
  if (!recording(x)) return out;
  return record("LogitBackward0", {x}, std::move(out),
                [sx = save(x), low, high, bounded](const Node& self, const Tensor& g) {
                  return rows::Logit::gradient(g, sx.get(self), low, high, bounded);
                });
}

Tensor nan_to_num(const Tensor& x, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  check_defined("nan_to_num", x);
  if (!is_floating(x.scalar_type())) return x.clone();
  const double most = largest_finite(x.scalar_type());
  Tensor out =
      computed(RAMET_POINTWISE(nan_to_num), x, posinf.value_or(most), neginf.value_or(-most));
  if (nan && (*nan != 0 || std::signbit(*nan))) out = where(isnan(x), *nan, out);
  if (!recording(x)) return out;
  return record("NanToNumBackward0", {x}, std::move(out),
                [sx = save(x)](const Node& self, const Tensor& g) {
                  return rows::NanToNum::gradient(g, sx.get(self));
                });
}

// ---- round to decimals --------------------------------------------------------------------------

Tensor round(const Tensor& x, int64_t decimals) {
  refuse_integers("round", x);
  if (decimals == 0) return round(x);
  const ScalarType dtype = x.scalar_type(), compute = compute_type(dtype);
  Tensor out;
  {
    const NoGradGuard off;
    double power = std::pow(10.0, std::fabs(static_cast<double>(decimals)));
    if (compute == kFloat && power > std::numeric_limits<float>::max())
      power = std::numeric_limits<double>::infinity();  // as LibTorch: everything is NaN then
    const Tensor ten = full({}, power, TensorOptions(compute).device(x.device())),
                 y = x.to(compute);
    out = (decimals > 0 ? div(round(mul(y, ten)), ten) : mul(round(div(y, ten)), ten)).to(dtype);
  }
  if (!recording(x)) return out;
  return record("RoundBackward1", {x}, std::move(out),
                [](const Node&, const Tensor& g) { return zeros_like(g); });
}

// ---- frexp --------------------------------------------------------------------------------------

std::tuple<Tensor, Tensor> frexp(const Tensor& x) {
  refuse_integers("frexp", x);
  const ScalarType dtype = x.scalar_type(), compute = compute_type(dtype);
  Tensor exponent = empty_like_layout(x, kInt), mantissa = empty_like_layout(x, dtype);
  pointwise_into(RAMET_POINTWISE(frexp_exponent), exponent, compute, x);
  const Tensor back = neg(exponent);
  pointwise_into(RAMET_POINTWISE(ldexp), mantissa, compute, x, back);
  if (recording(x))
    mantissa = record("FrexpBackward0", {x}, std::move(mantissa),
                      [back](const Node&, const Tensor& g) { return ldexp(g, back); });
  return {mantissa, exponent};
}

// ---- compositions: two operations, one rounding; 16-bit types are not rounded between them ------

static Tensor log10_body(const Tensor& x) {
  check_defined("log10", x);
  if (is_narrow(x.scalar_type())) return log10(x.to(kFloat)).to(x.scalar_type());
  return mul(log(x), 0.4342944819032518);
}
Tensor& Tensor::log10_() const {
  return is_narrow(scalar_type()) ? copy_(ramet::log10(*this)) : log_().mul_(0.4342944819032518);
}
static Tensor tan_body(const Tensor& x) {
  check_defined("tan", x);
  if (is_narrow(x.scalar_type())) return tan(x.to(kFloat)).to(x.scalar_type());
  return div(sin(x), cos(x));
}
Tensor& Tensor::tan_() const {
  check_output("tan_", *this, sizes(), is_floating(scalar_type()) ? scalar_type() : kFloat);
  return copy_(ramet::tan(recording(*this) ? clone() : *this));  // its derivative reads the input
}

Tensor mvlgamma(const Tensor& x, int64_t p) {
  check_defined("mvlgamma", x);
  RAMET_CHECK(p >= 1, "mvlgamma", "p has to be greater than or equal to 1: got ", p);
  const ScalarType dtype = promoted(x);
  if (is_narrow(dtype)) return mvlgamma(x.to(kFloat), p).to(dtype);
  const Tensor halves = arange(p, x.options().dtype(dtype)).mul_(0.5);
  return add(lgamma(sub(x.to(dtype).unsqueeze(-1), halves)).sum(-1),
             0.28618247146235004 * static_cast<double>(p) * static_cast<double>(p - 1));  // ln pi/4
}

// ---- itself, and what is true of it -------------------------------------------------------------

Tensor positive(const Tensor& x) {
  refuse_bool("positive", x);
  return x;
}
Tensor isposinf(const Tensor& x) { return eq(x, INFINITY); }
Tensor isneginf(const Tensor& x) { return eq(x, -INFINITY); }
Tensor signbit(const Tensor& x) {
  check_defined("signbit", x);
  if (!is_floating(x.scalar_type())) return lt(x, 0);
  return lt(copysign(scalar_to_tensor(1.0), x.detach()), 0);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/pointwise/unary.inc"

}  // namespace ramet
