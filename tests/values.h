// Reading a tensor's values, and comparing them: no operation under test is used to read a value.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "autograd/ops/make/copy.h"
#include "autograd/tensor.h"

namespace ramet {

/// Row-major values, read through the strides; those of a GPU are copied to the host.
inline std::vector<double> values(const Tensor& t) {
  if (!t.is_cpu()) {
    const Tensor host(TensorBase::empty(t.sizes(), t.scalar_type(), Device(kCPU, 0)));
    autograd::copy_values(host, t);
    return values(host);
  }
  std::vector<double> out;
  const void* p = t.ptr();
  const IntArrayRef sizes = t.sizes(), strides = t.raw_strides();
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      at += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    switch (t.scalar_type()) {
      case kDouble: out.push_back(static_cast<const double*>(p)[at]); break;
      case kFloat: out.push_back(static_cast<const float*>(p)[at]); break;
      case kHalf: out.push_back(static_cast<float>(static_cast<const Half*>(p)[at])); break;
      case kBFloat16: out.push_back(static_cast<float>(static_cast<const BFloat16*>(p)[at])); break;
      case kLong: out.push_back(static_cast<double>(static_cast<const int64_t*>(p)[at])); break;
      case kInt: out.push_back(static_cast<const int32_t*>(p)[at]); break;
      case kByte: out.push_back(static_cast<const uint8_t*>(p)[at]); break;
      case kBool: out.push_back(static_cast<const bool*>(p)[at]); break;
      default: fail("values", "dtype: got ", short_name_of(t.scalar_type()));
    }
  }
  return out;
}

/// Element by element: |got - want| <= tolerance (1 + |want|); NaN equals NaN.
inline void expect_values(const Tensor& t, const std::vector<double>& want,
                          double tolerance = 1e-12) {
  const std::vector<double> got = values(t);
  ASSERT_EQ(got.size(), want.size()) << describe(t);
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i])) {
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(want[i]) && std::isnan(got[i])))
          << "element " << i << ": got " << got[i] << ", expected " << want[i];
    } else {
      EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << "element " << i;
    }
  }
}

}  // namespace ramet
