// The plan of a float product, which follows from its shape: K blocks and packed operands. The
// kernels use it (all variants must agree on the K blocks, which affect an element's bits), and so
// do the fronts (workspace sizes).
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {

// Always inlined: an out-of-line copy from one variant's object could be linked for the whole
// program (kernels/kernel.h).
#define RAMET_PLAN [[gnu::always_inline]] inline

// Longest K block. A sliver of B, 32 columns, takes at most 32 KB. It stays in a first-level cache
// of 48 KB together with a sliver of A. Measured on Zen 5, where 512 loses 15-20 % at 1024^3; on
// Zen 4 it makes no difference.
inline constexpr int64_t kGemmKC = 256;
inline constexpr int64_t kGemmMC = 224;   // most rows of one task: 16 tiles of 14
inline constexpr int64_t kGemmNC = 2048;  // columns of B packed at a time
// Floats of an operand block for which the second-level cache and the prefetchers need no packing.
inline constexpr int64_t kGemmFits = 128 * 1024;
// Packed B up to this size is on the stack of the kernel.
inline constexpr int64_t kGemmStackFloats = 8 * 1024;
inline constexpr int64_t kGemmPackA = kGemmMC * kGemmKC + 64;

RAMET_PLAN int64_t gemm_k_blocks(int64_t k) {
  return k <= kGemmKC ? 1 : (k + kGemmKC - 1) / kGemmKC;
}
RAMET_PLAN int64_t gemm_k_block(int64_t k) {
  const int64_t blocks = gemm_k_blocks(k);
  return (k + blocks - 1) / blocks;
}
// Rows with a stride of a multiple of 4 KB share the sets of the first-level cache. So they are
// packed much earlier.
RAMET_PLAN bool gemm_packs_b(int64_t m, int64_t n, int64_t k, int64_t ldb, bool tb) {
  return tb || (m > 28 && n * gemm_k_block(k) > (ldb % 1024 == 0 ? 16 * 1024 : kGemmFits));
}
RAMET_PLAN bool gemm_packs_a(int64_t m, int64_t n, int64_t k, int64_t lda, bool ta) {
  return n > 64 && m * gemm_k_block(k) > (!ta && lda % 1024 == 0 ? 8 * 1024 : kGemmFits);
}
// Floats of packed B; slivers of up to 32 columns are padded.
RAMET_PLAN int64_t gemm_pack_b_floats(int64_t n, int64_t k) {
  return gemm_k_block(k) * ((n < kGemmNC ? n : kGemmNC) + 32);
}

// Of products in bfloat16 (gemm_bfloat.h). When they use the processor's instruction for pairs:
enum class BfloatPairs : uint8_t { kIfFaster, kNever, kAlways };
// Sizes in floats. A step of a packed operand is one float, for two numbers or for one. Up to this k
// there is one K block in either case, so no sums wait for the next one.
inline constexpr int64_t kBfloatKC = 2 * kGemmKC;
RAMET_PLAN int64_t bfloat_steps(int64_t k) { return k <= kBfloatKC ? k + k % 2 : kGemmKC; }
RAMET_PLAN int64_t bfloat_pack_b(int64_t n, int64_t k) {
  return bfloat_steps(k) * ((n < kGemmNC ? n : kGemmNC) + 32);
}
// with slack, and a multiple of 16
RAMET_PLAN int64_t bfloat_pack_a(int64_t m, int64_t k) {
  return ((m < kGemmMC ? m : kGemmMC) * bfloat_steps(k) + 31) / 16 * 16;
}
// The sums of a row of C between K blocks.
RAMET_PLAN int64_t bfloat_sums_row(int64_t n) { return (n + 31) / 32 * 32; }
RAMET_PLAN int64_t bfloat_sums(int64_t m, int64_t n, int64_t k) {
  return k <= kBfloatKC ? 0 : m * bfloat_sums_row(n);
}

}  // namespace kernels
}  // namespace ramet
