#include "kernels/copy/copy_tensors.h"

#include "kernels/copy/tensor_tiles.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

constexpr int64_t kTileBytes = 64 * 1024;

}  // namespace

void copy_tensors(const CopyTensorsArgs& a) {
  auto part = [&](const CopiedTensor& t, int64_t begin, int64_t end) {
    memcpy(static_cast<char*>(t.to) + begin, static_cast<const char*>(t.from) + begin,
           static_cast<size_t>(end - begin));
  };
  if (2 * tensor_elements(a) < parallel_grain()) {
    for (int32_t t = 0; t < a.count; ++t)
      if (a.tensors[t].n) part(a.tensors[t], 0, a.tensors[t].n);
    return;
  }
  parallel_tasks(tensor_tiles(a, kTileBytes), [&](int64_t i, int) {
    const TensorTile tile = tensor_tile(a, kTileBytes, i);
    part(a.tensors[tile.tensor], tile.begin, tile.end);
  });
}

}  // namespace ramet::kernels::RAMET_VARIANT
