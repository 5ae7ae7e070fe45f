// Linear algebra where rows of the operation table do not look: forms, borders, errors.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

Tensor matrix(std::vector<double> v, std::vector<int64_t> sizes) {
  return tensor(v, kDouble).view(sizes);
}
const Tensor& example() {
  static const Tensor x = matrix({4, 1, -2, 1, 3, 0, -2, 0, 5}, {3, 3});
  return x;
}
void expect_near(const Tensor& a, const Tensor& b, double within = 1e-12) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LE(a.numel() ? a.sub(b).abs().max().item<double>() : 0, within) << a << b;
}

TEST(LinearAlgebra, SolvesForVectorsAndFromTheRight) {
  const Tensor a = example(), v = matrix({1, 2, 3}, {3}), b = matrix({1, 2, 3, 4, 5, 6}, {2, 3});
  expect_near(a.matmul(linalg_solve(a, v)), v);
  expect_near(linalg_solve(a, b, false).matmul(a), b);
  // As LibTorch: [2, 3] beside [2, 3, 3] is a vector each.
  expect_near(linalg_solve(a.expand({2, 3, 3}), b),
              stack({linalg_solve(a, b[0]), linalg_solve(a, b[1])}));
  EXPECT_THROW(linalg_solve(a, v, false), Error);
  for (const bool upper : {false, true}) {
    const Tensor t = upper ? a.triu() : a.tril(),
                 ones = t.sub(diag_embed(t.diagonal())).add(eye(3, kDouble));
    expect_near(linalg_solve_triangular(a, b, upper, false).matmul(t), b);
    expect_near(ones.matmul(linalg_solve_triangular(a, b.t(), upper, true, true)), b.t());
  }
  EXPECT_EQ(linalg::solve(a, v).dtype(), kDouble);
}

TEST(LinearAlgebra, DecomposesInEveryForm) {
  const Tensor x = matrix({1, 2, 0, -1, 3, 1, 2, 2, 5, 0, 1, 1}, {4, 3});
  const auto [q, r] = linalg_qr(x, "complete");
  EXPECT_EQ(q.sizes(), IntArrayRef({4, 4}));
  expect_near(q.matmul(r), x);
  expect_near(q.t().matmul(q), eye(4, kDouble));
  EXPECT_EQ(std::get<0>(linalg_qr(x, "r")).numel(), 0);
  expect_near(std::get<1>(linalg_qr(x, "r")), std::get<1>(linalg_qr(x)));
  const auto [u, s, vh] = linalg_svd(x);
  EXPECT_EQ(u.sizes(), IntArrayRef({4, 4}));
  expect_near(u.narrow(1, 0, 3).mul(s).matmul(vh), x);
  expect_near(u.t().matmul(u), eye(4, kDouble));
  EXPECT_EQ(std::get<0>(x.svd(true, false)).sizes(), IntArrayRef({4, 4}));
  expect_near(linalg_svdvals(x), s);
  const Tensor a = example();
  const auto [w, v] = linalg_eigh(a.triu(), "U");
  expect_near(v.mul(w).matmul(v.t()), a);
  expect_near(linalg_pinv(a.tril(), 1e-15, true), a.inverse());
  EXPECT_EQ(linalg_matrix_rank(matrix({1, 2, 2, 4}, {2, 2})).item<int64_t>(), 1);
  EXPECT_EQ(linalg_matrix_rank(a, 100.).item<int64_t>(), 0);
  EXPECT_EQ(linalg_matrix_rank(a, std::nullopt, true).item<int64_t>(), 3);
  expect_near(a.matrix_power(0), eye(3, kDouble));
  expect_near(a.matrix_power(-3), linalg_inv(a.matmul(a).matmul(a)));
  // -n of the smallest number is none.
  expect_near(linalg_matrix_power(eye(2, kDouble), INT64_MIN), eye(2, kDouble));
}

TEST(LinearAlgebra, OfNothing) {
  const Tensor none = zeros({0, 0}), flat = zeros({3, 0});
  EXPECT_EQ(linalg_det(none).item<float>(), 1);
  EXPECT_EQ(std::get<1>(none.slogdet()).item<float>(), 0);
  EXPECT_EQ(linalg_inv(none).numel(), 0);
  EXPECT_EQ(linalg_pinv(flat).sizes(), IntArrayRef({0, 3}));
  const auto [u, s, vh] = linalg_svd(flat);
  expect_near(u, eye(3));
  EXPECT_EQ(s.numel() + vh.numel(), 0);
  expect_near(std::get<0>(linalg_qr(flat, "complete")), eye(3));
  EXPECT_EQ(linalg_matrix_rank(flat).item<int64_t>(), 0);
  EXPECT_EQ(std::get<0>(linalg_eigh(none)).numel(), 0);
  Tensor a = zeros({3, 0}).requires_grad_();
  std::get<0>(linalg_svd(a)).sum().backward();
  EXPECT_EQ(a.grad().sizes(), IntArrayRef({3, 0}));
}

