// Matrix products as public operations. Values: tests/kernels/matrix/matmul_test.cc.
#include "autograd/ops/matrix/matmul.h"

#include "autograd/autograd.h"
#include "autograd/graph/node.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

// [..., m, k] x [..., k, n] of equal leading sizes, element by element.
std::vector<double> naive(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = values(a), y = values(b);
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1),
                batch = m * k == 0 ? 0 : a.numel() / (m * k);
  std::vector<double> out;
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p)
          sum += x[static_cast<size_t>((s * m + i) * k + p)] *
                 y[static_cast<size_t>((s * k + p) * n + j)];
        out.push_back(sum);
      }
  return out;
}

// Pairs of ranks that the operation table does not have.
TEST(Matmul, PairsOfRanks) {
  const auto sizes = [](const Tensor& t) { return t.sizes().vec(); };
  using V = std::vector<int64_t>;
  EXPECT_EQ(sizes(matmul(varied({4, 3}), varied({2, 6, 3, 5}))), (V{2, 6, 4, 5}));
  EXPECT_EQ(sizes(matmul(varied({2, 0, 4, 0}), varied({0, 5}))), (V{2, 0, 4, 5}));
  const Tensor a = varied({2, 3, 4, 5}, 1), b = varied({2, 3, 5, 2}, 2), one = b[0][1],
               left = varied({4, 5}, 3);
  expect_values(matmul(a, b), naive(a, b), 1e-14);
  expect_values(matmul(a, one), naive(a, one.expand({2, 3, 5, 2})), 1e-14);
  expect_values(matmul(left, b), naive(left.expand({2, 3, 4, 5}), b), 1e-14);
}

TEST(Matmul, AnyLayout) {
  const Tensor a = varied({6, 4}, 1), b = varied({4, 10}, 2);
  const std::vector<double> want = naive(a, b);
  const Tensor a_t = a.t().contiguous().t(), b_t = b.t().contiguous().t();
  for (const Tensor& x : {a, a_t})
    for (const Tensor& y : {b, b_t}) expect_values(mm(x, y), want, 1e-14);
  // no dense dimension
  const Tensor wide = varied({12, 8}, 3), gaps = wide.slice(0, 0, 12, 2).slice(1, 0, 8, 2);
  expect_values(mm(gaps, b), naive(gaps.contiguous(), b), 1e-14);
  expect_values(mm(b.t(), gaps.t()), naive(b.t().contiguous(), gaps.t().contiguous()), 1e-14);
  expect_values(mm(a.select(0, 0).expand({6, 4}), b),
                naive(a.select(0, 0).expand({6, 4}).contiguous(), b), 1e-14);
  const Tensor batch = varied({3, 4, 5}, 4), turned = batch.permute({2, 0, 1});
  expect_values(bmm(turned, varied({5, 4, 2}, 5)), naive(turned.contiguous(), varied({5, 4, 2}, 5)),
                1e-14);
}

TEST(Matmul, Derivatives) {
  expect_derivatives(OF_X(mm(x[0].t(), x[1].t())),
                     {varied_leaf({4, 3}, 1), varied_leaf({2, 4}, 2)});
  for (const Tensor& self : {varied_leaf({2}, 3), varied_leaf({3, 1}, 3), varied_leaf({3, 2}, 3)}) {
    expect_derivatives(OF_X(addmm(x[0], x[1], x[2], 1, 0.5)),
                       {self, varied_leaf({3, 4}, 1), varied_leaf({4, 2}, 2)});
    expect_derivatives(OF_X(addmm(x[0], x[1], x[2], -2)),
                       {self, varied_leaf({3, 4}, 1), varied_leaf({4, 2}, 2)});
  }
}

TEST(Linear, DerivativesWithAVector) {
  expect_derivatives(OF_X(linear(x[0], x[1])), {varied_leaf({4, 3}, 1), varied_leaf({3}, 2)});
}

