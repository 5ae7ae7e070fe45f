// Code shared by the fronts of linear algebra: checks, and matrices that the host factors. Private
// to autograd/ops.
#pragma once
#include <string>

#include "autograd/ops/front/common_internal.h"
#include "kernels/linalg/factor.h"
#include "runtime/capture/capture.h"

namespace ramet {
namespace autograd {

inline Tensor transposed(const Tensor& x) { return x.transpose(-2, -1); }

inline void check_square(const char* op, const Tensor& A) {
  RAMET_CHECK(A.dim() >= 2, op, "The input tensor A must have at least 2 dimensions: got ",
              describe(A));
  RAMET_CHECK(A.size(-1) == A.size(-2), op, "A must be batches of square matrices, but they are ",
              A.size(-2), " by ", A.size(-1), " matrices: got ", describe(A));
}
/// Refuses a capture: the host factors the matrices.
inline void refuse_capture(const char* op) { capture::refuse(op, "the host factors the matrices"); }
/// Checks that A is defined, has at least two dimensions and a type that has factorisations, and
/// that no capture is made.
inline void check_matrices(const char* op, const Tensor& A, bool square) {
  check_defined(op, A);
  RAMET_CHECK(is_floating(A.scalar_type()), op, "Expected a floating point tensor as input. Got ",
              name_of(A.scalar_type()));
  RAMET_CHECK(!is_narrow(A.scalar_type()), op, "Low precision dtypes not supported. Got ",
              name_of(A.scalar_type()));
  refuse_capture(op);
  if (square) return check_square(op, A);
  RAMET_CHECK(A.dim() >= 2, op, "The input tensor A must have at least 2 dimensions: got ",
              describe(A));
}

/// A's matrices on the host, as doubles in row-major order. For a GPU's tensor this waits.
class HostMatrices {
 public:
  HostMatrices(const char* op, const Tensor& A)
      : m(A.size(-2)), n(A.size(-1)), batch(1), host_(copied(op, A)) {
    for (int64_t d = 0; d < A.dim() - 2; ++d) batch *= A.size(d);
  }
  const double* data() const { return static_cast<const double*>(host_.ptr()); }
  int64_t m, n, batch;

 private:
  static Tensor copied(const char* op, const Tensor& A) {
    refuse_capture(op);
    const NoGradGuard off;
    return A.to(A.is_cpu() ? A.device() : Device(kCPU), kDouble).contiguous();
  }
  Tensor host_;
};

/// A result for the host to write, and its numbers.
inline Tensor host_result(IntArrayRef sizes) {
  return Tensor(TensorBase::empty(sizes, kDouble, Device(kCPU)));
}
inline double* numbers(const Tensor& host) { return static_cast<double*>(host.ptr()); }
/// A host_result as a tensor of A's dtype, on A's device.
inline Tensor back(const Tensor& host, const Tensor& A) {
  const NoGradGuard off;
  return host.to(A.device(), A.scalar_type());
}
/// A's sizes with matrices of another size.
inline std::vector<int64_t> with_matrix(const Tensor& A, int64_t rows, int64_t columns) {
  std::vector<int64_t> sizes = A.sizes().vec();
  sizes[sizes.size() - 2] = rows;
  sizes.back() = columns;
  return sizes;
}

/// Throws a LinAlgError with text(position in the matrix) if a matrix failed.
template <class F>
void check_factored(const char* op, const Tensor& A, const kernels::linalg::Failure& f,
                    const F& text) {
  if (RAMET_LIKELY(f.matrix < 0)) return;
  const std::string which =
      A.dim() > 2 ? "(Batch element " + std::to_string(f.matrix) + "): " : std::string();
  throw LinAlgError("[" + std::string(op) + "] " + which + text(f.at) + ": got " + describe(A));
}

}  // namespace autograd
}  // namespace ramet