// The cofactors: d det / da of a matrix of rank 1 of 2, and 0 of rank 1 of 3.
TEST(LinearAlgebra, GradientsOfSingularDeterminants) {
  const auto gradient = [](const Tensor& x) {
    const Tensor a = x.clone().requires_grad_();
    return autograd::grad({linalg_det(a).sum()}, {a})[0];
  };
  expect_near(gradient(matrix({1, 2, 2, 4}, {2, 2})), matrix({4, -2, -2, 1}, {2, 2}));
  expect_near(gradient(ones({3, 3}, kDouble)), zeros({3, 3}, kDouble));
  // One of a batch.
  expect_near(gradient(matrix({1, 2, 2, 4, 1, 0, 0, 3}, {2, 2, 2})),
              matrix({4, -2, -2, 1, 3, 0, 0, 1}, {2, 2, 2}));
  const auto [sign, log] = linalg_slogdet(zeros({2, 2}));
  EXPECT_TRUE(sign.item<float>() == 0 && std::isinf(log.item<float>()));
}

// tr f(a) has the gradient f'(a) also where eigenvalues are equal; LibTorch's is NaN.
TEST(LinearAlgebra, GradientsAtEqualValues) {
  Tensor a = eye(3, kDouble).mul(2).requires_grad_();
  const auto [w, v] = linalg_eigh(a);
  const Tensor cube = v.mul(w.pow(3).unsqueeze(0)).matmul(v.t());
  expect_near(autograd::grad({cube.sum()}, {a})[0].diagonal(), full({3}, 12., kDouble));
  const auto [u, s, vh] = linalg_svd(a);
  const Tensor again = u.mul(s.unsqueeze(0)).matmul(vh);
  EXPECT_TRUE(isfinite(autograd::grad({again.square().sum()}, {a})[0]).all().item<bool>());
  expect_near(autograd::grad({linalg_eigvalsh(a).sum()}, {a})[0], eye(3, kDouble));
}

TEST(LinearAlgebra, NoTwoResultsKeepEachOtherAlive) {
  std::weak_ptr<int> watched;
  {
    const Tensor a = example().clone().requires_grad_();
    const auto alive = std::make_shared<int>(0);
    watched = alive;
    const Tensor x = a.mul(1);
    x.register_hook([alive](const Tensor&) {});
    const auto [w, v] = linalg_eigh(x);
    const auto [q, r] = linalg_qr(x);
    const auto [u, s, vh] = linalg_svd(x);
  }
  EXPECT_TRUE(watched.expired());
}

TEST(LinearAlgebra, Refusals) {
  const auto says = [](const std::function<void()>& f, const char* text) {
    EXPECT_NE(error_of(f).find(text), std::string::npos) << error_of(f);
  };
  const Tensor flat = zeros({2, 3}), line = zeros({2}), zero = zeros({2, 2}), one = eye(2);
  says([&] { linalg_inv(flat); },
       "[linalg_inv] A must be batches of square matrices, but they are 2 by 3");
  says([&] { linalg_inv(line); }, "must have at least 2 dimensions");
  says([&] { linalg_inv(one.to(kLong)); }, "Expected a floating point tensor as input. Got Long");
  says([&] { linalg_svd(one.to(kHalf)); }, "Low precision dtypes not supported. Got Half");
  says(
      [&] {
        linalg_inv(stack({one, zero}));
      },
      "(Batch element 1): The diagonal element 1 is zero, the inversion could not be completed");
  says([&] { linalg_solve(zero, line); }, "because the input matrix is singular");
  says([&] { linalg_solve(one, zeros({3})); },
       "Incompatible shapes of A and B for the equation AX = B");
  says([&] { linalg_solve(one, line.to(kDouble)); }, "to have the same dtype");
  says([&] { linalg_cholesky(matrix({1, 2, 2, 1}, {2, 2})); }, "leading minor of order 2");
  says([&] { linalg_qr(one, "thin"); }, "unrecognized mode 'thin'");
  says([&] { linalg_eigh(one, "X"); }, "'L' or 'U', but got X");
  const Tensor nan = full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(linalg_svd(nan), LinAlgError);
  EXPECT_THROW(linalg_eigh(nan), LinAlgError);
  EXPECT_TRUE(isnan(linalg_inv(nan)).all().item<bool>());
  Captured step([](const Tensor& x) { return linalg_inv(x); });
  says([&] { step(one); }, "not capturable: the host factors the matrices");
  Tensor tall = ones({3, 2}).requires_grad_();
  says([&] { std::get<0>(linalg_qr(tall, "complete")).sum().backward(); },
       "'complete' is not differentiable");
}

}  // namespace
}  // namespace ramet
