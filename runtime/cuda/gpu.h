// The one header that kernel files and their launchers include. Under nvcc, and if the build sets
// RAMET_GPU_TOOLKIT (--config=cuda), <cuda_runtime.h> and similar headers are the toolkit's. In
// other builds they are those of the emulated GPUs (tools/emulated_gpu/include).
//
// Note [The dialect of kernel files]: CUDA C++ with three rules.
//   1. No <<<>>>: launch(kernel<T>, grid, block, shared_bytes, stream, arguments...).
//   2. No `extern __shared__`: float* s = dynamic_shared<float>(). Plain __shared__ arrays stay.
//   3. Inline PTX only in runtime/cuda/ptx.h, or in ptx_hopper.h if only one GPU has it; each
//      instruction with a host version. No __device__ or __constant__ variables: all emulated
//      devices would share them. Pass structs by value.
#pragma once
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#if defined(__CUDACC__) || defined(RAMET_GPU_TOOLKIT)

#define RAMET_GPU_EMULATED 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cassert>

/// For invariants of a kernel, not for user errors: those go to the stream's error word.
#define RAMET_GPU_ASSERT(condition) assert(condition)

#if defined(__CUDACC__)
namespace ramet {

/// The block's dynamic shared memory, with the size that the launch gives.
template <class T> __device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(128) unsigned char ramet_dynamic_shared[];
  return reinterpret_cast<T*>(ramet_dynamic_shared);
}

/// Starts a kernel. Converts the arguments to the kernel's parameter types first. Returns the error
/// of the launch. Faults of the kernel itself show at a later call.
template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each parameter");
  // Not <<<>>>: its error is the thread's last error, which may come from another call.
  std::tuple<Parameters...> values(static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  return std::apply(
      [&](Parameters&... each) {
        void* pointers[sizeof...(Parameters) + 1] = {
            const_cast<void*>(static_cast<const volatile void*>(&each))...};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, pointers,
                                shared_bytes, stream);
      },
      values);
}

}  // namespace ramet
#endif

#else

#define RAMET_GPU_EMULATED 1
#include <cuda_runtime.h>

#endif
