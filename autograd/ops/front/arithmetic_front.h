// What sums, products and quotients share: their kernels on any operands and on the common ones.
// Private to autograd/ops.
#pragma once
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

/// What the gradients of a row of several operands read, and the shapes and dtypes they get.
template <class Row> struct RowOperands {
  static constexpr size_t kCount = Row::kOperands;
  std::array<Saved, kCount> saved;
  std::array<Meta, kCount> metas;

  template <size_t i, size_t... I, class... Numbers>
  Tensor gradient(std::index_sequence<I...>, const Node& self, const Tensor& g,
                  const Numbers&... numbers) const {
    if (!self.needs(i)) return {};
    const auto of = [&](const auto&... x) {
      if constexpr (i == 0) return Row::gradient_a(g, x..., numbers...);
      else if constexpr (i == 1) return Row::gradient_b(g, x..., numbers...);
      else return Row::gradient_c(g, x..., numbers...);
    };
    static const Tensor none;
    return metas[i].reduce(of((Row::kReads[i] >> I & 1 ? saved[I].get(self) : none)...));
  }
};
/// The backward function of a row of operands x and numbers. An operand is saved for the gradients
/// that are wanted now.
template <class Row, size_t... I, class... Numbers>
auto gradients_of(std::index_sequence<I...> all, const Tensor* const (&x)[sizeof...(I)],
                  const Numbers&... numbers) {
  const int read = ((wants_grad(*x[I]) ? Row::kReads[I] : 0) | ...);
  return [operands = RowOperands<Row>{{save_if(read >> I & 1, *x[I])...}, {Meta(*x[I])...}}, all,
          numbers...](const Node& self, const Tensor& g) {
    return std::array<Tensor, sizeof...(I)>{
        operands.template gradient<I>(all, self, g, numbers...)...};
  };
}
template <class Row> auto gradients_of(const Tensor& a, const Tensor& b) {
  return gradients_of<Row>(std::make_index_sequence<2>(), {&a, &b});
}
template <class Row, class... Numbers>
auto gradients_of(const Tensor& a, const Tensor& b, const Tensor& c, const Numbers&... numbers) {
  return gradients_of<Row>(std::make_index_sequence<3>(), {&a, &b, &c}, numbers...);
}

}  // namespace autograd
}  // namespace ramet
