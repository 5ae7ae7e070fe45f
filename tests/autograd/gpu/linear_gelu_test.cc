// Linear layers with GELU between them on a GPU: by cuBLASLt's epilogues and by separate kernels,
// against float64 on the CPU.
#include "autograd/ops/matrix/linear_gelu.h"

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/graph/captured.h"
#include "autograd/ops/matrix/matmul.h"
#include "autograd/ops/pointwise/activation.h"
#include "runtime/cuda/blas.h"
#include "runtime/cuda/device_state.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::kernels {
namespace {

using Mlp = std::vector<Tensor>;  // input, weight1, bias1, weight2, bias2, gradient of the result

Mlp mlp_of(ScalarType t, int64_t rows, int64_t in, int64_t hidden, int64_t out) {
  return {drawn({rows, in}, t, 1), drawn({hidden, in}, t, 2).div(4),
          drawn({hidden}, t, 3),   drawn({out, hidden}, t, 4).div(4),
          drawn({out}, t, 5),      drawn({rows, out}, t, 6)};
}
Mlp mlp_on(const Mlp& m, Device device, ScalarType t) {
  Mlp moved;
  for (const Tensor& x : m) moved.push_back(x.to(device).to(t));
  return moved;
}
// The result and the five gradients. `wanted` leaves out the others.
Mlp mlp_step(const Mlp& m, const std::vector<bool>& wanted = {true, true, true, true, true}) {
  Mlp leaves, inputs;
  for (size_t i = 0; i < 5; ++i) {
    leaves.push_back(m[i].detach());
    if (wanted[i]) inputs.push_back(leaves[i].requires_grad_());
  }
  const Tensor y = linear_gelu_linear(leaves[0], leaves[1], leaves[2], leaves[3], leaves[4]);
  Mlp all = autograd::grad({y}, inputs, {m[5]});
  all.insert(all.begin(), y.detach());
  return all;
}
// Independent of the operation: what it is short for, in float64 on the CPU.
Mlp mlp_reference(const Mlp& m) {
  const Mlp w = mlp_on(m, kHost, kDouble);
  Mlp leaves;
  for (size_t i = 0; i < 5; ++i) leaves.push_back(w[i].detach().requires_grad_());
  const Tensor y =
      linear(gelu(linear(leaves[0], leaves[1], leaves[2]), "tanh"), leaves[3], leaves[4]);
  Mlp all = autograd::grad({y}, leaves, {w[5]});
  all.insert(all.begin(), y.detach());
  return all;
}
void expect_mlp(const Mlp& got, const Mlp& want, ScalarType t) {
  const double one = t == kDouble ? 1e-12 : t == kFloat ? 1e-5 : t == kHalf ? 4e-3 : 3e-2;
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].scalar_type(), t);
    // Of a sum over the rows.
    expect_near(got[i], numbers(want[i]), i < 2 ? 2 * one : 4 * one, std::to_string(i).c_str());
  }
}

TEST(LinearGelu, Values) {
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16})
    // The last one's hidden values are no multiple of 8: cuBLASLt has no auxiliary matrix of them.
    for (const int64_t hidden : {64, 136, 84}) {
      const Mlp m = mlp_of(t, 40, 32, hidden, 48), want = mlp_reference(m);
      for (bool blas : {true, false}) {
        SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(hidden) +
                     (blas ? " cuBLASLt" : " own"));
        ::ramet::cuda::set_blas_enabled(blas);
        const Mlp gpu = mlp_on(m, kGpu, t), got = mlp_step(gpu), again = mlp_step(gpu);
        expect_mlp(got, want, t);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_EQ(numbers(got[i]), numbers(again[i])) << i << ": other bits the second time";
      }
      ::ramet::cuda::set_blas_enabled(true);
    }
}

TEST(LinearGelu, EachGradientAlone) {
  const Mlp gpu = mlp_on(mlp_of(kBFloat16, 40, 32, 64, 48), kGpu, kBFloat16), all = mlp_step(gpu);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<bool> wanted(5, false);
    wanted[i] = true;
    const Mlp one = mlp_step(gpu, wanted);
    // A product with its sums is another algorithm than the product alone.
    expect_near(one[1], numbers(all[i + 1]), 3e-2, std::to_string(i).c_str());
  }
}

// Gradients of linear's weight and bias are one product of 16-bit matrices.
TEST(LinearGelu, BiasOfLinear) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    const Tensor x = drawn({40, 32}, t, 1), w = drawn({48, 32}, t, 2).div(4), b = drawn({48}, t, 3),
                 g = drawn({40, 48}, t, 4);
    const auto gradients_of = [](const Mlp& in) {
      const Mlp leaves = {in[0].detach().requires_grad_(), in[1].detach().requires_grad_(),
                          in[2].detach().requires_grad_()};
      return autograd::grad({linear(leaves[0], leaves[1], leaves[2])}, leaves, {in[3]});
    };
    const Mlp want = gradients_of(mlp_on({x, w, b, g}, kHost, kDouble));
    // Also a gradient whose rows lie apart, and one whose columns are adjacent.
    const Tensor wide = drawn({40, 96}, t, 4).to(kGpu);
    wide.slice(1, 0, 48).copy_(g.to(kGpu));
    for (const Tensor& there :
         {g.to(kGpu), wide.slice(1, 0, 48), g.t().contiguous().to(kGpu).t()}) {
      const Mlp got = gradients_of({x.to(kGpu), w.to(kGpu), b.to(kGpu), there});
      for (size_t i = 0; i < 3; ++i)
        expect_near(got[i], numbers(want[i]),
                    t == kFloat  ? 1e-5
                    : t == kHalf ? 1e-2
                                 : 8e-2,
                    std::to_string(i).c_str());
    }
  }
}

