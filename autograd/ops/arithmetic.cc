#include "autograd/ops/arithmetic.h"

#include "autograd/ops/pointwise_front.h"

namespace ramet {

using namespace autograd;

namespace {

using Pair = std::array<Tensor, 2>;

// a op b into a fresh tensor, any operands. Not inlined: the argument block of the general path
// would give the fast one a frame of several hundred bytes.
[[gnu::noinline]] Tensor general(const PointwiseKernel& k, const Tensor& a, const Tensor& b,
                                 ScalarType dtype, const Scalar& s) {
  Tensor out = pointwise_result(k.dense.name, dtype, a, &b);
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
  return out;
}
[[gnu::noinline]] Tensor with_number(const PointwiseKernel& k, const Tensor& a, const Scalar& b,
                                     ScalarType dtype, const Scalar& s) {
  check_defined(k.dense.name, a);
  Tensor out = pointwise_result(k.dense.name, dtype, a);
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
  return out;
}
[[gnu::noinline]] void into(const char* op, const PointwiseKernel& k, const Tensor& out,
                            const Tensor& a, const Operand& b, ScalarType dtype, const Scalar& s) {
  if (b.tensor) {
    common_device(op, a, *b.tensor);
    check_output(op, out, broadcast_sizes(op, a.sizes(), b.tensor->sizes()), dtype);
  } else {
    check_output(op, out, a.sizes(), dtype);
  }
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
}

inline bool plain_float(const Tensor& a, const Tensor& b) {
  return alike(a, b) && a->dtype == kFloat;
}

// Two contiguous float32 tensors of one shape: what most small programs do most of the time.
template <class Kernel> inline Tensor fast(const Kernel& kernel, const Tensor& a, const Tensor& b) {
  Tensor out = empty_alike(a);
  kernels::Number one;
  one.d = 1;
  kernel(a.stream(), {a.ptr(), b.ptr(), nullptr, out->data, a.numel(), one, one, kFloat, kFloat,
                      kFloat, kFloat, kFloat});
  return out;
}

inline bool is_one(const Scalar& s) {
  return RAMET_LIKELY(s.isIntegral(false)) ? s.toDouble() == 1 : s.equal(1);
}

void check_alpha(const char* op, const Scalar& alpha, ScalarType dtype) {
  RAMET_CHECK(is_floating(dtype) || !alpha.isFloatingPoint(), op,
              "For integral input tensors, argument alpha must not be a floating point "
              "number: got ",
              alpha);
}
void check_sub(const Tensor& a, ScalarType other) {
  RAMET_CHECK(a.scalar_type() != kBool && other != kBool, "sub",
              "Subtraction, the `-` operator, with a bool tensor is not supported. Use "
              "logical_xor() instead. Got ",
              describe(a));
}
ScalarType divided(ScalarType t) { return is_floating(t) ? t : get_default_dtype(); }

Tensor times(const Tensor& g, const Scalar& s) { return is_one(s) ? g : mul(g, s); }

}  // namespace

// ---- add, sub -----------------------------------------------------------------------------------

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const bool one = is_one(alpha);
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && one)) {
    out = fast(kernels::add, a, b);
    if (!recording(a, b)) return out;
    return record("AddBackward0", {a, b}, std::move(out), [](const Node&, const Tensor& g) {
      return Pair{g, g};
    });
  }
  common_device("add", a, b);
  const ScalarType dtype = result_type(a, b);
  check_alpha("add", alpha, dtype);
  out = general(RAMET_POINTWISE(add), a, b, dtype, alpha);
  if (!recording(a, b)) return out;
  return record("AddBackward0", {a, b}, std::move(out),
                [ma = Meta(a), mb = Meta(b), alpha](const Node& self, const Tensor& g) {
                  return Pair{self.needs(0) ? ma.reduce(g) : Tensor(),
                              self.needs(1) ? mb.reduce(times(g, alpha)) : Tensor()};
                });
}

Tensor add(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("add", a);
  const ScalarType dtype = result_type(a, b);
  check_alpha("add", alpha, dtype);
  Tensor out = with_number(RAMET_POINTWISE(add), a, b, dtype, alpha);
  if (!recording(a)) return out;
  return record("AddBackward0", {a}, std::move(out),
                [dtype = a.scalar_type()](const Node&, const Tensor& g) { return g.to(dtype); });
}

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b) && is_one(alpha))) {
    out = fast(kernels::sub, a, b);
    if (!recording(a, b)) return out;
    return record("SubBackward0", {a, b}, std::move(out), [](const Node& self, const Tensor& g) {
      return Pair{g, self.needs(1) ? g.neg() : Tensor()};
    });
  }
  common_device("sub", a, b);
  check_sub(a, b.scalar_type());
  const ScalarType dtype = result_type(a, b);
  check_alpha("sub", alpha, dtype);
  out = general(RAMET_POINTWISE(sub), a, b, dtype, alpha);
  if (!recording(a, b)) return out;
  return record("SubBackward0", {a, b}, std::move(out),
                [ma = Meta(a), mb = Meta(b), alpha](const Node& self, const Tensor& g) {
                  return Pair{self.needs(0) ? ma.reduce(g) : Tensor(),
                              self.needs(1) ? mb.reduce(times(g, alpha).neg()) : Tensor()};
                });
}

