// A sum of 64 numbers by one block, as a tree in shared memory. Step through it:
//
//   ./tools/step_kernel sum
//
// Then take a __syncthreads() away, and see what the checker says, and at which step.
#include <cstdio>

#include "runtime/cuda/gpu.h"

__global__ void sum_kernel(const float* x, float* y) {
  __shared__ float part[64];
  const unsigned i = threadIdx.x;
  part[i] = x[i];
  __syncthreads();
  for (unsigned step = blockDim.x / 2; step > 0; step /= 2) {
    if (i < step) part[i] += part[i + step];
    __syncthreads();
  }
  if (i == 0) *y = part[0];
}

int main() {
  float host[64], result = 0, *x = nullptr, *y = nullptr;
  for (int i = 0; i < 64; ++i) host[i] = static_cast<float>(i + 1);
  if (cudaMalloc(&x, sizeof host) != cudaSuccess || cudaMalloc(&y, sizeof result) != cudaSuccess)
    return 1;
  if (cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice) != cudaSuccess) return 2;
  if (ramet::launch(sum_kernel, 1, 64, 0, nullptr, x, y) != cudaSuccess) return 3;
  if (cudaMemcpy(&result, y, sizeof result, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
  std::printf("the sum is %g\n", static_cast<double>(result));
  return result == 64 * 65 / 2 ? 0 : 5;
}
