// Decompositions where values are close, equal, huge or tiny.
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

Tensor matrix_of(std::vector<double> v, std::vector<int64_t> sizes) {
  return tensor(v, kDouble).view(sizes);
}
// The largest |a - b|, of the largest |b|.
double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  const Tensor x = a.to(kDouble), y = b.to(kDouble);
  return x.sub(y).abs().max().item<double>() / y.abs().max().item<double>();
}
double element_error(const Tensor& a, const Tensor& b) {
  return a.to(kDouble).div(b.to(kDouble)).sub(1).abs().max().item<double>();
}
bool same_bits(const Tensor& a, const Tensor& b) { return a.equal(b); }

const Tensor& weights() {
  static const Tensor c = matrix_of({1, 2, 3, 2, 5, 6, 3, 6, 9}, {3, 3});
  return c;
}
// V f(L) V^T.
template <class F> Tensor by_eigh(const Tensor& a, const F& f) {
  const auto [w, v] = linalg_eigh(a);
  return v.mul(f(w).unsqueeze(-2)).matmul(v.transpose(-2, -1));
}
template <class F> Tensor by_svd(const Tensor& a, const F& f) {
  const auto [u, s, vh] = linalg_svd(a, false);
  return u.mul(f(s).unsqueeze(-2)).matmul(vh);
}
Tensor root(const Tensor& x) { return x.sqrt(); }
// Of the sum of c and f(a), symmetric.
template <class F> Tensor gradient(const F& f, const Tensor& a, const Tensor& c) {
  const Tensor x = a.clone().requires_grad_(),
               g = autograd::grad({f(x).mul(c.to(x.scalar_type())).sum()}, {x})[0];
  return g.add(g.transpose(-2, -1)).mul(.5);
}
bool all_nan(const Tensor& x) { return isnan(x).all().item<bool>(); }

// f's derivatives at a, against differences.
template <class F> void expect_smooth(const F& f, const Tensor& a, bool second = true) {
  expect_derivatives(OF_X(f(x[0])), {a.clone().requires_grad_()}, second);
}

// (sqrt a - sqrt b) / (a - b) = 1 / (sqrt a + sqrt b)
TEST(Decompositions, GradientsOfSmallValuesAndALargeOne) {
  for (const auto& values : std::vector<std::vector<double>>{
           {1e6, .9, .1}, {1e3, 2e-4, 1e-4}, {1e12, 2, 1}, {4, 2, 1}, {1e-20, 3e-21, 1e-21}}) {
    const Tensor l = tensor(values, kDouble), f = l.sqrt(),
                 want = weights().div(f.unsqueeze(0).add(f.unsqueeze(1)));
    for (const ScalarType type : {kFloat, kDouble}) {
      const Tensor a = diag(l).to(type);
      const double within = type == kFloat ? 1e-5 : 1e-12;
      EXPECT_LE(element_error(
                    gradient([](const Tensor& x) { return by_eigh(x, root); }, a, weights()), want),
                within)
          << describe(a) << l;
      EXPECT_LE(element_error(
                    gradient([](const Tensor& x) { return by_svd(x, root); }, a, weights()), want),
                within)
          << describe(a) << l;
    }
  }
}

// The vectors of [[1 + x, e], [e, 1]] turn by x / (4 e), also where float32 has the values as
// equal. What a loss makes of these values is unknown.
TEST(Decompositions, FloatsAreFactoredInDouble) {
  const double e = 1e-9;
  const Tensor a = matrix_of({1, e, e, 1}, {2, 2});
  const auto turned = [](const Tensor& x) {
    return std::get<1>(linalg_eigh(x)).select(0, 0).square();
  };
  const Tensor c = tensor({1., 2.}, kDouble), want = gradient(turned, a, c);
  EXPECT_NEAR(want[0][0].item<double>(), 1 / (4 * e), 1e-3 / e);
  EXPECT_LE(largest_difference(gradient(turned, a.to(kFloat), c), want), 1e-5);
  const Tensor two = matrix_of({1, 2, 2, 5}, {2, 2});
  EXPECT_LE(largest_difference(gradient([](const Tensor& x) { return by_eigh(x, root); }, a, two),
                               two.mul(.5)),
            1e-5);
  EXPECT_TRUE(
      all_nan(gradient([](const Tensor& x) { return by_eigh(x, root); }, a.to(kFloat), two)));
}

