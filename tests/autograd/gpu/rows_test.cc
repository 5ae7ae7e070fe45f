// Kernels of rows on a GPU: the same bits wherever a row lies, and the CPU's values.
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
