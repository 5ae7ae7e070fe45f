// Maps of matrices for bulk copies (ptx::tile_copy in ptx_hopper.h).
#pragma once
#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// The copying hardware's description of a matrix in global memory: a kernel's argument. (For
/// arguments with this alignment g++ warns at each kernel that older versions passed them
/// otherwise.)
struct alignas(RAMET_GPU_EMULATED ? 8 : 128) TensorMap {
  uint64_t words[16];
};
/// Columns of a tile: 128 bytes.
inline constexpr int kTileColumns = 64;

/// [batch, heads, rows, columns] of 16-bit floats. Columns are neighbours; the other strides, in
/// elements, are free. A copy takes 64 columns and `tile_rows` rows of it.
struct TiledMatrix {
  const void* data;
  int64_t batches, heads, rows, columns;
  int64_t batch, head, row;  // strides
  int tile_rows;
};

/// The limits of the hardware. No extent is 0, and memory and strides are 16-byte aligned. Strides
/// are below 2^40 bytes and, if the extent is above 1, not 0.
RAMET_API bool has_tensor_map(const TiledMatrix& m);

/// The map. It holds only the data of `m`; no memory is read. REQUIRES: has_tensor_map(m). Throws
/// where the driver has no such function or refuses.
RAMET_API TensorMap tensor_map(const char* op, int device, const TiledMatrix& m);

}  // namespace cuda
}  // namespace ramet