// Note [Derivatives of vectors]: what the gradients do not determine is NaN, as of LibTorch.
TEST(Decompositions, GradientsAtEqualValues) {
  for (const ScalarType type : {kFloat, kDouble}) {
    const Tensor one = eye(3, type);
    EXPECT_TRUE(
        all_nan(gradient([](const Tensor& x) { return by_eigh(x, root); }, one, weights())));
    EXPECT_TRUE(all_nan(gradient([](const Tensor& x) { return by_svd(x, root); }, one, weights())));
    // log 1 = 0: no gradient of the vectors.
    EXPECT_TRUE(all_nan(gradient(
        [](const Tensor& x) { return by_eigh(x, [](const Tensor& w) { return w.log(); }); }, one,
        weights())));
    // Of the values alone.
    const Tensor a = one.mul(2).requires_grad_();
    EXPECT_LE(
        largest_difference(autograd::grad({linalg_eigvalsh(a).pow(3).sum()}, {a})[0], one.mul(12)),
        1e-6);
    EXPECT_LE(
        largest_difference(autograd::grad({linalg_svdvals(a).pow(3).sum()}, {a})[0], one.mul(12)),
        1e-6);
  }
  // One of a batch.
  const Tensor b = stack({eye(3, kDouble), diag(tensor({4., 2., 1.}, kDouble))}),
               g = gradient([](const Tensor&x) { return by_eigh(x, root); }, b, weights());
  EXPECT_TRUE(all_nan(g[0]));
  EXPECT_TRUE(isfinite(g[1]).all().item<bool>());
}

// A loss of the vectors alone that no turn of equal ones changes. The orthogonal part U Vh of an
// orthogonal matrix_of Q times s: (C - Q C^T Q) / (2 s); LibTorch's is NaN.
TEST(Decompositions, GradientsOfOrthogonalParts) {
  const Tensor c = matrix_of({1, 2, -3, 4, 5, 6, .7, -8, 9}, {3, 3});
  const auto polar = [](const Tensor& x) {
    const auto [u, s, vh] = linalg_svd(x, false);
    return u.matmul(vh);
  };
  const Tensor turn = std::get<0>(linalg_qr(c));
  for (const ScalarType type : {kFloat, kDouble})
    for (const Tensor& q : {eye(3, kDouble), turn}) {
      const Tensor x = q.mul(2).to(type).requires_grad_();
      EXPECT_LE(largest_difference(autograd::grad({polar(x).mul(c.to(type)).sum()}, {x})[0],
                                   c.sub(q.matmul(c.t()).matmul(q)).mul(.25)),
                type == kFloat ? 1e-5 : 1e-12)
          << describe(x);
    }
  // Its second derivative takes the values.
  expect_smooth(polar, eye(3, kDouble).mul(2), /*second=*/false);
  // The sum of singular values is smooth where they are equal, and above 0.
  expect_smooth([](const Tensor& x) { return linalg_matrix_norm(x, "nuc"); },
                eye(3, kDouble).mul(2));
  // The space of the two largest values, and the best matrix_of of rank 1 where other values are 0.
  const auto space = [](const Tensor& x) {
    const Tensor v = std::get<1>(linalg_eigh(x.add(x.t()))).narrow(1, 1, 2);
    return v.matmul(v.t());
  };
  expect_smooth(space, diag(tensor({3., 3., 1.}, kDouble)), /*second=*/false);
  const Tensor one = zeros({4, 3}, kDouble);
  one[0][0].fill_(2);
  const auto best = [](const Tensor& x) {
    const auto [u, s, vh] = linalg_svd(x, false);
    return u.narrow(1, 0, 1).mul(s.narrow(0, 0, 1)).matmul(vh.narrow(0, 0, 1));
  };
  expect_smooth(best, one, /*second=*/false);
}

// Polynomials: their derivatives are defined everywhere.
TEST(Decompositions, DeterminantsOfAnyRank) {
  for (const Tensor& a :
       {zeros({2, 2}, kDouble), ones({3, 3}, kDouble), zeros({1, 1}, kDouble),
        stack({eye(3, kDouble), ones({3, 3}, kDouble)}), diag(tensor({1., 2., 0.}, kDouble))})
    expect_smooth([](const Tensor& x) { return linalg_det(x); }, a);
  // Beyond what the determinant itself holds.
  for (const double s : {1e200, 1e-200}) {
    const Tensor a = matrix_of({4, 1, 2, 3}, {2, 2}).mul(s).requires_grad_();
    EXPECT_LE(element_error(autograd::grad({linalg_det(a)}, {a})[0],
                            matrix_of({3, -2, -1, 4}, {2, 2}).mul(s)),
              1e-12);
  }
  EXPECT_EQ(
      linalg_det(diag(tensor({0x1p600, 0x1p600, 0x1p-600, 0x1p-600}, kDouble))).item<double>(), 1);
}

