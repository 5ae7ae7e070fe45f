// The kernel that gdb_test.sh steps through. The test finds its places by the comments.
#include "tests/tools/emulated_gpu/gdb/stepping.h"

namespace ramet::testing {
namespace {

__global__ void turn(int* x) {
  __shared__ int tile[8];
  const int own = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x);
  tile[threadIdx.x] = own;  // place: write
  __syncthreads();
  const int other = tile[7 - threadIdx.x];  // place: read
  x[own] = other;
}

}  // namespace

cudaError_t turn_in_blocks_of_8(int* x, cudaStream_t stream) {
  return launch(turn, 2, 8, 0, stream, x);
}

}  // namespace ramet::testing
