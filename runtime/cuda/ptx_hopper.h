// PTX of compute capability 9.0 alone (sm_90a), each instruction with an emulation: products of a
// warpgroup (four neighbouring warps, the first one's number a multiple of four), bulk copies of
// tiles and the barriers in shared memory that count them. As in ptx.h, whose rules hold here too.
// Sources: "PTX ISA", sections "wgmma", "cp.async.bulk.tensor", "mbarrier", "setmaxnreg".
//
// Note [Tiles of Hopper]: a tile has rows of 128 bytes, 64 elements, and begins at a multiple of
// 1024 bytes. Of row r the 16 bytes with number c lie where those with number c ^ r % 8 would
// without the swizzle: so eight rows of one column, and eight columns of one row, lie in different
// banks. Bulk copies write so, products read so, and both go by bits of the address, so an operand
// may begin at any 32 bytes of a row, or at any eighth row. What is wider lies in several tiles.
#pragma once
#include <cstdint>

#include "runtime/cuda/ptx.h"
#include "runtime/cuda/tensor_map.h"

// Whether this pass of the compiler knows these instructions. What uses them is empty elsewhere.
#if RAMET_GPU_EMULATED || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define RAMET_HOPPER_CODE 1
#else
#define RAMET_HOPPER_CODE 0
#endif

namespace ramet::ptx {

using cuda::TensorMap;

/// What tiles begin at a multiple of: bytes of eight rows.
constexpr unsigned kTileAlignment = 1024;

/// A product's operand that begins at `address` of shared memory. Its groups of eight rows lie 1024
/// bytes apart; where its rows are those of the product's depth, its groups of 64 columns lie
/// `next_columns` bytes apart.
__host__ __device__ constexpr uint64_t tile_operand(unsigned address, unsigned next_columns = 16) {
  constexpr uint64_t kSwizzle128 = 1;
  return (address & 0x3ffff) >> 4 | uint64_t(next_columns >> 4) << 16 |
         uint64_t(kTileAlignment >> 4) << 32 | kSwizzle128 << 62;
}

}  // namespace ramet::ptx

#if !RAMET_GPU_EMULATED

namespace ramet::ptx {

/// A barrier whose phases end when `count` threads have arrived and all bytes that were expected
/// are there. Others see it after barriers_ready() and __syncthreads().
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
/// Arrives, and the phase waits for so many bytes of bulk copies more.
__device__ __forceinline__ void barrier_expect(uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
/// Waits for the end of the running phase if its parity is `parity` (the first one's is 0), for
/// nothing if it is the other one. (A line of PTX that begins with a brace ends a kernel, for
/// ptx_loops.py: those of a block have a tab before.)
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

/// Starts to copy a tile of the matrix to shared memory: 64 columns from `column` on, as many rows
/// as the map says from `row` on, of this head and batch; zeros where the matrix has none. Its
/// bytes are counted by the barrier.
__device__ __forceinline__ void tile_copy(void* target, const TensorMap& map, int column, int row,
                                          int head, int batch, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(shared_address(target)),
      "l"(&map), "r"(column), "r"(row), "r"(head), "r"(batch), "r"(shared_address(barrier))
      : "memory");
}

/// The warpgroup gives registers back, or waits for more: `count` for each of its threads from now
/// on. (24 to 256, a multiple of 8.)
template <int count> __device__ __forceinline__ void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> __device__ __forceinline__ void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/// Between what writes to registers of products and the first product that uses them.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
/// Ends a group of products.
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most the last `pending` groups are under way. Of the others' sums `done` has to
/// be said before they are used.
template <int pending> __device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// The compiler reads these no earlier than here.
template <int kFragments> __device__ __forceinline__ void done(float (&d)[kFragments][4]) {
#pragma unroll
  for (int j = 0; j < kFragments; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e])::"memory");
  }
}

/// x, of which the compiler does not know that it is the same every time: what follows from it is
/// computed here and not kept.
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

/// d = a b' (d += a b' with `add`): 64 rows of a and 128 of b by a depth of 16, both with the depth
/// along their rows (tile_operand). A thread's part of d: CoreSums, its warp's 16 rows.
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
/// d += a b: a as the left operand of mma_bf16 holds its warp's 16 rows, 16 rows of b, which are
/// the depth, and 64 or 128 of its columns.
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
