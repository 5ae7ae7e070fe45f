// Lab 5: a race between threads. task.md says what to do.
#include "runtime/cuda/gpu.h"

namespace lab {

constexpr int kPiece = 64;  // threads of a block, two warps, and elements of its piece

__global__ void blur_kernel(const float* x, float* y, int rounds) {
  __shared__ float piece[kPiece];
  const int t = static_cast<int>(threadIdx.x);
  const int left = t > 0 ? t - 1 : t, right = t < kPiece - 1 ? t + 1 : t;
  const int own = static_cast<int>(blockIdx.x) * kPiece + t;
  piece[t] = x[own];
  for (int round = 0; round < rounds; ++round) {
    // HOLE 1: replace each element by the mean of its left neighbour, itself and its right one, all
    // three as they were before this round.
    //| piece[t] = (piece[left] + piece[t] + piece[right]) / 3;
    __syncthreads();
    const float mean = (piece[left] + piece[t] + piece[right]) / 3;
    __syncthreads();
    piece[t] = mean;
    // END 1
  }
  y[own] = piece[t];
}

cudaError_t blur(const float* x, float* y, int pieces, int rounds) {
  return ramet::launch(blur_kernel, static_cast<unsigned>(pieces), kPiece, 0, nullptr, x, y,
                       rounds);
}

}  // namespace lab
