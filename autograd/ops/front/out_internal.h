// In-place and out forms that have no kernel. Private to autograd/ops.
#pragma once
#include "autograd/ops/front/pointwise_internal.h"

namespace ramet {
namespace autograd {

/// Which dtypes an `out` may have.
enum class OutType : uint8_t {
  kCastable,
  kSame,
  kAny,  ///< any dtype, where each one has the result's values
};

/// Errors unless `out` is on `device`.
inline void check_out_device(const char* op, const Tensor& out, Device device) {
  check_defined(op, out);
  RAMET_CHECK(out.device() == device, op, "device of out: got ", out.device(), ", expected ",
              device);
}

/// Checks two operands, one of which may be a number: both are defined and on one device.
inline void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  common_device(op, a, b);
}
inline void check_operands(const char* op, const Tensor& a, const Scalar&) { check_defined(op, a); }
inline void check_operands(const char* op, const Scalar&, const Tensor& b) { check_defined(op, b); }

inline void check_operands(const char*, const Tensor&, const std::optional<std::string>&) {}

/// LibTorch's error where an operand is `out` itself and would be resized before the kernel reads
/// it.
inline void check_out_operand(const char* op, const Tensor& out, IntArrayRef shape,
                              const Tensor& operand) {
  RAMET_CHECK(out.sizes() == shape || !operand.is_same(out), op, "output with shape ", out.sizes(),
              " doesn't match the broadcast shape ", shape);
}

/// Does an operand want a gradient, which an out form refuses? Undefined tensors and non-tensors do
/// not.
template <class T> bool wants_record(const T&) { return false; }
inline bool wants_record(const Tensor& x) { return x.defined() && recording(x); }
inline bool wants_record(const std::optional<Tensor>& x) { return x && wants_record(*x); }
inline bool wants_record(TensorList list) {
  for (const Tensor& x : list)
    if (wants_record(x)) return true;
  return false;
}
template <class... T> bool operands_record(const T&... operands) {
  return (wants_record(operands) || ...);
}

/// A complete out form: computes the operands' common shape and device, throws LibTorch's errors,
/// then does out = f(a, b, c; s, t) as pointwise_into. The result is of `dtype`, computed in
/// `compute`.
RAMET_API Tensor& pointwise_out(const char* op, const PointwiseKernel& kernel, Tensor& out,
                                ScalarType dtype, ScalarType compute, const Operand& a,
                                const Operand& b = {}, const Operand& c = {}, const Scalar& s = 0,
                                const std::optional<Scalar>& t = std::nullopt);

/// out = value, a fresh result: all checks of an out form, then a copy.
RAMET_API Tensor& deliver(const char* op, Tensor& out, const Tensor& value, OutType type);

/// out = f(), computed in another tensor, so that `out` may be one of f's operands. `records`: an
/// operand wants a gradient, which an out form refuses.
template <class F>
Tensor& computed_out(const char* op, Tensor& out, bool records, OutType type, const F& f) {
  check_defined(op, out);
  check_out_history(op, out, records);
  const NoGradGuard off;
  const NoAutocast uncast;
  return deliver(op, out, f(), type);
}

/// out = make(options), with options of out's dtype and device.
template <class F> Tensor& made_out(const char* op, Tensor& out, const F& make) {
  check_defined(op, out);
  const TensorOptions options = TensorOptions(out.scalar_type()).device(out.device());
  return computed_out(op, out, false, OutType::kSame, [&] { return make(options); });
}

/// Checks one of several results of x, which has the dtype `type`, for two_out and three_out.
inline void check_one_of_outs(const char* op, const Tensor& out, const Tensor& x, ScalarType type) {
  check_out_device(op, out, x.device());
  check_out_history(op, out, recording(x));
  RAMET_CHECK(out.scalar_type() == type, op, "Expected out tensor to have dtype ", name_of(type),
              ", but got ", name_of(out.scalar_type()));
}

/// first, second = f(). f computes a result of x's dtype and one of the dtype `other`; without
/// `other` both have x's dtype.
template <class F>
std::tuple<Tensor&, Tensor&> two_out(const char* op, Tensor& first, Tensor& second, const Tensor& x,
                                     const F& f, std::optional<ScalarType> other) {
  check_defined(op, x);
  check_one_of_outs(op, first, x, x.scalar_type());
  check_one_of_outs(op, second, x, other.value_or(x.scalar_type()));
  const NoGradGuard off;
  const NoAutocast uncast;
  const auto [a, b] = f();
  deliver(op, first, a, OutType::kSame);
  deliver(op, second, b, OutType::kSame);
  return {first, second};
}
/// The same with three results, all of x's dtype.
template <class F>
std::tuple<Tensor&, Tensor&, Tensor&> three_out(const char* op, Tensor& first, Tensor& second,
                                                Tensor& third, const Tensor& x, const F& f) {
  check_defined(op, x);
  for (const Tensor* out : {&first, &second, &third})
    check_one_of_outs(op, *out, x, x.scalar_type());
  const NoGradGuard off;
  const NoAutocast uncast;
  const auto [a, b, c] = f();
  deliver(op, first, a, OutType::kSame);
  deliver(op, second, b, OutType::kSame);
  deliver(op, third, c, OutType::kSame);
  return {first, second, third};
}

/// How the out form of a row (autograd/forms/rows.inc) comes from its function. A rule that checks
/// more, or that returns another result than the function, derives from it.
struct OutRule {
  OutType type;
  bool recorded = true;  ///< false: the function has no history
  template <class... T>
  void check(const char* op, const Tensor&, const Tensor& self, const T&...) const {
    check_defined(op, self);
  }
  template <class... T>
  void check(const char* op, const Tensor&, TensorList list, const T&...) const {
    for (const Tensor& x : list) check_defined(op, x);
  }
  template <class F> Tensor result(const F& f, const Tensor&) const { return f(); }
};
inline constexpr OutRule kSame{OutType::kSame}, kCastable{OutType::kCastable},
    kSameUnrecorded{OutType::kSame, /*recorded=*/false};

/// The same; also the source of the values to write, after an index or a mask, must be defined.
struct SourceRule : OutRule {
  template <class... T>
  void check(const char* op, const Tensor&, const Tensor& self, const Tensor&, const Tensor& source,
             const T&...) const {
    check_defined(op, self);
    check_defined(op, source);
  }
  template <class... T>
  void check(const char* op, const Tensor& out, const Tensor& self, int64_t,
             const T&... rest) const {
    check(op, out, self, rest...);
  }
};
inline constexpr SourceRule kSameWithSource{{OutType::kSame}};

/// A rule for two operands or more, on one device.
struct OperandsRule : OutRule {
  template <class A, class B, class... T>
  void check(const char* op, const Tensor&, const A& a, const B& b, const T&... others) const {
    check_operands(op, a, b);
    (check_operands(op, a, others), ...);
  }
};
inline constexpr OperandsRule kOperands{{OutType::kCastable}};

/// out = f() by a rule. `operands` are f's arguments; a rule may change one of them.
template <class Rule, class F, class... T>
Tensor& out_form(const Rule& rule, const char* op, Tensor& out, const F& f, T&... operands) {
  rule.check(op, out, operands...);
  return computed_out(op, out, rule.recorded && operands_record(operands...), rule.type,
                      [&] { return rule.result(f, out); });
}

/// x = f(x), recorded: f's history with x's old values, then a copy.
template <class F> Tensor& computed_in_place(const char* op, const Tensor& x, const F& f) {
  check_inplace(op, x);
  const NoAutocast uncast;
  // The values of x that f saves must survive the write.
  const Tensor y = f(ramet::detail::tls.grad_mode ? x.clone() : x);
  check_output(op, x, y.sizes(), y.scalar_type());
  return x.copy_(y);
}

}  // namespace autograd
}  // namespace ramet
