// Products of bfloat16 matrices inside kernels. matmul.cc uses them. Not for fronts.
#pragma once
#include "kernels/matrix/gemm_plan.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

/// C[m,n] = act(alpha * op(A) op(B) + beta * C + bias), as Gemm (gemm.h), in bfloat16.
///
/// The sum over k is one chain in float. A step is a pair of neighbours in k. It adds the product
/// of the odd ones, then that of the even ones, each with one rounding to nearest even. An odd k
/// ends with the product of two zeros, then the last one. Subnormal operands and sums are zero.
/// Then alpha * sum, beta * C, their sum, and the addition of the bias are each rounded to float,
/// in the thread's own floating-point mode. The result is rounded to bfloat16, in which a NaN is
/// 0xFFC0, unless float_c gets it.
///
/// Without either the sums stay as they are, in `sums`: rows ldc apart, of which whole vectors are
/// written. With `continues` a chain starts at its sum there.
///
/// All variants give these bits, with and without an instruction for pairs. They depend on nothing
/// else: not on m, n, the layouts, the thread or, but for alpha, beta and bias, its floating-point
/// mode.
struct BfloatGemm {
  int64_t m, n, k;
  const uint16_t* a;
  int64_t lda;
  bool ta;
  const uint16_t* b;
  int64_t ldb;
  bool tb;
  uint16_t* c;  // or null; or float_c below
  int64_t ldc;
  float alpha, beta;
  const uint16_t* bias;  // n values, or null
  bool relu;
  float* pack_b;  // bfloat_pack_b(n, k)
  float* pack_a;  // bfloat_pack_a(m, k), per slot when `parallel`
  float* sums;    // bfloat_sums(m, n, k)
  bool parallel;  // false inside a task: everything on this thread
  bool continues = false;
  float* float_c = nullptr;  // instead of c
  bool has_c() const { return c || float_c; }
};
void gemm_bfloat(const BfloatGemm& g);

/// Does this variant use the processor's instruction for pairs?
bool bfloat_uses_pairs();
/// For tests: when this variant uses the processor's instruction for pairs from now on. Returns
/// whether it uses it now; `kAlways` does not if there is none.
bool set_bfloat_pairs(BfloatPairs when);

}  // namespace ramet::kernels::RAMET_VARIANT
