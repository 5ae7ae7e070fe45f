// Copies of many tensors in one call: into one buffer, out of one buffer, or from one set of places
// to another.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Tensors of one call: as many as fit an argument block, which CUDA limits to 4 KB.
inline constexpr int kCopiedTensors = 160;

/// n bytes from `from` to `to`, for each. REQUIRES: no target overlaps a source or another target.
struct CopiedTensor {
  const void* from;
  void* to;
  int64_t n;
};
struct CopyTensorsArgs {
  int32_t count;  // number of tensors; later entries are unused
  CopiedTensor tensors[kCopiedTensors];
};
RAMET_KERNEL(copy_tensors, CopyTensorsArgs);

}  // namespace kernels
}  // namespace ramet
