// Linear algebra that rows of the operation table do not cover: forms, borders, errors.
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
  // As LibTorch: [2, 3] with [2, 3, 3] is a vector each.
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
  EXPECT_EQ(linalg::matrix_rank(a, std::nullopt, true).item<int64_t>(), 3);
  expect_near(a.matrix_power(0), eye(3, kDouble));
  expect_near(a.matrix_power(-3), linalg_inv(a.matmul(a).matmul(a)));
  // -n of the smallest number is none.
  expect_near(linalg_matrix_power(eye(2, kDouble), INT64_MIN), eye(2, kDouble));
}

// The numbers are PyTorch's.
TEST(LinearAlgebra, TolerancesOfInversesAndRanks) {
  using Number = std::optional<double>;
  const Number none;
  const Tensor x = matrix({1, 2, 3, 4, 5, 6}, {2, 3});  // of singular values 9.508 and 0.773
  const std::vector<double> all = {-0.944444444444445, 0.444444444444445, -0.111111111111112,
                                   0.111111111111111,  0.722222222222223, -0.222222222222223},
                            one = {0.0174170325071294, 0.0415846197194165, 0.0230094290946373,
                                   0.0549369336291761, 0.0286018256821452, 0.0682892475389356};
  const Tensor full_rank = matrix(all, {3, 2}), rank_one = matrix(one, {3, 2});
  expect_near(linalg_pinv(x), full_rank);
  expect_near(linalg_pinv(x, Number(1.), none), rank_one);
  expect_near(linalg_pinv(x, none, Number(.1)), rank_one);
  expect_near(linalg_pinv(x, Number(5.), Number(.01)), rank_one);
  expect_near(linalg_pinv(x, Number(0.), none), full_rank);
  expect_near(linalg_pinv(x, .1), rank_one);
  expect_near(linalg_pinv(x, tensor(.1)), rank_one);
  expect_near(linalg_pinv(x, NAN), zeros({3, 2}, kDouble));
  // A tolerance for each of a batch, of another dtype.
  const Tensor each = tensor({0.f, 1.f}), both = stack({full_rank, rank_one});
  expect_near(linalg_pinv(stack({x, x}), each.mul(.1)), both);
  expect_near(linalg_pinv(x, std::optional<Tensor>(each)), both);
  expect_near(linalg_pinv(x, std::nullopt, std::optional<Tensor>(each.mul(.1))), both);
  const Tensor c = x.clone().requires_grad_();
  expect_near(autograd::grad({linalg_pinv(c, std::optional<Tensor>(each)).square().sum()}, {c})[0],
              matrix({3.2197792878673, 0.448050627665103, -2.32367803253709, -1.35071422519587,
                      -0.190515794477454, 0.96968263624096},
                     {2, 3}),
              1e-11);
  // The default is of the dtype, and pinverse's and torch::linalg::pinv's is not.
  const Tensor small = matrix({1, 0, 0, 5e-16}, {2, 2}), nothing = matrix({1, 0, 0, 0}, {2, 2});
  expect_near(linalg_pinv(small).mul(5e-16)[1], matrix({0, 1}, {2}));
  expect_near(linalg_pinv(small.mul(matrix({1, 0, 0, .8}, {2, 2}))), nothing);
  expect_near(pinverse(small), nothing);
  expect_near(linalg::pinv(small), nothing);
  const auto ranks = [](const Tensor& r) { return r.to(kDouble); };
  EXPECT_EQ(linalg_matrix_rank(x).item<int64_t>(), 2);
  EXPECT_EQ(linalg_matrix_rank(matrix({1, 1, 1, 1 + 1e-9}, {2, 2})).item<int64_t>(), 2);
  EXPECT_EQ(linalg_matrix_rank(matrix({1, 1, 1, 1 + 1e-9}, {2, 2}).to(kFloat)).item<int64_t>(), 1);
  EXPECT_EQ(linalg_matrix_rank(x, Number(3.), Number(.01)).item<int64_t>(), 1);
  EXPECT_EQ(linalg_matrix_rank(x, none, Number(.5)).item<int64_t>(), 1);
  EXPECT_EQ(linalg_matrix_rank(example(), none, Number(.5), true).item<int64_t>(), 2);
  EXPECT_EQ(linalg_matrix_rank(x, -1.).item<int64_t>(), 2);
  EXPECT_EQ(linalg_matrix_rank(x, NAN).item<int64_t>(), 0);
  expect_near(ranks(linalg_matrix_rank(x, tensor({{0.}, {1.}, {10.}}))), matrix({2, 1, 0}, {3, 1}));
  expect_near(ranks(linalg_matrix_rank(x.expand({2, 2, 3}), std::optional<Tensor>(each))),
              matrix({2, 1}, {2}));
  Tensor out = empty({0}, kInt);
  EXPECT_EQ(linalg_matrix_rank_out(out, x, 1.).item<int>(), 1);
  const Tensor three = zeros({3});
  EXPECT_ERROR_TEXT(linalg_pinv(x.expand({2, 2, 3}), three), "[linalg_pinv]");
  EXPECT_THROW(linalg_matrix_rank(x.expand({2, 2, 3}), three), Error);
  EXPECT_THROW(linalg_pinv(x, Tensor()), Error);
  // As PyTorch, which has no derivative for a tolerance: refused, but where numbers are counted.
  const Tensor wanted = tensor(.1, kDouble).requires_grad_();
  const auto refused = [](const auto& f, const std::string& name) {
    EXPECT_THROW(f(), NotImplementedError);
    EXPECT_ERROR_TEXT(f(), "[linalg_pinv] the derivative for '" + name + "' is not implemented");
  };
  refused([&] { linalg_pinv(x, wanted); }, "rtol");
  refused([&] { linalg_pinv(x, std::optional<Tensor>(wanted)); }, "atol");
  refused(
      [&] {
        linalg_pinv(zeros({0, 2}, kDouble), std::nullopt, std::optional<Tensor>(wanted));
      },
      "rtol");
  EXPECT_FALSE(linalg_matrix_rank(x, wanted).requires_grad());
  const NoGradGuard off;
  expect_near(linalg_pinv(x, wanted), rank_one);
}

