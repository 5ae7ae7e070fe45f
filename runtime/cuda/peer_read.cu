#include "runtime/cuda/peer_read.h"

namespace ramet {
namespace cuda {
namespace {

constexpr unsigned kThreads = 128;

__global__ void read_peer_kernel(uint4* to, const uint4* from, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

}  // namespace

cudaError_t read_peer(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  const auto count = static_cast<unsigned>(bytes / sizeof(uint4));
  return launch(read_peer_kernel, dim3((count + kThreads - 1) / kThreads), dim3(kThreads), 0,
                stream, static_cast<uint4*>(to), static_cast<const uint4*>(from), count);
}

}  // namespace cuda
}  // namespace ramet
