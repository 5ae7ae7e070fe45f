// Lab 8: loads and stores that come together. task.md says what to do.
#include "tools/labs/08_coalesced/lab.h"

namespace lab {
using ramet::labs::Loads;
using ramet::labs::Stores;

constexpr int kTile = 32;  // a block has kTile x kTile threads; those of one threadIdx.y are a warp

__global__ void transpose_kernel(Loads x, Stores y, int rows, int columns) {
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const int row0 = static_cast<int>(blockIdx.y) * kTile,
            column0 = static_cast<int>(blockIdx.x) * kTile;
  // HOLE 1: element (row, column) of x is x[row * columns + column]. It becomes element (column,
  // row) of y: y.set(column * rows + row, value). The block does the tile of x that begins at
  // (row0, column0). At the right and at the lower edge only a part of it is there.
  //| const int row = row0 + ty, column = column0 + tx;
  //| if (row < rows && column < columns) y.set(column * rows + row, x[row * columns + column]);
  __shared__ float tile[kTile][kTile + 1];
  if (row0 + ty < rows && column0 + tx < columns)
    tile[ty][tx] = x[(row0 + ty) * columns + column0 + tx];
  __syncthreads();
  if (column0 + ty < columns && row0 + tx < rows)
    y.set((column0 + ty) * rows + row0 + tx, tile[tx][ty]);
  // END 1
}

cudaError_t transpose(Loads x, Stores y, int rows, int columns) {
  const dim3 grid(static_cast<unsigned>((columns + kTile - 1) / kTile),
                  static_cast<unsigned>((rows + kTile - 1) / kTile));
  return ramet::launch(transpose_kernel, grid, dim3(kTile, kTile), 0, nullptr, x, y, rows, columns);
}

}  // namespace lab
