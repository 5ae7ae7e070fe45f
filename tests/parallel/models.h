// Modules that several scenarios use.
#pragma once
#include <vector>

#include "autograd/ops.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/optim/sgd.h"
#include "parallel/apply/data_parallel.h"
#include "tests/parallel/support.h"

namespace ramet {
namespace testing {

/// y = w x, w a number.
struct TimesImpl : nn::Cloneable<TimesImpl> {
  explicit TimesImpl(double w0) : w0(w0) { TimesImpl::reset(); }
  void reset() override { w = register_parameter("w", make({}, {w0})); }
  Tensor forward(const Tensor& x) { return x * w; }
  double w0;
  Tensor w;
};
RAMET_MODULE(Times);

/// A module with a test's lambda as its forward: called with the input, inside each replica.
struct CallImpl : nn::Cloneable<CallImpl> {
  explicit CallImpl(std::function<Tensor(const Tensor&)> f) : f(std::move(f)) { CallImpl::reset(); }
  void reset() override {}
  Tensor forward(const Tensor& x) { return f(x); }
  std::function<Tensor(const Tensor&)> f;
};
RAMET_MODULE(Call);

/// Convolution, ReLU, linear; with batch norm and dropout on request.
struct SmallConvImpl : nn::Cloneable<SmallConvImpl> {
  explicit SmallConvImpl(bool norm_and_dropout = false) : extras(norm_and_dropout) {
    SmallConvImpl::reset();
  }
  void reset() override {
    conv = register_module("conv", nn::Conv2d(nn::Conv2dOptions(1, 4, 3).padding(1)));
    if (extras) {
      norm = register_module("norm", nn::BatchNorm2d(4));
      drop = register_module("drop", nn::Dropout(0.25));
    }
    fc = register_module("fc", nn::Linear(4 * 6 * 6, 3));
  }
  Tensor forward(const Tensor& x) {
    Tensor h = conv(x);
    if (extras) h = norm(h);
    h = h.relu();
    if (extras) h = drop(h);
    return fc(h.flatten(1));
  }
  bool extras;
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Dropout drop{nullptr};
  nn::Linear fc{nullptr};
};
RAMET_MODULE(SmallConv);

/// Fixed pseudo-random values in (-1, 1).
inline Tensor varied(IntArrayRef sizes, uint64_t seed, ScalarType dtype = kFloat,
                     Device device = kHost) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  std::vector<double> v;
  uint64_t h = seed * 0x9E3779B97F4A7C15u + 1;
  for (int64_t i = 0; i < n; ++i) {
    h ^= h << 13;
    h ^= h >> 7;
    h ^= h << 17;
    v.push_back(static_cast<double>(h >> 40) * 0x1p-23 - 1);
  }
  return make(sizes, v, dtype, device);
}
/// The same parameter values after any earlier draws.
inline void set_parameters(nn::Module& m, uint64_t seed) {
  const NoGradGuard off;
  for (const Tensor& p : m.parameters()) p.copy_(varied(p.sizes(), seed++) * 0.3);
}
inline std::vector<double> all_values(const std::vector<Tensor>& list) {
  std::vector<double> out;
  for (const Tensor& t : list)
    for (double v : values(t)) out.push_back(v);
  return out;
}
/// Parameters, then buffers.
inline std::vector<double> all_state(nn::Module& m) {
  std::vector<Tensor> all = m.parameters();
  for (const Tensor& b : m.buffers()) all.push_back(b);
  return all_values(all);
}
/// The same, then the moments of an SGD over the module's parameters.
inline std::vector<double> all_state(nn::Module& m, optim::SGD& sgd) {
  std::vector<double> out = all_state(m);
  for (const Tensor& p : m.parameters()) {
    const auto& state = static_cast<optim::SGDParamState&>(*sgd.state().at(p.impl()));
    for (double v : values(state.momentum_buffer())) out.push_back(v);
  }
  return out;
}
inline std::vector<double> all_gradients(nn::Module& m) {
  std::vector<double> out;
  for (const Tensor& p : m.parameters()) {
    out.push_back(p.grad().defined());
    if (p.grad().defined())
      for (double v : values(p.grad())) out.push_back(v);
  }
  return out;
}
inline void sgd(nn::Module& m, double lr) {
  const NoGradGuard off;
  for (const Tensor& p : m.parameters())
    if (p.grad().defined()) p.sub_(p.grad(), lr);
}
inline void expect_close(const std::vector<double>& a, const std::vector<double>& b,
                         double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

}  // namespace testing
}  // namespace ramet
