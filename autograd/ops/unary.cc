#include "autograd/ops/unary.h"

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/comparison.h"
#include "autograd/ops/front/out_front.h"
#include "autograd/ops/where.h"

namespace ramet {

using namespace autograd;

namespace {

enum Integers : uint8_t { kKeep, kPromote };  // what an integer input gives
enum Saves : uint8_t { kNothing = 0, kX = 1, kY = 2 };

// All that distinguishes one function from another.
struct Rule {
  const char* name;
  const char* in_place;
  const char* out;
  const char* node;
  PointwiseKernel kernel;
  Integers integers;
  uint8_t saves;
  Tensor (*gradient)(const Tensor& g, const Tensor& x, const Tensor& y);
};

ScalarType result_of(const Rule& r, const Tensor& x) {
  return r.integers == kPromote && !is_floating(x.scalar_type()) ? get_default_dtype()
                                                                 : x.scalar_type();
}

Tensor gradient_of(const Rule& r, const Node& self, const Tensor& g, const Saved& x,
                   const SavedOutput& y) {
  return r.gradient(g, r.saves & kX ? x.get(self) : Tensor(),
                    r.saves & kY ? y.get(self) : Tensor());
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
  return record(
      r.node, {x}, std::move(out),
      [&r, sx = save_if(r.saves & kX, x), sy = r.saves & kY ? save_output(out) : SavedOutput()](
          const Node& self, const Tensor& g) { return gradient_of(r, self, g, sx, sy); });
}

Tensor& run_in_place(const Rule& r, const Tensor& x) {
  check_inplace(r.in_place, x);
  check_output(r.in_place, x, x.sizes(), result_of(r, x));
  const bool records = recording(x);
  const Saved sx = save_overwritten(records && (r.saves & kX), x);
  pointwise_into(r.kernel, x, compute_type(x.scalar_type()), x);
  wrote(r.in_place, x);
  if (records) {
    record_inplace(
        r.node, {x}, x,
        [&r, sx, sy = r.saves & kY ? save_output(x) : SavedOutput()](
            const Node& self, const Tensor& g) { return gradient_of(r, self, g, sx, sy); });
  }
  return as_mutable(x);
}

Tensor& run_out(const Rule& r, Tensor& out, const Tensor& x) {
  check_defined(r.out, x);
  const ScalarType dtype = result_of(r, x);
  return pointwise_out(r.out, r.kernel, out, dtype, compute_type(dtype), x);
}

Tensor zeros_for(const Tensor& g) {
  Tensor z = empty_like_layout(g, g.scalar_type());
  fill_values(z, 0);
  return z;
}
using T = const Tensor&;

// clang-format off
const Rule kNeg{"neg", "neg_", "neg_out", "NegBackward0", RAMET_POINTWISE(neg), kKeep, kNothing, [](T g, T, T) { return neg(g); }};
const Rule kAbs{"abs", "abs_", "abs_out", "AbsBackward0", RAMET_POINTWISE(abs), kKeep, kX, [](T g, T x, T) { return mul(g, sign(x)); }};
const Rule kSign{"sign", "sign_", "sign_out", "SignBackward0", RAMET_POINTWISE(sign), kKeep, kNothing, [](T g, T, T) { return zeros_for(g); }};
const Rule kSquare{"square", "square_", "square_out", "PowBackward0", RAMET_POINTWISE(square), kKeep, kX, [](T g, T x, T) { return mul(mul(g, x), 2); }};
const Rule kExp{"exp", "exp_", "exp_out", "ExpBackward0", RAMET_POINTWISE(exp), kPromote, kY, [](T g, T, T y) { return mul(g, y); }};
const Rule kExpm1{"expm1", "expm1_", "expm1_out", "Expm1Backward0", RAMET_POINTWISE(expm1), kPromote, kY, [](T g, T, T y) { return mul(g, add(y, 1)); }};
const Rule kLog{"log", "log_", "log_out", "LogBackward0", RAMET_POINTWISE(log), kPromote, kX, [](T g, T x, T) { return div(g, x); }};
const Rule kLog1p{"log1p", "log1p_", "log1p_out", "Log1PBackward0", RAMET_POINTWISE(log1p), kPromote, kX, [](T g, T x, T) { return div(g, add(x, 1)); }};
const Rule kLog2{"log2", "log2_", "log2_out", "Log2Backward0", RAMET_POINTWISE(log2), kPromote, kX,
                 [](T g, T x, T) { return div(g, mul(x, 0.6931471805599453)); }};
const Rule kSqrt{"sqrt", "sqrt_", "sqrt_out", "SqrtBackward0", RAMET_POINTWISE(sqrt), kPromote, kY, [](T g, T, T y) { return div(g, mul(y, 2)); }};
const Rule kRsqrt{"rsqrt", "rsqrt_", "rsqrt_out", "RsqrtBackward0", RAMET_POINTWISE(rsqrt), kPromote, kY,
                  [](T g, T, T y) { return mul(mul(g, mul(mul(y, y), y)), -0.5); }};
const Rule kReciprocal{"reciprocal", "reciprocal_", "reciprocal_out", "ReciprocalBackward0", RAMET_POINTWISE(reciprocal), kPromote, kY,
                       [](T g, T, T y) { return mul(neg(g), mul(y, y)); }};
const Rule kSin{"sin", "sin_", "sin_out", "SinBackward0", RAMET_POINTWISE(sin), kPromote, kX, [](T g, T x, T) { return mul(g, cos(x)); }};
const Rule kCos{"cos", "cos_", "cos_out", "CosBackward0", RAMET_POINTWISE(cos), kPromote, kX, [](T g, T x, T) { return mul(neg(g), sin(x)); }};
const Rule kTanh{"tanh", "tanh_", "tanh_out", "TanhBackward0", RAMET_POINTWISE(tanh), kPromote, kY, [](T g, T, T y) { return tanh_backward(g, y); }};
const Rule kSigmoid{"sigmoid", "sigmoid_", "sigmoid_out", "SigmoidBackward0", RAMET_POINTWISE(sigmoid), kPromote, kY,
                    [](T g, T, T y) { return sigmoid_backward(g, y); }};
const Rule kErf{"erf", "erf_", "erf_out", "ErfBackward0", RAMET_POINTWISE(erf), kPromote, kX,
                [](T g, T x, T) { return mul(g, mul(exp(neg(mul(x, x))), 1.1283791670955126)); }};
const Rule kRelu{"relu", "relu_", "relu_out", "ReluBackward0", RAMET_POINTWISE(relu), kKeep, kY, [](T g, T, T y) { return threshold_backward(g, y, 0); }};
const Rule kFloor{"floor", "floor_", "floor_out", "FloorBackward0", RAMET_POINTWISE(floor), kKeep, kNothing, [](T g, T, T) { return zeros_for(g); }};
const Rule kCeil{"ceil", "ceil_", "ceil_out", "CeilBackward0", RAMET_POINTWISE(ceil), kKeep, kNothing, [](T g, T, T) { return zeros_for(g); }};
const Rule kRound{"round", "round_", "round_out", "RoundBackward0", RAMET_POINTWISE(round), kKeep, kNothing, [](T g, T, T) { return zeros_for(g); }};
const Rule kTrunc{"trunc", "trunc_", "trunc_out", "TruncBackward0", RAMET_POINTWISE(trunc), kKeep, kNothing, [](T g, T, T) { return zeros_for(g); }};
// clang-format on

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

// In place, but there is nothing to do.
Tensor& unchanged(const Rule& r, const Tensor& x) {
  check_inplace(r.in_place, x);
  wrote(r.in_place, x);
  return as_mutable(x);
}

}  // namespace

// A fused backward is an operation of its own: its first-order bits are the same with and without
// create_graph.
Tensor tanh_backward(const Tensor& g, const Tensor& y) {
  Tensor out = pointwise_gradient(RAMET_POINTWISE(tanh_backward), g, y);
  if (!recording(g, y)) return out;
  return record("TanhBackwardBackward0", {g, y}, std::move(out),
                [sg = save(g), sy = save(y)](const Node& self, const Tensor& v) {
                  const Tensor& y = sy.get(self);
                  return std::array<Tensor, 2>{
                      self.needs(0) ? tanh_backward(v, y) : Tensor(),
                      self.needs(1) ? mul(mul(mul(v, sg.get(self)), y), -2) : Tensor()};
                });
}

Tensor sigmoid_backward(const Tensor& g, const Tensor& y) {
  Tensor out = pointwise_gradient(RAMET_POINTWISE(sigmoid_backward), g, y);
  if (!recording(g, y)) return out;
  return record("SigmoidBackwardBackward0", {g, y}, std::move(out),
                [sg = save(g), sy = save(y)](const Node& self, const Tensor& v) {
                  const Tensor& y = sy.get(self);
                  return std::array<Tensor, 2>{
                      self.needs(0) ? sigmoid_backward(v, y) : Tensor(),
                      self.needs(1) ? mul(mul(v, sg.get(self)), add(mul(y, -2), 1)) : Tensor()};
                });
}

Tensor threshold_backward(const Tensor& g, const Tensor& x, const Scalar& threshold) {
  check_defined("threshold_backward", g);
  check_defined("threshold_backward", x);
  if (is_integral(g.scalar_type(), false) && same_sizes(g.impl(), x.impl()))
    return where(gt(x, threshold), g, 0).to(g.scalar_type());
  Tensor out = pointwise_gradient(RAMET_POINTWISE(threshold_backward), g, x, threshold);
  if (!recording(g)) return out;
  return record("ThresholdBackwardBackward0", {g}, std::move(out),
                [sx = save(x), threshold](const Node& self, const Tensor& v) {
                  return threshold_backward(v, sx.get(self), threshold);
                });
}

Tensor neg(const Tensor& x) { return refuse_bool(kNeg, x), run(kNeg, x); }
Tensor abs(const Tensor& x) { return refuse_bool(kAbs, x), run(kAbs, x); }
Tensor relu(const Tensor& x) { return refuse_bool(kRelu, x), run(kRelu, x); }
// Two operations, but one rounding: 16-bit types are not rounded between them.
Tensor log10(const Tensor& x) {
  check_defined("log10", x);
  if (is_narrow(x.scalar_type())) return log10(x.to(kFloat)).to(x.scalar_type());
  return mul(log(x), 0.4342944819032518);
}
Tensor tan(const Tensor& x) {
  check_defined("tan", x);
  if (is_narrow(x.scalar_type())) return tan(x.to(kFloat)).to(x.scalar_type());
  return div(sin(x), cos(x));
}
// A power, and so an integer: LibTorch's square of a bool is int64.
Tensor square(const Tensor& x) {
  check_defined("square", x);
  return run(kSquare, x.scalar_type() == kBool ? x.to(kLong) : x);
}
#define RAMET_PLAIN(name, rule) \
  Tensor name(const Tensor& x) { return run(rule, x); }
RAMET_PLAIN(sign, kSign)
RAMET_PLAIN(exp, kExp)
RAMET_PLAIN(expm1, kExpm1)
RAMET_PLAIN(log, kLog)
RAMET_PLAIN(log1p, kLog1p)
RAMET_PLAIN(log2, kLog2)
RAMET_PLAIN(sqrt, kSqrt)
RAMET_PLAIN(rsqrt, kRsqrt)
RAMET_PLAIN(reciprocal, kReciprocal)
RAMET_PLAIN(sin, kSin)
RAMET_PLAIN(cos, kCos)
RAMET_PLAIN(tanh, kTanh)
RAMET_PLAIN(sigmoid, kSigmoid)
RAMET_PLAIN(erf, kErf)
#undef RAMET_PLAIN
#define RAMET_ROUNDING(name, rule)                                                   \
  Tensor name(const Tensor& x) { return whole(rule, x) ? x.clone() : run(rule, x); } \
  Tensor Tensor::name() const { return ramet::name(*this); }                         \
  Tensor& Tensor::name##_() const {                                                  \
    return whole(rule, *this) ? unchanged(rule, *this) : run_in_place(rule, *this);  \
  }
