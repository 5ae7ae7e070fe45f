// The plan of a float product that follows from its shape: K blocks, and which operands are packed.
// Shared by the kernels (all variants must agree on the K blocks, which are part of an element's
// bits) and by the fronts (workspace sizes).
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {

// Always inlined: an out-of-line copy emitted by one variant's object could serve the whole program
// (kernels/kernel.h).
#define RAMET_PLAN [[gnu::always_inline]] inline

// Longest K block: a sliver of B, 32 columns, takes 32 KB at most and stays in a first-level cache
// of 48 KB beside one of A. Measured on Zen 5, where 512 loses 15-20 % at 1024^3; Zen 4 does not
// mind.
inline constexpr int64_t kGemmKC = 256;
inline constexpr int64_t kGemmMC = 224;   // most rows of one task: 16 tiles of 14
inline constexpr int64_t kGemmNC = 2048;  // columns of B packed at a time
// Floats of an operand block that the second-level cache and the prefetchers serve well in place.
inline constexpr int64_t kGemmFits = 128 * 1024;
// Packed B up to this size lives on the stack of the kernel.
inline constexpr int64_t kGemmStackFloats = 8 * 1024;
inline constexpr int64_t kGemmPackA = kGemmMC * kGemmKC + 64;

RAMET_PLAN int64_t gemm_k_blocks(int64_t k) {
  return k <= kGemmKC ? 1 : (k + kGemmKC - 1) / kGemmKC;
}
RAMET_PLAN int64_t gemm_k_block(int64_t k) {
  const int64_t blocks = gemm_k_blocks(k);
  return (k + blocks - 1) / blocks;
}
// Rows whose stride is a multiple of 4 KB share the sets of the first-level cache, so they are
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

}  // namespace kernels
}  // namespace ramet
