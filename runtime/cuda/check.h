// CUDA's error codes as Errors.
#pragma once
#include "runtime/base/error.h"
#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// Throws "[op] cudaMemcpyAsync on cuda:1 failed: invalid argument (cudaErrorInvalidValue)". Of an
/// error that a kernel left behind it names the kernels that may have done it. `device`: k of
/// cuda:k, or -1.
[[noreturn, gnu::cold]] RAMET_API void raise(cudaError_t code, const char* op, const char* call,
                                             int device);

/// After a call for which the driver takes memory: where it had none, gives back all that is
/// cached, so that the call may be made once more. Throws what is another error, and this one where
/// the thread makes a graph: to free memory is to wait for the device (make_graph() begins again).
[[gnu::cold]] RAMET_API void free_caches(cudaError_t code, const char* op, const char* call,
                                         int device);
/// The call has failed again: an OutOfMemoryError with the statistics, or what raise() throws.
[[noreturn, gnu::cold]] RAMET_API void raise_again(cudaError_t code, const char* op,
                                                   const char* call, int device);

/// Whether a query's answer is "not ready". That is no error, but may stay the thread's last one,
/// which others may ask for: it does not stay.
inline bool is_not_ready(cudaError_t code) {
  if (code != cudaErrorNotReady) return false;
  (void)cudaGetLastError();
  return true;
}

/// For calls that give something back, where nobody can be told of an error: it does not stay
/// either. (Of an error that a kernel left behind the next call that can tells again.)
inline void ignore(cudaError_t code) noexcept {
  if (RAMET_UNLIKELY(code != cudaSuccess)) (void)cudaGetLastError();
}

/// The function's name out of the text of a call.
#define RAMET_CUDA(op, device, call)                                                      \
  do {                                                                                    \
    if (const cudaError_t ramet_code = (call); RAMET_UNLIKELY(ramet_code != cudaSuccess)) \
      ::ramet::cuda::raise(ramet_code, op, #call, device);                                \
  } while (0)
/// The same for calls for which the driver takes memory, which are made twice where it has none.
/// Not where the lock of an allocator is held.
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