Tensor sub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("sub", a);
  check_sub(a, b.type());
  const ScalarType dtype = result_type(a, b);
  check_alpha("sub", alpha, dtype);
  Tensor out = with_number(RAMET_POINTWISE(sub), a, b, dtype, alpha);
  if (!recording(a)) return out;
  return record("SubBackward0", {a}, std::move(out),
                [dtype = a.scalar_type()](const Node&, const Tensor& g) { return g.to(dtype); });
}

Tensor rsub(const Tensor& a, const Tensor& b, const Scalar& alpha) { return sub(b, a, alpha); }

Tensor rsub(const Tensor& a, const Scalar& b, const Scalar& alpha) {
  check_defined("rsub", a);
  check_sub(a, b.type());
  const ScalarType dtype = result_type(a, b);
  check_alpha("rsub", alpha, dtype);
  Tensor out = pointwise_result("rsub", dtype, a);
  pointwise_into(RAMET_POINTWISE(sub), out, compute_type(dtype), b, a, {}, alpha);
  if (!recording(a)) return out;
  return record("RsubBackward1", {a}, std::move(out),
                [alpha, dtype = a.scalar_type()](const Node&, const Tensor& g) {
                  return times(g, alpha).neg().to(dtype);
                });
}

Tensor operator-(const Scalar& a, const Tensor& b) { return rsub(b, a); }

// ---- mul, div -----------------------------------------------------------------------------------

Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor out;
  if (RAMET_LIKELY(plain_float(a, b))) {
    out = fast(kernels::mul, a, b);
    if (!recording(a, b)) return out;
    // An input is saved only for the other one's gradient.
    return record("MulBackward0", {a, b}, std::move(out),
                  [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b)](const Node& self,
                                                                                 const Tensor& g) {
                    return Pair{self.needs(0) ? mul(g, y.get(self)) : Tensor(),
                                self.needs(1) ? mul(g, x.get(self)) : Tensor()};
                  });
  }
  common_device("mul", a, b);
  out = general(RAMET_POINTWISE(mul), a, b, result_type(a, b), 1);
  if (!recording(a, b)) return out;
  return record("MulBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save_if(wants_grad(a), b), ma = Meta(a),
                 mb = Meta(b)](const Node& self, const Tensor& g) {
                  return Pair{self.needs(0) ? ma.reduce(mul(g, y.get(self))) : Tensor(),
                              self.needs(1) ? mb.reduce(mul(g, x.get(self))) : Tensor()};
                });
}

Tensor mul(const Tensor& a, const Scalar& b) {
  check_defined("mul", a);
  Tensor out = with_number(RAMET_POINTWISE(mul), a, b, result_type(a, b), 1);
  if (!recording(a)) return out;
  return record(
      "MulBackward0", {a}, std::move(out),
      [b, dtype = a.scalar_type()](const Node&, const Tensor& g) { return mul(g, b).to(dtype); });
}

Tensor div(const Tensor& a, const Tensor& b) {
  Tensor out;
  const bool plain = plain_float(a, b);
  if (RAMET_LIKELY(plain)) {
    out = fast(kernels::div, a, b);
  } else {
    common_device("div", a, b);
    out = general(RAMET_POINTWISE(div), a, b, divided(result_type(a, b)), 1);
  }
  if (!recording(a, b)) return out;
  return record("DivBackward0", {a, b}, std::move(out),
                [x = save_if(wants_grad(b), a), y = save(b), ma = Meta(a), mb = Meta(b)](
                    const Node& self, const Tensor& g) {
                  const Tensor& b = y.get(self);
                  return Pair{self.needs(0) ? ma.reduce(div(g, b)) : Tensor(),
                              self.needs(1) ? mb.reduce(mul(g.neg(), div(div(x.get(self), b), b)))
                                            : Tensor()};
                });
}

Tensor div(const Tensor& a, const Scalar& b) {
  check_defined("div", a);
  Tensor out = with_number(RAMET_POINTWISE(div), a, b, divided(result_type(a, b)), 1);
  if (!recording(a)) return out;
  return record(
      "DivBackward0", {a}, std::move(out),
      [b, dtype = a.scalar_type()](const Node&, const Tensor& g) { return div(g, b).to(dtype); });
}

