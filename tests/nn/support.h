// Makers, readers and comparisons for the tests of nn.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "tests/error_text.h"
#include "tests/values.h"

namespace ramet {

/// sin(step i + start), i < n, as float64: the inputs of the numbers that come from PyTorch.
inline Tensor sines(int64_t n, double step = 0.37, double start = 0.11) {
  Tensor t(TensorBase::empty({n}, kDouble, Device(kCPU, 0)));
  for (int64_t i = 0; i < n; ++i)
    t.data_ptr<double>()[i] = std::sin(step * static_cast<double>(i) + start);
  return t;
}

inline Tensor doubles(const std::vector<double>& v) {
  Tensor t(TensorBase::empty({static_cast<int64_t>(v.size())}, kDouble, Device(kCPU, 0)));
  std::copy(v.begin(), v.end(), t.data_ptr<double>());
  return t;
}

/// expect_values() of the first elements. The others are not compared.
inline void expect_first_values(const Tensor& t, const std::vector<double>& want,
                                double tolerance = 1e-12) {
  std::vector<double> first = values(t);
  ASSERT_GE(first.size(), want.size()) << describe(t);
  first.resize(want.size());
  expect_values(doubles(first), want, tolerance);
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && values(a) == values(b);
}

template <class T> std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace ramet
