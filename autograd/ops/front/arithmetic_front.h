// What sums, products and quotients share: their kernels on any operands and on the common ones.
// Private to autograd/ops.
#pragma once
#include <tuple>
#include <utility>

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/front/pointwise_front.h"

namespace ramet {
namespace autograd {

using Pair = std::array<Tensor, 2>;

/// a op b into a fresh tensor, any operands. Functions of their own: the argument block of the
/// general path would give the fast one a frame of several hundred bytes.
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Tensor& b,
                                 ScalarType dtype, const Scalar& s);
RAMET_API Tensor pointwise_fresh(const PointwiseKernel& k, const Tensor& a, const Scalar& b,
                                 ScalarType dtype, const Scalar& s);
/// a op b into `out`, which may be a: checked, but without history or version change.
RAMET_API void pointwise_inplace(const char* op, const PointwiseKernel& k, const Tensor& out,
                                 const Tensor& a, const Operand& b, ScalarType dtype,
                                 const Scalar& s);

/// Not of `true`, which is refused as a factor of numbers.
inline bool is_one(const Scalar& s) {
  return RAMET_LIKELY(s.isIntegral(false)) ? s.toDouble() == 1 : s.isFloatingPoint() && s.equal(1);
}

/// s x.
inline Tensor times(const Tensor& x, const Scalar& s) { return s.equal(1) ? x : mul(x, s); }

/// What a row's gradients read of an operand, and the shape and dtype that its own gets: the
/// result's, where all operands are alike.
struct RowOperand {
  Saved saved;
  Meta meta;
  RowOperand(bool read, const Tensor& x) : saved(save_if(read, x)), meta(x) {}
  Tensor reduce(const Tensor& g) const { return meta.reduce(g); }
};
struct AlikeOperand {
  Saved saved;
  AlikeOperand(bool read, const Tensor& x) : saved(save_if(read, x)) {}
  static Tensor reduce(Tensor g) { return g; }
};
/// Gradient i of a row of several operands.
template <class Row, size_t i, size_t... I, class Operands, class... Numbers>
Tensor gradient_at(std::index_sequence<I...>, const Operands& x, const Node& self, const Tensor& g,
                   const Numbers&... numbers) {
  if (!self.needs(i)) return {};
  const auto of = [&](const auto&... values) {
    if constexpr (i == 0) return Row::gradient_a(g, values..., numbers...);
    else if constexpr (i == 1) return Row::gradient_b(g, values..., numbers...);
    else return Row::gradient_c(g, values..., numbers...);
  };
  const auto value = [&](auto at) -> const Tensor& {
    const Saved& saved = std::get<at()>(x).saved;
    if constexpr (Row::kReads[i] >> at() & 1) return saved.get(self);
    else return saved.kept();  // nobody looks at it
  };
  return std::get<i>(x).reduce(of(value(std::integral_constant<size_t, I>())...));
}
/// The backward function of a row of operands x and numbers. An operand is saved for the gradients
/// that are wanted now.
template <class Row, class Operand, size_t... I, class... Numbers>
auto gradients_of(std::index_sequence<I...> all, const Tensor* const (&x)[sizeof...(I)],
                  const Numbers&... numbers) {
  const int read = ((wants_grad(*x[I]) ? Row::kReads[I] : 0) | ...);
  return [operands = std::tuple(Operand(read >> I & 1, *x[I])...), all, numbers...](
             const Node& self, const Tensor& g) {
    return std::array<Tensor, sizeof...(I)>{
        gradient_at<Row, I>(all, operands, self, g, numbers...)...};
  };
}
template <class Row, class Operand = RowOperand>
auto gradients_of(const Tensor& a, const Tensor& b) {
  return gradients_of<Row, Operand>(std::make_index_sequence<2>(), {&a, &b});
}
template <class Row, class... Numbers>
auto gradients_of(const Tensor& a, const Tensor& b, const Tensor& c, const Numbers&... numbers) {
  return gradients_of<Row, RowOperand>(std::make_index_sequence<3>(), {&a, &b, &c}, numbers...);
}

}  // namespace autograd
}  // namespace ramet
