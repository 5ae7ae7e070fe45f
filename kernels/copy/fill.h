// Fills and sequences.
#pragma once
#include <cstdint>

#include "kernels/copy/view.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Every one of n dense elements of `item_size` bytes (1, 2, 4 or 8) becomes the low bytes of
/// `bits`.
struct FillDenseArgs {
  void* out;
  int64_t n;
  uint64_t bits;
  int32_t item_size;
};
RAMET_KERNEL(fill_dense, FillDenseArgs);

/// The same over a strided view; strides in elements, elements distinct.
struct FillStridedArgs {
  void* out;
  uint64_t bits;
  int32_t item_size, rank;
  int64_t sizes[kMaxKernelRank], strides[kMaxKernelRank];
};
RAMET_KERNEL(fill_strided, FillStridedArgs);

/// out[i] = start + i * step, i < n, dense. Integer types: `istart`, `istep`, in int64 with
/// wrap-around; floating-point types: in double, rounded once. Each element is computed from its
/// index alone.
struct ArangeArgs {
  void* out;
  int64_t n;
  double start, step;
  int64_t istart, istep;
  ScalarType dtype;
};
RAMET_KERNEL(arange, ArangeArgs);

/// n evenly spaced numbers from start to end, both included. As in LibTorch the second half counts
/// down from `end`, so both ends are exact. In double; integer types truncate. One element is
/// `start`.
struct LinspaceArgs {
  void* out;
  int64_t n;
  double start, end;
  ScalarType dtype;
};
RAMET_KERNEL(linspace, LinspaceArgs);

}  // namespace kernels
}  // namespace ramet
