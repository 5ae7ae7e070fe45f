// Small makers and readers for the tests of autograd: no operation under test is used to read a
// value.
#pragma once
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "tests/error_text.h"

namespace ramet {

inline Tensor constant(std::initializer_list<double> v) {
  Tensor t(TensorBase::empty(static_cast<int64_t>(v.size()), kDouble, Device(kCPU, 0)));
  std::copy(v.begin(), v.end(), t.data_ptr<double>());
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

/// Row-major values of a float64 tensor, read through its strides.
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  const IntArrayRef sizes = t.sizes(), strides = t.raw_strides();
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    switch (t.scalar_type()) {
      case kDouble: out.push_back(static_cast<double*>(t.ptr())[at]); break;
      case kFloat: out.push_back(static_cast<float*>(t.ptr())[at]); break;
      case kLong: out.push_back(static_cast<double>(static_cast<int64_t*>(t.ptr())[at])); break;
      case kBool: out.push_back(static_cast<bool*>(t.ptr())[at]); break;
      default: fail("values", "dtype: got ", short_name_of(t.scalar_type()));
    }
  }
  return out;
}

}  // namespace ramet