// The numbers are PyTorch's.
TEST(LinearAlgebra, NormsBySingularValues) {
  const Tensor x = matrix({1, 2, 3, 4, 5, 6}, {2, 3}).requires_grad_();
  const auto check = [&](const Tensor& norm, double value, std::vector<double> gradient) {
    EXPECT_NEAR(norm.item<double>(), value, 1e-12);
    expect_near(autograd::grad({norm}, {x})[0], matrix(std::move(gradient), {2, 3}));
  };
  check(linalg_matrix_norm(x, "nuc"), 10.2809016363692,
        {-0.577791826824978, 0.115116695104403, 0.808025217033784, 0.706746020991691,
         0.565757439051024, 0.424768857110357});
  check(linalg_norm(x, Scalar(2)), 9.50803200069572,
        {0.165601702434944, 0.218774388149551, 0.271947073864157, 0.395387895028975,
         0.522342122966303, 0.649296350903631});
  check(linalg_norm(x.t(), Scalar(-2)), 0.772869635673484,
        {-0.743393529259922, -0.103657693045148, 0.536078143169627, 0.311358125962716,
         0.043415316084721, -0.224527493793275});
  EXPECT_NEAR(nuclear_norm(x).item<double>(), 10.2809016363692, 1e-12);
  // Of a half where a wider dtype is asked for.
  EXPECT_NEAR(linalg_matrix_norm(x.detach().to(kHalf), 2, {0, 1}, false, kDouble).item<double>(),
              9.50803200069572, 1e-12);
  EXPECT_EQ(linalg_matrix_norm(ones({2, 3, 4}), 2, {2, 0}, true).sizes(), IntArrayRef({1, 3, 1}));
  for (const Tensor& none : {zeros({2, 0, 3}), zeros({2, 3, 0})}) {
    expect_near(linalg_matrix_norm(none, 2), zeros({2}));
    expect_near(linalg_matrix_norm(none, "nuc", {-2, -1}, true), zeros({2, 1, 1}));
    expect_near(linalg_matrix_norm(none, 1), zeros({2}));
    expect_near(linalg_matrix_norm(none, INFINITY), zeros({2}));
    EXPECT_THROW(linalg_matrix_norm(none, -2), Error);
  }
  EXPECT_EQ(linalg_matrix_norm(zeros({0, 3, 3}), -2).numel(), 0);
  EXPECT_THROW(linalg_matrix_norm(full({2, 2}, NAN), "nuc"), LinAlgError);
  EXPECT_THROW(nuclear_norm(zeros({2, 2, 2})), Error);
}