TEST(LinearGelu, LeadingDimensionsAndStrides) {
  const Mlp m = mlp_of(kBFloat16, 40, 32, 64, 48), gpu = mlp_on(m, kGpu, kBFloat16);
  const Tensor plain = linear_gelu_linear(gpu[0], gpu[1], gpu[2], gpu[3], gpu[4]);
  const Tensor parts = linear_gelu_linear(gpu[0].view({2, 20, 32}), gpu[1], gpu[2], gpu[3], gpu[4]);
  EXPECT_EQ(parts.sizes(), IntArrayRef({2, 20, 48}));
  EXPECT_EQ(numbers(parts), numbers(plain));
  const auto turned = [](const Tensor& x) { return x.t().contiguous().t(); };
  const Tensor spread = stack({gpu[2], gpu[2]}, 1).select(1, 0);
  expect_near(linear_gelu_linear(turned(gpu[0]), turned(gpu[1]), spread, turned(gpu[3]), gpu[4]),
              numbers(plain), 3e-2, "strides");
  const Tensor none = linear_gelu_linear(gpu[0].slice(0, 0, 0), gpu[1], gpu[2], gpu[3], gpu[4]);
  EXPECT_EQ(none.sizes(), IntArrayRef({0, 48}));
}

// A NaN reaches its row of the result and, in the backward pass, all that it belongs to.
TEST(LinearGelu, KeepsNaN) {
  for (bool blas : {true, false}) {
    ::ramet::cuda::set_blas_enabled(blas);
    Mlp m = mlp_of(kBFloat16, 40, 32, 64, 48);
    m[0].select(0, 3).select(0, 5).fill_(std::nan(""));
    const Mlp got = mlp_step(mlp_on(m, kGpu, kBFloat16));
    const std::vector<double> y = numbers(got[0]), dx = numbers(got[1]), db = numbers(got[3]);
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 48 == 3) << i;
    for (size_t i = 0; i < dx.size(); ++i) ASSERT_EQ(std::isnan(dx[i]), i / 32 == 3) << i;
    for (size_t i = 0; i < db.size(); ++i) ASSERT_TRUE(std::isnan(db[i])) << i;
  }
  ::ramet::cuda::set_blas_enabled(true);
}

TEST(LinearGelu, Captured) {
  const Mlp gpu = mlp_on(mlp_of(kBFloat16, 40, 32, 64, 48), kGpu, kBFloat16), want = mlp_step(gpu);
  Captured step([&](const Tensor& x) {
    Mlp all = gpu;
    all[0] = x;
    return mlp_step(all);
  });
  for (int i = 0; i < 3; ++i) {
    const Mlp got = step(gpu[0]);
    for (size_t k = 0; k < want.size(); ++k) EXPECT_EQ(numbers(got[k]), numbers(want[k])) << i;
  }
}

#if RAMET_GPU_EMULATED
// Kernels that a step queues on cuda:0, with these algorithms in cuBLASLt. The library remembers
// which shapes it has asked for, so each call needs new ones.
uint64_t launches_of_mlp(int algorithms, ScalarType t, int64_t rows) {
  emulated::Settings settings = emulated::settings_from_environment();
  settings.blas_algorithms = algorithms;
  const testing::Gpus gpus(settings);
  const Mlp m = mlp_of(t, rows, 32, 64, 48);
  auto& state = ::ramet::cuda::device_state(0, "test");
  const Mlp gpu = mlp_on(m, kGpu, t);
  state.forget_launches();
  const Mlp got = mlp_step(gpu);
  const uint64_t count = state.launches().count;
  expect_mlp(got, mlp_reference(m), t);
  return count;
}

// Forward two products, backward four. What no epilogue does is a launch more: GELU, its
// derivative, two sums of rows, and without algorithms nothing else changes.
TEST(LinearGelu, Launches) {
  for (ScalarType t : {kHalf, kBFloat16}) EXPECT_EQ(launches_of_mlp(2, t, 88), 6u);
  EXPECT_EQ(launches_of_mlp(2, kFloat, 88), 10u);
  EXPECT_EQ(launches_of_mlp(0, kBFloat16, 80), 10u);
}
#endif

TEST(LinearGelu, Errors) {
  const Mlp m = mlp_on(mlp_of(kBFloat16, 8, 32, 64, 48), kGpu, kBFloat16);
  const auto message = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) { return e.what(); }
    return "";
  };
  const auto expect = [&](const auto& f, const char* text) {
    EXPECT_NE(message(f).find(text), std::string::npos) << message(f);
  };
  expect([&] { linear_gelu_linear(m[0], m[1].to(kFloat), m[2], m[3], m[4]); },
         "[linear_gelu_linear] dtypes: got ");
  expect([&] { linear_gelu_linear(m[0], m[3], m[2], m[3], m[4]); },
         "[linear_gelu_linear] shapes of the first layer: got ");
  expect([&] { linear_gelu_linear(m[0], m[1], m[2], m[3], m[2]); },
         "[linear_gelu_linear] shapes of the second layer: got ");
  expect([&] { linear_gelu_linear(m[0], m[1].to(kHost), m[2], m[3], m[4]); },
         "[linear_gelu_linear]");
}

}  // namespace
}  // namespace ramet::kernels