Tensor operator/(const Scalar& a, const Tensor& b) { return mul(b.reciprocal(), a); }

namespace {

const PointwiseKernel rounded_kernel(const std::string& mode) {
  if (mode == "floor") return RAMET_POINTWISE(div_floor);
  RAMET_CHECK(mode == "trunc", "div",
              "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '", mode,
              "'");
  return RAMET_POINTWISE(div_trunc);
}
// Rounded division is constant almost everywhere.
Tensor without_slope(const Tensor& a, Tensor out) {
  if (!recording(a)) return out;
  return record("DivBackward1", {a}, std::move(out),
                [](const Node&, const Tensor&) { return Tensor(); });
}

}  // namespace

Tensor div(const Tensor& a, const Tensor& b, std::optional<std::string> mode) {
  if (!mode) return div(a, b);
  common_device("div", a, b);
  const PointwiseKernel kernel = rounded_kernel(*mode);
  const ScalarType dtype = result_type(a, b);
  RAMET_CHECK(dtype != kBool, "div", "rounding is not implemented for bool");
  check_divisor("div", b, dtype);
  Tensor out = general(kernel, a, b, dtype, 1);
  return recording(a) ? without_slope(a, std::move(out)) : without_slope(b, std::move(out));
}
Tensor div(const Tensor& a, const Scalar& b, std::optional<std::string> mode) {
  if (!mode) return div(a, b);
  check_defined("div", a);
  RAMET_CHECK(is_floating(result_type(a, b)) || b.toLong() != 0, "div",
              "ZeroDivisionError: integer division by 0");
  return without_slope(a, with_number(rounded_kernel(*mode), a, b, result_type(a, b), 1));
}
Tensor floor_divide(const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }
Tensor floor_divide(const Tensor& a, const Scalar& b) { return div(a, b, "floor"); }

// ---- out forms ----------------------------------------------------------------------------------

namespace {
Tensor& out_form(const char* op, const PointwiseKernel& k, Tensor& out, const Tensor& a,
                 const Tensor& b, ScalarType dtype, const Scalar& s) {
  common_device(op, a, b);
  prepare_out(op, out, broadcast_sizes(op, a.sizes(), b.sizes()), dtype, recording(a, b));
  pointwise_into(k, out, compute_type(dtype), a, b, {}, s);
  wrote(op, out);
  return out;
}
}  // namespace

Tensor& add_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  return out_form("add_out", RAMET_POINTWISE(add), out, a, b, result_type(a, b), alpha);
}
Tensor& sub_out(Tensor& out, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  check_sub(a, b.scalar_type());
  return out_form("sub_out", RAMET_POINTWISE(sub), out, a, b, result_type(a, b), alpha);
}
Tensor& mul_out(Tensor& out, const Tensor& a, const Tensor& b) {
  return out_form("mul_out", RAMET_POINTWISE(mul), out, a, b, result_type(a, b), 1);
}
Tensor& div_out(Tensor& out, const Tensor& a, const Tensor& b) {
  return out_form("div_out", RAMET_POINTWISE(div), out, a, b, divided(result_type(a, b)), 1);
}

// ---- methods ------------------------------------------------------------------------------------

Tensor Tensor::add(const Tensor& o, const Scalar& alpha) const {
  return ramet::add(*this, o, alpha);
}
Tensor Tensor::add(const Scalar& o, const Scalar& alpha) const {
  return ramet::add(*this, o, alpha);
}
Tensor Tensor::sub(const Tensor& o, const Scalar& alpha) const {
  return ramet::sub(*this, o, alpha);
}
Tensor Tensor::sub(const Scalar& o, const Scalar& alpha) const {
  return ramet::sub(*this, o, alpha);
}
Tensor Tensor::mul(const Tensor& o) const { return ramet::mul(*this, o); }
Tensor Tensor::mul(const Scalar& o) const { return ramet::mul(*this, o); }
Tensor Tensor::div(const Tensor& o) const { return ramet::div(*this, o); }
Tensor Tensor::div(const Scalar& o) const { return ramet::div(*this, o); }
Tensor Tensor::div(const Tensor& o, std::optional<std::string> m) const {
  return ramet::div(*this, o, std::move(m));
}
Tensor Tensor::div(const Scalar& o, std::optional<std::string> m) const {
  return ramet::div(*this, o, std::move(m));
}
Tensor Tensor::floor_divide(const Tensor& o) const { return ramet::floor_divide(*this, o); }
Tensor Tensor::floor_divide(const Scalar& o) const { return ramet::floor_divide(*this, o); }

