// How a .cu file starts its kernels. For .cu files only.
#pragma once
#include <utility>

#include "kernels/gpu/gpu_math.h"
#include "kernels/util.h"
#include "runtime/base/stream.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

// Arrays stay in registers only if all loops over them are unrolled.
#if RAMET_GPU_EMULATED
#define RAMET_UNROLL
#else
#define RAMET_UNROLL _Pragma("unroll")
#endif

namespace ramet::kernels::RAMET_VARIANT {

/// Threads of a block by default.
constexpr int kThreads = 256;

/// A grid of `blocks`, or blocks for `items` with one thread each. If there are more items than
/// kMostBlocks can take, a kernel takes further items in steps of the grid (first_item, item_step).
constexpr int64_t kMostBlocks = 1 << 16;
inline dim3 grid_of(int64_t blocks) {
  return dim3(static_cast<unsigned>(imax(1, imin(blocks, kMostBlocks))));
}
inline dim3 blocks_for(int64_t items) { return grid_of(ceil_div(items, kThreads)); }
__device__ __forceinline__ int64_t first_item() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t item_step() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

/// Queues kernel(arguments...) on the stream `where` (by default gpu::kCompute). Errors contain
/// `name`, the kernel's name for users. If the device reports a fault later, the error names `name`
/// as a possible cause.
template <class... Parameters, class... Arguments>
void start(const char* name, Stream where, dim3 grid, int threads, size_t shared_bytes,
           void (*kernel)(Parameters...), Arguments&&... arguments) {
  const int device = where.device.index();
  ::ramet::cuda::DeviceState& state = ::ramet::cuda::device_state(device, name);
  const ::ramet::cuda::CardGuard card(name, state);
  const dim3 block(static_cast<unsigned>(threads));
  const cudaStream_t stream =
      state.launching(name, static_cast<uint64_t>(grid.x) * grid.y * grid.z * block.x,
                      static_cast<::ramet::cuda::Queue>(where.id));
  // Not forwarded: if the driver has no memory for it, it is called again.
  RAMET_CUDA_ALLOCATING(name, device,
                        launch(kernel, grid, block, shared_bytes, stream, arguments...));
}
/// One thread for each of `items`.
template <class... Parameters, class... Arguments>
void start_for(const char* name, Stream where, int64_t items, void (*kernel)(Parameters...),
               Arguments&&... arguments) {
  if (items <= 0) return;
  start(name, where, blocks_for(items), kThreads, 0, kernel, std::forward<Arguments>(arguments)...);
}

}  // namespace ramet::kernels::RAMET_VARIANT
