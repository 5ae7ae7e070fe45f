// The elements under a mask: counted, moved and located.
#pragma once
#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

inline constexpr int64_t kMaskBlock = 4096;
/// Number of int64 values that mask_count writes.
constexpr int64_t mask_offsets(int64_t n) { return (n + kMaskBlock - 1) / kMaskBlock + 1; }

/// offsets[b] = number of true bytes in mask[0, b * kMaskBlock); the last of mask_offsets(n) values
/// is their total.
struct MaskCountArgs {
  const void* mask;  // dense bool
  int64_t n;
  int64_t* offsets;
};
RAMET_KERNEL(mask_count, MaskCountArgs);

/// The elements under a true mask, in order: packed[k] = dense[i] (select) or dense[i] = packed[k]
/// (scatter). REQUIRES: offsets by mask_count; `bytes` (1, 2, 4 or 8) an element.
struct MaskMoveArgs {
  const void* mask;
  const int64_t* offsets;
  void *dense, *packed;
  int64_t n, bytes;
  bool scatter;
};
RAMET_KERNEL(mask_move, MaskMoveArgs);

/// out[k][d] = coordinate d of the k-th true element of a mask of these extents.
/// Above kMaxKernelRank dimensions the front passes rank 1 and splits the result.
struct NonzeroArgs {
  const void* mask;
  const int64_t* offsets;
  int64_t* out;
  int32_t rank;
  int64_t sizes[kMaxKernelRank];
};
RAMET_KERNEL(nonzero_positions, NonzeroArgs);

}  // namespace kernels
}  // namespace ramet
