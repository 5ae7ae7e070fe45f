// Kernels of rows on a GPU: the same bits wherever a row lies, and the CPU's values.
#include <array>
#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/layer_norm.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/softmax.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

// Rows that begin at multiples of 16 bytes are read 16 bytes at a time, others are not.
template <class F> void check(const F& f) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (int64_t cols : {8, 40, 2048}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(cols));
      const int64_t rows = 5;
      const Tensor x = drawn({rows * cols + 1}, t, cols),
                   aligned = x.slice(0, 1).clone().to(kGpu).view({rows, cols}),
                   apart = x.to(kGpu).slice(0, 1).view({rows, cols});
      const std::vector<double> a = numbers(f(aligned)), b = numbers(f(apart));
      EXPECT_EQ(a, b) << "where it lies makes a difference";
      expect_near(f(aligned), numbers(f(aligned.to(kHost))),
                  t == kDouble  ? 1e-13
                  : t == kFloat ? 1e-5
                  : t == kHalf  ? 4e-3
                                : 3e-2,
                  "values");
    }
}

template <class F> Tensor gradient(const Tensor& x, const F& f) {
  const Tensor leaf = x.detach().requires_grad_();
  f(leaf).backward();
  return leaf.grad();
}

TEST(RowsOnGpu, Softmax) {
  check([](const Tensor& x) { return x.softmax(1); });
  check([](const Tensor& x) { return x.log_softmax(1); });
  check([](const Tensor& x) {
    return gradient(x, [](const Tensor& v) { return v.softmax(1).square().sum(); });
  });
}
TEST(RowsOnGpu, LayerNorm) {
  check([](const Tensor& x) { return layer_norm(x, {x.size(1)}, x[0], x[1]); });
  check([](const Tensor& x) { return std::get<0>(residual_layer_norm(x, x, {x.size(1)}, x[0])); });
  check([](const Tensor& x) { return std::get<1>(residual_layer_norm(x, x, {x.size(1)})); });
  check([](const Tensor& x) {
    return gradient(x, [](const Tensor& v) {
      const auto [y, sum] = residual_layer_norm(v, v, {v.size(1)});
      return y.mul(sum).sum();
    });
  });
}

// The wanted ones of dx, dweight and dbias.
std::vector<Tensor> norm_gradients(const Tensor& x, const Tensor& w, const Tensor& dy,
                                   bool residual, std::array<bool, 3> wanted) {
  const Tensor leaves[] = {x.detach(), w.detach(), w.detach()};
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < 3; ++i)
    if (wanted[i]) inputs.push_back(leaves[i].requires_grad_());
  const std::vector<int64_t> shape = {x.size(1)};
  if (!residual)
    return autograd::grad({layer_norm(leaves[0], shape, leaves[1], leaves[2], 0.1)}, inputs, {dy});
  const auto [y, sum] =
      residual_layer_norm(leaves[0], zeros_like(x), shape, leaves[1], leaves[2], 0.1);
  if (!wanted[0]) return autograd::grad({y}, inputs, {dy});
  return autograd::grad({y, sum}, inputs, {dy, dy});
}
void check_norm_sums(ScalarType t, int64_t rows, int64_t cols) {
  const double tolerance = t == kDouble ? 1e-13 : t == kFloat ? 1e-5 : t == kHalf ? 4e-3 : 3e-2;
  const Tensor x = drawn({rows * cols + 1}, t, cols), dy = drawn({rows * cols + 1}, t, cols + 1),
               w = drawn({cols + 1}, t, 3);
  const auto placed = [](const Tensor& v, IntArrayRef sizes, bool apart) {
    return apart ? v.to(kGpu).slice(0, 1).view(sizes) : v.slice(0, 1).clone().to(kGpu).view(sizes);
  };
  const auto there = [&](bool apart, bool residual, std::array<bool, 3> wanted) {
    return norm_gradients(placed(x, {rows, cols}, apart), placed(w, {cols}, apart),
                          placed(dy, {rows, cols}, apart), residual, wanted);
  };
  const auto wide = [](const Tensor& v, IntArrayRef sizes) {
    return v.slice(0, 1).to(kDouble).view(sizes);
  };
  for (bool residual : {false, true}) {
    SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(rows) + " x " +
                 std::to_string(cols) + (residual ? " of a sum" : ""));
    const std::array<bool, 3> all = {true, true, true};
    const std::vector<Tensor> got = there(false, residual, all), apart = there(true, residual, all),
                              want = norm_gradients(wide(x, {rows, cols}), wide(w, {cols}),
                                                    wide(dy, {rows, cols}), residual, all);
    for (size_t i = 0; i < 3; ++i) {
      const std::vector<double> values = numbers(got[i]);
      const double terms = i == 0 ? 1 : std::sqrt(static_cast<double>(rows)) + 1;
      expect_near(got[i], numbers(want[i]), tolerance * terms, "values");
      EXPECT_EQ(numbers(apart[i]), values) << i << ": where it lies makes a difference";
      std::array<bool, 3> one{};
      one[i] = true;
      EXPECT_EQ(numbers(there(false, residual, one)[0]), values) << i << ": alone it is another";
    }
  }
}
// A warp has a row or several, and the last block fewer; a block has rows; rows are too long for
// sums in registers.
TEST(RowsOnGpu, LayerNormSumsOverRows) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    for (auto [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{{0, 8},
                                                                      {1, 40},
                                                                      {13, 33},
                                                                      {40, 519},
                                                                      {20, 768},
                                                                      {9, 1024},
                                                                      {40, 1100},
                                                                      {5, 4104},
                                                                      {3, 8192},
                                                                      {3, 8201}})
      check_norm_sums(t, rows, cols);
  check_norm_sums(kFloat, 2100, 9);    // a warp has several rows
  check_norm_sums(kFloat, 270, 1100);  // a block has several rows
  check_norm_sums(kBFloat16, 66, 8201);
}
TEST(RowsOnGpu, CrossEntropy) {
  const auto target = [](const Tensor& x) { return arange(5, kLong).to(x.device()); };
  check([&](const Tensor& x) {
    return gradient(x, [&](const Tensor& v) { return cross_entropy_loss(v, target(v)); });
  });
  check([&](const Tensor& x) {
    return gradient(x, [&](const Tensor& v) {
      return cross_entropy_loss_consuming(v.mul(2), target(v), {}, Reduction::Sum, 3, 0.1);
    });
  });
}

}  // namespace
}  // namespace ramet::kernels
