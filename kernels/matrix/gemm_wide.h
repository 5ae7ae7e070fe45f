// Products of double and of integer matrices inside kernels. Not for fronts.
#pragma once
#include "kernels/copy/chunk.h"
#include "kernels/matrix/matmul.h"

namespace ramet::kernels::RAMET_VARIANT {

/// C[m,n] = alpha * A B + beta * C + bias with any strides of A and B and unit column stride of C,
/// computed in T (double or int64_t); operands are of type `dtype`, whose compute type is T. C is
/// not read when beta is 0. Integers wrap.
///
/// Every element is, per K block of kWideKC, one chain acc += a * b (two roundings, so that all
/// variants agree) in increasing k, then the blocks in order.
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
