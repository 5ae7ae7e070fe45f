// Products of matrices by cuBLASLt. On a machine with a GPU the first product opens the library
// (libraries.h). Emulated GPUs have an emulated version of it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// What cuBLASLt does with a product, apart from adding a bias: Note [GELU and sums in cuBLASLt].
enum class BlasEpilogue : uint8_t {
  kNone,
  kGelu,          // aux = the product with its bias, C = gelu(aux), the form with tanh
  kGeluBackward,  // C = the product times gelu'(aux). sums[j], unless null: the sum of C's column j
  kRowSums        // sums[i] = the sum of row i of op(A)
};

/// C[s] = alpha op(A[s]) op(B[s]) + beta C[s] + bias for s < batch, all row-major. op(A) is m x k;
/// A itself is k x m with `ta`, and its rows are lda elements apart. Likewise op(B), k x n, and C,
/// m x n. `bias` is null or n elements. Floating dtypes. float32 never computes with fewer bits (no
/// TF32); 16-bit types add up in float32. With float_c the dtype has 16 bits, C is float32, and
/// there is no bias.
struct BlasProduct {
  const void *a, *b, *bias;
  void* c;
  int64_t batch, m, n, k;
  int64_t lda, ldb, ldc, a_batch, b_batch, c_batch;
  double alpha, beta;
  ScalarType dtype;
  bool ta, tb;
  BlasEpilogue epilogue = BlasEpilogue::kNone;
  void *aux = nullptr, *sums = nullptr;  // m x n, dense; n or m elements
  bool float_c = false;
};

/// The result of a call.
enum class BlasResult {
  kNone,         // nothing is queued
  kWithoutBias,  // queued, but without the bias: the caller adds it
  kDone
};

/// Queues the product on the compute stream of cuda:k, unless cuBLASLt is absent, switched off or
/// has no algorithm for it. For each shape, layout, alignment and dtype it asks once for an
/// algorithm and keeps it, so the same product gives the same bits again. If there is an algorithm,
/// it first calls `before`, which queues the writes of an operand. (These are in vain if the
/// library then refuses a product of that shape for the first time.)
///
/// Note [Epilogues of cuBLASLt]
/// The bias is cuBLASLt's epilogue. NVIDIA's documentation of cublasLtMatmul() has a table of types
/// (13.0: "Datatypes Supported", the column "Bias Type"). It has a bias for all types here, doubles
/// included (CUBLAS_COMPUTE_64F with a bias of CUDA_R_64F). It says "Epilogue is not supported" for
/// integers and complex numbers. Only the library's answer shows whether a version, GPU and shape
/// support it. If not, the product is requested without a bias, except for 16-bit dtypes: their
/// results would be rounded twice. A ReLU is never part of it. cuBLASLt's turns a NaN into 0
/// (forums.developer.nvidia.com, thread 329783), and Ramet's keeps it.
///
/// Note [GELU and sums in cuBLASLt]
/// A product with another epilogue than the bias is only for 16-bit dtypes. NVIDIA says nothing of
/// how exact its GELU is. An error of 2^-11, that of the instruction for tanh, is none for 16 bits
/// and too much for float32. Nor does it say what becomes of a NaN: LinearGelu.KeepsNaN
/// (tests/autograd/gpu) shows it on a GPU. Sums add up in float32. These epilogues take one matrix,
/// no batch. The auxiliary matrix has rows of a multiple of 8 elements (cublasLt.h). Where there is
/// no algorithm nothing is queued, and the caller has its own kernels.
RAMET_API BlasResult blas_multiply(const char* op, int device, const BlasProduct& product,
                                   const std::function<void()>& before = nullptr);

/// Empty where cuBLASLt can be used (it is opened), else the reason.
RAMET_API std::string blas_why_none();
/// With false only the library's own kernels compute products. RAMET_CUDA_BLAS=0 sets that from the
/// start.
RAMET_API void set_blas_enabled(bool enabled);
RAMET_API bool blas_enabled();
/// Searches for algorithms since the start. Tests check that results are kept.
RAMET_API uint64_t blas_searches();

}  // namespace cuda
}  // namespace ramet