// A power of two changes no digit, wherever the numbers lie.
TEST(Decompositions, SameAtEverySize) {
  manual_seed(3);
  for (const auto& sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {5, 3}, {3, 5}, {120, 100}, {1, 4}}) {
    const Tensor a = randn(sizes, kDouble);
    const bool square = sizes[0] == sizes[1];
    const Tensor p = a.matmul(a.t()).add(eye(sizes[0], kDouble));
    for (const double power : {-990., -700., -532., -400., 400., 532., 700., 990.}) {
      const double s = std::exp2(power);
      const auto [q, r] = linalg_qr(a);
      const auto [q1, r1] = linalg_qr(a.mul(s));
      EXPECT_TRUE(same_bits(q1, q) && same_bits(r1.div(s), r)) << a.sizes() << power;
      const auto [u, d, vh] = linalg_svd(a, false);
      const auto [u1, d1, vh1] = linalg_svd(a.mul(s), false);
      EXPECT_LE(largest_difference(u1, u), 1e-12) << a.sizes() << power;
      EXPECT_LE(element_error(d1.div(s), d), 1e-12) << a.sizes() << power;
      EXPECT_LE(largest_difference(vh1, vh), 1e-12) << a.sizes() << power;
      const auto [w, v] = linalg_eigh(p);
      const auto [w1, v1] = linalg_eigh(p.mul(s));
      EXPECT_LE(element_error(w1.div(s), w), 1e-12) << a.sizes() << power;
      EXPECT_LE(largest_difference(v1.abs(), v.abs()), 1e-10) << a.sizes() << power;
      EXPECT_TRUE(same_bits(linalg_cholesky(p.mul(s)).div(std::sqrt(s)), linalg_cholesky(p)));
      EXPECT_TRUE(same_bits(linalg_inv(p.mul(s)).mul(s), linalg_inv(p)));
      EXPECT_TRUE(same_bits(linalg_solve(p.mul(s), a.mul(s)), linalg_solve(p, a)));
      EXPECT_LE(element_error(linalg_pinv(a.mul(s)).mul(s), linalg_pinv(a)), 1e-8);
      EXPECT_EQ(linalg_matrix_rank(a.mul(s)).item<int64_t>(), std::min(sizes[0], sizes[1]));
      EXPECT_NEAR(std::get<1>(linalg_slogdet(p.mul(s))).item<double>(),
                  std::get<1>(linalg_slogdet(p)).item<double>() +
                      static_cast<double>(sizes[0]) * power * std::log(2.),
                  1e-9);
      if (square) {
        EXPECT_TRUE(same_bits(linalg_det(p.mul(s)).isinf(), linalg_det(p.mul(s)).gt(1e300)));
      }
    }
  }
}

// Q R = A D where D scales columns: the same Q, and R D.
TEST(Decompositions, QrOfColumnsOfAllSizes) {
  manual_seed(5);
  for (const auto& sizes : std::vector<std::vector<int64_t>>{{3, 2}, {6, 6}, {3, 7}, {130, 110}}) {
    const Tensor a = randn(sizes, kDouble);
    const auto [q, r] = linalg_qr(a);
    for (int i = 0; i < 4; ++i) {
      const Tensor d = randint(-980, 980, {sizes[1]}, kDouble).exp2();
      const auto [q1, r1] = linalg_qr(a.mul(d));
      EXPECT_TRUE(same_bits(q1, q)) << a.sizes();
      EXPECT_TRUE(same_bits(r1.div(d), r)) << a.sizes();
    }
  }
  // The rest of a column may be tiny though the column is not. Also numbers with few digits.
  for (const double s : {1e-200, 1e-300, 1e-310}) {
    const Tensor a = matrix_of({1, 1, 1, 0, 3 * s, 2 * s, 0, 4 * s, 5 * s}, {3, 3});
    const auto [q, r] = linalg_qr(a);
    EXPECT_LE(largest_difference(q.t().matmul(q), eye(3, kDouble)), 1e-14) << s;
    EXPECT_LE(largest_difference(q.matmul(r).narrow(0, 1, 2), a.narrow(0, 1, 2)),
              s < 1e-305 ? 1e-12 : 1e-14)
        << s;
    EXPECT_NEAR(std::fabs(r[1][1].item<double>() / s), 5, s < 1e-305 ? 1e-11 : 1e-13) << s;
  }
}

}  // namespace
}  // namespace ramet