Tensor& Tensor::add_(const Tensor& o, const Scalar& alpha) const {
  check_inplace("add_", *this);
  check_defined("add_", o);
  into("add_", RAMET_POINTWISE(add), *this, *this, o, result_type(*this, o), alpha);
  wrote("add_", *this);
  if (recording(*this, o)) {
    record_inplace("AddBackward0", {*this, o}, *this,
                   [mb = Meta(o), alpha](const Node& self, const Tensor& g) {
                     return Pair{g, self.needs(1) ? mb.reduce(times(g, alpha)) : Tensor()};
                   });
  }
  return as_mutable(*this);
}
Tensor& Tensor::add_(const Scalar& o, const Scalar& alpha) const {
  check_inplace("add_", *this);
  into("add_", RAMET_POINTWISE(add), *this, *this, o, result_type(*this, o), alpha);
  wrote("add_", *this);
  if (recording(*this))
    record_inplace("AddBackward0", {*this}, *this, [](const Node&, const Tensor& g) { return g; });
  return as_mutable(*this);
}
Tensor& Tensor::sub_(const Tensor& o, const Scalar& alpha) const {
  check_inplace("sub_", *this);
  check_defined("sub_", o);
  check_sub(*this, o.scalar_type());
  into("sub_", RAMET_POINTWISE(sub), *this, *this, o, result_type(*this, o), alpha);
  wrote("sub_", *this);
  if (recording(*this, o)) {
    record_inplace("SubBackward0", {*this, o}, *this,
                   [mb = Meta(o), alpha](const Node& self, const Tensor& g) {
                     return Pair{g, self.needs(1) ? mb.reduce(times(g, alpha).neg()) : Tensor()};
                   });
  }
  return as_mutable(*this);
}
Tensor& Tensor::sub_(const Scalar& o, const Scalar& alpha) const {
  check_inplace("sub_", *this);
  check_sub(*this, o.type());
  into("sub_", RAMET_POINTWISE(sub), *this, *this, o, result_type(*this, o), alpha);
  wrote("sub_", *this);
  if (recording(*this))
    record_inplace("SubBackward0", {*this}, *this, [](const Node&, const Tensor& g) { return g; });
  return as_mutable(*this);
}
Tensor& Tensor::mul_(const Tensor& o) const {
  check_inplace("mul_", *this);
  check_defined("mul_", o);
  const bool records = recording(*this, o);
  const Saved x = save_overwritten(records && wants_grad(o), *this);
  const Saved y = save_if(records && wants_grad(*this), o);
  into("mul_", RAMET_POINTWISE(mul), *this, *this, o, result_type(*this, o), 1);
  wrote("mul_", *this);
  if (records) {
    record_inplace("MulBackward0", {*this, o}, *this,
                   [x, y, mb = Meta(o)](const Node& self, const Tensor& g) {
                     return Pair{self.needs(0) ? ramet::mul(g, y.get(self)) : Tensor(),
                                 self.needs(1) ? mb.reduce(ramet::mul(g, x.get(self))) : Tensor()};
                   });
  }
  return as_mutable(*this);
}
Tensor& Tensor::mul_(const Scalar& o) const {
  check_inplace("mul_", *this);
  into("mul_", RAMET_POINTWISE(mul), *this, *this, o, result_type(*this, o), 1);
  wrote("mul_", *this);
  if (recording(*this))
    record_inplace("MulBackward0", {*this}, *this,
                   [o](const Node&, const Tensor& g) { return ramet::mul(g, o); });
  return as_mutable(*this);
}
Tensor& Tensor::div_(const Tensor& o) const {
  check_inplace("div_", *this);
  check_defined("div_", o);
  const bool records = recording(*this, o);
  const Saved x = save_overwritten(records && wants_grad(o), *this), y = save_if(records, o);
  into("div_", RAMET_POINTWISE(div), *this, *this, o, divided(result_type(*this, o)), 1);
  wrote("div_", *this);
  if (records) {
    record_inplace(
        "DivBackward0", {*this, o}, *this, [x, y, mb = Meta(o)](const Node& self, const Tensor& g) {
          const Tensor& b = y.get(self);
          return Pair{self.needs(0) ? ramet::div(g, b) : Tensor(),
                      self.needs(1) ? mb.reduce(ramet::mul(
                                          g.neg(), ramet::div(ramet::div(x.get(self), b), b)))
                                    : Tensor()};
        });
  }
  return as_mutable(*this);
}
Tensor& Tensor::div_(const Scalar& o) const {
  check_inplace("div_", *this);
  into("div_", RAMET_POINTWISE(div), *this, *this, o, divided(result_type(*this, o)), 1);
  wrote("div_", *this);
  if (recording(*this))
    record_inplace("DivBackward0", {*this}, *this,
                   [o](const Node&, const Tensor& g) { return ramet::div(g, o); });
  return as_mutable(*this);
}

}  // namespace ramet
