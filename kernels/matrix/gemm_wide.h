// Products of double and of integer matrices inside kernels. Not for fronts.
#pragma once
#include "kernels/copy/chunk.h"
#include "kernels/matrix/matmul.h"

namespace ramet::kernels::RAMET_VARIANT {

/// C[m,n] = alpha * A B + beta * C + bias with any strides of A and B and unit column stride of C.
/// It is computed in T (double or int64_t). Operands are of type `dtype`, and its compute type is
/// T. C is not read when beta is 0. Integers wrap.
///
/// For each K block of kWideKC, every element is one chain acc += a * b in increasing k; then the
/// blocks are added in order. Each step has two roundings, so that all variants agree.
template <class T> struct WideGemm {
  int64_t m, n, k;
  const void* a;
  int64_t a_row, a_col;
  const void* b;
  int64_t b_row, b_col;
  void* c;
  int64_t c_row;
  const void* bias;  // n values, or null
  T alpha, beta;
  ScalarType dtype;
  T* pack_b;  // wide_pack_b(n, k) values
  T* pack_a;  // kWidePackA values, per slot when `parallel`
  bool parallel;
};
void wide_gemm(const WideGemm<double>& g);
void wide_gemm(const WideGemm<int64_t>& g);

}  // namespace ramet::kernels::RAMET_VARIANT
