// The PTX instructions that kernels may use, each with an emulation. No other file of the tree
// except ptx_hopper.h contains inline assembly for a GPU. Sources: "PTX ISA", sections "cp.async",
// "ldmatrix", "mma.m16n8k16", "ex2".
#pragma once
#include "runtime/cuda/gpu.h"

#if !RAMET_GPU_EMULATED

namespace ramet::ptx {

__device__ __forceinline__ unsigned shared_address(const void* memory) {
  return static_cast<unsigned>(__cvta_generic_to_shared(memory));
}

/// Starts a copy of 16 bytes from global to shared memory, both aligned to 16. With fewer
/// `source_bytes` the rest is filled with zeros.
__device__ __forceinline__ void cp_async16(void* target, const void* source,
                                           unsigned source_bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(target)),
               "l"(source), "r"(source_bytes)
               : "memory");
}

/// The same for 8 bytes, both aligned to 8.
__device__ __forceinline__ void cp_async8(void* target, const void* source,
                                          unsigned source_bytes = 8) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared_address(target)),
               "l"(source), "r"(source_bytes)
               : "memory");
}

/// Ends a group of copies.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most the last `pending` groups of this thread are under way. Other threads see
/// the data after a barrier.
template <int pending> __device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements from shared memory, transposed on demand. Lanes 8 i to 8
/// i + 7 give the addresses of the rows of matrix i. Lane l gets elements (l / 4, 2 (l % 4)) and
/// the next of each.
template <bool transposed>
__device__ __forceinline__ void ldmatrix_x4(unsigned (&r)[4], const void* row) {
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/// d += a b, for a 16 x 16 and b 16 x 8 of bfloat16, d 16 x 8 of float; fragments as PTX lays them
/// out.
__device__ __forceinline__ void mma_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// The same for float16.
__device__ __forceinline__ void mma_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0,
                                        unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// 2^x within 2 units in the last place; operands and results below 2^-126 count as 0.
__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace ramet::ptx

#endif
