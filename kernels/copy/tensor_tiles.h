// How the elements of many tensors are cut into tiles, each within one tensor. A tile is a task on
// a CPU and a block of threads on a GPU. `Args` has `count` tensors in `tensors`, each with `n`
// elements.
#pragma once
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

template <class Args> RAMET_INLINE int64_t tensor_tiles(const Args& a, int64_t tile) {
  int64_t tiles = 0;
  for (int32_t t = 0; t < a.count; ++t) tiles += ceil_div(a.tensors[t].n, tile);
  return tiles;
}
/// Tile i: its tensor, and its part of the tensor.
struct TensorTile {
  int32_t tensor;
  int64_t begin, end;
};
template <class Args> RAMET_INLINE TensorTile tensor_tile(const Args& a, int64_t tile, int64_t i) {
  int32_t t = 0;
  for (int64_t tiles; i >= (tiles = ceil_div(a.tensors[t].n, tile)); ++t) i -= tiles;
  return {t, i * tile, imin(a.tensors[t].n, (i + 1) * tile)};
}
template <class Args> RAMET_INLINE int64_t tensor_elements(const Args& a) {
  int64_t n = 0;
  for (int32_t t = 0; t < a.count; ++t) n += a.tensors[t].n;
  return n;
}

}  // namespace ramet::kernels::RAMET_VARIANT
