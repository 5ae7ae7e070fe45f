#include "tests/autograd/gpu/host_waits.h"

#include <atomic>

#include "runtime/cuda/gpu.h"

namespace {
std::atomic<uint64_t> waits{0};
}

extern "C" {
cudaError_t __real_cudaDeviceSynchronize(void);
cudaError_t __real_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream);
cudaError_t __real_cudaStreamSynchronize(cudaStream_t stream);
cudaError_t __wrap_cudaDeviceSynchronize(void) {
  ++waits;
  return __real_cudaDeviceSynchronize();
}
cudaError_t __wrap_cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  waits += kind == cudaMemcpyDeviceToHost;
  return __real_cudaMemcpyAsync(to, from, bytes, kind, stream);
}
cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  return __real_cudaStreamSynchronize(stream);
}
}

namespace ramet {
uint64_t host_waits() { return waits; }
}  // namespace ramet