TEST(Linear, ComputesNoGradientThatNobodyWants) {
  const Tensor x = varied({3, 4}, 1), w = varied_leaf({2, 4}, 2), b = varied_leaf({2}, 3);
  linear(x, w, b).sum().backward();
  EXPECT_FALSE(x.grad().defined());
  expect_values(b.grad(), {3, 3});
  std::vector<double> want;
  for (int64_t o = 0; o < 2; ++o)
    for (double v : values(x.sum(0))) want.push_back(v);
  expect_values(w.grad(), want);
  // The weight is not saved for an input without gradient: writing it is no error.
  Tensor y = linear(x, w, b).sum();
  {
    NoGradGuard off;
    w.fill_(0);
  }
  EXPECT_NO_THROW(y.backward());
}

TEST(Linear, NamesOfNodes) {
  const Tensor x = varied_leaf({3, 4}, 1), w = varied({2, 4}, 2);
  EXPECT_EQ(mm(x, w.t()).grad_fn()->name(), "MmBackward0");
  EXPECT_EQ(addmm(varied({2}), x, w.t()).grad_fn()->name(), "AddmmBackward0");
  EXPECT_EQ(bmm(x.unsqueeze(0), w.t().unsqueeze(0)).grad_fn()->name(), "BmmBackward0");
}

TEST(Matmul, OutForms) {
  const Tensor a = varied({3, 4}, 1), b = varied({4, 2}, 2);
  Tensor out = zeros({1}, kDouble), columns = zeros({2, 3}, kDouble).t();
  mm_out(columns, a, b);
  expect_values(columns, naive(a, b), 1e-14);
  Tensor square = varied({4, 4}, 5), copy = square.clone();
  mm_out(square, square, square);  // shares memory with both operands
  expect_values(square, naive(copy, copy), 1e-14);
  EXPECT_ERROR_TEXT(mm_out(out, varied_leaf({3, 4}), b), "don't support automatic differentiation");
  Tensor wrong = zeros({3, 2}, kFloat);
  EXPECT_ERROR_TEXT(mm_out(wrong, a, b), "[mm_out] dtype of out: got float32, expected float64");
}

TEST(Matmul, Errors) {
  EXPECT_ERROR_START(mm(varied({2, 3}), varied({4, 2})),
                     "[mm] mat1 and mat2 shapes cannot be multiplied");
  EXPECT_ERROR_START(mm(varied({2, 3}).to(kFloat), varied({3, 2})), "[mm] dtypes");
  EXPECT_ERROR_START(mm(varied({3}), varied({3, 2})), "[mm] shapes");
  EXPECT_ERROR_START(bmm(varied({2, 2, 3}), varied({3, 3, 2})), "[bmm] shapes");
  EXPECT_ERROR_START(mv(varied({2, 3}), varied({2})), "[mv] shapes");
  EXPECT_ERROR_START(matmul(varied({}), varied({2})), "[matmul] both arguments");
  EXPECT_ERROR_START(matmul(varied({2, 3, 4}), varied({3, 4, 2})), "[matmul]");
  EXPECT_ERROR_START(linear(varied({2, 3}), varied({4, 2})), "[linear] shapes");
  // The result keeps the product's shape.
  using Three = std::array<std::vector<int64_t>, 3>;
  for (const auto& [x, w, bias] : {Three{{{5, 2}, {1, 2}, {2}}}, Three{{{2}, {3, 2}, {4, 3}}},
                                   Three{{{5, 2}, {2}, {5, 5}}}, Three{{{1, 2}, {3, 2}, {4, 3}}}})
    EXPECT_EQ(error_of([&] { linear(varied(x), varied(w), varied(bias)); }).find("[linear] bias"),
              0u)
        << IntArrayRef(bias);
  EXPECT_EQ(linear(varied({5, 2}), varied({3, 2}), varied({5, 1})).sizes(), IntArrayRef({5, 3}));
  EXPECT_ERROR_START(addmm(varied({3}), varied({2, 3}), varied({3, 2})), "[addmm]");
  EXPECT_ERROR_START(mm(Tensor(), varied({3, 2})), "[mm] undefined tensor");
  EXPECT_ERROR_START(mm(varied({2, 3}), varied({3, 2}).to(Device("cpu:1"))),
                     "[mm] Expected all tensors to be on the same device");
}

