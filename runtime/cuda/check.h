// CUDA's error codes as Errors.
#pragma once
#include "runtime/base/error.h"
#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// Throws "[op] cudaMemcpyAsync on cuda:1 failed: invalid argument (cudaErrorInvalidValue)". If a
/// kernel caused the error, the text names the kernels that may have done it. `device`: k of
/// cuda:k, or -1.
[[noreturn, gnu::cold]] RAMET_API void raise(cudaError_t code, const char* op, const char* call,
                                             int device);

/// After a call for which the driver allocates memory. If it had none, gives all cached memory
/// back, so that the caller can repeat the call. Throws any other error. Throws this one, too, if
/// the thread makes a graph, because a free waits for the device (make_graph() begins again).
[[gnu::cold]] RAMET_API void free_caches(cudaError_t code, const char* op, const char* call,
                                         int device);
/// The call has failed again: throws an OutOfMemoryError with the statistics, or what raise()
/// throws.
[[noreturn, gnu::cold]] RAMET_API void raise_again(cudaError_t code, const char* op,
                                                   const char* call, int device);

/// Is the result of a query "not ready"? That is no error. But the thread would keep it as its last
/// error, which other code may ask for. So this function clears it.
inline bool is_not_ready(cudaError_t code) {
  if (code != cudaErrorNotReady) return false;
  (void)cudaGetLastError();
  return true;
}

/// For calls that free something, where an error cannot be reported. Clears the error, too. (An
/// error caused by a kernel is reported again by the next call that can.)
inline void ignore(cudaError_t code) noexcept {
  if (RAMET_UNLIKELY(code != cudaSuccess)) (void)cudaGetLastError();
}

/// Makes a CUDA call and raises its error. Takes the function's name from the text of the call.
#define RAMET_CUDA(op, device, call)                                                      \
  do {                                                                                    \
    if (const cudaError_t ramet_code = (call); RAMET_UNLIKELY(ramet_code != cudaSuccess)) \
      ::ramet::cuda::raise(ramet_code, op, #call, device);                                \
  } while (0)
/// The same for calls for which the driver allocates memory. If there is none, the call is repeated
/// once. Not for use under the lock of an allocator.
#define RAMET_CUDA_ALLOCATING(op, device, call)                                                 \
  do {                                                                                          \
    if (cudaError_t ramet_code = (call); RAMET_UNLIKELY(ramet_code != cudaSuccess)) {           \
      ::ramet::cuda::free_caches(ramet_code, op, #call, device);                                \
      ramet_code = (call);                                                                      \
      if (ramet_code != cudaSuccess) ::ramet::cuda::raise_again(ramet_code, op, #call, device); \
    }                                                                                           \
  } while (0)

}  // namespace cuda
}  // namespace ramet
