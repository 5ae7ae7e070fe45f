// Code shared by sums, products and quotients: their kernels for any operands and for the common
// ones. Private to autograd/ops.
#pragma once
#include <tuple>
#include <type_traits>
#include <utility>

#include "autograd/ops/front/pointwise_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "kernels/simd/inline.h"

namespace ramet {
namespace autograd {

using Pair = std::array<Tensor, 2>;

/// a op b in a fresh tensor, for any operands. These are separate functions, because the argument
/// block of the general path would give the fast path a frame of several hundred bytes.
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Tensor& b,
                                 ScalarType dtype, const Scalar& s = 0);
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Scalar& b,
                                 ScalarType dtype, const Scalar& s = 0);

/// Errors for bool: for it LibTorch has no powers, no remainders and no functions of three
/// operands.
inline ScalarType not_bool(const char* op, ScalarType dtype) {
  RAMET_CHECK(dtype != kBool, op, "not implemented for bool");
  return dtype;
}

/// False for `true`, which is refused as a factor of numbers.
inline bool is_one(const Scalar& s) {
  return RAMET_LIKELY(s.isIntegral(false)) ? s.toDouble() == 1 : s.isFloatingPoint() && s.equal(1);
}

/// s x, 1 - x, and a number among tensors: helpers that the rows' gradients use.
inline Tensor times(const Tensor& x, const Scalar& s) { return s.equal(1) ? x : mul(x, s); }
struct One {};  // a factor
inline const Tensor& times(const Tensor& x, One) { return x; }
inline Tensor one_minus(const Tensor& x) { return rsub(x, 1); }
inline Scalar one_minus(const Scalar& x) { return 1 - x.toDouble(); }
inline Tensor constant(const Tensor&, double value) { return scalar_to_tensor(value); }

/// The shape and dtype of an operand's gradient. They are the operand's; the result's, where all
/// operands are alike; or the incoming gradient's, where the operand is overwritten.
struct Own {
  Meta meta;
  explicit Own(const Tensor& x) : meta(x) {}
  Tensor reduce(const Tensor& r, const Tensor&) const { return meta.reduce(r); }
  static Saved save_it(bool wanted, const Tensor& x) { return save_if(wanted, x); }
};
struct Alike {
  explicit Alike(const Tensor&) {}
  static Tensor reduce(Tensor r, const Tensor&) { return r; }
  static Saved save_it(bool wanted, const Tensor& x) { return save_if(wanted, x); }
};
struct Overwritten {
  explicit Overwritten(const Tensor&) {}
  // A wider factor does not widen the gradient of an operand that is overwritten.
  static Tensor reduce(Tensor r, const Tensor& g) {
    return r.scalar_type() == g.scalar_type() ? r : r.to(g.scalar_type());
  }
  static Saved save_it(bool wanted, const Tensor& x) { return save_overwritten(wanted, x); }
};
/// What a row's gradients know of an operand: its meta data, and its value where one of them reads
/// it.
struct OperandNow {
  const Tensor& x;
  bool wanted;
};
template <bool read, class Shape> struct RowOperand : Shape {
  Saved saved;
  RowOperand(const OperandNow& o) : Shape(o.x), saved(Shape::save_it(o.wanted, o.x)) {}
};
template <class Shape> struct RowOperand<false, Shape> : Shape {
  RowOperand(const OperandNow& o) : Shape(o.x) {}
};
/// Gradient i of a row of several operands.
template <class Row, size_t i, size_t... I, class Operands, class... Numbers>
static Tensor gradient_at(std::index_sequence<I...>, const Operands& x, const Node& self,
                          const Tensor& g, const Numbers&... numbers) {
  if (!self.needs(i)) return {};
  const auto of = [&](const auto&... values) -> Tensor {
    if constexpr (i == 0) return Row::gradient_a(g, values..., numbers...);
    else if constexpr (i == 1) return Row::gradient_b(g, values..., numbers...);
    else return Row::gradient_c(g, values..., numbers...);
  };
  const auto value = [&](auto at) -> const Tensor& {
    if constexpr ((Row::kReads[i] >> at() & 1) != 0) return std::get<at()>(x).saved.get(self);
    else return g;  // no gradient reads it
  };
  return std::get<i>(x).reduce(of(value(std::integral_constant<size_t, I>())...), g);
}
/// The backward function of a row of operands x and numbers. It saves an operand for the gradients
/// that are wanted now, and before it is overwritten.
template <class Row, class First, class Others, size_t... I, class... Numbers>
static RAMET_INLINE auto gradients_of(std::index_sequence<I...> all,
                                      const Tensor* const (&x)[sizeof...(I)],
                                      const Numbers&... numbers) {
  constexpr int kRead = (Row::kReads[I] | ...);
  if constexpr (kRead == 0 && std::is_same<Others, Alike>::value) {
    return [](const Node& self, const Tensor& g) {  // it keeps nothing
      const std::array<Alike, sizeof...(I)> operands{((void)I, Alike(g))...};
      return std::array<Tensor, sizeof...(I)>{
          gradient_at<Row, I>(std::index_sequence<I...>(), operands, self, g, Numbers()...)...};
    };
  } else {
    const int read = kRead == 0 ? 0 : ((wants_grad(*x[I]) ? Row::kReads[I] : 0) | ...);
    using Operands =
        std::tuple<RowOperand<(kRead >> I & 1) != 0, std::conditional_t<I == 0, First, Others>>...>;
    auto f = [operands = Operands(OperandNow{*x[I], (read >> I & 1) != 0}...), all, numbers...](
                 const Node& self, const Tensor& g) {
      return std::array<Tensor, sizeof...(I)>{
          gradient_at<Row, I>(all, operands, self, g, numbers...)...};
    };
    if constexpr (kRead == 0) return saves_nothing(std::move(f));
    else return f;
  }
}
template <class Row, class First = Own, class Others = First, class... Numbers>
static RAMET_INLINE auto gradients_of(const Tensor& a, const Tensor& b, const Numbers&... numbers) {
  return gradients_of<Row, First, Others>(std::make_index_sequence<2>(), {&a, &b}, numbers...);
}
template <class Row, class First = Own, class Others = First, class... Numbers>
static RAMET_INLINE auto gradients_of(const Tensor& a, const Tensor& b, const Tensor& c,
                                      const Numbers&... numbers) {
  return gradients_of<Row, First, Others>(std::make_index_sequence<3>(), {&a, &b, &c}, numbers...);
}

