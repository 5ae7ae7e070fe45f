// Small makers and readers for the tests of autograd: no operation under test is used to read a
// value.
#pragma once
#include <functional>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/tensor.h"
#include "tests/error_text.h"
#include "tests/values.h"

namespace ramet {

inline constexpr double kInf = std::numeric_limits<double>::infinity(),
                        kNaN = std::numeric_limits<double>::quiet_NaN();

inline Tensor constant(std::initializer_list<double> v) {
  Tensor t(TensorBase::empty(static_cast<int64_t>(v.size()), kDouble, Device(kCPU, 0)));
  std::copy(v.begin(), v.end(), t.data_ptr<double>());
  return t;
}
/// 0, 1, 2, ... in float64.
inline Tensor counting(IntArrayRef sizes) {
  Tensor t(TensorBase::empty(sizes, kDouble, Device(kCPU, 0)));
  std::iota(t.data_ptr<double>(), t.data_ptr<double>() + t.numel(), 0.0);
  return t;
}
/// A float64 leaf that requires grad.
inline Tensor leaf(std::initializer_list<double> v) { return constant(v).requires_grad_(); }
/// float64, any shape. The values are a fixed function of the index in (-1.1, 1.1); none of them is
/// 0, and no two are equal.
inline Tensor varied(IntArrayRef sizes, int seed = 0) {
  Tensor t(TensorBase::empty(sizes, kDouble, Device(kCPU, 0)));
  double* p = t.data_ptr<double>();
  for (int64_t i = 0; i < t.numel(); ++i) {
    const uint64_t h = (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u +
                       static_cast<uint64_t>(seed) * 0xBF58476D1CE4E5B9u;
    p[i] = (static_cast<double>((h ^ (h >> 29)) >> 40) * 0x1p-24 - 0.5) * 2.2;
  }
  return t;
}
inline Tensor varied_leaf(IntArrayRef sizes, int seed = 0) {
  return varied(sizes, seed).requires_grad_();
}

/// What f() gives where nothing is recorded.
template <class F> auto without_grad(const F& f) {
  const NoGradGuard off;
  return f();
}

}  // namespace ramet
