// First and second derivatives of an operation against differences, in one line.
#pragma once
#include <gtest/gtest.h>

#include "autograd/gradcheck.h"
#include "autograd/graph/node.h"
#include "tests/autograd/check.h"

namespace ramet {

/// A function of x, a list of tensors.
#define OF_X(...) [&](const std::vector<Tensor>& x) -> Tensor { return __VA_ARGS__; }

/// Checks f's gradients and the gradients of those; `f` takes the tensors and returns one.
inline void expect_derivatives(const std::function<Tensor(const std::vector<Tensor>&)>& f,
                               const std::vector<Tensor>& inputs, bool second = true) {
  const autograd::CheckedFunction g = [&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{f(in)};
  };
  EXPECT_NO_THROW(autograd::gradcheck(g, inputs));
  if (!second) return;
  EXPECT_NO_THROW(autograd::gradgradcheck(g, inputs));
}

/// int64 values of one dimension, or of the given sizes.
inline Tensor integers(std::initializer_list<int64_t> v, IntArrayRef sizes = {}) {
  Tensor t(TensorBase::empty(sizes.empty() ? IntArrayRef(static_cast<int64_t>(v.size())) : sizes,
                             kLong, Device(kCPU, 0)));
  std::copy(v.begin(), v.end(), t.data_ptr<int64_t>());
  return t;
}

}  // namespace ramet
