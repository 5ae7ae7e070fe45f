// What kernel files take from runtime/cuda/gpu.h in addition to CUDA's names: assertions, dynamic
// shared memory, launches.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>

#include "tools/emulated_gpu/executor/synchronize.h"
#include "tools/emulated_gpu/runtime/launch.h"

#define RAMET_GPU_ASSERT(condition)                                       \
  ((condition)                                                            \
       ? (void)0                                                          \
       : ::ramet::emulated::device_fail(::ramet::emulated::Fault::Assert, \
                                        "assertion failed: " #condition, __FILE__, __LINE__))

namespace ramet {

template <class T> T* dynamic_shared() {
  return static_cast<T*>(emulated::dynamic_shared_memory());
}

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                   cudaStream_t stream, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "one argument for each parameter");
  using Call = emulated::KernelCall<Parameters...>;
  // By value, as CUDA copies them: the caller's objects may be gone when the kernel runs.
  auto call = std::make_shared<Call>(
      Call{kernel, {static_cast<Parameters>(std::forward<Arguments>(arguments))...}});
  const emulated::KernelLaunch what{reinterpret_cast<const void*>(kernel), &Call::run, call,
                                    sizeof(Call)};
  return emulated::launch_kernel(what, grid, block, shared_bytes, stream);
}

}  // namespace ramet
