// Runs the kernel of stepping.cu and checks what it computed.
#include <cstdio>

#include "tests/tools/emulated_gpu/gdb/stepping.h"

int main() {
  int* x = nullptr;
  int back[16] = {};
  if (cudaMalloc(&x, sizeof back) != cudaSuccess) return 2;
  if (ramet::testing::turn_in_blocks_of_8(x, nullptr) != cudaSuccess) return 3;
  if (cudaMemcpy(back, x, sizeof back, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
  for (int i = 0; i < 16; ++i)
    if (back[i] != i / 8 * 8 + 7 - i % 8) return 5;
  std::puts("turned");
  return cudaFree(x) == cudaSuccess ? 0 : 6;
}