RAMET_ROUNDING(floor, kFloor)
RAMET_ROUNDING(ceil, kCeil)
RAMET_ROUNDING(round, kRound)
RAMET_ROUNDING(trunc, kTrunc)
#undef RAMET_ROUNDING

#define RAMET_METHODS(name, rule)                            \
  Tensor Tensor::name() const { return ramet::name(*this); } \
  Tensor& Tensor::name##_() const { return run_in_place(rule, *this); }
RAMET_METHODS(sign, kSign)
RAMET_METHODS(exp, kExp)
RAMET_METHODS(expm1, kExpm1)
RAMET_METHODS(log, kLog)
RAMET_METHODS(log1p, kLog1p)
RAMET_METHODS(log2, kLog2)
RAMET_METHODS(sqrt, kSqrt)
RAMET_METHODS(rsqrt, kRsqrt)
RAMET_METHODS(reciprocal, kReciprocal)
RAMET_METHODS(sin, kSin)
RAMET_METHODS(cos, kCos)
RAMET_METHODS(tanh, kTanh)
RAMET_METHODS(sigmoid, kSigmoid)
RAMET_METHODS(erf, kErf)
#undef RAMET_METHODS
#define RAMET_METHODS_BUT_BOOL(name, rule)                   \
  Tensor Tensor::name() const { return ramet::name(*this); } \
  Tensor& Tensor::name##_() const { return refuse_bool(rule, *this), run_in_place(rule, *this); }
