#include "kernels/gpu/gpu_elements.h"
#include "kernels/gpu/gpu_launch.h"
// clang-format off: the first two decide what the others mean
#include "kernels/copy/copy_tensors.h"
#include "kernels/copy/tensor_tiles.h"
// clang-format on

namespace ramet::kernels::RAMET_VARIANT {
namespace {

/// Bytes of a tile: a block of threads has four 16-byte pieces for each.
constexpr int64_t kTileBytes = 4 * 16 * kThreads;

// Copies the whole Words of n bytes, by the threads of a block. Returns the number of bytes.
template <class Word>
__device__ __forceinline__ int64_t copy_words(const char* from, char* to, int64_t n) {
  constexpr int64_t kBytes = sizeof(Word);
  for (int64_t i = threadIdx.x; i < n / kBytes; i += kThreads)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
  return n / kBytes * kBytes;
}

__global__ void copy_tensors_kernel(CopyTensorsArgs a, int64_t tiles) {
  for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
    const TensorTile tile = tensor_tile(a, kTileBytes, i);
    const char* from = static_cast<const char*>(a.tensors[tile.tensor].from) + tile.begin;
    char* to = static_cast<char*>(a.tensors[tile.tensor].to) + tile.begin;
    const int64_t n = tile.end - tile.begin;
    const auto source = reinterpret_cast<uintptr_t>(from), target = reinterpret_cast<uintptr_t>(to);
    int64_t done = 0;
    if ((source ^ target) % 16 == 0) {  // by 16 bytes from the first address aligned in both
      done = copy_words<uint8_t>(from, to, imin(n, static_cast<int64_t>((16 - source % 16) % 16)));
      done += copy_words<uint4>(from + done, to + done, n - done);
    } else if ((source | target) % 4 == 0) {
      done = copy_words<uint32_t>(from, to, n);
    }
    copy_words<uint8_t>(from + done, to + done, n - done);
  }
}

}  // namespace

void copy_tensors(const CopyTensorsArgs& a, Stream where) {
  const int64_t tiles = tensor_tiles(a, kTileBytes);
  if (tiles == 0) return;
  start("copy_tensors", where, grid_of(tiles), kThreads, 0, copy_tensors_kernel, a, tiles);
}

}  // namespace ramet::kernels::RAMET_VARIANT
