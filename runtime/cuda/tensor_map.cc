#include "runtime/cuda/tensor_map.h"

#include <cuda.h>

#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

constexpr int64_t kElement = 2, kMostStride = int64_t(1) << 40, kMostRows = 256;

// Bytes between neighbours. An extent of 1 never uses the stride, but the number must be legal.
int64_t step(int64_t extent, int64_t stride) { return (extent > 1 ? stride : 8) * kElement; }
bool legal(int64_t extent, int64_t stride) {
  const int64_t bytes = step(extent, stride);
  return extent > 0 && extent <= INT32_MAX && bytes > 0 && bytes < kMostStride && bytes % 16 == 0;
}

#if !RAMET_GPU_EMULATED
using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver is asked for the function, so a program starts without a driver.
Encode encoder(const char* op, int device) {
  static const Encode found = [op, device] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
    RAMET_CUDA(op, device,
               cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                cudaEnableDefault, &state));
#else
    RAMET_CUDA(
        op, device,
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &state));
#endif
    RAMET_CHECK(state == cudaDriverEntryPointSuccess && function, op,
                "the driver has no cuTensorMapEncodeTiled: got state ", static_cast<int>(state),
                ", expected ", static_cast<int>(cudaDriverEntryPointSuccess));
    return reinterpret_cast<Encode>(function);
  }();
  return found;
}
#endif

}  // namespace

bool has_tensor_map(const TiledMatrix& m) {
  return m.data && reinterpret_cast<uintptr_t>(m.data) % 16 == 0 && m.columns > 0 &&
         m.tile_rows > 0 && m.tile_rows <= kMostRows && legal(m.rows, m.row) &&
         legal(m.heads, m.head) && legal(m.batches, m.batch);
}

TensorMap tensor_map(const char* op, int device, const TiledMatrix& m) {
  const uint64_t extents[4] = {uint64_t(m.columns), uint64_t(m.rows), uint64_t(m.heads),
                               uint64_t(m.batches)};
  const uint64_t strides[3] = {uint64_t(step(m.rows, m.row)), uint64_t(step(m.heads, m.head)),
                               uint64_t(step(m.batches, m.batch))};
  const uint32_t tile[4] = {uint32_t(kTileColumns), uint32_t(m.tile_rows), 1, 1};
  TensorMap map;
#if RAMET_GPU_EMULATED
  emulated::encode_tensor_map(&map, m.data, extents, strides, tile);
  (void)op, (void)device;
#else
  static_assert(sizeof map == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));
  const uint32_t every[4] = {1, 1, 1, 1};
  const CardGuard card(op, device);  // a driver call needs a context
  // Elements are copied as they are, so neither their type nor its zero matters.
  const CUresult result =
      encoder(op, device)(reinterpret_cast<CUtensorMap*>(&map), CU_TENSOR_MAP_DATA_TYPE_UINT16, 4,
                          const_cast<void*>(m.data), extents, strides, tile, every,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                          CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  RAMET_CHECK(result == CUDA_SUCCESS, op, "cuTensorMapEncodeTiled refuses a matrix: got ",
              static_cast<int>(result), ", expected ", static_cast<int>(CUDA_SUCCESS));
#endif
  return map;
}

}  // namespace cuda
}  // namespace ramet
