// Products of row-major matrices inside kernels. matmul.cc and the convolutions use them. Not for
// fronts.
#pragma once
#include "kernels/matrix/gemm_plan.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// C[m,n] = act(alpha * op(A) op(B) + beta * C + bias). act is max(0, x) with `relu`, which keeps a
/// NaN. C is not read when beta is 0. k = 0 gives beta * C + bias.
///
/// op(A)[i,k] is a[i*lda + k], or a[k*lda + i] with `ta`. op(B)[k,j] is b[k*ldb + j], or b[j*ldb +
/// k] with `tb`. REQUIRES: C overlaps neither A nor B. pack_b is as gemm_packs_b requires (null if
/// at most kGemmStackFloats are needed). pack_a has kGemmPackA floats, per slot when `parallel`, as
/// gemm_packs_a requires.
///
/// The bits of an element depend on its row of op(A), its column of op(B) and k. They do not depend
/// on m, n, the layouts, the packing, the thread or the vector width.
struct Gemm {
  int64_t m, n, k;
  const float* a;
  int64_t lda;
  bool ta;
  const float* b;
  int64_t ldb;
  bool tb;
  float* c;
  int64_t ldc;
  float alpha = 1, beta = 0;
  const float* bias = nullptr;  // n values
  bool relu = false;
  float* pack_b = nullptr;
  float* pack_a = nullptr;
  bool parallel = true;  // false inside a task: everything on this thread
};
void gemm(const Gemm& g);

/// dst[p*stride + r] = s[r*ld + p] for r < rows, p < k, by register transposes. Whole vectors are
/// stored. So up to VL - 1 floats after the last row of dst[p] may be set to zero before the next
/// row is written. The same holds after the last one (so dst needs 16 floats of slack).
void pack_transposed(const float* s, int64_t ld, int64_t rows, int64_t k, float* dst,
                     int64_t stride);

}  // namespace ramet::kernels::RAMET_VARIANT
