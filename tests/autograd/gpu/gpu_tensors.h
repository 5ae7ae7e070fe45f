// What tests of kernels on cuda:0 share: values, and how they are copied to the device and back.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "autograd/ops.h"

namespace ramet::kernels {

inline const Device kGpu(kCUDA, 0), kHost(kCPU, 0);

/// Values in (-1, 1), a fixed function of index and seed.
inline Tensor drawn(IntArrayRef sizes, ScalarType dtype, int64_t seed) {
  Tensor t(TensorBase::empty(sizes, kDouble, kHost));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const uint64_t h = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u +
                       static_cast<uint64_t>(seed) * 0xBF58476D1CE4E5B9u;
    t.data_ptr<double>()[i] = static_cast<double>((h ^ (h >> 29)) >> 40) * 0x1p-23 - 1;
  }
  return t.to(dtype);
}
/// The elements, row-major.
inline std::vector<double> numbers(const Tensor& t) {
  const Tensor d = t.detach().to(kHost).to(kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}
/// |got - want| <= tolerance * max(1, |want|); equal infinities are equal.
inline void expect_near(const Tensor& got, const std::vector<double>& want, double tolerance,
                        const char* what) {
  const std::vector<double> g = numbers(got);
  ASSERT_EQ(g.size(), want.size()) << what;
  for (size_t i = 0; i < g.size(); ++i) {
    if (g[i] == want[i]) continue;
    ASSERT_NEAR(g[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " " << i;
  }
}

}  // namespace ramet::kernels
