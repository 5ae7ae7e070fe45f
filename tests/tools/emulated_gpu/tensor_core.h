// A tensor-core product, for tests of the emulated instructions of runtime/cuda/ptx.h.
#pragma once
#include "runtime/cuda/ptx.h"

namespace ramet::testing {

/// What a tensor-core kernel can forget.
enum class Forgotten { Nothing, Wait, SecondBarrier };

/// c (m x n) = a (m x k) b (k x n): bfloat16 in, float out, row-major, k and n multiples of 8.
cudaError_t tensor_core_matmul(Forgotten forgotten, const __nv_bfloat16* a, const __nv_bfloat16* b,
                               float* c, int m, int n, int k, cudaStream_t stream);
/// ldmatrix after half of the warp has left.
cudaError_t tensor_core_half_warp(cudaStream_t stream);
/// cp.async from an address that is no multiple of 16.
cudaError_t tensor_core_misaligned(const float* x, cudaStream_t stream);

}  // namespace ramet::testing
