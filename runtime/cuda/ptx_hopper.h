// PTX for compute capability 9.0 alone (sm_90a), each instruction with an emulation. There are
// products of a warpgroup, bulk copies of tiles and the barriers in shared memory that count them.
// A warpgroup is four neighbouring warps, and the number of the first one is a multiple of four.
// The rules of ptx.h hold here, too. Sources: "PTX ISA", sections "wgmma", "cp.async.bulk.tensor",
// "mbarrier", "setmaxnreg".
//
// Note [Tiles of Hopper]
// A tile has rows of 128 bytes, 64 elements, and begins at a multiple of 1024 bytes. Without the
// swizzle, row r would hold 16-byte pieces in order. With it, piece c of row r is at place c ^ r %
// 8. So eight rows of one column, and eight columns of one row, lie in different banks. Bulk copies
// write this layout and products read it. Both compute the place from bits of the address. So an
// operand may begin at any 32 bytes of a row, or at any eighth row. A wider matrix takes several
// tiles.
#pragma once
#include <cstdint>

#include "runtime/cuda/ptx.h"
#include "runtime/cuda/tensor_map.h"

// Does this pass of the compiler know these instructions? Code that uses them is empty elsewhere.
#if RAMET_GPU_EMULATED || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define RAMET_HOPPER_CODE 1
#else
#define RAMET_HOPPER_CODE 0
#endif

namespace ramet::ptx {

using cuda::TensorMap;

/// Alignment of tiles: bytes of eight rows.
constexpr unsigned kTileAlignment = 1024;

/// A product's operand that begins at `address` of shared memory. Its groups of eight rows are 1024
/// bytes apart. If its rows are those of the product's depth, its groups of 64 columns are
/// `next_columns` bytes apart.
__host__ __device__ constexpr uint64_t tile_operand(unsigned address, unsigned next_columns = 16) {
  constexpr uint64_t kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t(next_columns >> 4) << 16 |
         uint64_t(kTileAlignment >> 4) << 32 | kSwizzle128 << 62;
}

}  // namespace ramet::ptx

#if !RAMET_GPU_EMULATED

namespace ramet::ptx {

/// A barrier. Each of its phases ends when `count` threads have arrived and all expected bytes are
/// there. Other threads see the barrier after barriers_ready() and __syncthreads().
__device__ __forceinline__ void barrier_init(uint64_t* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}
__device__ __forceinline__ void barriers_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
/// Arrives. The phase also waits for this many more bytes of bulk copies.
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
/// Waits for the end of the running phase if its parity is `parity` (0 for the first one).
/// Otherwise does not wait. (For ptx_loops.py a line of PTX that begins with a brace ends a kernel.
/// So braces of a block have a tab before them.)
__device__ __forceinline__ void barrier_wait(uint64_t* barrier, unsigned parity) {
  const unsigned address = shared_address(barrier);
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n\t}"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
}

/// Starts to copy a tile of the matrix of this head and batch to shared memory. It has 64 columns
/// from `column` on, and the map's number of rows from `row` on. Elements outside the matrix are
/// zeros. The barrier counts the bytes.
__device__ __forceinline__ void tile_copy(void* target, const TensorMap& map, int column, int row,
                                          int head, int batch, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(target)),
      "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(shared_address(barrier))
      : "memory");
}

/// The warpgroup gives registers back, or waits for more. Each of its threads has `count` from now
/// on. (24 to 256, a multiple of 8.)
template <int count> __device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> __device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/// Separates writes to registers of products from the first product that uses them.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Ends a group of products.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most the last `pending` groups are under way. Call `done` on the sums of the
/// other groups before they are used.
template <int pending> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Keeps the compiler from reading these sums earlier.
template <int kFragments> __device__ __forceinline__ void done(float (&d)[kFragments][4]) {
#pragma unroll
  for (int j = 0; j < kFragments; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
  }
}

/// Returns x, but the compiler cannot know that it is the same every time. So it computes what
/// depends on x here and does not keep it in registers.
__device__ __forceinline__ unsigned here(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

// Sums of 8 columns, of 64 and of 128, as operands and as text.
#define RAMET_SUMS_8(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define RAMET_SUMS_32(j) \
  RAMET_SUMS_8(j), RAMET_SUMS_8(j + 1), RAMET_SUMS_8(j + 2), RAMET_SUMS_8(j + 3)
#define RAMET_SUMS_64 RAMET_SUMS_32(0), RAMET_SUMS_32(4)
#define RAMET_SUMS_128 RAMET_SUMS_64, RAMET_SUMS_32(8), RAMET_SUMS_32(12)
#define RAMET_NAMES_0_TO_31                  \
  "%0, %1, %2, %3, %4, %5, %6, %7, "         \
  "%8, %9, %10, %11, %12, %13, %14, %15, "   \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31"
#define RAMET_NAMES_0_TO_63                    \
  RAMET_NAMES_0_TO_31                          \
  ", %32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, "   \
  "%48, %49, %50, %51, %52, %53, %54, %55, "   \
  "%56, %57, %58, %59, %60, %61, %62, %63"
#define RAMET_WGMMA(columns, type) \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " "

/// d = a b' (d += a b' with `add`). Takes 64 rows of a and 128 of b, with a depth of 16. Both have
/// the depth along their rows (tile_operand). A thread's part of d: CoreSums, its warp's 16 rows.
template <bool bfloat, bool add>
__device__ __forceinline__ void wgmma_tiles(float (&d)[16][4], uint64_t a, uint64_t b) {
  if constexpr (bfloat)
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" RAMET_WGMMA(
                     "128", "bf16") "{" RAMET_NAMES_0_TO_63 "}, %64, %65, p, 1, 1, 0, 0;\n\t}"
                 : RAMET_SUMS_128
                 : "l"(a), "l"(b), "n"(int(add)));
  else
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" RAMET_WGMMA(
                     "128", "f16") "{" RAMET_NAMES_0_TO_63 "}, %64, %65, p, 1, 1, 0, 0;\n\t}"
                 : RAMET_SUMS_128
                 : "l"(a), "l"(b), "n"(int(add)));
}
/// d += a b. a holds its warp's 16 rows, laid out as the left operand of mma_bf16. b has 16 rows,
/// which are the depth, and 64 or 128 columns.
template <bool bfloat>
__device__ __forceinline__ void wgmma_rows(float (&d)[8][4], const unsigned (&a)[4], uint64_t b) {
  if constexpr (bfloat)
    asm volatile(RAMET_WGMMA("64", "bf16") "{" RAMET_NAMES_0_TO_31
                                           "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : RAMET_SUMS_64
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  else
    asm volatile(RAMET_WGMMA("64", "f16") "{" RAMET_NAMES_0_TO_31
                                          "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                 : RAMET_SUMS_64
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <bool bfloat>
__device__ __forceinline__ void wgmma_rows(float (&d)[16][4], const unsigned (&a)[4], uint64_t b) {
  if constexpr (bfloat)
    asm volatile(RAMET_WGMMA("128", "bf16") "{" RAMET_NAMES_0_TO_63
                                            "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : RAMET_SUMS_128
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
  else
    asm volatile(RAMET_WGMMA("128", "f16") "{" RAMET_NAMES_0_TO_63
                                           "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                 : RAMET_SUMS_128
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

#undef RAMET_SUMS_8
#undef RAMET_SUMS_32
#undef RAMET_SUMS_64
#undef RAMET_SUMS_128
#undef RAMET_NAMES_0_TO_31
#undef RAMET_NAMES_0_TO_63
#undef RAMET_WGMMA

}  // namespace ramet::ptx

#endif
