// Vector layer. Its branches, one for each instruction set, are the only files that name one, apart
// from some of kernels/matrix. On x86-64 it is compiled three times (-march=x86-64, -v3, -v4).
// Everything is in the namespace ramet::kernels::RAMET_VARIANT, which the build defines, so the
// variants coexist. A branch defines:
//
// vf: VL floats, vi: VL int32, vm: a truth value a lane. Comparisons with a NaN are false, `ne`
// true. max and min return their second operand when one is a NaN, and when both are equal. toint
// rounds to the nearest, and gives INT32_MIN for what is no int32. RAMET_FUSED_MULTIPLY: fma() is
// one rounding. kMR: rows of the GEMM tile. Results have the same bits in all branches that fuse,
// but for the sign and payload of a NaN.
#pragma once
#if defined(__AVX512F__)
#include "kernels/simd/vec_avx512.h"
#elif defined(__AVX2__)
#include "kernels/simd/vec_avx2.h"
#elif defined(__x86_64__) || defined(__wasm_simd128__)
#include "kernels/simd/vec_sse2.h"
#elif defined(__aarch64__)
#include "kernels/simd/vec_neon.h"
#else
#error "kernels/simd/vec.h has no branch for this processor: expected x86-64, ARM64, or WebAssembly with -msimd128 -msse2"
#endif

namespace ramet::kernels::RAMET_VARIANT {
using std::int32_t;

constexpr int kNR = 2 * VL;  // columns of the GEMM tile

// r (VL registers, one matrix row each) is transposed in place: log2(VL) perfect shuffles. zip_low
// interleaves the lower halves of two registers, zip_high the upper ones.
RAMET_INLINE void transpose(vf (&r)[VL]) {
#pragma GCC unroll 4
  for (int s = 1; s < VL; s *= 2) {
    vf t[VL];
#pragma GCC unroll 16
    for (int i = 0; i < VL / 2; ++i) {
      t[2 * i] = zip_low(r[i], r[i + VL / 2]);
      t[2 * i + 1] = zip_high(r[i], r[i + VL / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < VL; ++i) r[i] = t[i];
  }
}
}  // namespace ramet::kernels::RAMET_VARIANT
