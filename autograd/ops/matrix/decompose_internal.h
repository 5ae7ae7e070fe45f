// Code shared by functions that use a decomposition. Private to autograd/ops.
#pragma once
#include <limits>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// The epsilon of x's type, float32 or float64.
inline double epsilon_of(const Tensor& x) {
  return x.scalar_type() == kDouble ? std::numeric_limits<double>::epsilon()
                                    : std::numeric_limits<float>::epsilon();
}

struct Svd {
  Tensor u, s, vh;
};
/// A = u diag(s) vh, as doubles on the host, without history. u and vh are undefined without
/// `vectors`.
Svd host_svd(const char* op, const Tensor& A, bool full, bool vectors);

}  // namespace autograd
}  // namespace ramet