/// The same for a row that computes all gradients at once.
template <class> using Each = RowOperand<true, Own>;
template <class Row, class... T> static RAMET_INLINE auto gradients_together(const T&... x) {
  return [operands = std::tuple<Each<T>...>(OperandNow{x, true}...)](const Node& self,
                                                                     const Tensor& g) {
    return std::apply(
        [&](const auto&... operand) {
          auto r = Row::gradients([&self](int i) { return self.needs(i); }, g,
                                  operand.saved.get(self)...);
          size_t i = 0;
          const auto reduce = [&](const auto& one) {
            if (r[i].defined()) r[i] = one.reduce(r[i], g);
            ++i;
          };
          (reduce(operand), ...);
          return r;
        },
        operands);
  };
}

// ---- forms --------------------------------------------------------------------------------------

/// `out`, the row's value for a and b, with its history.
template <class Row, class... Numbers>
static RAMET_INLINE Tensor recorded(const char* node, Tensor&& out, const Tensor& a,
                                    const Tensor& b, const Numbers&... numbers) {
  if (!recording(a, b)) return std::move(out);
  if constexpr (sizeof...(numbers) == 0)
    return record(node, {a, b}, std::move(out), gradients_of<Row>(a, b));
  else
    return record(node, {a, b}, std::move(out), gradients_of<Row>(a, b, numbers...),
                  [&](Arguments& to) { (to("number", numbers), ...); });
}
template <class Row, class... Numbers>
static RAMET_INLINE Tensor recorded(const char* node, Tensor&& out, const Tensor& a,
                                    const Scalar& b, const Numbers&... numbers) {
  if (!recording(a)) return std::move(out);
  return record(node, {a}, std::move(out),
                [dtype = a.scalar_type(), b, numbers...](const Node&, const Tensor& g) {
                  return Row::gradient_a(g, g, b, numbers...).to(dtype);
                },
                [&](Arguments& to) { to("other", b), (to("number", numbers), ...); });
}

/// a = the row's value for a and b, with its history.
template <class Row, class... Numbers>
static Tensor& overwrite(const char* op, const char* node, const PointwiseKernel& k,
                         ScalarType dtype, const Tensor& a, const Tensor& b,
                         const Numbers&... numbers) {
  common_device(op, a, b);
  check_output(op, a, broadcast_sizes(op, a.sizes(), b.sizes()), dtype);
  const auto run = [&]() __attribute__((always_inline)) {
    if constexpr (Row::kOperands == 2)
      pointwise_into(k, a, compute_type(dtype), a, b, {}, numbers...);
    else pointwise_into(k, a, compute_type(dtype), a, b, numbers...);
    wrote(op, a);
  };
  if (recording(a, b)) {
    auto backward = gradients_of<Row, Overwritten, Own>(a, b, numbers...);
    run();
    record_inplace(node, {a, b}, a, std::move(backward),
                   [&]([[maybe_unused]] Arguments& to) { (to("number", numbers), ...); });
  } else {
    run();
  }
  return as_mutable(a);
}
template <class Row, class... Numbers>
static Tensor& overwrite(const char* op, const char* node, const PointwiseKernel& k,
                         ScalarType dtype, const Tensor& a, const Scalar& b,
                         const Numbers&... numbers) {
  check_output(op, a, a.sizes(), dtype);
  pointwise_into(k, a, compute_type(dtype), a, b, {}, numbers...);
  wrote(op, a);
  if (recording(a))
    record_inplace(
        node, {a}, a,
        [b, numbers...](const Node&, const Tensor& g) {
          return Row::gradient_a(g, g, b, numbers...);
        },
        [&](Arguments& to) { to("other", b), (to("number", numbers), ...); });
  return as_mutable(a);
}

}  // namespace autograd
}  // namespace ramet