// An error in one of several results is found before anything is written.
TEST(LinearAlgebra, WritesSeveralResults) {
  const Tensor x = example();
  Tensor u = zeros({1}, kDouble), s = u.clone(), wrong = zeros({1}), leaf = x.clone();
  leaf.requires_grad_();
  EXPECT_THROW(linalg_svd_out(u, s, wrong, x), Error);
  EXPECT_THROW(svd_out(wrong, u, s, x), Error);
  EXPECT_THROW(linalg_eigh_out(u, wrong, x), Error);
  EXPECT_THROW(linalg_qr_out(wrong, u, x), Error);
  EXPECT_THROW(slogdet_out(u, s, leaf), Error);
  EXPECT_THROW(slogdet_out(u, leaf, x), Error);
  EXPECT_EQ(u.numel() + s.numel(), 2);
  // Over the operand itself.
  Tensor w = x.clone(), v = empty({0}, kDouble);
  linalg_eigh_out(v, w, w);
  expect_near(w.mul(v).matmul(w.t()), x);
}

TEST(LinearAlgebra, OfNothing) {
  const Tensor none = zeros({0, 0}), flat = zeros({3, 0});
  EXPECT_EQ(linalg_det(none).item<float>(), 1);
  EXPECT_EQ(std::get<1>(none.slogdet()).item<float>(), 0);
  EXPECT_EQ(linalg_inv(none).numel(), 0);
  EXPECT_EQ(linalg_pinv(flat).sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(linalg_pinv(zeros({2, 0, 3}), tensor({1., 2., 3.})).sizes(), IntArrayRef({2, 3, 0}));
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

// The cofactors: of rank 1 of 2, one of a batch (decompose_test.cc has others).
TEST(LinearAlgebra, GradientsOfSingularDeterminants) {
  const Tensor a = matrix({1, 2, 2, 4, 1, 0, 0, 3}, {2, 2, 2}).requires_grad_();
  expect_near(autograd::grad({linalg_det(a).sum()}, {a})[0],
              matrix({4, -2, -2, 1, 3, 0, 0, 1}, {2, 2, 2}));
  const auto [sign, log] = linalg_slogdet(zeros({2, 2}));
  EXPECT_TRUE(sign.item<float>() == 0 && std::isinf(log.item<float>()));
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
  const Tensor flat = zeros({2, 3}), line = zeros({2}), zero = zeros({2, 2}), one = eye(2);
  EXPECT_ERROR_TEXT(linalg_inv(flat),
                    "[linalg_inv] A must be batches of square matrices, but they are 2 by 3");
  EXPECT_ERROR_TEXT(linalg_inv(line), "must have at least 2 dimensions");
  EXPECT_ERROR_TEXT(linalg_inv(one.to(kLong)),
                    "Expected a floating point tensor as input. Got Long");
  EXPECT_ERROR_TEXT(linalg_svd(one.to(kHalf)), "Low precision dtypes not supported. Got Half");
  EXPECT_ERROR_TEXT(
      linalg_inv(stack({one, zero})),
      "(Batch element 1): The diagonal element 1 is zero, the inversion could not be completed");
  EXPECT_ERROR_TEXT(linalg_solve(zero, line), "because the input matrix is singular");
  EXPECT_ERROR_TEXT(linalg_solve(one, zeros({3})),
                    "Incompatible shapes of A and B for the equation AX = B");
  EXPECT_ERROR_TEXT(linalg_solve(one, line.to(kDouble)), "to have the same dtype");
  EXPECT_ERROR_TEXT(linalg_cholesky(matrix({1, 2, 2, 1}, {2, 2})), "leading minor of order 2");
  EXPECT_ERROR_TEXT(linalg_svd(one, true, "gesvd"),
                    "`driver=` is only supported on CUDA inputs with cuSOLVER backend");
  EXPECT_ERROR_TEXT(linalg_svdvals(one, "x"), "[linalg_svdvals] keyword argument `driver=`");
  EXPECT_ERROR_TEXT(linalg_qr(one, "thin"), "unrecognized mode 'thin'");
  EXPECT_ERROR_TEXT(linalg_eigh(one, "X"), "'L' or 'U', but got X");
  const Tensor nan = full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THROW(linalg_svd(nan), LinAlgError);
  EXPECT_THROW(linalg_eigh(nan), LinAlgError);
  EXPECT_TRUE(isnan(linalg_inv(nan)).all().item<bool>());
  Captured step([](const Tensor& x) { return linalg_inv(x); });
  EXPECT_ERROR_TEXT(step(one), "not capturable: the host factors the matrices");
  Tensor tall = ones({3, 2}).requires_grad_();
  EXPECT_ERROR_TEXT(std::get<0>(linalg_qr(tall, "complete")).sum().backward(),
                    "'complete' is not differentiable");
}

}  // namespace
}  // namespace ramet
