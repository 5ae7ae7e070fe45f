// Products of matrices by cuBLASLt. On a machine with a GPU the library is opened at the first
// product (libraries.h); on emulated GPUs it is their double.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// C[s] = alpha op(A[s]) op(B[s]) + beta C[s] + bias for s < batch, all row-major: op(A) is m x k,
/// A itself with `ta` k x m, rows lda elements apart; so op(B), k x n, and C, m x n. `bias` is null
/// or n elements. Floating dtypes; float32 never computes with fewer bits (no TF32), 16-bit types
/// add up in float32.
struct BlasProduct {
  const void *a, *b, *bias;
  void* c;
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc, a_batch, b_batch, c_batch;
  double alpha, beta;
  ScalarType dtype;
  bool ta, tb;
};

/// What has come of a product.
enum class BlasResult {
  kNone,         // nothing is queued
  kWithoutBias,  // it is queued, but for the bias: the caller adds it
  kDone
};

/// Queues the product on the compute stream of cuda:k, unless cuBLASLt is not there, is switched
/// off or has no algorithm for it. The algorithm is asked for once for each shape, layout,
/// alignment and dtype and kept, so that the same product gives the same bits again. `before` is
/// called where there is one, and queues what writes an operand (in vain, where the library then
/// refuses a product of that shape for the first time).
///
/// Note [Epilogues of cuBLASLt]: the bias is cuBLASLt's epilogue. The table of types in
/// NVIDIA's documentation of cublasLtMatmul() (13.0: "Datatypes Supported", the column "Bias Type")
/// has one for all types here, doubles included (CUBLAS_COMPUTE_64F with a bias of CUDA_R_64F;
/// "Epilogue is not supported" stands beside integers and complex numbers). Whether a version, card
/// and shape has it, only the library's answer says: where it has none, the product is asked for
/// without a bias, of 16-bit dtypes not, whose results would be rounded twice. A ReLU is none of
/// it: cuBLASLt's makes 0 of a NaN (forums.developer.nvidia.com, thread 329783), Ramet's keeps it.
RAMET_API BlasResult blas_multiply(const char* op, int device, const BlasProduct& product,
                                   const std::function<void()>& before = nullptr);

/// Empty where cuBLASLt can be used (it is opened), else the reason.
RAMET_API std::string blas_why_none();
/// With false products are computed by the library's own kernels alone; RAMET_CUDA_BLAS=0 says so
/// from the start.
RAMET_API void set_blas_enabled(bool enabled);
RAMET_API bool blas_enabled();
/// Algorithms asked for since the start: tests see that they are kept.
RAMET_API uint64_t blas_searches();

}  // namespace cuda
}  // namespace ramet
