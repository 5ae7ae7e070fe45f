// Tiles and products by the instructions of runtime/cuda/ptx_hopper.h, for their tests.
#pragma once
#include "runtime/cuda/gpu.h"
#include "runtime/cuda/tensor_map.h"

namespace ramet::testing {

/// out (rows x 64) = the tile from `at` (column, row, head, batch) on, as it lies in shared memory.
cudaError_t hopper_tile(const cuda::TensorMap& map, const int (&at)[4], int rows, uint16_t* out,
                        cudaStream_t stream);

/// What the kernels of products can forget.
enum class HopperForgotten { Nothing, Arrival, Wait, Fence, Use };

/// ab (64 x 128) = a b' and abc (64 x columns) = bfloat16(ab) c, of bfloat16. a is 64 x 64, b 128 x
/// 64, c 128 x columns, where columns is 64 or 128; maps of tiles of all rows.
cudaError_t hopper_products(HopperForgotten forgotten, const cuda::TensorMap& a,
                            const cuda::TensorMap& b, const cuda::TensorMap& c, int columns,
                            float* ab, float* abc, cudaStream_t stream);

}  // namespace ramet::testing
