// How a kernel and its arguments get into a stream.
#pragma once
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tools/emulated_gpu/runtime/runtime_api.h"

namespace ramet::emulated {

/// A kernel with its arguments.
template <class... Parameters> struct KernelCall {
  void (*kernel)(Parameters...);
  std::tuple<std::decay_t<Parameters>...> arguments;

  /// Runs the kernel for the current CUDA thread; each thread gets copies of the arguments.
  static void run(const void* call) {
    const auto& self = *static_cast<const KernelCall*>(call);
    std::apply(self.kernel, self.arguments);
  }
};

struct KernelLaunch {
  const void* function;
  void (*run)(const void* call);
  std::shared_ptr<const void> call;
  size_t call_bytes;
};

/// CUDA's checks of a launch (extents, shared memory, the stream's device), then the queue.
cudaError_t launch_kernel(const KernelLaunch& what, dim3 grid, dim3 block, size_t shared_bytes,
                          cudaStream_t stream);

}  // namespace ramet::emulated