// Results against operations written out, refusals as PyTorch 2.15's.
TEST(Einsum, Notations) {
  const Tensor x = varied({2, 3}), y = varied({3, 4}), z = varied({2, 3, 4});
  EXPECT_TRUE(equal(einsum("ij", {x}), x));
  EXPECT_TRUE(equal(einsum("ba", {x}), x.t()));
  EXPECT_EQ(einsum("ij->ji", {x}).storage_impl(), x.storage_impl());
  EXPECT_TRUE(equal(einsum(" i j , jk ", {x, y}), mm(x, y)));
  EXPECT_TRUE(equal(einsum("Ba,aC", {x, y}), mm(x, y)));
  EXPECT_TRUE(equal(einsum("aB,BC", {x, y}), mm(x, y).t()));  // capitals come first
  EXPECT_TRUE(equal(einsum("i...", {z}), z.permute({1, 2, 0})));
  EXPECT_TRUE(allclose(einsum("...i->i", {z}), z.sum(IntArrayRef{0, 1})));
  EXPECT_TRUE(equal(einsum("ij->i...j", {x}), x));
  EXPECT_TRUE(equal(einsum(",", {x[0][0], x[1][1]}), x[0][0] * x[1][1]));
  EXPECT_TRUE(equal(einsum("", {x[0][0]}), x[0][0]));
  EXPECT_TRUE(equal(einsum("i,i->i", {x[0].narrow(0, 0, 1), x[1]}), x[0][0] * x[1]));
  EXPECT_TRUE(allclose(einsum("ij,ij->", {x.narrow(0, 0, 1), x}), (x[0] * x).sum()));
  EXPECT_EQ(einsum("ij->i", {ones({2, 3}, kInt)}).scalar_type(), kLong);
  EXPECT_TRUE(allclose(einsum("ij,jk,lk->il", {x, y, varied({5, 4})}, IntArrayRef{2, 1, 0, 1}),
                       mm(mm(x, y), varied({5, 4}).t())));
}
TEST(Einsum, Refusals) {
  const Tensor x = varied({2, 3}), y = varied({3, 4});
  const auto refused = [&](const char* equation, const std::vector<Tensor>& list) {
    return error_of([&] { einsum(equation, list); });
  };
  expect_part(refused("", {}), "must provide at least one operand");
  expect_part(refused("ij,", {x}), "fewer operands were provided");
  expect_part(refused("ij", {x, x}), "more operands were provided");
  expect_part(refused("i1", {x}), "invalid subscript given at index 1");
  expect_part(refused("ij-i", {x}), "[einsum]");
  expect_part(refused("ij->i,j", {x}), "invalid subscript");
  expect_part(refused("i..j", {x}), "not part of any ellipsis");
  expect_part(refused("...i...", {x}), "already found");
  expect_part(refused("ijk", {x}), "does not match the number of dimensions");
  expect_part(refused("ijk...", {x}), "is more than the number");
  expect_part(refused("ii", {x}), "is repeated for operand 0");
  expect_part(refused("ij,ij", {x, y}), "does not broadcast");
  expect_part(refused("ij->ii", {x}), "appears more than once");
  expect_part(refused("ij->k", {x}), "does not appear");
  EXPECT_NE(refused("ij,jk", {x, y.to(kFloat)}), "");
  EXPECT_NE(refused("ij,jk", {x, Tensor()}), "");
  for (const std::vector<int64_t>& path :
       {std::vector<int64_t>{}, {0}, {0, 0}, {0, 2}, {-1, 0}, {INT64_MIN, INT64_MAX}})
    EXPECT_THROW(einsum("ij,jk", {x, y}, path), Error) << IntArrayRef(path);
}

}  // namespace
}  // namespace ramet
