#include "kernels/matrix/blas_gpu.h"
// clang-format off: the first decides what the others mean
#include "kernels/matrix/linear_gelu.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

using ::ramet::cuda::BlasEpilogue;

// False if cuBLASLt does not compute it. Then nothing of it is queued.
bool by_blas(const char* op, BlasEpilogue epilogue, const LinearGeluArgs& a, void* sums,
             Stream where) {
  ::ramet::cuda::BlasProduct product;
  if (reinterpret_cast<uintptr_t>(sums) % 16 != 0 || !suits_blas(a.product, where, &product))
    return false;
  product.epilogue = epilogue;
  if (epilogue != BlasEpilogue::kRowSums) product.aux = a.other;
  product.sums = sums;
  return ::ramet::cuda::blas_multiply(op, static_cast<int>(where.device.index()), product) ==
         ::ramet::cuda::BlasResult::kDone;
}

}  // namespace

void product_gelu(const LinearGeluArgs& a, Stream where) {
  if (by_blas("product_gelu", BlasEpilogue::kGelu, a, nullptr, where)) return;
  MatmulArgs g = a.product;
  g.c = a.other;
  matmul(g, where);
  gelu_tanh(on_matrix(g, a.other, nullptr, a.product.c), where);
}

void product_gelu_backward(const LinearGeluArgs& a, Stream where) {
  if (by_blas("product_gelu_backward", BlasEpilogue::kGeluBackward, a, a.sums, where)) return;
  const MatmulArgs& g = a.product;
  matmul(g, where);
  gelu_tanh_backward(on_matrix(g, g.c, a.other, g.c), where);
  if (a.sums) sum_rows({g.c, a.sums, g.m, g.n, g.c_row, g.dtype, g.dtype}, where);
}

void product_row_sums(const LinearGeluArgs& a, Stream where) {
  if (by_blas("product_row_sums", BlasEpilogue::kRowSums, a, a.sums, where)) return;
  const MatmulArgs& g = a.product;
  matmul(g, where);
  sum_rows({g.a, a.sums, g.k, g.m, g.a_col, g.dtype, g.dtype}, where);
}

}  // namespace ramet::kernels::RAMET_VARIANT
