// Maps of matrices for bulk copies (ptx::tile_copy in ptx_hopper.h).
#pragma once
#include <cstdint>

#include "runtime/base/error.h"
#include "runtime/cuda/gpu.h"

namespace ramet {
namespace cuda {

/// What the copying hardware knows of a matrix in global memory: a kernel's argument. (Of arguments
/// aligned so g++ says at each kernel that once they were passed otherwise.)
struct alignas(RAMET_GPU_EMULATED ? 8 : 128) TensorMap {
  uint64_t words[16];
};
/// Columns of a tile: 128 bytes.
inline constexpr int kTileColumns = 64;

/// [batch, heads, rows, columns] of 16-bit floats with any strides, in elements, but neighbouring
/// columns, and of which a copy takes 64 columns and `tile_rows` rows.
struct TiledMatrix {
  const void* data;
  int64_t batches, heads, rows, columns;
  int64_t batch, head, row;  // strides
  int tile_rows;
};

/// What the hardware takes: none of the extents 0, 16-byte aligned memory and strides, below 2^40
/// bytes and, where there are several to step over, not 0.
RAMET_API bool has_tensor_map(const TiledMatrix& m);

/// The map, which knows of the matrix only what stands in `m`: no memory is read. REQUIRES:
/// has_tensor_map(m). Throws where the driver has no such function or refuses.
RAMET_API TensorMap tensor_map(const char* op, int device, const TiledMatrix& m);

}  // namespace cuda
}  // namespace ramet