RAMET_METHODS_BUT_BOOL(neg, kNeg)
RAMET_METHODS_BUT_BOOL(abs, kAbs)
RAMET_METHODS_BUT_BOOL(relu, kRelu)
RAMET_METHODS_BUT_BOOL(square, kSquare)
#undef RAMET_METHODS_BUT_BOOL
Tensor Tensor::log10() const { return ramet::log10(*this); }
Tensor& Tensor::log10_() const {
  return is_narrow(scalar_type()) ? copy_(ramet::log10(*this)) : log_().mul_(0.4342944819032518);
}
Tensor Tensor::tan() const { return ramet::tan(*this); }
Tensor& Tensor::tan_() const {
  check_output("tan_", *this, sizes(), is_floating(scalar_type()) ? scalar_type() : kFloat);
  return copy_(ramet::tan(recording(*this) ? clone() : *this));  // its derivative reads the input
}

// ---- in-place functions and out forms -----------------------------------------------------------

#define RAMET_FORMS(name, rule)                            \
  Tensor& name##_(Tensor& self) { return self.name##_(); } \
  Tensor& name##_out(Tensor& out, const Tensor& self) { return run_out(rule, out, self); }
RAMET_FORMS(exp, kExp)
RAMET_FORMS(expm1, kExpm1)
RAMET_FORMS(log, kLog)
RAMET_FORMS(log1p, kLog1p)
RAMET_FORMS(log2, kLog2)
RAMET_FORMS(sqrt, kSqrt)
RAMET_FORMS(rsqrt, kRsqrt)
RAMET_FORMS(reciprocal, kReciprocal)
RAMET_FORMS(sin, kSin)
RAMET_FORMS(cos, kCos)
RAMET_FORMS(tanh, kTanh)
RAMET_FORMS(sigmoid, kSigmoid)
RAMET_FORMS(erf, kErf)
#undef RAMET_FORMS
#define RAMET_FORMS_BUT_BOOL(name, rule)                          \
  Tensor& name##_(Tensor& self) { return self.name##_(); }        \
  Tensor& name##_out(Tensor& out, const Tensor& self) {           \
    return refuse_bool(rule.out, self), run_out(rule, out, self); \
  }
RAMET_FORMS_BUT_BOOL(neg, kNeg)
RAMET_FORMS_BUT_BOOL(abs, kAbs)
RAMET_FORMS_BUT_BOOL(relu, kRelu)
#undef RAMET_FORMS_BUT_BOOL
// Integers are copied, and log10, tan and the square of a bool have no kernel.
#define RAMET_COMPUTED_FORMS(name)                                              \
  Tensor& name##_(Tensor& self) { return self.name##_(); }                      \
  Tensor& name##_out(Tensor& out, const Tensor& self) {                         \
    check_defined(#name "_out", self);                                          \
    return computed_out(#name "_out", out, recording(self), OutType::kCastable, \
                        [&] { return name(self); });                            \
  }
RAMET_COMPUTED_FORMS(floor)
RAMET_COMPUTED_FORMS(ceil)
RAMET_COMPUTED_FORMS(round)
RAMET_COMPUTED_FORMS(trunc)
RAMET_COMPUTED_FORMS(log10)
RAMET_COMPUTED_FORMS(tan)
RAMET_COMPUTED_FORMS(square)
#undef RAMET_COMPUTED_FORMS
Tensor& sign_out(Tensor& out, const Tensor& self) { return run_out(kSign, out, self); }

}  // namespace ramet
